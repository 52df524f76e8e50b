//! The parking lot: wait on an address, wake those who wait there. Every lock is built on it.
//!
//! A sharded table of waiter lists keyed by address. Waiters are coroutines, which park, and native
//! threads, which sleep on a kernel futex of their own; both can wake both.
//!
//! Invariants:
//! * A waiter's condition is checked under the lock of its bucket, so a waker that changes the condition
//!   first and then takes that lock cannot miss it.
//! * Wakers claim a waiter and unlink it under the bucket's lock. A waiter whose wait ended otherwise
//!   (timeout) unlinks itself under the lock before its frame is left.
//! * A waiter may be moved to another address (requeue) under both buckets' locks; it finds its bucket
//!   by reading its key again after it has the lock.

mod native;

use crate::coroutine::wake::{Claim, Reason};
use crate::coroutine::{Coroutine, ReadyAdapter, ReadyList};
use crate::sched;
use crate::sys::spin::{Guard, SpinLock};
use core::cell::Cell;
use core::sync::atomic::{AtomicUsize, Ordering};
use intrusive_collections::{LinkedList, LinkedListLink, UnsafeRef, intrusive_adapter};
use native::Parker;

const BUCKETS: usize = 1024;

/// Who waits.
enum Who {
    Coroutine(*const Coroutine),
    Native(Parker),
}

/// One wait. Lives on the waiter's stack.
struct Waiter {
    link: LinkedListLink,
    key: AtomicUsize,
    /// Which of several kinds of wake-up it takes (FUTEX_WAIT_BITSET); all ones normally.
    bitset: u32,
    /// A word of the waiter's for those who wake it.
    tag: usize,
    /// What the waker tells the waiter. Written before the claim that wakes it, read after the wait.
    token: Cell<u32>,
    who: Who,
}

intrusive_adapter!(WaiterAdapter = UnsafeRef<Waiter>: Waiter { link => LinkedListLink });

type Bucket = LinkedList<WaiterAdapter>;

#[repr(align(64))]
struct Slot(SpinLock<Bucket>);

static TABLE: [Slot; BUCKETS] =
    [const { Slot(SpinLock::new(LinkedList::new(WaiterAdapter::NEW))) }; BUCKETS];

fn slot(key: usize) -> usize {
    // Fibonacci hashing: objects are at least four bytes apart.
    (key >> 2).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (usize::BITS - BUCKETS.trailing_zeros())
}

fn lock(key: usize) -> Guard<'static, Bucket> {
    TABLE[slot(key)].0.lock()
}

/// How a wait ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Outcome {
    /// Woken.
    Woken,
    /// The deadline passed, and no waker had chosen the waiter.
    Timeout,
    /// The deadline passed after a waker had moved the waiter to another key.
    MovedTimeout,
    /// The condition did not hold: it did not wait.
    Mismatch,
    /// A signal handler ran (native threads, if they asked for it).
    Interrupted,
}

/// What a wait is.
pub struct Wait {
    /// The address, or any number that waiters and wakers agree on.
    pub key: usize,
    /// CLOCK_MONOTONIC nanoseconds.
    pub deadline: Option<u64>,
    /// Kinds of wake-up that it takes.
    pub bitset: u32,
    /// A word for wakers: they choose by it whom to wake or move.
    pub tag: usize,
    /// A handler that was installed without SA_RESTART ends a native thread's wait.
    pub interruptible: bool,
}

impl Wait {
    /// An ordinary wait.
    pub fn on(key: usize, deadline: Option<u64>) -> Self {
        Self { key, deadline, bitset: u32::MAX, tag: 0, interruptible: false }
    }
}

/// Waits until woken or until the deadline.
///
/// `condition` is called under the bucket's lock: it must be short and may not touch the table. If it
/// says no, the call returns [`Outcome::Mismatch`]. `before_park` is called after the caller is in the
/// list and before it sleeps (a condition variable releases its mutex there); it may wake others but
/// not wait.
pub fn wait(wait: &Wait, condition: impl FnOnce() -> bool, before_park: impl FnOnce()) -> Outcome {
    wait_token(wait, condition, before_park).0
}

