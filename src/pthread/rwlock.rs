//! Read-write locks.
//!
//! The object is glibc's `pthread_rwlock_t`, of which `init` and `destroy` stay glibc's: the kind is in
//! word 12 (`__flags`), sharing in word 7. Our own are the *state* in word 0, and the writer's thread id
//! where glibc has it, in word 6.
//!
//! ```text
//! state: bit 31  a writer holds it
//!        bit 30  readers wait        bit 29  writers wait (both may be stale after a timeout)
//!        the rest: number of readers that hold it
//! ```
//!
//! Invariants:
//!
//! * A waiter sets its bit under the bucket's lock, having seen there that it cannot have the lock.
//!   The bits are cleared only there, by those who see nobody left.
//! * An unlock that would make the lock free and sees a bit chooses under the bucket's lock who gets it
//!   and does not touch the object afterwards. Any other unlock is one compare-and-exchange.
//! * Readers that are woken have been given the lock. So have writers of a lock that prefers them, and
//!   those that have lost the race for long. Other writers take their chance with all
//!   who come: handing over would let the lock wait until the writer's turn to run comes.
//!
//! Whom the lock prefers, as in glibc: normally readers, who pass writers that wait; with
//! PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP, readers wait behind writers that wait. When it becomes
//! free, all readers or one writer are woken, those preferred first. (PTHREAD_RWLOCK_PREFER_WRITER_NP
//! means nothing in glibc.)
//!
//! Process-shared locks are glibc's; waiting for one blocks the carrier.

use crate::futex::{self, Outcome, Wait};
use crate::sys::errno::Errno;
use crate::sys::real::real_functions;
use crate::sys::{glibc, time};
use core::cell::Cell;
use core::ffi::c_int;
use core::sync::atomic::{AtomicU32, Ordering};
use libc::{clockid_t, pthread_rwlock_t, timespec};

mod real {
    use super::*;
    real_functions! {
        fn pthread_rwlock_rdlock(lock: *mut pthread_rwlock_t) -> c_int;
        fn pthread_rwlock_wrlock(lock: *mut pthread_rwlock_t) -> c_int;
        fn pthread_rwlock_tryrdlock(lock: *mut pthread_rwlock_t) -> c_int;
        fn pthread_rwlock_trywrlock(lock: *mut pthread_rwlock_t) -> c_int;
        fn pthread_rwlock_timedrdlock(lock: *mut pthread_rwlock_t, time: *const timespec) -> c_int;
        fn pthread_rwlock_timedwrlock(lock: *mut pthread_rwlock_t, time: *const timespec) -> c_int;
        fn pthread_rwlock_clockrdlock(lock: *mut pthread_rwlock_t, clock: clockid_t, time: *const timespec) -> c_int;
        fn pthread_rwlock_clockwrlock(lock: *mut pthread_rwlock_t, clock: clockid_t, time: *const timespec) -> c_int;
        fn pthread_rwlock_unlock(lock: *mut pthread_rwlock_t) -> c_int;
    }
}

const WRITER: u32 = 1 << 31;
const READERS_WAIT: u32 = 1 << 30;
const WRITERS_WAIT: u32 = 1 << 29;
const WAITERS: u32 = READERS_WAIT | WRITERS_WAIT;
const READERS: u32 = WRITERS_WAIT - 1;

/// `PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP`.
const PREFER_WRITER: u32 = 2;

/// A woken waiter's token: the lock is already its own.
const OWNED: u32 = 1;
/// A waiter's tag: it has waited for long.
const STARVING: usize = 1;
/// Nanoseconds after which a writer that was woken in vain is starving.
const PATIENCE: u64 = 1_000_000;

/// `pthread_rwlock_t` as far as we use it.
#[repr(C)]
struct RwLock {
    state: AtomicU32,
    glibc: [u32; 5],
    writer: AtomicU32,
    shared: AtomicU32,
    glibc_too: [u32; 4],
    kind: AtomicU32,
}

/// Which of the two a caller wants to be, and its bit among the waiters.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Role {
    Reader,
    Writer,
}

impl Role {
    const fn bit(self) -> u32 {
        match self {
            Self::Reader => READERS_WAIT,
            Self::Writer => WRITERS_WAIT,
        }
    }
}

/// What one attempt gave.
enum Attempt {
    Done,
    Busy(u32),
    TooMany,
}

impl RwLock {
    /// # Safety
    /// A valid lock that outlives its use here.
    #[inline(always)]
    unsafe fn of<'a>(lock: *mut pthread_rwlock_t) -> &'a Self {
        // SAFETY: the caller's promise; the layout is glibc's.
        unsafe { &*lock.cast::<Self>() }
    }

