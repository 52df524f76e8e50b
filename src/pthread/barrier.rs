//! Barriers.
//!
//! The object is glibc's `pthread_barrier_t`, of which `init` and `destroy` stay glibc's; `destroy`
//! waits until `in` is confirmed by `out`, and both are 0 here between rounds:
//!
//! ```text
//! word 0   in: threads that have arrived in this round
//! word 1   current round
//! word 2   count: threads in a round
//! word 3   0 private, 128 shared between processes
//! word 4   out
//! ```
//!
//! Invariants:
//!
//! * All words change under the bucket's lock. The last one to arrive ends the round there, so the next
//!   round may begin at once, and then wakes those who wait with the tag of the round that ended.
//! * A waiter that was told [`PASSED`] does not touch the object: the last one may have destroyed it.
//!   A waiter that was told nothing was woken for an object that was here before, and waits on.
//!
//! Shared barriers are glibc's; waiting for one blocks the carrier.

use crate::futex::{self, Outcome, Wait};
use crate::sys::glibc;
use crate::sys::real::real_functions;
use core::ffi::c_int;
use core::sync::atomic::{AtomicU32, Ordering};
use libc::pthread_barrier_t;

mod real {
    use super::*;
    real_functions! {
        /// The real `pthread_barrier_wait`.
        fn pthread_barrier_wait(barrier: *mut pthread_barrier_t) -> c_int;
    }
}

/// A waiter's token: its round is over.
const PASSED: u32 = 1;

/// `pthread_barrier_t` as glibc lays it out.
#[repr(C)]
struct Barrier {
    arrived: AtomicU32,
    round: AtomicU32,
    count: u32,
    shared: u32,
    out: AtomicU32,
}

/// `pthread_barrier_wait`: PTHREAD_BARRIER_SERIAL_THREAD for the last to arrive, 0 for the others.
///
/// # Safety
/// As `pthread_barrier_wait`.
pub unsafe fn wait(barrier: *mut pthread_barrier_t) -> c_int {
    // SAFETY: a valid barrier; the layout is glibc's.
    let this = unsafe { &*barrier.cast::<Barrier>() };
    if this.shared != 0 || glibc::tid_if_loaded().is_none() {
        // SAFETY: the caller keeps the contract.
        return unsafe { real::pthread_barrier_wait(barrier) };
    }
    let key = barrier as usize;
    let mut has_arrived = false;
    // A guess until the thread has arrived: the waiter's tag is fixed before the lock is taken.
    let mut round = this.round.load(Ordering::Relaxed);
    loop {
        let mut last = false;
        let mut now = round;
        let arrive = || {
            now = this.round.load(Ordering::Relaxed);
            if has_arrived || now != round {
                return now == round;
            }
            let arrived = this.arrived.load(Ordering::Relaxed) + 1;
            last = arrived == this.count;
            this.arrived.store(if last { 0 } else { arrived }, Ordering::Relaxed);
            if last {
                this.round.store(round.wrapping_add(1), Ordering::Relaxed);
            }
            !last
        };
        let wait = Wait { tag: round as usize, ..Wait::on(key, None) };
        match futex::wait_token(&wait, arrive, || {}) {
            _ if last => {
                // Those who wait in this round keep the object alive until they are woken here.
                let in_round = |_, tag| (tag == round as usize).then_some(PASSED);
                futex::wake_matching(key, usize::MAX, in_round, |_, _| {});
                return libc::PTHREAD_BARRIER_SERIAL_THREAD;
            }
            (Outcome::Woken, PASSED) => return 0,
            (Outcome::Woken, _) => has_arrived = true,
            // The round ended while a stray wake-up kept the thread out of the list.
            _ if has_arrived => return 0,
            _ => round = now,
        }
    }
}
