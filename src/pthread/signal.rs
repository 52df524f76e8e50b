//! `pthread_kill`.

use crate::coroutine::{Coroutine, life};
use crate::sys::real::real_functions;
use core::ffi::c_int;
use core::sync::atomic::Ordering;
use libc::pthread_t;

mod real {
    use super::*;
    real_functions! {
        /// The real `pthread_kill`.
        fn pthread_kill(thread: pthread_t, signal: c_int) -> c_int;
    }
}

/// Sends a signal to a thread. Signal 0 only asks whether it lives.
///
/// To a coroutine that is not the caller itself, a real signal is sent to the process: its handler
/// runs on a thread of the kernel's choice.
///
/// # Safety
/// As `pthread_kill`.
pub unsafe fn kill(thread: pthread_t, signal: c_int) -> c_int {
    // SAFETY: the caller keeps the contract.
    let Some(coroutine) = (unsafe { Coroutine::from_pthread(thread) }) else {
        // SAFETY: as above.
        return unsafe { real::pthread_kill(thread, signal) };
    };
    if coroutine.life.load(Ordering::Acquire) & life::EXITED != 0 {
        return 0;
    }
    let own = Coroutine::current().is_some_and(|current| core::ptr::eq(current, coroutine));
    // SAFETY: plain system calls with numbers.
    let sent = unsafe {
        let process = crate::sys::linux::syscall!(getpid).unwrap_or(0);
        if own {
            crate::sys::linux::syscall!(tgkill, process, crate::sys::linux::gettid(), signal)
        } else {
            crate::sys::linux::syscall!(kill, process, signal)
        }
    };
    match sent {
        Ok(_) => 0,
        Err(error) => error.0,
    }
}
