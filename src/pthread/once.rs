//! `pthread_once`.
//!
//! The object is glibc's `int`: 0 not begun, 2 done, and odd while the routine runs. Ours then holds the
//! process id above bit 2, so that a forked child, in which the thread that ran the routine does not
//! exist, sees that it must begin anew (glibc counts forks there).
//!
//! A routine that is left by an exception, `pthread_exit` or cancellation has not run: the word goes
//! back to 0 and one of those who wait runs it. `std::call_once` relies on that.

use crate::arch;
use crate::futex::{self, Wait};
use crate::sys::glibc;
use crate::sys::linux::syscall;
use crate::sys::real::real_functions;
use core::ffi::{c_int, c_void};
use core::sync::atomic::{AtomicI32, Ordering};
use libc::pthread_once_t;

/// The type of an initialisation routine.
pub type Routine = unsafe extern "C-unwind" fn();

mod real {
    use super::*;
    real_functions! {
        /// The real `pthread_once`.
        fn pthread_once(once: *mut pthread_once_t, routine: Routine) -> c_int;
    }
}

const NOT_BEGUN: i32 = 0;
const RUNNING: i32 = 1;
const DONE: i32 = 2;

/// `pthread_once`.
///
/// # Safety
/// As `pthread_once`.
#[inline]
pub unsafe fn once(once: *mut pthread_once_t, routine: Routine) -> c_int {
    // SAFETY: a valid `pthread_once_t` is one `int`.
    let word = unsafe { AtomicI32::from_ptr(once.cast()) };
    // Acquire: pairs with the Release of whoever ran the routine.
    if word.load(Ordering::Acquire) & DONE == DONE && word.load(Ordering::Relaxed) & RUNNING == 0 {
        return 0;
    }
    if glibc::tid_if_loaded().is_none() {
        // SAFETY: the caller keeps the contract.
        return unsafe { real::pthread_once(once, routine) };
    }
    // SAFETY: as above.
    unsafe { slow(word, routine) };
    0
}

#[cold]
#[inline(never)]
unsafe fn slow(word: &AtomicI32, routine: Routine) {
    // SAFETY: no arguments.
    let process = unsafe { syscall!(getpid) }.unwrap_or(0) as i32;
    let running = process << 2 | RUNNING;
    let mut seen = word.load(Ordering::Acquire);
    loop {
        if seen == DONE {
            return;
        }
        if seen == running {
            let wait = Wait::on(word.as_ptr() as usize, None);
            futex::wait(&wait, || word.load(Ordering::Relaxed) == running, || {});
            seen = word.load(Ordering::Acquire);
            continue;
        }
        match word.compare_exchange(seen, running, Ordering::Acquire, Ordering::Acquire) {
            Ok(_) => break,
            Err(now) => seen = now,
        }
    }
    // SAFETY: calling a C function with an argument that it does not take is harmless in the ABIs of
    // Linux. The word stays valid until the call of `pthread_once` is left.
    unsafe {
        let routine =
            core::mem::transmute::<Routine, unsafe extern "C-unwind" fn(*mut c_void)>(routine);
        arch::call_with_cleanup(routine, core::ptr::null_mut(), abandon, word.as_ptr().cast());
    }
    finish(word, DONE);
}

/// The routine was left before its end.
unsafe extern "C" fn abandon(word: *mut c_void) {
    // SAFETY: the word that `slow` gave.
    finish(unsafe { AtomicI32::from_ptr(word.cast()) }, NOT_BEGUN);
}

fn finish(word: &AtomicI32, state: i32) {
    let key = word.as_ptr() as usize;
    word.store(state, Ordering::Release);
    futex::wake(key, usize::MAX);
}
