//! Sleeping and giving way.

use super::signal::read_user;
use crate::coroutine::Coroutine;
use crate::sched;
use crate::sys::errno::Errno;
use crate::sys::time::{self, SECOND};
use core::ffi::{c_int, c_uint};
use libc::{clockid_t, timespec};

/// `sleep`: returns the seconds that were not slept: 0.
///
/// # Safety
/// None beyond the C function's.
pub unsafe fn sleep(coroutine: &Coroutine, seconds: c_uint) -> c_uint {
    sched::sleep_until(coroutine, time::after(u64::from(seconds) * SECOND));
    0
}

/// `usleep`.
///
/// # Safety
/// None beyond the C function's.
pub unsafe fn usleep(coroutine: &Coroutine, microseconds: c_uint) -> c_int {
    sched::sleep_until(coroutine, time::after(u64::from(microseconds) * 1000));
    0
}

/// `nanosleep`. EFAULT: a null time; EINVAL: nanoseconds out of range.
///
/// # Safety
/// `time` is readable or null.
pub unsafe fn nanosleep(
    coroutine: &Coroutine,
    time: *const timespec,
    _rest: *mut timespec,
) -> c_int {
    match relative(coroutine, time) {
        Ok(()) => 0,
        Err(error) => {
            error.set();
            -1
        }
    }
}

fn relative(coroutine: &Coroutine, time: *const timespec) -> Result<(), Errno> {
    let span = time::from_timespec(&read_user(time)?)?;
    sched::sleep_until(coroutine, time::after(span));
    Ok(())
}

/// `clock_nanosleep`: returns the error number. EINVAL: a clock on which one cannot sleep (the caller's
/// CPU time) or a bad time; ENOTSUP: other clocks that the kernel does not offer.
///
/// # Safety
/// `time` is readable or null.
pub unsafe fn clock_nanosleep(
    coroutine: &Coroutine,
    clock: clockid_t,
    flags: c_int,
    time: *const timespec,
    rest: *mut timespec,
) -> c_int {
    let follows_monotonic = matches!(
        clock,
        libc::CLOCK_REALTIME | libc::CLOCK_MONOTONIC | libc::CLOCK_BOOTTIME | libc::CLOCK_TAI
    );
    if !follows_monotonic {
        // Sleeping on a CPU clock is rare and means the kernel's own accounting: the real call, which
        // also has the right errors for all others. glibc answers EINVAL for the thread's own clock.
        if clock == libc::CLOCK_THREAD_CPUTIME_ID {
            return libc::EINVAL;
        }
        // SAFETY: the caller's pointers.
        let answer =
            unsafe { crate::sys::linux::syscall!(clock_nanosleep, clock, flags, time, rest) };
        return answer.err().map_or(0, |error| error.0);
    }
    let target = match read_user(time).and_then(|time| time::from_timespec(&time)) {
        Ok(target) => target,
        Err(error) => return error.0,
    };
    let span = if flags & libc::TIMER_ABSTIME != 0 {
        target.saturating_sub(time::clock_now(clock))
    } else {
        target
    };
    sched::sleep_until(coroutine, time::after(span));
    0
}

/// `sched_yield`.
///
/// # Safety
/// None beyond the C function's.
pub unsafe fn sched_yield(coroutine: &Coroutine) -> c_int {
    sched::yield_now(coroutine);
    0
}

/// `thrd_yield`.
///
/// # Safety
/// None beyond the C function's.
pub unsafe fn thrd_yield(coroutine: &Coroutine) {
    sched::yield_now(coroutine);
}
