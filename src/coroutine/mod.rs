//! The coroutine: a stack, a saved context, a TLS block, and the nodes that put it into the
//! scheduler's containers.
//!
//! The object lies at the top of its slot, above the TCB and the stack (see [`stack`]). Its states,
//! and where it is while in them:
//!
//! ```text
//! NEW → READY (ready queue or inbox) → RUNNING (no container)
//! RUNNING → WAITING (waiter list of a descriptor or futex bucket; timer tree if it has a deadline)
//! WAITING → READY, with a wake reason       RUNNING → EXITED (joiner woken, slot back to the pool)
//! ```
//!
//! [`wake`] holds the one word by which wakers compete for a parked coroutine.

pub mod entry;
pub mod stack;
pub mod wake;

use crate::sched::{Carrier, Scheduler, timers::TimerNode};
use crate::sys::{current, glibc};
use core::cell::{Cell, UnsafeCell};
use core::ffi::c_void;
use core::sync::atomic::{AtomicPtr, AtomicU32, Ordering};
use intrusive_collections::{LinkedListLink, UnsafeRef, intrusive_adapter};
use wake::WakeWord;

/// Bits of [`Coroutine::life`].
pub mod life {
    /// The coroutine has ended and its stack is no longer in use.
    pub const EXITED: u32 = 1;
    /// Nobody will join: the slot goes back to the pool at the end.
    pub const DETACHED: u32 = 2;
    /// A joiner waits or will; a second one is an error.
    pub const JOINING: u32 = 4;
}

/// The type of a thread's start routine.
pub type Start = unsafe extern "C-unwind" fn(*mut c_void) -> *mut c_void;

/// One coroutine. Only its own carrier touches the `Cell` fields while it runs; while it is in a
/// container, only the holder of the container's lock or the winner of its wake word does.
#[repr(C)]
pub struct Coroutine {
    /// The saved stack pointer while it does not run.
    pub context: UnsafeCell<usize>,
    /// Thread control block; also its `pthread_t` and FS base.
    pub tcb: *mut u8,
    /// The carrier that runs it, set by whoever switches to it.
    pub carrier: Cell<*mut Carrier>,
    /// The word by which it is woken.
    pub wake: WakeWord,
    /// [`life`] bits; the futex word on which a joiner waits.
    pub life: AtomicU32,
    /// The scheduler on which it last ran: where native threads send it when they wake it.
    pub home: AtomicPtr<Scheduler>,
    /// The scheduler that counts it among its own.
    pub born_on: Cell<*const Scheduler>,
    /// Node in a ready queue, or in a waker's list of coroutines about to be made ready.
    pub ready_link: LinkedListLink,
    /// Next in a scheduler's inbox, or in the pool's free list.
    pub next: AtomicPtr<Coroutine>,
    /// Node in a scheduler's timer tree while a wait has a deadline.
    pub timer: TimerNode,
    /// Where its memory came from.
    pub slot: stack::Slot,
    /// The stack that the program sees: lowest address and size.
    pub stack: Cell<(usize, usize)>,
    /// Where its first frame goes.
    pub stack_top: Cell<usize>,
    /// Guard size to be reported by `pthread_getattr_np`.
    pub guard_size: Cell<usize>,
    /// It has waited at least once.
    pub has_parked: Cell<bool>,
    /// Its signal mask, as the kernel lays it out.
    pub mask: Cell<u64>,
    /// Its `sigaltstack`.
    pub alternate_stack: Cell<Option<libc::stack_t>>,
    /// Start routine and its argument.
    pub start: Cell<(Option<Start>, *mut c_void)>,
    /// What `pthread_join` gives.
    pub result: Cell<*mut c_void>,
    /// Whether `result` was set by a return or `pthread_exit` (else: cancelled).
    pub has_result: Cell<bool>,
    /// Unique number since the start of the process, from 1.
    pub id: Cell<u64>,
    /// `pthread_setname_np`: up to 15 bytes and a zero.
    pub name: UnsafeCell<[u8; 16]>,
}

intrusive_adapter!(pub(crate) ReadyAdapter = UnsafeRef<Coroutine>: Coroutine { ready_link => LinkedListLink });

/// A first-in first-out list of coroutines, through [`Coroutine::ready_link`].
pub(crate) type ReadyList = intrusive_collections::LinkedList<ReadyAdapter>;

impl Coroutine {
    /// The calling coroutine; `None` in a native thread.
    #[inline(always)]
    pub fn current() -> Option<&'static Self> {
        // SAFETY: the word is null or points at the coroutine whose TLS block holds it. It lives as
        // long as the caller runs.
        unsafe { current::get().cast::<Self>().as_ref() }
    }

    /// The coroutine whose `pthread_t` this is; `None` for a native thread's and for a dead one.
    ///
    /// # Safety
    /// `thread` is or was a valid `pthread_t`: TCBs of coroutines stay mapped.
    #[inline]
    pub unsafe fn from_pthread(thread: libc::pthread_t) -> Option<&'static Self> {
        if thread == 0 || !crate::sched::is_started() {
            return None;
        }
        // SAFETY: the static TLS below a TCB is mapped as long as the TCB is.
        unsafe { (*current::slot_of(thread as *mut u8)).cast::<Self>().as_ref() }
    }

    /// Its `pthread_t`.
    pub fn pthread(&self) -> libc::pthread_t {
        self.tcb as libc::pthread_t
    }

    /// Its thread id: unique in the process, above the kernel's ids.
    pub fn tid(&self) -> i32 {
        // SAFETY: the TCB is mapped as long as the coroutine is.
        unsafe { *glibc::facts().tid_of(self.tcb) }
    }

    /// The scheduler on which it runs, or ran last.
    #[inline]
    pub fn home(&self) -> &'static Scheduler {
        // SAFETY: set when the coroutine was made; schedulers live as long as the process.
        unsafe { &*self.home.load(Ordering::Relaxed) }
    }

    /// Called once, after its stack was left for good: wakes the joiner or frees the slot.
    pub fn finish_exit(&self) {
        let word = self.life.as_ptr() as usize;
        let before = self.life.fetch_or(life::EXITED, Ordering::AcqRel);
        if before & life::DETACHED != 0 {
            stack::free(self);
        } else if before & life::JOINING != 0 {
            // From here on only the address is used: the joiner may have freed the coroutine.
            crate::futex::wake(word, usize::MAX);
        }
    }
}
