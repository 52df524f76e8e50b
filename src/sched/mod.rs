//! The scheduler (the Go runtime's P) and the carriers (its M) that run it.
//!
//! There is one [`Scheduler`] per worker: an epoll instance, a ready queue, a timer tree and an inbox.
//! Exactly one [`Carrier`], a kernel thread, runs a scheduler. A parking coroutine switches straight to
//! the next ready one; only when none is ready, or when the batch is used up, does it switch to the
//! carrier's own context, whose loop looks at inbox, timers and epoll.
//!
//! Invariants:
//! * A coroutine becomes visible to others only when its context is saved: the code that runs after a
//!   switch completes it for the coroutine that was left ([`finish_switch`]).
//! * Ready queue and timer tree are locked, because idle schedulers steal from the one and coroutines
//!   that have moved remove themselves from the other. Wake-ups from threads that run no scheduler go
//!   through the inbox.
//! * No lost wake-up: a pusher makes the inbox non-empty, then looks at `sleeping`; a carrier sets
//!   `sleeping`, then looks at the inbox; both with a sequentially consistent fence between.

pub mod carrier;
pub mod monitor;
pub mod park;
pub mod ready;
pub mod spare;
pub mod start;
pub mod timers;

pub use carrier::Carrier;
pub use park::{arm, disarm, park, sleep_until, yield_now};
pub use start::{coroutine_ended, is_started, spawn};

use crate::coroutine::{Coroutine, ReadyList};
use crate::sys::critical;
use crate::sys::spin::SpinLock;
use core::cell::Cell;
use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, AtomicUsize, Ordering, fence};
use timers::Timers;

/// Coroutines that run in a row before timers, inbox and epoll get a look.
const BATCH: u32 = 64;

/// What is to be done with the coroutine whose stack was just left.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Post {
    /// Nothing: the carrier's own context was left.
    Nothing,
    /// It waits: publish it, or make it ready if it was woken meanwhile.
    Park,
    /// It gives way: to the end of the ready queue.
    Yield,
    /// It has ended.
    Exit,
}

/// Epoll instance, ready queue, timers, inbox.
#[repr(C, align(128))]
pub struct Scheduler {
    /// Its number, from 0.
    pub index: usize,
    /// The epoll instance.
    pub epoll: i32,
    /// An eventfd that ends the sleep in epoll.
    pub wakeup: i32,
    /// Coroutines that can run.
    ready: SpinLock<ReadyList>,
    /// Length of `ready`; exact under its lock, a hint without.
    ready_len: AtomicUsize,
    /// Deadlines of coroutines that parked here.
    pub timers: Timers,
    /// Coroutines sent by others: a stack, newest first.
    inbox: AtomicPtr<Coroutine>,
    /// The carrier sleeps in epoll, or is about to.
    sleeping: AtomicBool,
    /// The carrier that runs it.
    carrier: AtomicPtr<Carrier>,
    /// What the monitor saw of its progress at its last look.
    seen_progress: AtomicU64,
    /// CPU time of the carrier at the last progress that the monitor saw.
    seen_cpu: AtomicU64,
    /// Coroutines that call it home and have not ended, for the choice at creation.
    pub live: AtomicUsize,
    /// Coroutines that may still run before the loop gets its turn.
    budget: Cell<u32>,
    /// Counters, written by the carrier only.
    pub counters: Counters,
}

/// What a scheduler counts. Only its carrier writes; anybody may read.
#[derive(Default)]
pub struct Counters {
    /// Switches to a coroutine.
    pub switches: Counter,
    /// Calls of epoll_wait.
    pub polls: Counter,
    /// Events that they gave.
    pub events: Counter,
    /// Coroutines taken from other schedulers.
    pub steals: Counter,
}

/// A counter with one writer.
#[derive(Default)]
pub struct Counter(AtomicU64);

impl Counter {
    /// Adds; only by the one writer, so no atomic addition is needed.
    #[inline]
    pub fn add(&self, amount: u64) {
        self.0.store(self.0.load(Ordering::Relaxed).wrapping_add(amount), Ordering::Relaxed);
    }

