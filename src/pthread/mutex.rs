//! Mutexes: normal, recursive, error-checking and adaptive.
//!
//! The object is glibc's `pthread_mutex_t` and is used as glibc uses it, so that initialisers, `init`,
//! `destroy`, `trylock` (which never waits) and attributes stay glibc's:
//!
//! ```text
//! word 0   lock: 0 free, 1 locked, 2 locked and perhaps waited for
//! word 1   count: depth of a recursive mutex
//! word 2   owner: thread id of the holder, 0 if free
//! word 3   nusers: holders, and waiters of a condition variable; `destroy` wants 0
//! word 4   kind: type and flags
//! ```
//!
//! Only waiting differs: it happens in the parking lot. Invariants:
//!
//! * Whoever waits has seen 2 under the bucket's lock, and 2 becomes 0 only under that lock. So an
//!   unlocker that finds 1 may leave by one compare-and-exchange, and one that finds 2 sees all waiters.
//! * If somebody waits, the word is 2, or a waiter that was told [`OTHERS`] is on its way to lock with 2.
//! * An unlocker does not touch the object after it has stored 0: the next owner may free it.
//! * A waiter that has lost the race for long is given the mutex itself ([`OWNED`]): the word stays 2.
//!   Otherwise a thread that holds the mutex most of the time, even asleep, would keep all others from
//!   it, because on its carrier nobody runs between its unlock and its next lock.
//!
//! Robust ones of this process are in [`super::robust`]. Among coroutines nobody has a priority to inherit:
//! [`init`] makes ordinary mutexes of those with PTHREAD_PRIO_INHERIT. Process-shared and
//! priority-protecting mutexes are glibc's; waiting for one blocks the carrier, which the monitor notices.

use super::robust;
use crate::futex::{self, Outcome, Wait};
use crate::sys::errno::Errno;
use crate::sys::real::real_functions;
use crate::sys::{glibc, time};
use core::ffi::c_int;
use core::sync::atomic::{AtomicI32, AtomicU32, Ordering};
use libc::{clockid_t, pthread_mutex_t, pthread_mutexattr_t, timespec};

mod real {
    use super::*;
    real_functions! {
        /// The real `pthread_mutex_init`.
        fn pthread_mutex_init(mutex: *mut pthread_mutex_t, attr: *const pthread_mutexattr_t) -> c_int;
        /// The real `pthread_mutex_lock`.
        fn pthread_mutex_lock(mutex: *mut pthread_mutex_t) -> c_int;
        /// The real `pthread_mutex_timedlock`.
        fn pthread_mutex_timedlock(mutex: *mut pthread_mutex_t, time: *const timespec) -> c_int;
        /// The real `pthread_mutex_clocklock`.
        fn pthread_mutex_clocklock(mutex: *mut pthread_mutex_t, clock: clockid_t, time: *const timespec) -> c_int;
        /// The real `pthread_mutex_unlock`.
        fn pthread_mutex_unlock(mutex: *mut pthread_mutex_t) -> c_int;
    }
}

const FREE: u32 = 0;
const LOCKED: u32 = 1;
const WAITED: u32 = 2;

const NORMAL: i32 = libc::PTHREAD_MUTEX_NORMAL;
const RECURSIVE: i32 = libc::PTHREAD_MUTEX_RECURSIVE;
const ERRORCHECK: i32 = libc::PTHREAD_MUTEX_ERRORCHECK;
const ADAPTIVE: i32 = 3;
/// Bits of `kind` that do not change what a mutex means: lock elision, allowed and forbidden.
const ELISION: i32 = 0x300;
/// Flags in `kind`.
const ROBUST: i32 = 0x10;
const INHERIT: i32 = 0x20;
const PROTECT: i32 = 0x40;
const SHARED: i32 = 0x80;

/// A waiter's tag: it has waited for long.
const STARVING: usize = 1;
/// Nanoseconds after which a waiter that was woken in vain is starving.
const PATIENCE: u64 = 1_000_000;
/// Looks at an adaptive mutex before its waiter parks.
const SPINS: u32 = 100;

/// A woken waiter's token: the mutex is already its own.
pub(super) const OWNED: u32 = 1;
/// A woken waiter's token: others wait too, so it must lock with 2.
pub(super) const OTHERS: u32 = 2;

/// `pthread_mutex_t` as glibc lays it out.
#[repr(C)]
pub(super) struct Mutex {
    lock: AtomicU32,
    count: AtomicU32,
    owner: AtomicU32,
    nusers: AtomicU32,
    kind: AtomicI32,
}