    /// The caller's thread id if this one is ours.
    #[inline(always)]
    fn ours(&self) -> Option<u32> {
        glibc::tid_if_loaded().filter(|_| self.shared.load(Ordering::Relaxed) == 0)
    }

    #[inline(always)]
    fn key(&self) -> usize {
        self.state.as_ptr() as usize
    }

    fn prefers_writers(&self) -> bool {
        self.kind.load(Ordering::Relaxed) == PREFER_WRITER
    }

    #[inline(always)]
    fn change(&self, from: u32, to: u32, order: Ordering) -> Result<u32, u32> {
        self.state.compare_exchange_weak(from, to, order, Ordering::Relaxed)
    }

    /// Takes the lock if the role may have it now.
    #[inline(always)]
    fn attempt(&self, role: Role) -> Attempt {
        let mut state = self.state.load(Ordering::Relaxed);
        loop {
            let next = match role {
                Role::Writer if state & (WRITER | READERS) != 0 => return Attempt::Busy(state),
                Role::Writer => state | WRITER,
                Role::Reader if state & WRITER != 0 => return Attempt::Busy(state),
                // With nobody inside, the bit of waiting writers is stale and stops nobody.
                Role::Reader
                    if state & WRITERS_WAIT != 0
                        && state & READERS != 0
                        && self.prefers_writers() =>
                {
                    return Attempt::Busy(state);
                }
                Role::Reader if state & READERS == READERS => return Attempt::TooMany,
                Role::Reader => state + 1,
            };
            match self.change(state, next, Ordering::Acquire) {
                Ok(_) => return Attempt::Done,
                Err(now) => state = now,
            }
        }
    }

    #[inline(always)]
    fn lock(&self, role: Role, me: u32, deadline: Option<u64>) -> c_int {
        let code = match self.attempt(role) {
            Attempt::Done => 0,
            Attempt::Busy(_) => self.lock_slow(role, me, deadline),
            Attempt::TooMany => libc::EAGAIN,
        };
        if code == 0 && role == Role::Writer {
            self.writer.store(me, Ordering::Relaxed);
        }
        code
    }

    /// A timed call; glibc looks at the time first of all. `None`: not ours.
    fn lock_until(&self, role: Role, clock: clockid_t, time: &timespec) -> Option<c_int> {
        let me = self.ours()?;
        Some(match time::deadline_on(clock, time) {
            Ok(deadline) => self.lock(role, me, Some(deadline)),
            Err(Errno(code)) => code,
        })
    }

    #[cold]
    #[inline(never)]
    fn lock_slow(&self, role: Role, me: u32, deadline: Option<u64>) -> c_int {
        if self.writer.load(Ordering::Relaxed) == me {
            return libc::EDEADLK;
        }
        let mut wait = Wait { bitset: role.bit(), ..Wait::on(self.key(), deadline) };
        let mut since = None;
        loop {
            let mut got = 0;
            let must_wait = || loop {
                let state = match self.attempt(role) {
                    Attempt::Busy(state) => state,
                    Attempt::Done => return false,
                    Attempt::TooMany => {
                        got = libc::EAGAIN;
                        return false;
                    }
                };
                let marked = self.change(state, state | role.bit(), Ordering::Relaxed);
                if marked.is_ok() {
                    return true;
                }
            };
            match futex::wait_token(&wait, must_wait, || {}) {
                (Outcome::Mismatch, _) => return got,
                // Not asked for.
                (Outcome::Interrupted, _) => {}
                (Outcome::Woken, token) => {
                    if token == OWNED {
                        core::sync::atomic::fence(Ordering::Acquire);
                        return 0;
                    }
                    match self.attempt(role) {
                        Attempt::Done => return 0,
                        Attempt::Busy(_) => {}
                        Attempt::TooMany => return libc::EAGAIN,
                    }
                    let now = time::now();
                    if now - *since.get_or_insert(now) > PATIENCE {
                        wait.tag = STARVING;
                    }
                }
                (Outcome::Timeout | Outcome::MovedTimeout, _) => {
                    if role == Role::Writer && self.prefers_writers() {
                        self.writer_gave_up();
                    }
                    return libc::ETIMEDOUT;
                }
            }
        }
    }

    /// Readers may have waited only for the caller, a writer whose time is over: they look again.
    fn writer_gave_up(&self) {
        let readers = Role::Reader.bit();
        futex::wake_with(self.key(), usize::MAX, readers, |_, writers_wait| {
            let bits = if writers_wait { READERS_WAIT } else { WAITERS };
            self.state.fetch_and(!bits, Ordering::Relaxed);
        });
    }

