//! Spare carriers: kernel threads that wait for a scheduler to run.
//!
//! They are made when the monitor needs one and none waits, and end when more than [`KEPT`] have waited
//! for [`PATIENCE`]. How many there can be is bounded by what the kernel gives, as for the program's own
//! threads.

use super::{Carrier, Scheduler, carrier};
use crate::sys::errno::{Errno, Result};
use crate::sys::spin::SpinLock;
use crate::sys::{glibc, linux, real, time};
use core::cell::UnsafeCell;
use core::ffi::c_void;
use core::mem::MaybeUninit;
use core::sync::atomic::{AtomicUsize, Ordering};

/// Spare carriers that are kept however long they wait.
const KEPT: usize = 1;
/// Nanoseconds after which a carrier that is not among those ends.
const PATIENCE: u64 = 2 * time::SECOND;

struct List {
    first: *mut Carrier,
    length: usize,
    /// Carriers whose threads have ended; their memory is used again.
    ended: *mut Carrier,
}

// SAFETY: reached under the lock only.
unsafe impl Send for List {}

static SPARE: SpinLock<List> =
    SpinLock::new(List { first: core::ptr::null_mut(), length: 0, ended: core::ptr::null_mut() });

/// Kernel threads that are carriers.
static THREADS: AtomicUsize = AtomicUsize::new(0);

/// The signal mask of the thread that started the runtime, which carriers have.
struct Mask(UnsafeCell<MaybeUninit<libc::sigset_t>>);
// SAFETY: written under the start lock, before any carrier exists.
unsafe impl Sync for Mask {}
static MASK: Mask = Mask(UnsafeCell::new(MaybeUninit::uninit()));

/// Number of carriers' kernel threads.
pub fn threads() -> usize {
    THREADS.load(Ordering::Relaxed)
}

/// Notes the caller's signal mask for all carriers.
pub(super) fn note_mask() {
    // SAFETY: see `Mask`.
    unsafe {
        real::pthread_sigmask(libc::SIG_SETMASK, core::ptr::null(), (*MASK.0.get()).as_mut_ptr())
    };
}

/// Takes a spare carrier, or makes memory for a new one; gives it `scheduler` once `take` says that the
/// scheduler is free.
///
/// # Errors
/// EAGAIN: no memory or no kernel thread. Then `take` was not called.
pub(super) fn hand_over(
    scheduler: &'static Scheduler,
    take: impl FnOnce() -> bool,
) -> Result<bool> {
    let waiting = {
        let mut list = SPARE.lock();
        let first = list.first;
        if !first.is_null() {
            // SAFETY: a spare carrier in the list; taking it out makes it ours.
            list.first = unsafe { (*first).next.load(Ordering::Relaxed) };
            list.length -= 1;
        }
        first
    };
    if !waiting.is_null() {
        let taken = take();
        // SAFETY: the carrier is ours.
        unsafe {
            if taken {
                Carrier::assign(waiting, scheduler);
                (*waiting).call.store(1, Ordering::Release);
                linux::futex_wake((*waiting).call.as_ptr(), 1);
            } else {
                put_back(waiting);
            }
        }
        return Ok(taken);
    }
    // The thread is made first and waits for its scheduler: it may be that there is none to be had.
    let new = start_thread(core::ptr::null())?;
    let taken = take();
    // SAFETY: the new carrier has no scheduler; its thread sleeps until it is called.
    unsafe {
        if taken {
            Carrier::assign(new, scheduler);
            (*new).call.store(1, Ordering::Release);
            linux::futex_wake((*new).call.as_ptr(), 1);
        } else {
            put_back(new);
        }
    }
    Ok(taken)
}

unsafe fn put_back(carrier: *mut Carrier) {
    let mut list = SPARE.lock();
    // SAFETY: the carrier is ours until it is in the list.
    unsafe { (*carrier).next.store(list.first, Ordering::Relaxed) };
    list.first = carrier;
    list.length += 1;
}

/// Waits, as a spare carrier, for a scheduler. False: there are enough, the thread shall end.
///
/// # Safety
/// `carrier` belongs to the calling thread and has lost its scheduler.
pub(super) unsafe fn wait(carrier: *mut Carrier) -> bool {
    // SAFETY: the caller's promise; once it is in the list, only `call` is touched here.
    unsafe {
        (*carrier).call.store(0, Ordering::Relaxed);
        put_back(carrier);
        sleep(carrier)
    }
}

