//! Condition variables.
//!
//! The object is glibc's `pthread_cond_t`, of which `init` and `destroy` stay glibc's: the static
//! initialiser is all zeros, flags and clock are in one word (`__wrefs`), and `destroy` waits only for
//! waiters that are counted there, which we never do. Our own is the first double word, the *hint*:
//!
//! ```text
//! 0         nobody waits
//! 1         somebody waits whose mutex cannot be waited for in the parking lot, or is kept while waiting
//! otherwise the address of the mutex of somebody who waits (or who has timed out meanwhile)
//! ```
//!
//! Invariants:
//!
//! * The hint changes only under the lock of the condition variable's bucket, and is not 0 if
//!   somebody is in it. A waiter enters before it releases its mutex, so a signaller that changed what
//!   the waiter looks at under that mutex sees the hint: one load if nobody waits.
//! * A signal while the mutex is held moves the waiter to the mutex's queue instead of waking it: it
//!   would only wait again. That is decided under both locks, where a held mutex cannot become free
//!   without its holder looking for waiters. A linked waiter's tag is its mutex, which is alive as long
//!   as somebody who must lock it again is in the queue.
//! * A waiter that was woken or moved does not touch the object again: the program may have freed it.
//! * A moved waiter has consumed its signal: if its time runs out later, it still returns 0.
//!
//! Process-shared condition variables are glibc's.

use super::mutex::{self, Mutex, OTHERS};
use crate::futex::{self, Outcome, Wait};
use crate::sys::errno::Errno;
use crate::sys::real::real_functions;
use crate::sys::{glibc, time};
use core::ffi::c_int;
use core::mem::MaybeUninit;
use core::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use libc::{clockid_t, pthread_cond_t, pthread_condattr_t, pthread_mutex_t, timespec};

mod real {
    use super::*;
    real_functions! {
        /// The real `pthread_cond_wait`.
        fn pthread_cond_wait(cond: *mut pthread_cond_t, mutex: *mut pthread_mutex_t) -> c_int;
        /// The real `pthread_cond_timedwait`.
        fn pthread_cond_timedwait(cond: *mut pthread_cond_t, mutex: *mut pthread_mutex_t, time: *const timespec) -> c_int;
        /// The real `pthread_cond_clockwait`.
        fn pthread_cond_clockwait(cond: *mut pthread_cond_t, mutex: *mut pthread_mutex_t, clock: clockid_t, time: *const timespec) -> c_int;
        /// The real `pthread_cond_signal`.
        fn pthread_cond_signal(cond: *mut pthread_cond_t) -> c_int;
        /// The real `pthread_cond_broadcast`.
        fn pthread_cond_broadcast(cond: *mut pthread_cond_t) -> c_int;
    }
}

const NOBODY: usize = 0;
const NOT_MOVABLE: usize = 1;

/// Bits of `__wrefs`.
const SHARED: u32 = 1;
const MONOTONIC: u32 = 2;

/// Where `__wrefs` is in glibc 2.25 to 2.40.
const USUAL_WREFS: usize = 36;

/// The offset of `__wrefs`, which glibc moves when it changes its algorithm: found by looking for the
/// flags in an object that has them.
fn wrefs_offset() -> usize {
    static OFFSET: AtomicUsize = AtomicUsize::new(0);
    let known = OFFSET.load(Ordering::Relaxed);
    if known != 0 {
        return known;
    }
    unsafe extern "C" {
        fn pthread_condattr_setpshared(attr: *mut pthread_condattr_t, shared: c_int) -> c_int;
    }
    const WORDS: usize = size_of::<pthread_cond_t>() / 4;
    let mut words = [0u32; WORDS];
    let mut attr = MaybeUninit::<pthread_condattr_t>::uninit();
    // SAFETY: objects of our own, initialised before they are used; an array of words has their alignment
    // for all that `init` does, which is to store.
    unsafe {
        libc::pthread_condattr_init(attr.as_mut_ptr());
        libc::pthread_condattr_setclock(attr.as_mut_ptr(), libc::CLOCK_MONOTONIC);
        pthread_condattr_setpshared(attr.as_mut_ptr(), libc::PTHREAD_PROCESS_SHARED);
        let mut cond = MaybeUninit::<pthread_cond_t>::zeroed();
        libc::pthread_cond_init(cond.as_mut_ptr(), attr.as_ptr());
        core::ptr::copy_nonoverlapping(cond.as_ptr().cast(), words.as_mut_ptr(), WORDS);
    }
    let found = words.iter().position(|&word| word == SHARED | MONOTONIC);
    let offset = found.map_or(USUAL_WREFS, |index| index * 4);
    OFFSET.store(offset, Ordering::Relaxed);
    offset
}

