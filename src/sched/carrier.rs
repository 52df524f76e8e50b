//! The carrier: a kernel thread that runs a scheduler's loop.
//!
//! Each turn: expired deadlines → ready; inbox → ready; run a batch; then epoll, with timeout 0 if
//! something is ready, else until the earliest deadline. When there is nothing to run, nothing to
//! steal and no deadline, the carrier sleeps for ever.
//!
//! **Ownership.** A carrier may be stuck inside one coroutine: in a system call that we did not hook, in a
//! lock of libc, in a computation. Then the monitor gives its scheduler to another carrier; the coroutine
//! goes on as the kernel thread that it now has to itself, and joins a scheduler again at its next park.
//! The two sides agree as in Dekker's algorithm:
//!
//! ```text
//! coroutine, entering the runtime        monitor
//!   inside := 1                            ownership: OWNED → CLAIMED
//!   (light barrier)                        (heavy barrier: membarrier)
//!   ownership = OWNED? go on               inside = 0?  ownership := LOST, the scheduler is free
//!   CLAIMED? wait for the verdict          inside = 1?  ownership := OWNED, try again later
//!   LOST?    do without a scheduler
//! ```
//!
//! The coroutine's side is two plain memory operations; `membarrier` makes the compiler barrier there as
//! good as a fence. Where the kernel does not offer it, the coroutine's side uses a fence.

use super::{Post, Scheduler, finish_switch, monitor, spare, start, timers::NEVER};
use crate::coroutine::Coroutine;
use crate::pthread::sigmask;
use crate::reactor::epoll::EventBuffer;
use crate::sys::{glibc, linux, time};
use core::sync::atomic::{
    AtomicBool, AtomicI32, AtomicPtr, AtomicU32, Ordering, compiler_fence, fence,
};

const OWNED: u32 = 0;
const CLAIMED: u32 = 1;
const LOST: u32 = 2;

/// `membarrier` is not to be had: the coroutine's side needs a fence of its own.
static SYMMETRIC: AtomicBool = AtomicBool::new(false);

/// A kernel thread that runs, or could run, a scheduler. Never freed: the monitor may look at it.
#[repr(align(64))]
pub struct Carrier {
    /// The scheduler that it runs, or ran last.
    pub scheduler: *const Scheduler,
    /// Its own context while a coroutine runs.
    pub context: usize,
    /// Its own thread pointer.
    pub tcb: usize,
    /// The signal mask of its kernel thread.
    pub mask: u64,
    /// What to do with `left`.
    pub post: Post,
    /// The coroutine whose stack was left last.
    pub left: *const Coroutine,
    /// 1 while it is in code that touches its scheduler.
    inside: AtomicU32,
    ownership: AtomicU32,
    /// The kernel's id of its thread.
    tid: AtomicI32,
    /// `/proc/self/task/TID/stat`, for the monitor; −1: none.
    stat: AtomicI32,
    /// Where it sleeps while it is spare; see [`spare`].
    pub(super) call: AtomicU32,
    /// Next in the list of spare carriers.
    pub(super) next: AtomicPtr<Carrier>,
}

impl Carrier {
    /// A carrier for `scheduler`, before its thread has started.
    pub(super) fn new(scheduler: *const Scheduler) -> Self {
        Self {
            scheduler,
            context: 0,
            tcb: 0,
            mask: 0,
            post: Post::Nothing,
            left: core::ptr::null(),
            inside: AtomicU32::new(1),
            ownership: AtomicU32::new(OWNED),
            tid: AtomicI32::new(0),
            stat: AtomicI32::new(-1),
            call: AtomicU32::new(0),
            next: AtomicPtr::new(core::ptr::null_mut()),
        }
    }

    /// Gives a scheduler to a carrier that has none. Only by whoever took both.
    ///
    /// # Safety
    /// The carrier is spare, or its thread has not started.
    pub(super) unsafe fn assign(this: *mut Self, scheduler: &'static Scheduler) {
        // SAFETY: nobody else touches a spare carrier.
        unsafe {
            (*this).scheduler = scheduler;
            (*this).inside.store(1, Ordering::Relaxed);
            (*this).ownership.store(OWNED, Ordering::Release);
        }
        scheduler.carrier.store(this, Ordering::Release);
    }