    #[inline(always)]
    fn unlock(&self) -> c_int {
        let mut state = self.state.load(Ordering::Relaxed);
        if state & WRITER != 0 {
            self.writer.store(0, Ordering::Relaxed);
        }
        loop {
            let next = match state {
                _ if state & WRITER != 0 => state & !WRITER,
                _ if state & READERS != 0 => state - 1,
                _ => return 0, // It was not locked.
            };
            if next & READERS == 0 && next & WAITERS != 0 {
                self.unlock_slow();
                return 0;
            }
            match self.change(state, next, Ordering::Release) {
                Ok(_) => return 0,
                Err(now) => state = now,
            }
        }
    }

    /// Unlocks while others wait, by a writer or by the last reader.
    #[cold]
    #[inline(never)]
    fn unlock_slow(&self) {
        // A last reader first becomes a writer, so that nobody can come in between: from here on
        // the state changes by others only under the bucket's lock.
        let leave = |state: u32| match state & READERS {
            0 => None,
            1 => Some((state - 1) | WRITER),
            _ => Some(state - 1),
        };
        let before = self.state.fetch_update(Ordering::AcqRel, Ordering::Relaxed, leave);
        if before.is_ok_and(|state| state & READERS > 1) {
            return; // not the last any more
        }
        // Those who come between two steps are seen in the next.
        while if self.prefers_writers() {
            !self.pass_to_writer(true) && !self.pass_to_readers()
        } else {
            !self.pass_to_readers() && !self.pass_to_writer(false)
        } {}
    }

    /// Gives the lock, which the caller holds as a writer, to all readers that wait, or frees it if
    /// nobody waits. False: only writers wait.
    fn pass_to_readers(&self) -> bool {
        let readers = Role::Reader.bit();
        if self.state.load(Ordering::Relaxed) & WAITERS == WRITERS_WAIT {
            return false;
        }
        let mut granted = 0;
        let mut woken = 0;
        let mut done = true;
        // The count is raised before the reader can run. Its unlock, if it is the last, finds bits in
        // the state and waits for the bucket's lock, so the lock exists until we have cleared them.
        let grant = |kind, _| {
            (kind == readers).then(|| {
                if granted == 0 {
                    self.state.fetch_sub(WRITER - 1, Ordering::Release);
                } else {
                    self.state.fetch_add(1, Ordering::Release);
                }
                granted += 1;
                OWNED
            })
        };
        futex::wake_matching(self.key(), usize::MAX, grant, |number, more| {
            woken = number;
            let stale = if more { READERS_WAIT } else { WAITERS };
            let state = self.state.fetch_and(!stale, Ordering::Relaxed);
            if state & WRITER != 0 {
                done = !more;
                if done {
                    self.state.store(0, Ordering::Release);
                }
            }
        });
        // The shares of those who had timed out are ours.
        for _ in woken..granted {
            self.unlock();
        }
        done
    }

    /// Frees the lock, which the caller holds as a writer, for the longest waiting writer. With `give`,
    /// or if that writer has lost the race for long, it gets the lock itself. False: only readers wait.
    fn pass_to_writer(&self, give: bool) -> bool {
        let writers = Role::Writer.bit();
        let given = Cell::new(false);
        let mut done = false;
        let choose = |kind, tag| {
            (kind == writers).then(|| {
                given.set(give || tag == STARVING);
                if given.get() { OWNED } else { 0 }
            })
        };
        futex::wake_matching(self.key(), 1, choose, |woken, more| {
            done = woken != 0 || !more;
            if done {
                let bits = if more { self.state.load(Ordering::Relaxed) & WAITERS } else { 0 };
                let holder = if given.get() && woken != 0 { WRITER } else { 0 };
                self.state.store(holder | bits, Ordering::Release);
            } else {
                self.state.fetch_and(!WRITERS_WAIT, Ordering::Relaxed);
            }
        });
        done
    }
}

/// `pthread_rwlock_rdlock`. EDEADLK: the caller holds it as the writer; EAGAIN: too many readers.
///
/// # Safety
/// As `pthread_rwlock_rdlock`.
#[inline]
pub unsafe fn rdlock(lock: *mut pthread_rwlock_t) -> c_int {
    // SAFETY: the caller keeps the contract.
    unsafe {
        let this = RwLock::of(lock);
        match this.ours() {
            Some(me) => this.lock(Role::Reader, me, None),
            None => real::pthread_rwlock_rdlock(lock),
        }
    }
}