    /// The count.
    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

// SAFETY: `budget` is touched by the carrier alone; everything else is atomic or locked.
unsafe impl Sync for Scheduler {}

impl Scheduler {
    /// A scheduler with these descriptors and nothing to do.
    pub fn new(index: usize, epoll: i32, wakeup: i32) -> Self {
        Self {
            index,
            epoll,
            wakeup,
            ready: SpinLock::new(ReadyList::new(crate::coroutine::ReadyAdapter::new())),
            ready_len: AtomicUsize::new(0),
            timers: Timers::new(),
            inbox: AtomicPtr::new(core::ptr::null_mut()),
            sleeping: AtomicBool::new(false),
            carrier: AtomicPtr::new(core::ptr::null_mut()),
            seen_progress: AtomicU64::new(u64::MAX),
            seen_cpu: AtomicU64::new(0),
            live: AtomicUsize::new(0),
            budget: Cell::new(BATCH),
            counters: Counters::default(),
        }
    }

    /// Sends a coroutine from any thread. It must be claimed (or new) and its context saved.
    pub fn submit(&self, coroutine: &Coroutine) {
        let node = (&raw const *coroutine).cast_mut();
        let mut head = self.inbox.load(Ordering::Relaxed);
        loop {
            coroutine.next.store(head, Ordering::Relaxed);
            match self.inbox.compare_exchange_weak(head, node, Ordering::Release, Ordering::Relaxed)
            {
                Ok(_) => break,
                Err(now) => head = now,
            }
        }
        self.wake_if_sleeping();
    }

    /// Ends the carrier's sleep after something was put where it looks before it sleeps.
    fn wake_if_sleeping(&self) {
        // Pairs with the fence in `prepare_sleep`: either we see `sleeping`, or it sees what we did.
        fence(Ordering::SeqCst);
        if self.is_sleeping() && self.sleeping.swap(false, Ordering::AcqRel) {
            self.ring();
        }
    }

    /// Whether the carrier sleeps in epoll, or is about to.
    fn is_sleeping(&self) -> bool {
        self.sleeping.load(Ordering::Relaxed)
    }

    /// Whether something waits for the carrier's attention.
    fn has_work(&self) -> bool {
        self.has_ready()
            || !self.inbox.load(Ordering::Relaxed).is_null()
            || (self.timers.earliest() != timers::NEVER
                && self.timers.earliest() <= crate::sys::time::now())
            || crate::posix::attempt::poll_now(self.epoll, libc::POLLIN) == Ok(true)
    }

    /// Ends the sleep in epoll.
    fn ring(&self) {
        let one = 1u64;
        // SAFETY: eight bytes from a live variable. The descriptor is edge-triggered in epoll, so
        // nobody reads the counter; it cannot overflow in the age of the universe.
        let _ = unsafe { crate::sys::linux::syscall!(write, self.wakeup, &raw const one, 8) };
    }

    /// Announces that the carrier is about to sleep. False: something has arrived, do not sleep.
    fn prepare_sleep(&self) -> bool {
        self.sleeping.store(true, Ordering::Relaxed);
        fence(Ordering::SeqCst);
        if self.inbox.load(Ordering::Relaxed).is_null() {
            return true;
        }
        self.sleeping.store(false, Ordering::Relaxed);
        false
    }

