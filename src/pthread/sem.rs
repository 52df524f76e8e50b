//! Unnamed semaphores.
//!
//! The object is glibc's `sem_t`, so that `sem_init`, `sem_destroy`, `sem_trywait` and `sem_getvalue`,
//! which never wait, stay glibc's:
//!
//! ```text
//! double word 0   low half: value; high half: number of waiters
//! word 2          0 private, 128 shared between processes
//! ```
//!
//! Invariants:
//!
//! * A waiter counts itself before it looks at the value for the last time, and a post looks at the
//!   count in the same step in which it raises the value. So a post that sees no waiter was seen by all.
//! * A post does not touch the object after that step: the waiter may have taken the value and freed
//!   the semaphore. Only the address is used, and a wake-up that reaches a later object there is one of
//!   those that every user of the parking lot expects.
//!
//! Shared semaphores, to which all named ones belong, are glibc's; waiting for one blocks the carrier.

use crate::futex::{self, Outcome, Wait};
use crate::sched;
use crate::sys::errno::Errno;
use crate::sys::real::real_functions;
use crate::sys::time;
use core::ffi::c_int;
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use libc::{clockid_t, sem_t, timespec};

mod real {
    use super::*;
    real_functions! {
        /// The real `sem_wait`.
        fn sem_wait(semaphore: *mut sem_t) -> c_int;
        /// The real `sem_timedwait`.
        fn sem_timedwait(semaphore: *mut sem_t, time: *const timespec) -> c_int;
        /// The real `sem_clockwait`.
        fn sem_clockwait(semaphore: *mut sem_t, clock: clockid_t, time: *const timespec) -> c_int;
        /// The real `sem_post`.
        fn sem_post(semaphore: *mut sem_t) -> c_int;
    }
}

const VALUE: u64 = u32::MAX as u64;
const VALUE_MAX: u64 = i32::MAX as u64;
const WAITER: u64 = 1 << 32;

/// `sem_t` as glibc lays it out.
#[repr(C)]
struct Semaphore {
    data: AtomicU64,
    shared: AtomicU32,
}

impl Semaphore {
    /// # Safety
    /// A valid semaphore that outlives its use here.
    #[inline(always)]
    unsafe fn of<'a>(semaphore: *mut sem_t) -> &'a Self {
        // SAFETY: the caller's promise; the layout is glibc's.
        unsafe { &*semaphore.cast::<Self>() }
    }

    /// Whether it waits in the parking lot. Not before the runtime has started: until then the only waiter can
    /// be the initial thread, which a handler's `sem_post` may interrupt, and no handler of the program is
    /// wrapped yet. The words mean the same to glibc.
    #[inline(always)]
    fn is_ours(&self) -> bool {
        self.shared.load(Ordering::Relaxed) == 0 && sched::is_started()
    }

    #[inline(always)]
    fn key(&self) -> usize {
        self.data.as_ptr() as usize
    }

    /// Takes one if there is one; `also` is subtracted in the same step.
    #[inline(always)]
    fn try_take(&self, also: u64) -> bool {
        let mut data = self.data.load(Ordering::Relaxed);
        while data & VALUE != 0 {
            let less = data - 1 - also;
            match self.data.compare_exchange_weak(data, less, Ordering::Acquire, Ordering::Relaxed)
            {
                Ok(_) => return true,
                Err(now) => data = now,
            }
        }
        false
    }

    #[cold]
    #[inline(never)]
    fn wait(&self, deadline: Option<u64>) -> c_int {
        let wait = Wait { interruptible: true, ..Wait::on(self.key(), deadline) };
        self.data.fetch_add(WAITER, Ordering::Relaxed);
        loop {
            if self.try_take(WAITER) {
                return 0;
            }
            let is_empty = || self.data.load(Ordering::Relaxed) & VALUE == 0;
            let error = match futex::wait(&wait, is_empty, || {}) {
                Outcome::Timeout => libc::ETIMEDOUT,
                Outcome::Interrupted => libc::EINTR,
                _ => continue,
            };
            self.data.fetch_sub(WAITER, Ordering::Relaxed);
            Errno(error).set();
            return -1;
        }
    }

    fn wait_until(&self, clock: clockid_t, time: &timespec) -> c_int {
        match time::deadline_on(clock, time) {
            Ok(_) if self.try_take(0) => 0,
            Ok(deadline) => self.wait(Some(deadline)),
            Err(error) => {
                error.set();
                -1
            }
        }
    }

    #[inline(always)]
    fn post(&self) -> c_int {
        let key = self.key();
        let mut data = self.data.load(Ordering::Relaxed);
        loop {
            if data & VALUE == VALUE_MAX {
                Errno(libc::EOVERFLOW).set();
                return -1;
            }
            match self.data.compare_exchange_weak(
                data,
                data + 1,
                Ordering::Release,
                Ordering::Relaxed,
            ) {
                Ok(_) => break,
                Err(now) => data = now,
            }
        }
        if data >= WAITER {
            futex::wake(key, 1);
        }
        0
    }
}

/// `sem_wait`.
///
/// # Safety
/// As `sem_wait`.
#[inline]
pub unsafe fn wait(semaphore: *mut sem_t) -> c_int {
    // SAFETY: the caller keeps the contract.
    unsafe {
        let this = Semaphore::of(semaphore);
        match this.is_ours() {
            true if this.try_take(0) => 0,
            true => this.wait(None),
            false => real::sem_wait(semaphore),
        }
    }
}

/// `sem_timedwait`, on CLOCK_REALTIME. ETIMEDOUT; EINVAL: a bad time, even if it need not wait.
///
/// # Safety
/// As `sem_timedwait`.
pub unsafe fn timedwait(semaphore: *mut sem_t, time: *const timespec) -> c_int {
    // SAFETY: the caller keeps the contract.
    unsafe {
        let this = Semaphore::of(semaphore);
        match this.is_ours() {
            true => this.wait_until(libc::CLOCK_REALTIME, &*time),
            false => real::sem_timedwait(semaphore, time),
        }
    }
}

/// `sem_clockwait`. As [`timedwait`]; EINVAL: also another clock than CLOCK_REALTIME and
/// CLOCK_MONOTONIC.
///
/// # Safety
/// As `sem_clockwait`.
pub unsafe fn clockwait(semaphore: *mut sem_t, clock: clockid_t, time: *const timespec) -> c_int {
    // SAFETY: the caller keeps the contract.
    unsafe {
        let this = Semaphore::of(semaphore);
        match this.is_ours() {
            true => this.wait_until(clock, &*time),
            false => real::sem_clockwait(semaphore, clock, time),
        }
    }
}

/// `sem_post`. EOVERFLOW: the value is SEM_VALUE_MAX.
///
/// # Safety
/// As `sem_post`.
#[inline]
pub unsafe fn post(semaphore: *mut sem_t) -> c_int {
    // SAFETY: the caller keeps the contract.
    unsafe {
        let this = Semaphore::of(semaphore);
        match this.is_ours() {
            true => this.post(),
            false => real::sem_post(semaphore),
        }
    }
}