impl Mutex {
    /// # Safety
    /// A valid mutex that outlives its use here.
    #[inline(always)]
    pub(super) unsafe fn of<'a>(mutex: *mut pthread_mutex_t) -> &'a Self {
        // SAFETY: the caller's promise; the layout is glibc's.
        unsafe { &*mutex.cast::<Self>() }
    }

    #[inline(always)]
    fn kind(&self) -> i32 {
        self.kind.load(Ordering::Relaxed) & !ELISION
    }

    /// Whether it is one of those that wait in the parking lot.
    #[inline(always)]
    pub(super) fn is_ours(&self) -> bool {
        (self.kind() as u32) <= ADAPTIVE as u32
    }

    /// Whether it is robust, of this process, and without priorities.
    fn is_private_robust(&self) -> bool {
        self.kind() & (ROBUST | INHERIT | PROTECT | SHARED) == ROBUST
    }

    /// Whether an unlock by the caller would free it: it is the owner, at depth one.
    pub(super) fn is_held_once(&self) -> bool {
        self.kind() != RECURSIVE || self.count.load(Ordering::Relaxed) == 1
    }

    #[inline(always)]
    fn key(&self) -> usize {
        self.lock.as_ptr() as usize
    }

    #[inline(always)]
    fn try_acquire(&self, word: u32) -> bool {
        self.lock.compare_exchange(FREE, word, Ordering::Acquire, Ordering::Relaxed).is_ok()
    }

    /// Notes the caller as the owner. Plain stores: only the holder writes these words.
    #[inline(always)]
    fn enter(&self, me: u32, users: u32) {
        self.owner.store(me, Ordering::Relaxed);
        let before = self.nusers.load(Ordering::Relaxed);
        self.nusers.store(before.wrapping_add(users), Ordering::Relaxed);
    }

    /// Locks, waiting if need be. `users` is added to `nusers`, `mark` is what a free word becomes.
    fn lock(&self, me: u32, users: u32, mark: u32, deadline: Deadline<'_>) -> c_int {
        match self.kind() {
            RECURSIVE if self.owner.load(Ordering::Relaxed) == me => {
                let Some(deeper) = self.count.load(Ordering::Relaxed).checked_add(1) else {
                    return libc::EAGAIN;
                };
                self.count.store(deeper, Ordering::Relaxed);
                return 0;
            }
            ERRORCHECK if self.owner.load(Ordering::Relaxed) == me => return libc::EDEADLK,
            _ => {}
        }
        if !self.try_acquire(mark) {
            let code = self.acquire_slow(mark, deadline);
            if code != 0 {
                return code;
            }
        }
        if self.kind() == RECURSIVE {
            self.count.store(1, Ordering::Relaxed);
        }
        self.enter(me, users);
        0
    }

    #[cold]
    #[inline(never)]
    fn acquire_slow(&self, mut mark: u32, deadline: Deadline<'_>) -> c_int {
        let mut since = None;
        let mut resolved = None;
        let mut wait = Wait::on(self.key(), None);
        let mut spins = if self.kind() == ADAPTIVE { SPINS } else { 0 };
        loop {
            match self.lock.load(Ordering::Relaxed) {
                FREE => {
                    if self.try_acquire(mark) {
                        return 0;
                    }
                    continue;
                }
                LOCKED if spins > 0 => {
                    spins -= 1;
                    core::hint::spin_loop();
                    continue;
                }
                LOCKED => {
                    let marked = self.lock.compare_exchange(
                        LOCKED,
                        WAITED,
                        Ordering::Relaxed,
                        Ordering::Relaxed,
                    );
                    if marked.is_err() {
                        continue;
                    }
                }
                _ => {}
            }
            if let Some((clock, time)) = deadline
                && resolved.is_none()
            {
                // The time is looked at only by those who have to wait, as in glibc.
                match time::deadline_on(clock, time) {
                    Ok(deadline) => resolved = Some(deadline),
                    Err(Errno(code)) => return code,
                }
                wait.deadline = resolved;
            }
            let is_waited = || self.lock.load(Ordering::Relaxed) == WAITED;
            match futex::wait_token(&wait, is_waited, || {}) {
                (Outcome::Mismatch | Outcome::Interrupted, _) => {}
                (Outcome::Woken, token) => {
                    if token & OWNED != 0 {
                        core::sync::atomic::fence(Ordering::Acquire);
                        return 0;
                    }
                    mark = if token & OTHERS != 0 { WAITED } else { LOCKED };
                    if self.try_acquire(mark) {
                        return 0;
                    }
                    let now = time::now();
                    if now - *since.get_or_insert(now) > PATIENCE {
                        wait.tag = STARVING;
                    }
                }
                (Outcome::Timeout | Outcome::MovedTimeout, _) => return libc::ETIMEDOUT,
            }
        }
    }

