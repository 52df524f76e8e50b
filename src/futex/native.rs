//! How a native thread waits in the parking lot: on a kernel futex of its own.

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

    /// Sleeps until woken; false if the deadline passed first.
    pub fn sleep(&self, deadline: Option<u64>) -> bool {
        while self.0.load(Ordering::Acquire) == WAITING {
            if let Err(error) = linux::futex_wait(&self.0, WAITING, deadline)
                && error.0 == libc::ETIMEDOUT
            {
                return self.is_woken();
            }
        }
        true
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
