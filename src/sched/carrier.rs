//! The carrier: a kernel thread that runs a scheduler's loop.
//!
//! Each turn: expired deadlines → ready; inbox → ready; run a batch; then epoll, with timeout 0 if
//! something is ready, else until the earliest deadline. When there is nothing to run, nothing to
//! steal and no deadline, the carrier sleeps for ever.

use super::{Post, Scheduler, finish_switch, start, timers::NEVER};
use crate::coroutine::Coroutine;
use crate::reactor;
use crate::sys::{glibc, time};
use core::sync::atomic::Ordering;

/// A kernel thread that runs a scheduler. Lives on that thread's stack.
pub struct Carrier {
    /// The scheduler that it runs.
    pub scheduler: *const Scheduler,
    /// Its own context while a coroutine runs.
    pub context: usize,
    /// Its own thread pointer.
    pub tcb: usize,
    /// What to do with `left`.
    pub post: Post,
    /// The coroutine whose stack was left last.
    pub left: *const Coroutine,
}

/// Runs a scheduler for ever on the calling kernel thread.
pub fn run(scheduler: &'static Scheduler) -> ! {
    let mut carrier = Carrier {
        scheduler,
        context: 0,
        tcb: glibc::thread_pointer() as usize,
        post: Post::Nothing,
        left: core::ptr::null(),
    };
    let mut events = reactor::epoll::EventBuffer::new();
    loop {
        scheduler.refill_budget();
        expire(scheduler);
        scheduler.drain_inbox();
        if let Some(coroutine) = scheduler.next_ready() {
            resume(&mut carrier, coroutine);
        }
        let timeout = if scheduler.has_ready() {
            Some(0)
        } else {
            match sleep_limit(scheduler) {
                Some(limit) => limit,
                None => continue,
            }
        };
        let count = events.wait(scheduler.epoll, timeout);
        scheduler.counters.polls.add(1);
        if timeout != Some(0) {
            scheduler.sleeping.store(false, Ordering::Relaxed);
            scheduler.leave_idle();
        }
        scheduler.counters.events.add(count as u64);
        events.dispatch(count, |coroutine| scheduler.push_ready(coroutine));
        if timeout != Some(0) {
            // Woken for a reason of its own or to steal: look around before the next sleep.
            if !scheduler.has_ready() {
                scheduler.steal(start::schedulers());
            }
            scheduler.woken_has_looked();
        }
    }
}

/// How long the carrier may sleep (`None` inside: for ever), after it has announced that it will; or
/// nothing if there is something to do.
fn sleep_limit(scheduler: &'static Scheduler) -> Option<Option<u64>> {
    let earliest = scheduler.timers.earliest();
    let limit = if earliest == NEVER {
        None
    } else {
        let now = time::now();
        if earliest <= now {
            return None;
        }
        Some(earliest - now)
    };
    scheduler.enter_idle();
    if !scheduler.prepare_sleep() {
        scheduler.leave_idle();
        return None;
    }
    // Those who pushed before they could see that we are idle are seen here.
    if scheduler.steal(start::schedulers()) {
        scheduler.sleeping.store(false, Ordering::Relaxed);
        scheduler.leave_idle();
        return None;
    }
    Some(limit)
}

fn expire(scheduler: &'static Scheduler) {
    let earliest = scheduler.timers.earliest();
    if earliest == NEVER {
        return;
    }
    let now = time::now();
    if earliest <= now {
        scheduler.timers.expire(now, |coroutine| scheduler.push_ready(coroutine));
    }
}

/// Runs a coroutine; returns when one finds nothing else to run.
fn resume(carrier: &mut Carrier, coroutine: &'static Coroutine) {
    let carrier = &raw mut *carrier;
    coroutine.carrier.set(carrier);
    // SAFETY: the coroutine was taken from a ready queue: its context is saved and ours alone.
    unsafe {
        coroutine.home.store((*carrier).scheduler.cast_mut(), Ordering::Relaxed);
        crate::arch::switch(
            &raw mut (*carrier).context,
            *coroutine.context.get(),
            coroutine.tcb as usize,
            carrier as usize,
        );
        finish_switch(carrier);
    }
}
