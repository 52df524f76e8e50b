//! Who a thread is: `pthread_setname_np`, `pthread_getname_np`, `gettid`.

use crate::coroutine::Coroutine;
use crate::sys::real::real_functions;
use core::ffi::{CStr, c_char, c_int};
use libc::{pthread_t, size_t};

mod real {
    use super::*;
    real_functions! {
        /// The real `pthread_setname_np`.
        fn pthread_setname_np(thread: pthread_t, name: *const c_char) -> c_int;
        /// The real `pthread_getname_np`.
        fn pthread_getname_np(thread: pthread_t, name: *mut c_char, length: size_t) -> c_int;
    }
}

/// TASK_COMM_LEN of the kernel.
const LENGTH: usize = 16;

/// Names a thread. ERANGE: more than 15 bytes.
///
/// # Safety
/// As `pthread_setname_np`.
pub unsafe fn setname(thread: pthread_t, name: *const c_char) -> c_int {
    // SAFETY: the caller keeps the contract.
    unsafe {
        let Some(coroutine) = Coroutine::from_pthread(thread) else {
            return real::pthread_setname_np(thread, name);
        };
        let bytes = CStr::from_ptr(name).to_bytes_with_nul();
        if bytes.len() > LENGTH {
            return libc::ERANGE;
        }
        // Racing setters and getters see a mix of names, as with the kernel's.
        core::ptr::copy_nonoverlapping(bytes.as_ptr(), coroutine.name.get().cast(), bytes.len());
    }
    0
}

/// A thread's name; that of the process if it never got one. ERANGE: a buffer below 16 bytes.
///
/// # Safety
/// As `pthread_getname_np`.
pub unsafe fn getname(thread: pthread_t, name: *mut c_char, length: size_t) -> c_int {
    // SAFETY: the caller keeps the contract.
    unsafe {
        let Some(coroutine) = Coroutine::from_pthread(thread) else {
            return real::pthread_getname_np(thread, name, length);
        };
        if length < LENGTH {
            return libc::ERANGE;
        }
        core::ptr::copy_nonoverlapping(coroutine.name.get().cast(), name, LENGTH);
    }
    0
}

/// `gettid`: the coroutine's own number, the same on whatever carrier it runs.
///
/// # Safety
/// None beyond the C function's.
pub unsafe fn gettid(coroutine: &Coroutine) -> libc::pid_t {
    coroutine.tid()
}