/// `pthread_rwlock_wrlock`. EDEADLK: the caller holds it as the writer.
///
/// # Safety
/// As `pthread_rwlock_wrlock`.
#[inline]
pub unsafe fn wrlock(lock: *mut pthread_rwlock_t) -> c_int {
    // SAFETY: the caller keeps the contract.
    unsafe {
        let this = RwLock::of(lock);
        match this.ours() {
            Some(me) => this.lock(Role::Writer, me, None),
            None => real::pthread_rwlock_wrlock(lock),
        }
    }
}

/// `pthread_rwlock_tryrdlock`. EBUSY; EAGAIN: too many readers.
///
/// # Safety
/// As `pthread_rwlock_tryrdlock`.
pub unsafe fn tryrdlock(lock: *mut pthread_rwlock_t) -> c_int {
    // SAFETY: the caller keeps the contract.
    unsafe {
        let this = RwLock::of(lock);
        match this.ours().map(|_| this.attempt(Role::Reader)) {
            Some(Attempt::Done) => 0,
            Some(Attempt::Busy(_)) => libc::EBUSY,
            Some(Attempt::TooMany) => libc::EAGAIN,
            None => real::pthread_rwlock_tryrdlock(lock),
        }
    }
}

/// `pthread_rwlock_trywrlock`. EBUSY.
///
/// # Safety
/// As `pthread_rwlock_trywrlock`.
pub unsafe fn trywrlock(lock: *mut pthread_rwlock_t) -> c_int {
    // SAFETY: the caller keeps the contract.
    unsafe {
        let this = RwLock::of(lock);
        match this.ours().map(|me| (me, this.attempt(Role::Writer))) {
            Some((me, Attempt::Done)) => {
                this.writer.store(me, Ordering::Relaxed);
                0
            }
            Some(_) => libc::EBUSY,
            None => real::pthread_rwlock_trywrlock(lock),
        }
    }
}

/// `pthread_rwlock_timedrdlock`, on CLOCK_REALTIME. As [`rdlock`]; ETIMEDOUT; EINVAL: a bad time.
///
/// # Safety
/// As `pthread_rwlock_timedrdlock`.
pub unsafe fn timedrdlock(lock: *mut pthread_rwlock_t, time: *const timespec) -> c_int {
    // SAFETY: the caller keeps the contract.
    unsafe {
        RwLock::of(lock)
            .lock_until(Role::Reader, libc::CLOCK_REALTIME, &*time)
            .unwrap_or_else(|| real::pthread_rwlock_timedrdlock(lock, time))
    }
}

/// `pthread_rwlock_timedwrlock`, on CLOCK_REALTIME. As [`wrlock`]; ETIMEDOUT; EINVAL: a bad time.
///
/// # Safety
/// As `pthread_rwlock_timedwrlock`.
pub unsafe fn timedwrlock(lock: *mut pthread_rwlock_t, time: *const timespec) -> c_int {
    // SAFETY: the caller keeps the contract.
    unsafe {
        RwLock::of(lock)
            .lock_until(Role::Writer, libc::CLOCK_REALTIME, &*time)
            .unwrap_or_else(|| real::pthread_rwlock_timedwrlock(lock, time))
    }
}

/// `pthread_rwlock_clockrdlock`. As [`timedrdlock`]; EINVAL: also a clock that cannot be waited on.
///
/// # Safety
/// As `pthread_rwlock_clockrdlock`.
pub unsafe fn clockrdlock(
    lock: *mut pthread_rwlock_t,
    clock: clockid_t,
    time: *const timespec,
) -> c_int {
    // SAFETY: the caller keeps the contract.
    unsafe {
        RwLock::of(lock)
            .lock_until(Role::Reader, clock, &*time)
            .unwrap_or_else(|| real::pthread_rwlock_clockrdlock(lock, clock, time))
    }
}

/// `pthread_rwlock_clockwrlock`. As [`timedwrlock`]; EINVAL: also a clock that cannot be waited on.
///
/// # Safety
/// As `pthread_rwlock_clockwrlock`.
pub unsafe fn clockwrlock(
    lock: *mut pthread_rwlock_t,
    clock: clockid_t,
    time: *const timespec,
) -> c_int {
    // SAFETY: the caller keeps the contract.
    unsafe {
        RwLock::of(lock)
            .lock_until(Role::Writer, clock, &*time)
            .unwrap_or_else(|| real::pthread_rwlock_clockwrlock(lock, clock, time))
    }
}

/// `pthread_rwlock_unlock`.
///
/// # Safety
/// As `pthread_rwlock_unlock`.
#[inline]
pub unsafe fn unlock(lock: *mut pthread_rwlock_t) -> c_int {
    // SAFETY: the caller keeps the contract.
    unsafe {
        let this = RwLock::of(lock);
        match this.ours() {
            Some(_) => this.unlock(),
            None => real::pthread_rwlock_unlock(lock),
        }
    }
}
