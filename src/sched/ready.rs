//! The ready queue: first in, first out; idle schedulers steal from its old end.

use super::{BATCH, Scheduler};
use crate::coroutine::{Coroutine, ReadyAdapter, ReadyList};
use core::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use intrusive_collections::UnsafeRef;

/// Schedulers whose carrier sleeps for want of work.
static IDLE: AtomicUsize = AtomicUsize::new(0);
/// An idle scheduler was woken to steal and has not looked yet: one at a time, so that a burst of
/// wake-ups does not wake everybody for one piece of work.
static WAKING: AtomicBool = AtomicBool::new(false);

impl Scheduler {
    /// Appends a coroutine that is claimed (or new, or yielding) and whose context is saved. Only by
    /// this scheduler's carrier.
    #[inline]
    pub fn push_ready(&self, coroutine: &Coroutine) {
        let length = {
            let mut ready = self.ready.lock();
            // SAFETY: coroutines are never moved, and whoever made this one ready is the only one.
            ready.push_back(unsafe { UnsafeRef::from_raw(&raw const *coroutine) });
            let length = self.ready_len.load(Ordering::Relaxed) + 1;
            self.ready_len.store(length, Ordering::Relaxed);
            length
        };
        // One waiting coroutine runs here as soon as the present one parks; more are worth another CPU.
        if length > 1 && IDLE.load(Ordering::Relaxed) > 0 {
            wake_idle();
        }
    }

    /// The next coroutine to run; none if there is none or if the batch is used up.
    #[inline]
    pub(super) fn next_ready(&self) -> Option<&'static Coroutine> {
        let budget = self.budget.get();
        if budget == 0 || self.ready_len.load(Ordering::Relaxed) == 0 {
            return None;
        }
        let next = {
            let mut ready = self.ready.lock();
            let next = ready.pop_front()?;
            self.ready_len.store(self.ready_len.load(Ordering::Relaxed) - 1, Ordering::Relaxed);
            next
        };
        self.budget.set(budget - 1);
        self.counters.switches.add(1);
        // SAFETY: coroutines live as long as they are in a container or run.
        Some(unsafe { &*UnsafeRef::into_raw(next) })
    }

    /// Starts a new batch.
    pub(super) fn refill_budget(&self) {
        self.budget.set(BATCH);
    }

    /// Whether something can run here at once.
    pub(super) fn has_ready(&self) -> bool {
        self.ready_len.load(Ordering::Relaxed) != 0
    }

    /// Takes half of another scheduler's ready queue, its oldest. True if something was taken.
    pub(super) fn steal(&self, all: &'static [Scheduler]) -> bool {
        for step in 1..all.len() {
            let victim = &all[(self.index + step) % all.len()];
            if victim.ready_len.load(Ordering::Relaxed) == 0 {
                continue;
            }
            let mut loot = ReadyList::new(ReadyAdapter::new());
            let mut taken = 0;
            {
                let mut ready = victim.ready.lock();
                let length = victim.ready_len.load(Ordering::Relaxed);
                while taken < length.div_ceil(2) {
                    let Some(coroutine) = ready.pop_front() else { break };
                    loot.push_back(coroutine);
                    taken += 1;
                }
                victim.ready_len.store(length - taken, Ordering::Relaxed);
            }
            if taken == 0 {
                continue;
            }
            let mut ready = self.ready.lock();
            while let Some(coroutine) = loot.pop_front() {
                ready.push_back(coroutine);
            }
            self.ready_len.store(self.ready_len.load(Ordering::Relaxed) + taken, Ordering::Relaxed);
            self.counters.steals.add(taken as u64);
            return true;
        }
        false
    }

    /// Announces that this scheduler is idle, before its last attempt to steal.
    pub(super) fn enter_idle(&self) {
        // A pusher may miss us here and its push our last look: nothing is lost, the work waits for its own
        // scheduler, and the monitor sees to it if that is stuck.
        IDLE.fetch_add(1, Ordering::SeqCst);
    }

    /// Takes back [`Self::enter_idle`].
    pub(super) fn leave_idle(&self) {
        IDLE.fetch_sub(1, Ordering::SeqCst);
    }

    /// A scheduler that was woken to steal has looked around.
    pub(super) fn woken_has_looked(&self) {
        if WAKING.load(Ordering::Relaxed) {
            WAKING.store(false, Ordering::Release);
        }
    }
}

/// Wakes one sleeping scheduler to steal, unless one is on its way.
#[cold]
fn wake_idle() {
    if WAKING.load(Ordering::Relaxed) || WAKING.swap(true, Ordering::AcqRel) {
        return;
    }
    for scheduler in super::start::schedulers() {
        if scheduler.sleeping.load(Ordering::Relaxed)
            && scheduler.sleeping.swap(false, Ordering::AcqRel)
        {
            scheduler.ring();
            return;
        }
    }
    WAKING.store(false, Ordering::Release);
}

/// Forgets what the parent's carriers were doing. Only in a forked child, which has none.
pub(super) fn reset() {
    IDLE.store(0, Ordering::Relaxed);
    WAKING.store(false, Ordering::Relaxed);
}