    /// Frees the lock word; the caller has cleared the owner.
    #[inline(always)]
    fn release(&self) {
        let free = self.lock.compare_exchange(LOCKED, FREE, Ordering::Release, Ordering::Relaxed);
        if free.is_err() {
            self.release_slow();
        }
    }

    #[cold]
    #[inline(never)]
    fn release_slow(&self) {
        if self.lock.load(Ordering::Relaxed) != WAITED {
            return; // It was not locked: as in glibc, nothing happens.
        }
        let mut freed = false;
        futex::wake_first(self.key(), |first| {
            if !freed && let Some((STARVING, _)) = first {
                return OWNED | OTHERS;
            }
            if !core::mem::replace(&mut freed, true) {
                self.lock.store(FREE, Ordering::Release);
            }
            match first {
                Some((_, true)) => OTHERS,
                _ => 0,
            }
        });
    }

    /// Unlocks; `users` is taken from `nusers`.
    fn unlock(&self, me: u32, users: u32) -> c_int {
        match self.kind() {
            RECURSIVE => {
                if self.owner.load(Ordering::Relaxed) != me {
                    return libc::EPERM;
                }
                let depth = self.count.load(Ordering::Relaxed) - 1;
                self.count.store(depth, Ordering::Relaxed);
                if depth != 0 {
                    return 0;
                }
            }
            ERRORCHECK if !self.is_locked_by(me) => return libc::EPERM,
            _ => {}
        }
        self.enter(0, users.wrapping_neg());
        self.release();
        0
    }

    fn is_locked_by(&self, me: u32) -> bool {
        self.owner.load(Ordering::Relaxed) == me && self.lock.load(Ordering::Relaxed) != FREE
    }

    /// Sees to it that an unlock will look for waiters. False: it is free. Under the lock of its
    /// bucket, by one who is about to put a waiter there.
    pub(super) fn mark_waited(&self) -> bool {
        loop {
            match self.lock.load(Ordering::Relaxed) {
                FREE => return false,
                WAITED => return true,
                _ => {
                    let marked = self.lock.compare_exchange_weak(
                        LOCKED,
                        WAITED,
                        Ordering::Relaxed,
                        Ordering::Relaxed,
                    );
                    if marked.is_ok() {
                        return true;
                    }
                }
            }
        }
    }

    /// What `pthread_cond_wait` does before it waits, where that can fail: EPERM.
    pub(super) fn check_wait(&self, me: u32) -> c_int {
        match self.kind() {
            RECURSIVE if self.owner.load(Ordering::Relaxed) != me => libc::EPERM,
            ERRORCHECK if !self.is_locked_by(me) => libc::EPERM,
            _ => 0,
        }
    }

    /// Unlocks for a condition variable's waiter, which stays a user.
    pub(super) fn unlock_to_wait(&self, me: u32) {
        self.unlock(me, 0);
    }

    /// Locks for a condition variable's waiter that was woken with `token`.
    pub(super) fn lock_after_wait(&self, me: u32, token: u32) -> c_int {
        if token & OWNED != 0 {
            core::sync::atomic::fence(Ordering::Acquire);
            if self.kind() == RECURSIVE {
                self.count.store(1, Ordering::Relaxed);
            }
            self.enter(me, 0);
            return 0;
        }
        self.lock(me, 0, if token & OTHERS != 0 { WAITED } else { LOCKED }, None)
    }
}

/// An absolute time on a clock.
type Deadline<'a> = Option<(clockid_t, &'a timespec)>;

