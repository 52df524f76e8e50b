//! Robust mutexes of this process: glibc's object and protocol, but waiting happens in the parking lot.
//!
//! glibc's own `trylock` and `unlock` do everything except wait: they keep the list of robust mutexes that a
//! thread holds, and know a dead owner. The word holds the owner's id, or 0, with glibc's flags. A waiter
//! parks only while it sees an owner under the bucket's lock; whoever takes the owner out (an unlock, or
//! the end of the owner) takes that lock afterwards to wake. So no wake-up is lost.

use crate::futex::{self, Outcome, Wait};
use crate::sys::real::real_functions;
use crate::sys::time;
use core::ffi::c_int;
use core::sync::atomic::{AtomicU32, Ordering};
use libc::{clockid_t, pthread_mutex_t, timespec};

mod real {
    use super::*;
    real_functions! {
        /// The real `pthread_mutex_lock`.
        fn pthread_mutex_lock(mutex: *mut pthread_mutex_t) -> c_int;
        /// The real `pthread_mutex_trylock`.
        fn pthread_mutex_trylock(mutex: *mut pthread_mutex_t) -> c_int;
        /// The real `pthread_mutex_unlock`.
        fn pthread_mutex_unlock(mutex: *mut pthread_mutex_t) -> c_int;
    }
}

/// The part of the word that is the owner's id.
const OWNER: u32 = 0x3fff_ffff;

/// Locks. 0, EOWNERDEAD, ENOTRECOVERABLE, EDEADLK (error-checking), EAGAIN (recursive, too deep); with a
/// limit ETIMEDOUT, and EINVAL for a bad time if it has to wait.
///
/// # Safety
/// A valid robust mutex that is not shared between processes; `me` is the caller's id.
pub(super) unsafe fn lock(
    mutex: *mut pthread_mutex_t,
    me: u32,
    limit: Option<(clockid_t, &timespec)>,
) -> c_int {
    // SAFETY: the lock word is the object's first.
    let word = unsafe { AtomicU32::from_ptr(mutex.cast()) };
    let mut deadline = None;
    loop {
        // SAFETY: the caller's promise.
        let code = unsafe { real::pthread_mutex_trylock(mutex) };
        if code == libc::ENOTRECOVERABLE {
            // glibc's trylock leaves it locked by the caller, its lock does not.
            if word.compare_exchange(me, 0, Ordering::AcqRel, Ordering::Relaxed).is_ok() {
                futex::wake(word.as_ptr() as usize, 1);
            }
        }
        if code != libc::EBUSY {
            return code;
        }
        if word.load(Ordering::Relaxed) & OWNER == me && limit.is_none() {
            // Its own: EDEADLK, or for ever, as the kind says.
            // SAFETY: the caller's promise.
            return unsafe { real::pthread_mutex_lock(mutex) };
        }
        if let (Some((clock, time)), None) = (limit, deadline) {
            match time::deadline_on(clock, time) {
                Ok(known) => deadline = Some(known),
                Err(error) => return error.0,
            }
        }
        let held = || word.load(Ordering::Acquire) & OWNER != 0;
        let wait = Wait::on(word.as_ptr() as usize, deadline);
        if futex::wait(&wait, held, || {}) == Outcome::Timeout {
            return libc::ETIMEDOUT;
        }
    }
}

/// Unlocks. EPERM: not held by the caller.
///
/// # Safety
/// A valid robust mutex that is not shared between processes.
pub(super) unsafe fn unlock(mutex: *mut pthread_mutex_t) -> c_int {
    // SAFETY: the caller's promise.
    let code = unsafe { real::pthread_mutex_unlock(mutex) };
    if code == 0 {
        // Only the address is used: the next owner may have freed the object.
        futex::wake(mutex as usize, 1);
    }
    code
}
