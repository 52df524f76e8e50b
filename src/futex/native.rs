//! How a native thread waits in the parking lot: on a kernel futex of its own.

use super::Outcome;
use crate::sys::errno::Errno;
use crate::sys::linux;
use core::sync::atomic::{AtomicU32, Ordering};

const WAITING: u32 = 0;
const WOKEN: u32 = 1;

/// The word on which one native thread sleeps.
pub struct Parker(AtomicU32);

impl Parker {
    /// A parker that nobody has woken.
    pub fn new() -> Self {
        Self(AtomicU32::new(WAITING))
    }

    /// Sleeps until woken, until the deadline, or until a handler has run that interrupts calls.
    pub fn sleep(&self, deadline: Option<u64>, interruptible: bool) -> Outcome {
        while !self.is_woken() {
            let end = match linux::futex_wait(&self.0, WAITING, deadline) {
                Err(Errno(libc::ETIMEDOUT)) => Outcome::Timeout,
                Err(Errno(libc::EINTR)) if interruptible => Outcome::Interrupted,
                _ => continue,
            };
            if !self.is_woken() {
                return end;
            }
        }
        Outcome::Woken
    }

    /// Whether it was woken.
    pub fn is_woken(&self) -> bool {
        self.0.load(Ordering::Acquire) == WOKEN
    }

    /// Says that it is woken; the caller then [`ring`]s the word. Under the bucket's lock, and the
    /// waiter was just unlinked.
    pub fn mark_woken(&self) -> *const u32 {
        let word = self.0.as_ptr().cast_const();
        self.0.store(WOKEN, Ordering::Release);
        word
    }
}

/// Ends the sleep of a thread that was marked as woken.
pub fn ring(word: *const u32) {
    // The thread may have returned by now: only the address is used, and a wake-up on a word that means
    // something else by then is a spurious one, which every futex user expects.
    linux::futex_wake(word, 1);
}
