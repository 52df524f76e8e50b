//! Start of the runtime at the first `pthread_create`, choice of a scheduler for each new coroutine,
//! and what happens when the last one ends.

use super::{Scheduler, carrier, monitor, spare};
use crate::config;
use crate::coroutine::{Coroutine, Start, life, stack};
use crate::sys::errno::{Errno, Result};
use crate::sys::linux::{self, syscall};
use crate::sys::report::report;
use crate::sys::{glibc, spin::SpinLock};
use core::ffi::c_void;
use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, AtomicUsize, Ordering};

static SCHEDULERS: AtomicPtr<Scheduler> = AtomicPtr::new(core::ptr::null_mut());
static COUNT: AtomicUsize = AtomicUsize::new(0);
static START: SpinLock<()> = SpinLock::new(());
/// Coroutines ever made; the next id.
static CREATED: AtomicU64 = AtomicU64::new(0);
/// Coroutines that have not ended.
static LIVE: AtomicUsize = AtomicUsize::new(0);
/// The initial thread has called `pthread_exit`: the last coroutine ends the process.
static MAIN_EXITED: AtomicBool = AtomicBool::new(false);

/// All schedulers; none before the runtime has started.
#[inline]
pub fn schedulers() -> &'static [Scheduler] {
    let first = SCHEDULERS.load(Ordering::Acquire);
    if first.is_null() {
        return &[];
    }
    // SAFETY: written before `SCHEDULERS`, never freed.
    unsafe { core::slice::from_raw_parts(first, COUNT.load(Ordering::Relaxed)) }
}

/// Whether a coroutine has ever been asked for.
#[inline]
pub fn is_started() -> bool {
    !SCHEDULERS.load(Ordering::Relaxed).is_null()
}

/// Coroutines made since the start of the process.
pub fn created() -> u64 {
    CREATED.load(Ordering::Relaxed)
}

/// Coroutines that have not ended.
pub fn live() -> usize {
    LIVE.load(Ordering::Relaxed)
}

/// Makes a coroutine and makes it ready.
///
/// The runtime has started. `mask` is its signal mask; `None`: the creator's. `initialise` runs before it can start, to store its `pthread_t` where the program wants it.
///
/// # Errors
/// EAGAIN: no memory.
pub fn spawn(
    request: &stack::Request,
    detached: bool,
    mask: Option<u64>,
    start: Start,
    argument: *mut c_void,
    initialise: impl FnOnce(&Coroutine),
) -> Result<&'static Coroutine> {
    let coroutine = stack::allocate(request)?;
    coroutine.start.set((Some(start), argument));
    coroutine.life.store(if detached { life::DETACHED } else { 0 }, Ordering::Relaxed);
    coroutine.id.set(CREATED.fetch_add(1, Ordering::Relaxed) + 1);
    // SAFETY: the new coroutine does not run.
    unsafe { crate::sys::critical::prepare(coroutine.tcb) };
    inherit_name(coroutine);
    coroutine.mask.set(mask.unwrap_or_else(inherited_mask));
    // SAFETY: the stack is the new coroutine's own, at least PTHREAD_STACK_MIN large.
    unsafe {
        *coroutine.context.get() = crate::arch::prepare(
            coroutine.stack_top.get() as *mut u8,
            (&raw const *coroutine).cast_mut().cast(),
        );
    }
    initialise(coroutine);
    LIVE.fetch_add(1, Ordering::SeqCst);
    let scheduler = choose();
    scheduler.live.fetch_add(1, Ordering::Relaxed);
    coroutine.home.store((&raw const *scheduler).cast_mut(), Ordering::Relaxed);
    coroutine.born_on.set(scheduler);
    super::enqueue(coroutine, Some(scheduler));
    Ok(coroutine)
}

/// A thread has its creator's signal mask unless its attributes say otherwise.
fn inherited_mask() -> u64 {
    Coroutine::current()
        .map_or_else(crate::pthread::sigmask::of_kernel_thread, |current| current.mask.get())
}

/// A thread has its creator's name until it gets one of its own.
fn inherit_name(coroutine: &Coroutine) {
    let name = coroutine.name.get();
    match Coroutine::current() {
        // SAFETY: both names are 16 bytes; the new coroutine is not running.
        Some(current) => unsafe { *name = *current.name.get() },
        None => {
            // SAFETY: the kernel writes up to 16 bytes, with a zero at the end.
            let _ = unsafe { syscall!(prctl, libc::PR_GET_NAME, name) };
        }
    }
}

/// The scheduler with the fewest coroutines; the caller's own as long as it has hardly more.
fn choose() -> &'static Scheduler {
    const SLACK: usize = 4;
    let all = schedulers();
    let mut best = &all[0];
    for scheduler in &all[1..] {
        if scheduler.live.load(Ordering::Relaxed) < best.live.load(Ordering::Relaxed) {
            best = scheduler;
        }
    }
    if let Some(current) = Coroutine::current() {
        let own = current.home();
        if own.live.load(Ordering::Relaxed) <= best.live.load(Ordering::Relaxed) + SLACK {
            return own;
        }
    }
    best
}

