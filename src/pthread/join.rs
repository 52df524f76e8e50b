//! `pthread_join` and its kin, `pthread_detach`.

use crate::coroutine::{Coroutine, life, stack};
use crate::futex::{self, Outcome, Wait};
use crate::sys::errno::Errno;
use crate::sys::real::real_functions;
use crate::sys::time;
use core::ffi::{c_int, c_void};
use core::sync::atomic::Ordering;
use libc::{clockid_t, pthread_t, timespec};

mod real {
    use super::*;
    real_functions! {
        /// The real `pthread_join`.
        fn pthread_join(thread: pthread_t, result: *mut *mut c_void) -> c_int;
        /// The real `pthread_tryjoin_np`.
        fn pthread_tryjoin_np(thread: pthread_t, result: *mut *mut c_void) -> c_int;
        /// The real `pthread_clockjoin_np`.
        fn pthread_clockjoin_np(thread: pthread_t, result: *mut *mut c_void, clock: clockid_t, time: *const timespec) -> c_int;
        /// The real `pthread_timedjoin_np`.
        fn pthread_timedjoin_np(thread: pthread_t, result: *mut *mut c_void, time: *const timespec) -> c_int;
        /// The real `pthread_detach`.
        fn pthread_detach(thread: pthread_t) -> c_int;
    }
}

/// Waits for the end of a thread. EDEADLK: itself; EINVAL: detached, or another joins it already.
///
/// # Safety
/// As `pthread_join`.
pub unsafe fn join(thread: pthread_t, result: *mut *mut c_void) -> c_int {
    // SAFETY: the caller keeps the contract.
    unsafe {
        match Coroutine::from_pthread(thread) {
            Some(coroutine) => wait(coroutine, result, None),
            None => real::pthread_join(thread, result),
        }
    }
}

/// Joins a thread that has ended; EBUSY if it has not.
///
/// # Safety
/// As `pthread_tryjoin_np`.
pub unsafe fn tryjoin(thread: pthread_t, result: *mut *mut c_void) -> c_int {
    // SAFETY: the caller keeps the contract.
    unsafe {
        match Coroutine::from_pthread(thread) {
            Some(coroutine) if coroutine.life.load(Ordering::Acquire) & life::EXITED == 0 => {
                libc::EBUSY
            }
            Some(coroutine) => wait(coroutine, result, None),
            None => real::pthread_tryjoin_np(thread, result),
        }
    }
}

/// Joins until an absolute time on CLOCK_REALTIME; ETIMEDOUT.
///
/// # Safety
/// As `pthread_timedjoin_np`.
pub unsafe fn timedjoin(
    thread: pthread_t,
    result: *mut *mut c_void,
    time: *const timespec,
) -> c_int {
    // SAFETY: the caller keeps the contract.
    unsafe {
        match Coroutine::from_pthread(thread) {
            Some(_) => clockjoin(thread, result, libc::CLOCK_REALTIME, time),
            None => real::pthread_timedjoin_np(thread, result, time),
        }
    }
}

/// Joins until an absolute time on a clock; ETIMEDOUT. EINVAL: a clock other than CLOCK_REALTIME and
/// CLOCK_MONOTONIC, or a bad time.
///
/// # Safety
/// As `pthread_clockjoin_np`.
pub unsafe fn clockjoin(
    thread: pthread_t,
    result: *mut *mut c_void,
    clock: clockid_t,
    time: *const timespec,
) -> c_int {
    // SAFETY: the caller keeps the contract; a null time means "for ever" in glibc too.
    unsafe {
        match Coroutine::from_pthread(thread) {
            Some(coroutine) => match time.as_ref().map(|time| time::deadline_on(clock, time)) {
                None => wait(coroutine, result, None),
                Some(Ok(deadline)) => wait(coroutine, result, Some(deadline)),
                // glibc looks at the time only if it has to wait.
                Some(Err(_)) if coroutine.life.load(Ordering::Acquire) & life::EXITED != 0 => {
                    wait(coroutine, result, None)
                }
                Some(Err(error)) => error.0,
            },
            None => real::pthread_clockjoin_np(thread, result, clock, time),
        }
    }
}

unsafe fn wait(
    coroutine: &'static Coroutine,
    result: *mut *mut c_void,
    deadline: Option<u64>,
) -> c_int {
    if Coroutine::current().is_some_and(|current| core::ptr::eq(current, coroutine)) {
        return libc::EDEADLK;
    }
    let before = coroutine.life.fetch_or(life::JOINING, Ordering::AcqRel);
    if before & (life::JOINING | life::DETACHED) != 0 {
        if before & life::JOINING == 0 {
            coroutine.life.fetch_and(!life::JOINING, Ordering::AcqRel);
        }
        return libc::EINVAL;
    }
    let key = coroutine.life.as_ptr() as usize;
    while coroutine.life.load(Ordering::Acquire) & life::EXITED == 0 {
        let running = || coroutine.life.load(Ordering::Acquire) & life::EXITED == 0;
        if futex::wait(&Wait::on(key, deadline), running, || {}) == Outcome::Timeout && running() {
            coroutine.life.fetch_and(!life::JOINING, Ordering::AcqRel);
            return libc::ETIMEDOUT;
        }
    }
    if !result.is_null() {
        // SAFETY: the caller gives a writable place.
        unsafe { *result = coroutine.result.get() };
    }
    stack::free(coroutine);
    0
}

/// Lets the thread's memory go when it ends. EINVAL: already detached.
///
/// # Safety
/// As `pthread_detach`.
pub unsafe fn detach(thread: pthread_t) -> c_int {
    // SAFETY: the caller keeps the contract.
    let Some(coroutine) = (unsafe { Coroutine::from_pthread(thread) }) else {
        // SAFETY: as above.
        return unsafe { real::pthread_detach(thread) };
    };
    let before = coroutine.life.fetch_or(life::DETACHED, Ordering::AcqRel);
    if before & life::DETACHED != 0 {
        return Errno(libc::EINVAL).0;
    }
    if before & life::EXITED != 0 {
        stack::free(coroutine);
    }
    0
}