    /// Moves the inbox to the ready queue, oldest first.
    fn drain_inbox(&self) {
        if self.inbox.load(Ordering::Relaxed).is_null() {
            return;
        }
        // Acquire: pairs with the Release of the pushers, each of which filled `next` before.
        let mut node = self.inbox.swap(core::ptr::null_mut(), Ordering::Acquire);
        let mut reversed: *mut Coroutine = core::ptr::null_mut();
        // SAFETY: nodes in the inbox are alive and, once taken, ours.
        unsafe {
            while !node.is_null() {
                let next = (*node).next.load(Ordering::Relaxed);
                (*node).next.store(reversed, Ordering::Relaxed);
                reversed = node;
                node = next;
            }
            while !reversed.is_null() {
                let next = (*reversed).next.load(Ordering::Relaxed);
                self.push_ready(&*reversed);
                reversed = next;
            }
        }
    }
}

/// Makes a claimed coroutine ready: on the caller's scheduler if the caller is a coroutine that has one
/// (those who talk to each other end up together), else on the one where it last ran.
pub fn make_ready(coroutine: &'static Coroutine) {
    enqueue(coroutine, None);
}

/// Makes a claimed or new coroutine ready on `target`; `None`: as [`make_ready`].
fn enqueue(coroutine: &'static Coroutine, target: Option<&'static Scheduler>) {
    if let Some(current) = Coroutine::current() {
        let carrier = current.carrier.get();
        // SAFETY: the caller runs on this carrier; no switch happens in between.
        let done = unsafe {
            let own = Carrier::enter(carrier)
                .filter(|own| target.is_none_or(|target| core::ptr::eq(*own, target)));
            if let Some(own) = own {
                own.push_ready(coroutine);
            }
            Carrier::exit(carrier);
            own.is_some()
        };
        if done {
            return;
        }
    }
    target.unwrap_or_else(|| coroutine.home()).submit(coroutine);
}

/// Bounds the wait of the calling coroutine, which is armed.
fn bound(coroutine: &Coroutine, deadline: u64) {
    let home = coroutine.home();
    let is_earliest = home.timers.insert(coroutine, deadline);
    if !is_earliest {
        return;
    }
    let carrier = coroutine.carrier.get();
    // SAFETY: the caller runs on this carrier; no switch happens in between.
    let owned = unsafe {
        let owned = Carrier::enter(carrier).is_some();
        Carrier::exit(carrier);
        owned
    };
    if !owned {
        // Another carrier runs the scheduler and may sleep until a later deadline.
        home.wake_if_sleeping();
    }
}

/// Leaves the calling coroutine's context and runs another; returns when it is switched to again.
#[inline]
pub fn leave(coroutine: &Coroutine, post: Post) {
    // Ended on this coroutine's own count, when it is switched to again.
    critical::enter();
    let carrier = coroutine.carrier.get();
    // SAFETY: a running coroutine's carrier is that of this kernel thread, which alone uses it.
    unsafe {
        let scheduler = Carrier::enter(carrier);
        (*carrier).post = post;
        (*carrier).left = &raw const *coroutine;
        let now_on = match scheduler.and_then(Scheduler::next_ready) {
            Some(next) => {
                next.carrier.set(carrier);
                next.home.store((*carrier).scheduler.cast_mut(), Ordering::Relaxed);
                crate::arch::switch(
                    coroutine.context.get(),
                    *next.context.get(),
                    next.tcb as usize,
                    carrier as usize,
                )
            }
            None => crate::arch::switch(
                coroutine.context.get(),
                (*carrier).context,
                (*carrier).tcb,
                carrier as usize,
            ),
        };
        let carrier = now_on as *mut Carrier;
        finish_switch(carrier);
        take_over_mask(carrier, coroutine);
        Carrier::exit(carrier);
    }
    critical::leave();
}

/// Gives the kernel thread the signal mask of the coroutine that runs now.
///
/// # Safety
/// `carrier` is that of this kernel thread and runs `coroutine`.
#[inline]
pub unsafe fn take_over_mask(carrier: *mut Carrier, coroutine: &Coroutine) {
    let mask = coroutine.mask.get();
    // SAFETY: the carrier is ours.
    unsafe {
        if (*carrier).mask != mask {
            (*carrier).mask = mask;
            crate::pthread::sigmask::set_of_kernel_thread(mask);
        }
    }
}

/// Completes, on the new stack, what the left coroutine began.
///
/// # Safety
/// `carrier` is the carrier of this kernel thread, just after a switch.
#[inline]
pub unsafe fn finish_switch(carrier: *mut Carrier) {
    // SAFETY: the carrier is ours; the coroutine that was left stays alive until it is published here.
    unsafe {
        let left = (*carrier).left;
        let post = core::mem::replace(&mut (*carrier).post, Post::Nothing);
        if post != Post::Nothing {
            critical::take_over((*left).tcb);
        }
        let again = match post {
            Post::Nothing => false,
            Post::Park => !(*left).wake.complete_park(),
            Post::Yield => true,
            Post::Exit => {
                (*left).finish_exit();
                false
            }
        };
        if again {
            match Carrier::enter(carrier) {
                Some(scheduler) => scheduler.push_ready(&*left),
                None => (*left).home().submit(&*left),
            }
        }
    }
}
