//! `pthread_kill` and `tgkill`.

use crate::coroutine::{Coroutine, life, stack};
use crate::sys::errno::Errno;
use crate::sys::linux::{self, syscall};
use crate::sys::real::real_functions;
use core::ffi::c_int;
use core::sync::atomic::Ordering;
use libc::pthread_t;

mod real {
    use super::*;
    real_functions! {
        /// The real `pthread_kill`.
        fn pthread_kill(thread: pthread_t, signal: c_int) -> c_int;
        /// The real `tgkill`.
        fn tgkill(process: libc::pid_t, thread: libc::pid_t, signal: c_int) -> c_int;
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
    to_coroutine(coroutine, signal)
}

/// `tgkill`: as [`kill`], by the thread id that `gettid` gave.
///
/// # Safety
/// None beyond the C function's.
pub unsafe fn tgkill(process: libc::pid_t, thread: libc::pid_t, signal: c_int) -> c_int {
    // SAFETY: no arguments.
    let own = unsafe { syscall!(getpid) }.unwrap_or(0) as libc::pid_t;
    match stack::with_tid(thread) {
        Some(coroutine) if process == own => {
            // An id that is not in use is negated: the slot waits in the pool.
            let code = if coroutine.tid() == thread {
                to_coroutine(coroutine, signal)
            } else {
                libc::ESRCH
            };
            if code == 0 {
                return 0;
            }
            Errno(code).set();
            -1
        }
        // SAFETY: the caller's arguments.
        _ => unsafe { real::tgkill(process, thread, signal) },
    }
}

fn to_coroutine(coroutine: &Coroutine, signal: c_int) -> c_int {
    if coroutine.life.load(Ordering::Acquire) & life::EXITED != 0 {
        return 0;
    }
    let own = Coroutine::current().is_some_and(|current| core::ptr::eq(current, coroutine));
    // SAFETY: plain system calls with numbers.
    let sent = unsafe {
        let process = syscall!(getpid).unwrap_or(0);
        if own {
            syscall!(tgkill, process, linux::gettid(), signal)
        } else {
            syscall!(kill, process, signal)
        }
    };
    match sent {
        Ok(_) => 0,
        Err(error) => error.0,
    }
}