/// Makes schedulers and carriers, once.
///
/// # Errors
/// EAGAIN: not enough memory, descriptors or kernel threads for even one worker.
#[cold]
pub fn start_runtime() -> Result<()> {
    let _guard = START.lock();
    if is_started() {
        return Ok(());
    }
    glibc::load().map_err(|_| Errno(libc::EAGAIN))?;
    let mut count = config::get().workers;
    let again = |_| Errno(libc::EAGAIN);
    let memory = linux::map(count * size_of::<Scheduler>()).map_err(again)?.cast::<Scheduler>();
    for index in 0..count {
        match new_scheduler(index) {
            // SAFETY: inside the mapping, aligned by it.
            Ok(scheduler) => unsafe { memory.add(index).write(scheduler) },
            Err(error) if index == 0 => {
                // SAFETY: our own fresh mapping.
                unsafe { linux::unmap(memory.cast(), count * size_of::<Scheduler>()) };
                return Err(error);
            }
            // Fewer workers than asked for: go on with those there are.
            Err(_) => {
                count = index;
                break;
            }
        }
    }
    carrier::prepare_barriers();
    spare::note_mask();
    COUNT.store(count, Ordering::Relaxed);
    SCHEDULERS.store(memory, Ordering::Release);
    crate::init::runtime_starts();
    for index in 0..count {
        // SAFETY: initialised above.
        let scheduler = unsafe { memory.add(index) };
        let started = spare::start_thread(scheduler);
        if let Ok(carrier) = started {
            // Its descriptors are in their place before the program opens the next of its own.
            // SAFETY: carriers are never freed.
            unsafe { (*carrier).wait_until_attached() };
        } else {
            if index == 0 {
                SCHEDULERS.store(core::ptr::null_mut(), Ordering::Release);
                return Err(Errno(libc::EAGAIN));
            }
            // Fewer kernel threads than asked for: go on with those there are.
            COUNT.store(index, Ordering::Relaxed);
            break;
        }
    }
    if monitor::start().is_err() {
        report!(
            "no kernel thread for the monitor: a thread that blocks in a call that is not hooked will \
             hold up others. Raise the limit on processes (ulimit -u)"
        );
    }
    Ok(())
}

fn new_scheduler(index: usize) -> Result<Scheduler> {
    // SAFETY: plain system calls on descriptors that are ours.
    unsafe {
        let epoll = syscall!(epoll_create1, libc::EPOLL_CLOEXEC)? as i32;
        let wakeup = match syscall!(eventfd2, 0, libc::EFD_CLOEXEC | libc::EFD_NONBLOCK) {
            Ok(wakeup) => wakeup as i32,
            Err(error) => {
                let _ = syscall!(close, epoll);
                return Err(error);
            }
        };
        let (epoll, wakeup) = (raise(epoll), raise(wakeup));
        let mut event = libc::epoll_event {
            events: (libc::EPOLLIN | libc::EPOLLET) as u32,
            u64: crate::reactor::epoll::WAKEUP,
        };
        syscall!(epoll_ctl, epoll, libc::EPOLL_CTL_ADD, wakeup, &raw mut event)?;
        Ok(Scheduler::new(index, epoll, wakeup))
    }
}

/// Moves a descriptor of ours out of the way, to a high number: programs expect the lowest free
/// number from `open`, and `select` takes only those below 1,024.
pub(super) fn raise(descriptor: i32) -> i32 {
    let mut limit = libc::rlimit64 { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: `limit` is writable; F_DUPFD_CLOEXEC makes a new descriptor and touches no other.
    unsafe {
        let _ = syscall!(prlimit64, 0, libc::RLIMIT_NOFILE, 0, &raw mut limit);
        let floor = limit.rlim_cur.min(1 << 16).saturating_sub(64).max(limit.rlim_cur * 3 / 4);
        let floor = floor.min(1 << 16);
        match syscall!(fcntl, descriptor, libc::F_DUPFD_CLOEXEC, floor) {
            Ok(raised) => {
                let _ = syscall!(close, descriptor);
                crate::reactor::table::reserve(raised as i32);
                raised as i32
            }
            Err(_) => {
                crate::reactor::table::reserve(descriptor);
                descriptor
            }
        }
    }
}

/// The calling coroutine has run everything that belongs to its life.
pub fn coroutine_ended() {
    if let Some(current) = Coroutine::current() {
        // SAFETY: set at creation; schedulers live for ever.
        unsafe { &*current.born_on.get() }.live.fetch_sub(1, Ordering::Relaxed);
    }
    if LIVE.fetch_sub(1, Ordering::SeqCst) == 1 && MAIN_EXITED.load(Ordering::SeqCst) {
        end_process();
    }
}

/// The initial thread is at the end of `pthread_exit`.
pub fn main_exited() {
    MAIN_EXITED.store(true, Ordering::SeqCst);
    if LIVE.load(Ordering::SeqCst) == 0 {
        end_process();
    }
}

/// The last thread of the program has ended: as in glibc, the process exits with status 0.
fn end_process() {
    static ONCE: AtomicBool = AtomicBool::new(false);
    if !ONCE.swap(true, Ordering::SeqCst) {
        // SAFETY: what glibc does at the same place.
        unsafe { libc::exit(0) }
    }
}

/// In a forked child: there are no carriers; the next `pthread_create` starts anew.
///
/// # Safety
/// Only in the child, which has one thread.
pub unsafe fn reset_after_fork() {
    for scheduler in schedulers() {
        // SAFETY: the child's copies of our own descriptors; the instances belong to the parent.
        unsafe {
            let _ = syscall!(close, scheduler.epoll);
            let _ = syscall!(close, scheduler.wakeup);
        }
    }
    SCHEDULERS.store(core::ptr::null_mut(), Ordering::Release);
    COUNT.store(0, Ordering::Relaxed);
    LIVE.store(0, Ordering::Relaxed);
    MAIN_EXITED.store(false, Ordering::Relaxed);
    super::ready::reset();
    // SAFETY: the child is alone.
    unsafe {
        START.reset(());
        spare::reset_after_fork();
    }
}
