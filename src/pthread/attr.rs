//! `pthread_getattr_np`. The attribute objects themselves are glibc's: their getters and setters do not
//! depend on what a thread is.

use crate::coroutine::{Coroutine, life};
use crate::sys::real::real_functions;
use core::ffi::{c_int, c_void};
use core::sync::atomic::Ordering;
use libc::{pthread_attr_t, pthread_t};

mod real {
    use super::*;
    real_functions! {
        /// The real `pthread_getattr_np`.
        fn pthread_getattr_np(thread: pthread_t, attr: *mut pthread_attr_t) -> c_int;
    }
}

/// The attributes of a running thread, above all its stack.
///
/// # Safety
/// As `pthread_getattr_np`.
pub unsafe fn getattr(thread: pthread_t, attr: *mut pthread_attr_t) -> c_int {
    // SAFETY: the caller keeps the contract; the setters work on the object that init made.
    unsafe {
        let Some(coroutine) = Coroutine::from_pthread(thread) else {
            return real::pthread_getattr_np(thread, attr);
        };
        let code = libc::pthread_attr_init(attr);
        if code != 0 {
            return code;
        }
        let (low, size) = coroutine.stack.get();
        libc::pthread_attr_setstack(attr, low as *mut c_void, size);
        libc::pthread_attr_setguardsize(attr, coroutine.guard_size.get());
        let detached = coroutine.life.load(Ordering::Relaxed) & life::DETACHED != 0;
        let state =
            if detached { libc::PTHREAD_CREATE_DETACHED } else { libc::PTHREAD_CREATE_JOINABLE };
        libc::pthread_attr_setdetachstate(attr, state);
    }
    0
}