    /// Enters code that touches the scheduler; `None` if it was taken away. In both cases followed by
    /// [`Self::exit`], or by a switch, after which [`finish_switch`] exits.
    ///
    /// # Safety
    /// `this` is the carrier of this kernel thread, which runs a coroutine.
    #[inline]
    pub unsafe fn enter(this: *mut Self) -> Option<&'static Scheduler> {
        // SAFETY: the caller's promise; carriers are never freed.
        let carrier = unsafe { &*this };
        carrier.inside.store(1, Ordering::Relaxed);
        compiler_fence(Ordering::SeqCst);
        if SYMMETRIC.load(Ordering::Relaxed) {
            fence(Ordering::SeqCst);
        }
        loop {
            match carrier.ownership.load(Ordering::Acquire) {
                // SAFETY: an owned scheduler is set and lives for ever.
                OWNED => return Some(unsafe { &*carrier.scheduler }),
                LOST => return None,
                // The monitor is about to see that we are inside, or to say that we lost it.
                _ => core::hint::spin_loop(),
            }
        }
    }

    /// Leaves what [`Self::enter`] entered.
    ///
    /// # Safety
    /// As `enter`.
    #[inline]
    pub unsafe fn exit(this: *mut Self) {
        // SAFETY: as in `enter`. Release: the monitor that sees 0 sees what was done inside.
        unsafe { (*this).inside.store(0, Ordering::Release) };
    }

    /// Tries to take the scheduler away from the carrier. Only by the monitor.
    pub(super) fn take(&self) -> bool {
        if self
            .ownership
            .compare_exchange(OWNED, CLAIMED, Ordering::AcqRel, Ordering::Relaxed)
            .is_err()
        {
            return false;
        }
        heavy_barrier();
        let taken = self.inside.load(Ordering::Acquire) == 0;
        self.ownership.store(if taken { LOST } else { OWNED }, Ordering::Release);
        taken
    }

    /// The kernel's id of its thread; 0 before that runs.
    pub(super) fn tid(&self) -> i32 {
        self.tid.load(Ordering::Relaxed)
    }

    /// A descriptor of `/proc/self/task/TID/stat`; −1 if there is none.
    pub(super) fn stat(&self) -> i32 {
        self.stat.load(Ordering::Acquire)
    }

    /// Notes the calling thread as the carrier's, and opens what the monitor wants to read of it: once, because
    /// an open takes the lowest free number for a moment, which is the program's to expect.
    pub(super) fn attach(&self) {
        let tid = linux::gettid();
        let stat = monitor::open_stat(tid).map_or(-1, start::raise);
        self.stat.store(stat, Ordering::Release);
        self.tid.store(tid, Ordering::Release);
    }

    /// Waits, for as long as a thread takes to start, until [`Self::attach`] is done.
    pub(super) fn wait_until_attached(&self) {
        while self.tid.load(Ordering::Acquire) == 0 {
            // SAFETY: no arguments; gives the CPU to the new thread.
            let _ = unsafe { linux::syscall!(sched_yield) };
        }
    }

    /// Takes [`Self::attach`] back, before the thread ends.
    pub(super) fn detach(&self) {
        let stat = self.stat.swap(-1, Ordering::AcqRel);
        if stat >= 0 {
            crate::reactor::table::unreserve(stat);
            // SAFETY: a descriptor of our own.
            let _ = unsafe { linux::syscall!(close, stat) };
        }
    }

    fn is_lost(&self) -> bool {
        self.ownership.load(Ordering::Acquire) == LOST
    }
}

/// MEMBARRIER_CMD_* of the kernel.
const PRIVATE_EXPEDITED: usize = 1 << 3;
const REGISTER_PRIVATE_EXPEDITED: usize = 1 << 4;

/// To be called before carriers run.
pub(super) fn prepare_barriers() {
    // SAFETY: changes nothing but how the kernel orders memory.
    let registered =
        unsafe { crate::sys::linux::syscall!(membarrier, REGISTER_PRIVATE_EXPEDITED, 0, 0) };
    SYMMETRIC.store(registered.is_err(), Ordering::SeqCst);
}

fn heavy_barrier() {
    fence(Ordering::SeqCst);
    if !SYMMETRIC.load(Ordering::Relaxed) {
        // SAFETY: as above.
        let _ = unsafe { crate::sys::linux::syscall!(membarrier, PRIVATE_EXPEDITED, 0, 0) };
    }
}

/// Runs the carrier's loop on the calling kernel thread: its scheduler's, then, whenever that was taken
/// away, the next one's that it is given. Returns when there are spare carriers enough.
///
/// # Safety
/// `carrier` belongs to this thread and has a scheduler.
pub(super) unsafe fn run(carrier: *mut Carrier) {
    let mut events = EventBuffer::new();
    // SAFETY: the caller's promise.
    unsafe {
        (*carrier).tcb = glibc::thread_pointer() as usize;
        (*carrier).mask = sigmask::of_kernel_thread();
        loop {
            turn(carrier, &mut events);
            if (*carrier).is_lost() && !spare::wait(carrier) {
                return;
            }
        }
    }
}

/// One turn of the loop.
unsafe fn turn(carrier: *mut Carrier, events: &mut EventBuffer) {
    // SAFETY: the carrier is ours and owns its scheduler.
    let scheduler = unsafe { &*(*carrier).scheduler };
    scheduler.refill_budget();
    expire(scheduler);
    scheduler.drain_inbox();
    if let Some(coroutine) = scheduler.next_ready() {
        // SAFETY: as above.
        unsafe {
            resume(carrier, coroutine);
            if (*carrier).is_lost() {
                return;
            }
        }
    }
    let timeout = if scheduler.has_ready() {
        Some(0)
    } else {
        // Something to do after all: still one look at epoll, or a scheduler that gets its work one by one
        // through the inbox would never see events.
        sleep_limit(scheduler).unwrap_or(Some(0))
    };
    let count = events.wait(scheduler.epoll, timeout);
    scheduler.counters.polls.add(1);
    if timeout != Some(0) {
        end_sleep(scheduler);
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

/// How long the carrier may sleep (`None` inside: for ever), after it has announced that it will; or
/// nothing if there is something to do.
fn sleep_limit(scheduler: &'static Scheduler) -> Option<Option<u64>> {
    scheduler.enter_idle();
    // The order matters: those who push, or set an earlier deadline, look at `sleeping` afterwards.
    if !scheduler.prepare_sleep() {
        end_sleep(scheduler);
        return None;
    }
    let earliest = scheduler.timers.earliest();
    let now = if earliest == NEVER { 0 } else { time::now() };
    // Those who pushed before they could see that we are idle are seen by this look around.
    if earliest <= now || scheduler.steal(start::schedulers()) {
        end_sleep(scheduler);
        return None;
    }
    Some((earliest != NEVER).then(|| earliest - now))
}

fn end_sleep(scheduler: &'static Scheduler) {
    scheduler.sleeping.store(false, Ordering::Relaxed);
    scheduler.leave_idle();
    monitor::somebody_runs();
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
unsafe fn resume(carrier: *mut Carrier, coroutine: &'static Coroutine) {
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
