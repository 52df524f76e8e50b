//! The threads of C11: `thrd_`, `mtx_`, `cnd_` and `call_once` are POSIX ones with other names and
//! results, and their objects are the POSIX ones.
//!
//! `mtx_init`, `mtx_trylock`, `mtx_destroy`, `cnd_init`, `cnd_destroy`, `thrd_current`, `thrd_equal` and
//! `tss_*` never wait and stay glibc's.

use super::once::Routine;
use super::{cond, create, exit, join, mutex, once};
use crate::coroutine::{Coroutine, Start};
use crate::posix;
use core::ffi::{c_int, c_void};
use libc::{pthread_cond_t, pthread_mutex_t, pthread_once_t, pthread_t, timespec};

/// Results of the C11 functions.
const SUCCESS: c_int = 0;
const BUSY: c_int = 1;
const ERROR: c_int = 2;
const NO_MEMORY: c_int = 3;
const TIMED_OUT: c_int = 4;

/// The type of a C11 thread's start routine.
pub type C11Start = unsafe extern "C-unwind" fn(*mut c_void) -> c_int;

/// The result for an error number.
fn result(code: c_int) -> c_int {
    match code {
        0 => SUCCESS,
        libc::ENOMEM => NO_MEMORY,
        libc::ETIMEDOUT => TIMED_OUT,
        libc::EBUSY => BUSY,
        _ => ERROR,
    }
}

/// `thrd_create`.
///
/// # Safety
/// As `thrd_create`.
pub unsafe fn thrd_create(thread: *mut pthread_t, start: C11Start, argument: *mut c_void) -> c_int {
    // SAFETY: the caller keeps the contract. A function that returns an `int` leaves it in the low half
    // of the register in which one that returns a pointer has its result, and `thrd_join` reads that half.
    unsafe {
        let start = core::mem::transmute::<C11Start, Start>(start);
        result(create::create(thread, core::ptr::null(), start, argument))
    }
}

/// `thrd_join`.
///
/// # Safety
/// As `thrd_join`.
pub unsafe fn thrd_join(thread: pthread_t, status: *mut c_int) -> c_int {
    let mut value: *mut c_void = core::ptr::null_mut();
    // SAFETY: the caller keeps the contract.
    unsafe {
        let code = join::join(thread, &mut value);
        if !status.is_null() {
            *status = value as usize as c_int;
        }
        result(code)
    }
}

/// `thrd_detach`.
///
/// # Safety
/// As `thrd_detach`.
pub unsafe fn thrd_detach(thread: pthread_t) -> c_int {
    // SAFETY: the caller keeps the contract.
    result(unsafe { join::detach(thread) })
}

/// `thrd_exit`.
///
/// # Safety
/// As `thrd_exit`.
pub unsafe fn thrd_exit(status: c_int) -> ! {
    // SAFETY: the caller keeps the contract.
    unsafe { exit::exit(status as isize as *mut c_void) }
}

/// `thrd_sleep`: 0, or −1 if a signal came, or −2 for a bad time.
///
/// # Safety
/// As `thrd_sleep`.
pub unsafe fn thrd_sleep(
    coroutine: &Coroutine,
    time: *const timespec,
    rest: *mut timespec,
) -> c_int {
    // SAFETY: the caller keeps the contract.
    match unsafe { posix::time::clock_nanosleep(coroutine, libc::CLOCK_REALTIME, 0, time, rest) } {
        0 => 0,
        libc::EINTR => -1,
        _ => -2,
    }
}

/// `mtx_lock`.
///
/// # Safety
/// As `mtx_lock`.
pub unsafe fn mtx_lock(mutex: *mut pthread_mutex_t) -> c_int {
    // SAFETY: the caller keeps the contract.
    result(unsafe { mutex::lock(mutex) })
}

/// `mtx_timedlock`.
///
/// # Safety
/// As `mtx_timedlock`.
pub unsafe fn mtx_timedlock(mutex: *mut pthread_mutex_t, time: *const timespec) -> c_int {
    // SAFETY: the caller keeps the contract.
    result(unsafe { mutex::timedlock(mutex, time) })
}

/// `mtx_unlock`.
///
/// # Safety
/// As `mtx_unlock`.
pub unsafe fn mtx_unlock(mutex: *mut pthread_mutex_t) -> c_int {
    // SAFETY: the caller keeps the contract.
    result(unsafe { mutex::unlock(mutex) })
}

/// `cnd_wait`.
///
/// # Safety
/// As `cnd_wait`.
pub unsafe fn cnd_wait(cond: *mut pthread_cond_t, mutex: *mut pthread_mutex_t) -> c_int {
    // SAFETY: the caller keeps the contract.
    result(unsafe { cond::wait(cond, mutex) })
}

/// `cnd_timedwait`.
///
/// # Safety
/// As `cnd_timedwait`.
pub unsafe fn cnd_timedwait(
    cond: *mut pthread_cond_t,
    mutex: *mut pthread_mutex_t,
    time: *const timespec,
) -> c_int {
    // SAFETY: the caller keeps the contract.
    result(unsafe { cond::timedwait(cond, mutex, time) })
}

/// `cnd_signal`.
///
/// # Safety
/// As `cnd_signal`.
pub unsafe fn cnd_signal(cond: *mut pthread_cond_t) -> c_int {
    // SAFETY: the caller keeps the contract.
    result(unsafe { cond::signal(cond) })
}

/// `cnd_broadcast`.
///
/// # Safety
/// As `cnd_broadcast`.
pub unsafe fn cnd_broadcast(cond: *mut pthread_cond_t) -> c_int {
    // SAFETY: the caller keeps the contract.
    result(unsafe { cond::broadcast(cond) })
}

/// `call_once`.
///
/// # Safety
/// As `call_once`.
#[inline]
pub unsafe fn call_once(flag: *mut pthread_once_t, routine: Routine) {
    // SAFETY: the caller keeps the contract.
    unsafe { once::once(flag, routine) };
}
