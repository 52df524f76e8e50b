//! Counters: written by the schedulers, read here.

use crate::sched::{monitor, spare, start};
use crate::sys::report::report;

/// A snapshot of the counters, as `preloom.h` declares it.
#[repr(C)]
#[derive(Clone, Copy, Default, Debug)]
pub struct Stats {
    /// Schedulers, each run by one kernel thread; 0 before the first `pthread_create`.
    pub workers: u64,
    /// Coroutines made since the start of the process.
    pub created: u64,
    /// Coroutines that have not ended.
    pub live: u64,
    /// Switches to a coroutine.
    pub switches: u64,
    /// Calls of epoll_wait.
    pub polls: u64,
    /// Events that they gave.
    pub events: u64,
    /// Coroutines that moved to an idle scheduler.
    pub steals: u64,
    /// Schedulers that moved to another carrier because theirs was stuck.
    pub handoffs: u64,
    /// Kernel threads that are carriers.
    pub carriers: u64,
}

/// The counters now. They are read one after the other while others count on.
pub fn snapshot() -> Stats {
    let mut stats = Stats {
        workers: start::schedulers().len() as u64,
        created: start::created(),
        live: start::live() as u64,
        handoffs: monitor::handoffs(),
        carriers: spare::threads() as u64,
        ..Stats::default()
    };
    for scheduler in start::schedulers() {
        stats.switches += scheduler.counters.switches.get();
        stats.polls += scheduler.counters.polls.get();
        stats.events += scheduler.counters.events.get();
        stats.steals += scheduler.counters.steals.get();
    }
    stats
}

/// Prints the counters on stderr.
pub fn print() {
    let stats = snapshot();
    report!(
        "stats: workers={} coroutines={} live={} switches={} polls={} events={} steals={} \
         handoffs={} carriers={}",
        stats.workers,
        stats.created,
        stats.live,
        stats.switches,
        stats.polls,
        stats.events,
        stats.steals,
        stats.handoffs,
        stats.carriers
    );
}
