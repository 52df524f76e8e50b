//! Who wakes a parked coroutine, decided by one word.
//!
//! ```text
//! IDLE ──arm──▶ ARMED ──(context saved)──▶ PARKED
//!                 │ claim                     │ claim
//!                 ▼                           ▼
//!            WOKEN(reason)               WOKEN(reason), claimer makes it ready
//! ```
//!
//! Invariants:
//! * A coroutine arms itself *before* it is put into the first container, and is `PARKED` only after
//!   its context is saved, so whoever wins a claim on `PARKED` may run it.
//! * A claim on `ARMED` is not lost: the carrier that completes the park sees it and makes the
//!   coroutine ready (or the coroutine sees it and does not leave at all).
//! * Claims are made under the lock of the container that holds the registration, and a coroutine
//!   leaves a park only after it has taken itself out of each container under its lock. So a claim
//!   always means the present wait, never an earlier one.

use core::sync::atomic::{AtomicU32, Ordering};

const IDLE: u32 = 0;
const ARMED: u32 = 1;
const PARKED: u32 = 2;
const WOKEN: u32 = 16;

/// Why a park ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u32)]
pub enum Reason {
    /// What was waited for may have happened.
    Ready = 0,
    /// The deadline passed.
    Timeout = 1,
    /// The descriptor was closed.
    Closed = 2,
}

/// What a successful claim obliges the claimer to do.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Claim {
    /// Make the coroutine ready.
    Schedule,
    /// Nothing: it has not left its context yet and will see the reason.
    Early,
    /// Somebody else was first.
    Lost,
}

/// The word.
pub struct WakeWord(AtomicU32);

impl WakeWord {
    /// The word of a coroutine that does not wait.
    pub const fn new() -> Self {
        Self(AtomicU32::new(IDLE))
    }

    /// The coroutine is about to enter containers. Only by itself.
    #[inline]
    pub fn arm(&self) {
        self.0.store(ARMED, Ordering::Relaxed);
    }

    /// Takes back [`Self::arm`] when nothing was registered. Only by itself.
    #[inline]
    pub fn disarm(&self) {
        self.0.store(IDLE, Ordering::Relaxed);
    }

    /// Whether somebody has claimed it since it was armed.
    #[inline]
    pub fn is_woken(&self) -> bool {
        self.0.load(Ordering::Acquire) >= WOKEN
    }

    /// Tries to be the one that wakes it.
    #[inline]
    pub fn claim(&self, reason: Reason) -> Claim {
        let woken = WOKEN + reason as u32;
        let mut seen = self.0.load(Ordering::Relaxed);
        loop {
            let claim = match seen {
                ARMED => Claim::Early,
                PARKED => Claim::Schedule,
                _ => return Claim::Lost,
            };
            // Acquire: the claimer will run or queue what the parker saved. Release: the woken one
            // sees what the claimer did before.
            match self.0.compare_exchange_weak(seen, woken, Ordering::AcqRel, Ordering::Relaxed) {
                Ok(_) => return claim,
                Err(now) => seen = now,
            }
        }
    }

    /// Its context is saved. False: it was claimed meanwhile, and the caller must make it ready.
    #[inline]
    pub fn complete_park(&self) -> bool {
        self.0.compare_exchange(ARMED, PARKED, Ordering::AcqRel, Ordering::Acquire).is_ok()
    }

    /// The reason of the claim; the word is idle again. Only by the coroutine, after it was woken.
    #[inline]
    pub fn take_reason(&self) -> Reason {
        let reason = match self.0.load(Ordering::Acquire) - WOKEN {
            1 => Reason::Timeout,
            2 => Reason::Closed,
            _ => Reason::Ready,
        };
        self.0.store(IDLE, Ordering::Relaxed);
        reason
    }
}

impl Default for WakeWord {
    fn default() -> Self {
        Self::new()
    }
}