/// `pthread_cond_t` as far as we use it at a known place.
#[repr(C)]
struct Cond {
    hint: AtomicUsize,
}

impl Cond {
    /// # Safety
    /// A valid condition variable that outlives its use here.
    #[inline(always)]
    unsafe fn of<'a>(cond: *mut pthread_cond_t) -> &'a Self {
        // SAFETY: the caller's promise; the layout is glibc's.
        unsafe { &*cond.cast::<Self>() }
    }

    fn wrefs(&self) -> u32 {
        // SAFETY: the offset is that of a word of the object, which `self` is the beginning of.
        unsafe {
            (*(&raw const *self).byte_add(wrefs_offset()).cast::<AtomicU32>())
                .load(Ordering::Relaxed)
        }
    }

    /// The caller's thread id if this one is ours.
    fn ours(&self) -> Option<u32> {
        glibc::tid_if_loaded().filter(|_| self.wrefs() & SHARED == 0)
    }

    /// Whether surely nobody waits. In a shared one the word counts all who ever did.
    #[inline(always)]
    fn is_idle(&self) -> bool {
        glibc::tid_if_loaded().is_some() && self.hint.load(Ordering::Relaxed) == NOBODY
    }

    fn clock(&self) -> clockid_t {
        if self.wrefs() & MONOTONIC != 0 { libc::CLOCK_MONOTONIC } else { libc::CLOCK_REALTIME }
    }

    #[inline(always)]
    fn key(&self) -> usize {
        self.hint.as_ptr() as usize
    }

    /// Waits; the mutex is released meanwhile and locked again whatever happens.
    ///
    /// # Safety
    /// As `pthread_cond_wait`.
    unsafe fn wait(&self, me: u32, mutex: *mut pthread_mutex_t, deadline: Option<u64>) -> c_int {
        // SAFETY: the caller keeps the contract.
        let its = unsafe { Mutex::of(mutex) };
        let is_ours = its.is_ours();
        if is_ours {
            let code = its.check_wait(me);
            if code != 0 {
                return code;
            }
        }
        // glibc releases a recursive mutex by one level only; who waits at a depth keeps it, and must
        // not be put into its own mutex's queue.
        let tag = if is_ours && its.is_held_once() { mutex as usize } else { NOT_MOVABLE };
        let wait = Wait { tag, ..Wait::on(self.key(), deadline) };
        let mut refused = 0;
        let enter = || {
            self.hint.store(tag, Ordering::Relaxed);
            true
        };
        let release = || {
            if is_ours {
                its.unlock_to_wait(me);
                return;
            }
            // SAFETY: the caller's mutex, robust or of a kind that is glibc's.
            refused = unsafe { mutex::unlock(mutex) };
            if refused != 0 {
                // Not the owner: do not wait. Others may wake up for nothing, as they may at any time.
                futex::wake(self.key(), usize::MAX);
            }
        };
        let (outcome, token) = futex::wait_token(&wait, enter, release);
        // From here on the object may be gone.
        if refused != 0 {
            return refused;
        }
        let code = if is_ours {
            its.lock_after_wait(me, token)
        } else {
            // SAFETY: as above.
            unsafe { mutex::lock(mutex) }
        };
        if code == 0 && outcome == Outcome::Timeout { libc::ETIMEDOUT } else { code }
    }