/// Sleeps until called. The carrier is in the list, or on its way to `assign`.
unsafe fn sleep(carrier: *mut Carrier) -> bool {
    // SAFETY: carriers are never freed.
    let call = unsafe { &(*carrier).call };
    loop {
        if call.load(Ordering::Acquire) == 1 {
            return true;
        }
        let result = linux::futex_wait(call, 0, Some(time::after(PATIENCE)));
        if result == Err(Errno(libc::ETIMEDOUT)) && retire(carrier) {
            return false;
        }
        // One that is kept sleeps on without a deadline: nothing may tick in an idle process.
        if result == Err(Errno(libc::ETIMEDOUT)) && is_last(carrier) {
            let _ = linux::futex_wait(call, 0, None);
        }
    }
}

/// Whether the carrier is one of those that are kept.
fn is_last(carrier: *mut Carrier) -> bool {
    let list = SPARE.lock();
    list.length <= KEPT && list.first == carrier
}

/// Takes the carrier out of the list if more wait than are kept.
fn retire(carrier: *mut Carrier) -> bool {
    let mut list = SPARE.lock();
    if list.length <= KEPT {
        return false;
    }
    let mut link: *mut *mut Carrier = &raw mut list.first;
    // SAFETY: a list of carriers, under its lock.
    unsafe {
        while !(*link).is_null() {
            if *link == carrier {
                *link = (*carrier).next.load(Ordering::Relaxed);
                list.length -= 1;
                (*carrier).detach();
                (*carrier).next.store(list.ended, Ordering::Relaxed);
                list.ended = carrier;
                THREADS.fetch_sub(1, Ordering::Relaxed);
                return true;
            }
            link = (**link).next.as_ptr();
        }
    }
    false
}

extern "C-unwind" fn main(carrier: *mut c_void) -> *mut c_void {
    let carrier = carrier.cast::<Carrier>();
    // SAFETY: `start_thread` passes a carrier for this thread; the mask was noted before.
    unsafe {
        real::pthread_sigmask(libc::SIG_SETMASK, (*MASK.0.get()).as_ptr(), core::ptr::null_mut());
        crate::posix::signal::prepare_carrier();
        (*carrier).attach();
        if !(*carrier).scheduler.is_null() || sleep(carrier) {
            carrier::run(carrier);
        }
    }
    crate::posix::signal::retire_carrier();
    core::ptr::null_mut()
}

/// Starts a carrier's kernel thread. Without a scheduler it waits to be called.
pub(super) fn start_thread(scheduler: *const Scheduler) -> Result<*mut Carrier> {
    const STACK: usize = 256 << 10;
    let carrier = memory()?;
    // SAFETY: fresh or reused memory of a carrier, nobody else's. All objects are initialised by the
    // calls that need them.
    let code = unsafe {
        carrier.write(Carrier::new(scheduler));
        if let Some(scheduler) = scheduler.as_ref() {
            scheduler.carrier.store(carrier, Ordering::Release);
        }
        let mut attr = MaybeUninit::<libc::pthread_attr_t>::uninit();
        libc::pthread_attr_init(attr.as_mut_ptr());
        // glibc takes the threads' TLS out of the stack.
        let size = STACK + glibc::facts().static_tls_size;
        libc::pthread_attr_setstacksize(attr.as_mut_ptr(), size);
        libc::pthread_attr_setdetachstate(attr.as_mut_ptr(), libc::PTHREAD_CREATE_DETACHED);
        let mut thread = 0;
        let code = real::pthread_create(&mut thread, attr.as_ptr(), main, carrier.cast());
        libc::pthread_attr_destroy(attr.as_mut_ptr());
        code
    };
    if code == 0 {
        THREADS.fetch_add(1, Ordering::Relaxed);
        return Ok(carrier);
    }
    let mut list = SPARE.lock();
    // SAFETY: no thread uses it.
    unsafe { (*carrier).next.store(list.ended, Ordering::Relaxed) };
    list.ended = carrier;
    Err(Errno(code))
}

/// Memory for a carrier: an ended one's, else new. It is never given back, because the monitor may still
/// look at a carrier that has ended.
fn memory() -> Result<*mut Carrier> {
    let mut list = SPARE.lock();
    let ended = list.ended;
    if ended.is_null() {
        drop(list);
        return Ok(linux::map(size_of::<Carrier>())?.cast());
    }
    // SAFETY: in the list of ended carriers, under its lock.
    list.ended = unsafe { (*ended).next.load(Ordering::Relaxed) };
    Ok(ended)
}

/// In a forked child: no carrier's thread exists.
///
/// # Safety
/// Only in the child, which has one thread.
pub(super) unsafe fn reset_after_fork() {
    let empty = List { first: core::ptr::null_mut(), length: 0, ended: core::ptr::null_mut() };
    // SAFETY: the child is alone.
    unsafe { SPARE.reset(empty) };
    THREADS.store(0, Ordering::Relaxed);
}
