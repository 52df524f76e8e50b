//! Clocks and the conversion of the many ways in which POSIX gives a time into one: nanoseconds of
//! CLOCK_MONOTONIC as `u64`, called a *deadline*.

use super::errno::{Errno, Result};
use super::real;
use libc::{c_int, clockid_t, timespec, timeval};

/// Nanoseconds in a second.
pub const SECOND: u64 = 1_000_000_000;

/// Nanoseconds on `clock`.
pub fn clock_now(clock: clockid_t) -> u64 {
    let mut now = timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `now` is writable. The vDSO answers without a system call.
    unsafe { real::clock_gettime(clock, &mut now) };
    now.tv_sec as u64 * SECOND + now.tv_nsec as u64
}

/// Nanoseconds on CLOCK_MONOTONIC.
#[inline]
pub fn now() -> u64 {
    clock_now(libc::CLOCK_MONOTONIC)
}

/// A `timespec` of that many nanoseconds.
pub fn to_timespec(nanoseconds: u64) -> timespec {
    timespec { tv_sec: (nanoseconds / SECOND) as i64, tv_nsec: (nanoseconds % SECOND) as i64 }
}

/// Nanoseconds of a `timespec`, saturating. EINVAL as the kernel says it: nanoseconds out of range
/// or negative seconds.
pub fn from_timespec(time: &timespec) -> Result<u64> {
    if !(0..SECOND as i64).contains(&time.tv_nsec) || time.tv_sec < 0 {
        return Err(Errno(libc::EINVAL));
    }
    Ok((time.tv_sec as u64).saturating_mul(SECOND).saturating_add(time.tv_nsec as u64))
}

/// Nanoseconds of a `timeval`, saturating. EDOM, as SO_RCVTIMEO says it, when microseconds are out of
/// range; a negative number of seconds is an immediate timeout there and 0 here.
pub fn from_timeval(time: &timeval) -> Result<u64> {
    if !(0..1_000_000).contains(&time.tv_usec) {
        return Err(Errno(libc::EDOM));
    }
    if time.tv_sec < 0 {
        return Ok(0);
    }
    Ok((time.tv_sec as u64).saturating_mul(SECOND).saturating_add(time.tv_usec as u64 * 1000))
}

/// The deadline that lies `span` nanoseconds from now; far futures saturate.
pub fn after(span: u64) -> u64 {
    now().saturating_add(span)
}

/// The deadline that corresponds to the absolute time `time` on `clock`.
///
/// EINVAL: another clock than CLOCK_REALTIME and CLOCK_MONOTONIC, or nanoseconds out of range.
/// A time before the epoch is a deadline that has passed. A later step of CLOCK_REALTIME does not
/// move the deadline.
pub fn deadline_on(clock: c_int, time: &timespec) -> Result<u64> {
    if !(0..SECOND as i64).contains(&time.tv_nsec) {
        return Err(Errno(libc::EINVAL));
    }
    if clock != libc::CLOCK_MONOTONIC && clock != libc::CLOCK_REALTIME {
        return Err(Errno(libc::EINVAL));
    }
    if time.tv_sec < 0 {
        return Ok(0);
    }
    let target = from_timespec(time)?;
    if clock == libc::CLOCK_MONOTONIC {
        return Ok(target);
    }
    let realtime = clock_now(libc::CLOCK_REALTIME);
    Ok(if target <= realtime { 0 } else { after(target - realtime) })
}