    /// Wakes or moves one waiter, or all of them.
    #[cold]
    #[inline(never)]
    fn notify(&self, mut mutex: usize, all: bool) {
        let key = self.key();
        loop {
            let movable = mutex != NOT_MOVABLE;
            let decide = || {
                // SAFETY: called only if somebody waits who must lock this mutex again.
                if movable && unsafe { Mutex::of(mutex as *mut pthread_mutex_t) }.mark_waited() {
                    (0, if all { usize::MAX } else { 1 })
                } else if all && movable {
                    // One takes the free mutex, and its unlock calls the next.
                    (1, usize::MAX)
                } else {
                    (if all { usize::MAX } else { 1 }, 0)
                }
            };
            let token = if all { OTHERS } else { 0 };
            let target = if movable { mutex } else { key };
            let done = futex::requeue(key, target, mutex, token, decide, |done| {
                self.hint.store(done.rest.unwrap_or(NOBODY), Ordering::Relaxed);
            });
            // The hint may have named one who had timed out, and there may be several mutexes.
            match done.rest {
                Some(other) if all || done.woken + done.moved == 0 => mutex = other,
                _ => return,
            }
        }
    }
}

/// `pthread_cond_wait`. EPERM: the mutex is recursive or error-checking and not held by the caller.
///
/// # Safety
/// As `pthread_cond_wait`.
pub unsafe fn wait(cond: *mut pthread_cond_t, mutex: *mut pthread_mutex_t) -> c_int {
    // SAFETY: the caller keeps the contract.
    unsafe {
        let this = Cond::of(cond);
        match this.ours() {
            Some(me) => this.wait(me, mutex, None),
            None => real::pthread_cond_wait(cond, mutex),
        }
    }
}

/// `pthread_cond_timedwait`, on the clock of the condition variable. As [`wait`]; ETIMEDOUT; EINVAL: a
/// bad time.
///
/// # Safety
/// As `pthread_cond_timedwait`.
pub unsafe fn timedwait(
    cond: *mut pthread_cond_t,
    mutex: *mut pthread_mutex_t,
    time: *const timespec,
) -> c_int {
    // SAFETY: the caller keeps the contract.
    unsafe {
        let this = Cond::of(cond);
        match this.ours() {
            Some(me) => match time::deadline_on(this.clock(), &*time) {
                Ok(deadline) => this.wait(me, mutex, Some(deadline)),
                Err(Errno(code)) => code,
            },
            None => real::pthread_cond_timedwait(cond, mutex, time),
        }
    }
}

/// `pthread_cond_clockwait`. As [`timedwait`]; EINVAL: also another clock than CLOCK_REALTIME and
/// CLOCK_MONOTONIC.
///
/// # Safety
/// As `pthread_cond_clockwait`.
pub unsafe fn clockwait(
    cond: *mut pthread_cond_t,
    mutex: *mut pthread_mutex_t,
    clock: clockid_t,
    time: *const timespec,
) -> c_int {
    // SAFETY: the caller keeps the contract.
    unsafe {
        let this = Cond::of(cond);
        match this.ours() {
            Some(me) => match time::deadline_on(clock, &*time) {
                Ok(deadline) => this.wait(me, mutex, Some(deadline)),
                Err(Errno(code)) => code,
            },
            None => real::pthread_cond_clockwait(cond, mutex, clock, time),
        }
    }
}

/// `pthread_cond_signal`.
///
/// # Safety
/// As `pthread_cond_signal`.
#[inline]
pub unsafe fn signal(cond: *mut pthread_cond_t) -> c_int {
    // SAFETY: the caller keeps the contract.
    let this = unsafe { Cond::of(cond) };
    if this.is_idle() {
        return 0;
    }
    if this.ours().is_none() {
        // SAFETY: as above.
        return unsafe { real::pthread_cond_signal(cond) };
    }
    match this.hint.load(Ordering::Relaxed) {
        NOBODY => {}
        hint => this.notify(hint, false),
    }
    0
}

/// `pthread_cond_broadcast`.
///
/// # Safety
/// As `pthread_cond_broadcast`.
#[inline]
pub unsafe fn broadcast(cond: *mut pthread_cond_t) -> c_int {
    // SAFETY: the caller keeps the contract.
    let this = unsafe { Cond::of(cond) };
    if this.is_idle() {
        return 0;
    }
    if this.ours().is_none() {
        // SAFETY: as above.
        return unsafe { real::pthread_cond_broadcast(cond) };
    }
    match this.hint.load(Ordering::Relaxed) {
        NOBODY => {}
        hint => this.notify(hint, true),
    }
    0
}