/// Like [`wait`]; also gives what the waker said, 0 if nothing (see [`wake_first`] and
/// [`wake_matching`]). A program that reuses memory may cause wake-ups meant for another object; they
/// say nothing.
pub fn wait_token(
    wait: &Wait,
    condition: impl FnOnce() -> bool,
    before_park: impl FnOnce(),
) -> (Outcome, u32) {
    match Coroutine::current() {
        Some(coroutine) => {
            let waiter = Waiter::new(wait, Who::Coroutine(coroutine));
            {
                let mut bucket = lock(wait.key);
                if !condition() {
                    return (Outcome::Mismatch, 0);
                }
                sched::arm(coroutine);
                // SAFETY: unlinked before this frame is left.
                bucket.push_back(unsafe { UnsafeRef::from_raw(&raw const waiter) });
            }
            before_park();
            match sched::park(coroutine, wait.deadline) {
                Reason::Timeout => (unlink(&waiter, wait.key), 0),
                _ => (Outcome::Woken, waiter.token.get()),
            }
        }
        None => {
            let waiter = Waiter::new(wait, Who::Native(Parker::new()));
            {
                let mut bucket = lock(wait.key);
                if !condition() {
                    return (Outcome::Mismatch, 0);
                }
                // SAFETY: unlinked before this frame is left.
                bucket.push_back(unsafe { UnsafeRef::from_raw(&raw const waiter) });
            }
            before_park();
            let Who::Native(parker) = &waiter.who else { return (Outcome::Woken, 0) };
            let end = parker.sleep(wait.deadline, wait.interruptible);
            if end != Outcome::Woken {
                let timeout = unlink(&waiter, wait.key);
                // A waker may have claimed it between the end of its sleep and the lock.
                if !parker.is_woken() {
                    return (if end == Outcome::Timeout { timeout } else { end }, 0);
                }
            }
            (Outcome::Woken, waiter.token.get())
        }
    }
}

impl Waiter {
    fn new(wait: &Wait, who: Who) -> Self {
        Self {
            link: LinkedListLink::new(),
            key: AtomicUsize::new(wait.key),
            bitset: wait.bitset,
            tag: wait.tag,
            token: Cell::new(0),
            who,
        }
    }

    /// Claims the waiter, which the caller has just unlinked under the lock. True if it is now woken
    /// by the caller, who then hands it to `woken`.
    fn claim(&self, woken: &mut Woken) -> bool {
        match &self.who {
            Who::Coroutine(coroutine) => {
                // SAFETY: a linked waiter's coroutine is in its wait and cannot leave before it has
                // taken the lock that the caller holds.
                let coroutine = unsafe { &**coroutine };
                match coroutine.wake.claim(Reason::Ready) {
                    Claim::Schedule => {
                        // SAFETY: claimed: it is in no other list.
                        woken.coroutines.push_back(unsafe { UnsafeRef::from_raw(coroutine) });
                        true
                    }
                    Claim::Early => true,
                    Claim::Lost => false,
                }
            }
            Who::Native(parker) => {
                let word = parker.mark_woken();
                if let Some(earlier) = woken.native.replace(word) {
                    native::ring(earlier);
                }
                true
            }
        }
    }
}

/// Takes a waiter whose time is over out of its bucket if it is still in one; says whether it was moved
/// away from `original`.
fn unlink(waiter: &Waiter, original: usize) -> Outcome {
    loop {
        let key = waiter.key.load(Ordering::Relaxed);
        let mut bucket = lock(key);
        if waiter.key.load(Ordering::Relaxed) != key {
            continue; // moved meanwhile
        }
        if waiter.link.is_linked() {
            // SAFETY: a linked waiter is in the bucket of its key, whose lock we hold.
            unsafe { bucket.cursor_mut_from_ptr(&raw const *waiter) }.remove();
        }
        return if key == original { Outcome::Timeout } else { Outcome::MovedTimeout };
    }
}

/// Those who were claimed and are made ready when the bucket's lock is released.
struct Woken {
    coroutines: ReadyList,
    /// The word of the last native thread. Those before it were rung under the lock: mostly there is one.
    native: Option<*const u32>,
}

impl Woken {
    fn new() -> Self {
        Self { coroutines: ReadyList::new(ReadyAdapter::new()), native: None }
    }

    #[inline]
    fn make_ready(mut self) {
        while let Some(coroutine) = self.coroutines.pop_front() {
            // SAFETY: claimed by us: alive until it has run.
            sched::make_ready(unsafe { &*UnsafeRef::into_raw(coroutine) });
        }
        if let Some(word) = self.native {
            native::ring(word);
        }
    }
}

/// Wakes up to `count` waiters on `key`, the longest waiting first; returns how many.
pub fn wake(key: usize, count: usize) -> usize {
    wake_with(key, count, u32::MAX, |_, _| {})
}

/// Like [`wake`], for waiters whose bitset shares a bit with `bitset`. `under_lock` is called before
/// the bucket's lock is released, with the number woken and whether others still wait on `key`.
pub fn wake_with(
    key: usize,
    count: usize,
    bitset: u32,
    under_lock: impl FnOnce(usize, bool),
) -> usize {
    wake_matching(key, count, |kinds, _| (kinds & bitset != 0).then_some(0), under_lock)
}

/// Like [`wake`], for waiters whose bitset and tag `choose` accepts; they are told what it returns.
/// `choose` is called just before the waiter can run; one that has timed out is not counted as woken.
pub fn wake_matching(
    key: usize,
    count: usize,
    mut choose: impl FnMut(u32, usize) -> Option<u32>,
    under_lock: impl FnOnce(usize, bool),
) -> usize {
    let mut woken = Woken::new();
    let mut number = 0;
    let mut more = false;
    {
        let mut bucket = lock(key);
        let mut cursor = bucket.front_mut();
        while let Some(waiter) = cursor.get() {
            if waiter.key.load(Ordering::Relaxed) != key {
                cursor.move_next();
                continue;
            }
            if number == count {
                more = true;
                break;
            }
            let Some(token) = choose(waiter.bitset, waiter.tag) else {
                more = true;
                cursor.move_next();
                continue;
            };
            waiter.token.set(token);
            let waiter: *const Waiter = waiter;
            cursor.remove();
            // SAFETY: it was linked: its frame is alive until it gets the lock that we hold.
            if unsafe { &*waiter }.claim(&mut woken) {
                number += 1;
            }
        }
        under_lock(number, more);
    }
    woken.make_ready();
    number
}