/// `pthread_mutex_lock`. EDEADLK: error-checking and held by the caller; EAGAIN: recursive and held too
/// often; EOWNERDEAD and others for kinds that are glibc's.
///
/// # Safety
/// As `pthread_mutex_lock`.
#[inline]
pub unsafe fn lock(mutex: *mut pthread_mutex_t) -> c_int {
    // SAFETY: the caller keeps the contract.
    unsafe {
        let this = Mutex::of(mutex);
        match glibc::tid_if_loaded() {
            Some(me) if this.kind() == NORMAL => {
                if !this.try_acquire(LOCKED) {
                    let code = this.acquire_slow(LOCKED, None);
                    if code != 0 {
                        return code;
                    }
                }
                this.enter(me, 1);
                0
            }
            Some(me) if this.is_ours() => this.lock(me, 1, LOCKED, None),
            Some(me) if this.is_private_robust() => robust::lock(mutex, me, None),
            _ => real::pthread_mutex_lock(mutex),
        }
    }
}

/// `pthread_mutex_init`: glibc's; of this process's mutexes it takes PTHREAD_PRIO_INHERIT, because the kernel
/// can only lend priority to its own threads.
///
/// # Safety
/// As `pthread_mutex_init`.
pub unsafe fn init(mutex: *mut pthread_mutex_t, attr: *const pthread_mutexattr_t) -> c_int {
    // SAFETY: the caller keeps the contract; after success the object is whole and the caller's alone.
    unsafe {
        let code = real::pthread_mutex_init(mutex, attr);
        if code == 0 && glibc::tid_if_loaded().is_some() {
            let kind = &Mutex::of(mutex).kind;
            // glibc marks every robust mutex as shared; the attributes know better.
            let mut shared = libc::PTHREAD_PROCESS_PRIVATE;
            if !attr.is_null() {
                libc::pthread_mutexattr_getpshared(attr, &mut shared);
            }
            if shared == libc::PTHREAD_PROCESS_PRIVATE {
                let flags = kind.load(Ordering::Relaxed);
                kind.store(flags & !(INHERIT | SHARED), Ordering::Relaxed);
            }
        }
        code
    }
}

/// `pthread_mutex_timedlock`: until an absolute time on CLOCK_REALTIME. As [`lock`]; ETIMEDOUT; EINVAL:
/// a bad time, if it has to wait.
///
/// # Safety
/// As `pthread_mutex_timedlock`.
pub unsafe fn timedlock(mutex: *mut pthread_mutex_t, time: *const timespec) -> c_int {
    // SAFETY: the caller keeps the contract.
    unsafe {
        let this = Mutex::of(mutex);
        match glibc::tid_if_loaded() {
            Some(me) if this.is_ours() => {
                this.lock(me, 1, LOCKED, Some((libc::CLOCK_REALTIME, &*time)))
            }
            Some(me) if this.is_private_robust() => {
                robust::lock(mutex, me, Some((libc::CLOCK_REALTIME, &*time)))
            }
            _ => real::pthread_mutex_timedlock(mutex, time),
        }
    }
}

/// `pthread_mutex_clocklock`: as [`timedlock`] on a given clock. EINVAL: neither CLOCK_REALTIME nor
/// CLOCK_MONOTONIC.
///
/// # Safety
/// As `pthread_mutex_clocklock`.
pub unsafe fn clocklock(
    mutex: *mut pthread_mutex_t,
    clock: clockid_t,
    time: *const timespec,
) -> c_int {
    // SAFETY: the caller keeps the contract.
    unsafe {
        let this = Mutex::of(mutex);
        match glibc::tid_if_loaded() {
            Some(me) if this.is_ours() => {
                if !matches!(clock, libc::CLOCK_REALTIME | libc::CLOCK_MONOTONIC) {
                    return libc::EINVAL;
                }
                this.lock(me, 1, LOCKED, Some((clock, &*time)))
            }
            Some(me) if this.is_private_robust() => robust::lock(mutex, me, Some((clock, &*time))),
            _ => real::pthread_mutex_clocklock(mutex, clock, time),
        }
    }
}

/// `pthread_mutex_unlock`. EPERM: recursive or error-checking and not held by the caller.
///
/// # Safety
/// As `pthread_mutex_unlock`.
#[inline]
pub unsafe fn unlock(mutex: *mut pthread_mutex_t) -> c_int {
    // SAFETY: the caller keeps the contract.
    unsafe {
        let this = Mutex::of(mutex);
        match glibc::tid_if_loaded() {
            Some(_) if this.kind() == NORMAL => {
                this.enter(0, 1u32.wrapping_neg());
                this.release();
                0
            }
            Some(me) if this.is_ours() => this.unlock(me, 1),
            Some(_) if this.is_private_robust() => robust::unlock(mutex),
            _ => real::pthread_mutex_unlock(mutex),
        }
    }
}