/// Wakes the longest waiter on `key`.
///
/// `choose` is called under the bucket's lock, before the waiter can run, with its tag and whether
/// others wait behind it; what it returns is the waiter's token. If the waiter turns out to have timed
/// out, it is called again for the next, and in the end with `None` if there was nobody.
pub fn wake_first(key: usize, mut choose: impl FnMut(Option<(usize, bool)>) -> u32) {
    let mut woken = Woken::new();
    {
        let mut bucket = lock(key);
        let mut cursor = bucket.front_mut();
        loop {
            let Some(waiter) = cursor.get() else {
                choose(None);
                break;
            };
            if waiter.key.load(Ordering::Relaxed) != key {
                cursor.move_next();
                continue;
            }
            let waiter: *const Waiter = waiter;
            cursor.remove();
            let mut rest = cursor.as_cursor();
            while rest.get().is_some_and(|other| other.key.load(Ordering::Relaxed) != key) {
                rest.move_next();
            }
            // SAFETY: it was linked: its frame is alive until it gets the lock that we hold.
            let waiter = unsafe { &*waiter };
            waiter.token.set(choose(Some((waiter.tag, !rest.is_null()))));
            if waiter.claim(&mut woken) {
                break;
            }
        }
    }
    woken.make_ready();
}

/// What [`requeue`] did.
pub struct Requeued {
    /// Waiters woken.
    pub woken: usize,
    /// Waiters moved to the other key.
    pub moved: usize,
    /// The tag of one that still waits on the first key.
    pub rest: Option<usize>,
}

/// Wakes some of the waiters on `key` that have this `tag` and moves others of them to another key, as
/// one step; those that are woken are told `token`.
///
/// `decide` is called under both locks, with nobody able to come or go and at least one such waiter
/// there; it returns how many to wake and how many to move. `under_lock` is called before the locks are
/// released, whether or not there was such a waiter.
pub fn requeue(
    key: usize,
    target: usize,
    tag: usize,
    token: u32,
    decide: impl FnOnce() -> (usize, usize),
    under_lock: impl FnOnce(&Requeued),
) -> Requeued {
    let mut woken = Woken::new();
    let mut done = Requeued { woken: 0, moved: 0, rest: None };
    {
        let (mut source, mut other) = lock_two(key, target);
        let mut kept = LinkedList::new(WaiterAdapter::new());
        let mut decide = Some(decide);
        let (mut wake, mut requeue) = (0, 0);
        let mut cursor = source.front_mut();
        while let Some(waiter) = cursor.get() {
            if waiter.key.load(Ordering::Relaxed) != key {
                cursor.move_next();
                continue;
            }
            if waiter.tag == tag
                && let Some(decide) = decide.take()
            {
                (wake, requeue) = decide();
            }
            if waiter.tag != tag || (done.woken == wake && done.moved == requeue) {
                done.rest = Some(waiter.tag);
                if decide.is_none() && done.woken == wake && done.moved == requeue {
                    break;
                }
                cursor.move_next();
                continue;
            }
            let Some(node) = cursor.remove() else { break };
            if done.woken < wake {
                node.token.set(token);
                if node.claim(&mut woken) {
                    done.woken += 1;
                }
            } else {
                node.key.store(target, Ordering::Relaxed);
                kept.push_back(node);
                done.moved += 1;
            }
        }
        let destination = other.as_deref_mut().unwrap_or(&mut source);
        destination.back_mut().splice_after(kept);
        under_lock(&done);
    }
    woken.make_ready();
    done
}

/// Locks the buckets of two keys, in the order of the table so that nobody deadlocks; one guard if
/// they are the same.
fn lock_two(key: usize, target: usize) -> (Guard<'static, Bucket>, Option<Guard<'static, Bucket>>) {
    let (first, second) = (slot(key), slot(target));
    match first.cmp(&second) {
        core::cmp::Ordering::Equal => (lock(key), None),
        core::cmp::Ordering::Less => {
            let guard = lock(key);
            let other = lock(target);
            (guard, Some(other))
        }
        core::cmp::Ordering::Greater => {
            let other = lock(target);
            (lock(key), Some(other))
        }
    }
}

/// In a forked child: nobody waits.
///
/// # Safety
/// Only in the child, which has one thread.
pub unsafe fn reset_after_fork() {
    for slot in &TABLE {
        // SAFETY: the child is alone.
        unsafe { slot.0.reset(LinkedList::new(WaiterAdapter::NEW)) };
    }
}
