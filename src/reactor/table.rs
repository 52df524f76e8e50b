//! What is known of each descriptor: one [`Entry`] per number, in lazily touched memory.
//!
//! The kernel owns descriptors; we only remember. What we remember is thrown away ([`forget`]) whenever
//! a call that we export closes or makes the number, and carries a generation so that events meant for
//! an earlier descriptor of the same number are told apart.
//!
//! What was opened behind our back has `known` unset; then nothing that a cached value could get wrong
//! is trusted: see [`super::wait`].

use crate::coroutine::wake::{Claim, Reason};
use crate::coroutine::{Coroutine, ReadyAdapter, ReadyList};
use crate::sys::linux::{self, syscall};
use crate::sys::spin::{Guard, SpinLock};
use core::cell::Cell;
use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicU8, AtomicU32, AtomicUsize, Ordering};
use intrusive_collections::{LinkedList, LinkedListLink, UnsafeRef, intrusive_adapter};

/// Which way data flows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Direction {
    /// read, recv, accept.
    Read = 0,
    /// write, send, connect.
    Write = 1,
}

/// What kind of file a descriptor refers to, as far as the way to use it without blocking depends on it.
///
/// It is remembered until a call that we export closes or makes the number. Should it be wrong all the
/// same (closed and reused behind our back), the system calls that it leads to fail with ENOTSOCK or
/// EOPNOTSUPP, upon which it is asked anew, or one carrier blocks where it need not.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum Kind {
    /// Not asked yet.
    Unknown = 0,
    /// A TCP socket: a short transfer means that it is drained.
    Tcp,
    /// Any other socket.
    Socket,
    /// Something else that can be polled.
    Stream,
    /// A pipe or FIFO whose origin we do not know.
    Fifo,
    /// A regular file, directory or block device: never "not ready".
    File,
}

impl Kind {
    const fn from_byte(byte: u8) -> Self {
        match byte {
            1 => Self::Tcp,
            2 => Self::Socket,
            3 => Self::Stream,
            4 => Self::Fifo,
            5 => Self::File,
            _ => Self::Unknown,
        }
    }
}

/// The program's wishes for calls on a descriptor.
#[derive(Clone, Copy)]
pub struct Modes {
    /// O_NONBLOCK is set.
    pub nonblocking: bool,
    /// SO_RCVTIMEO and SO_SNDTIMEO in nanoseconds; 0: none. Indexed by [`Direction`].
    pub timeouts: [u64; 2],
}

/// A coroutine that waits on a descriptor. Lives on its stack.
pub struct Waiter {
    link: LinkedListLink,
    coroutine: *const Coroutine,
    /// Bit 0: waits for reading, bit 1: for writing.
    directions: u8,
    /// Events (EPOLL*) that ended the wait.
    pub events: Cell<u32>,
}

intrusive_adapter!(WaiterAdapter = UnsafeRef<Waiter>: Waiter { link => LinkedListLink });

impl Waiter {
    /// A waiter for the calling coroutine; `directions`: bit 0 read, bit 1 write.
    pub fn new(coroutine: &Coroutine, directions: u8) -> Self {
        Self { link: LinkedListLink::new(), coroutine, directions, events: Cell::new(0) }
    }
}

/// The part of an entry behind its lock.
pub struct State {
    waiters: LinkedList<WaiterAdapter>,
    /// The epoll instance with which it is registered, plus one; 0: none.
    epoll_plus_one: i32,
    /// It was made by a call that we export, so what we remember of it holds.
    pub known: bool,
    /// Cached modes, valid while `modes_epoch` is the current one.
    modes: Modes,
    modes_epoch: u32,
    /// A negative SO_RCVTIMEO or SO_SNDTIMEO was set: such calls do not wait, although the kernel shows it
    /// as "none".
    at_once: [bool; 2],
    /// Its description may have other numbers or be in other processes.
    pub shared: bool,
}

/// What is known of one descriptor number.
#[repr(align(128))]
pub struct Entry {
    /// Readiness per direction, see [`Readiness`].
    readiness: [AtomicU32; 2],
    generation: AtomicU32,
    kind: AtomicU8,
    /// Directions (bits) in which it does not take RWF_NOWAIT.
    poll_first: AtomicU8,
    /// Whose turn it is to accept, see `posix::accept`: 0 nobody's, 1 somebody's, 2 and others wait.
    pub accepting: AtomicU32,
    state: SpinLock<State>,
}

/// A snapshot of a direction's word: "may be ready", "never call it drained", and the tick.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Readiness(u32);

const READY: u32 = 1;
/// A short transfer does not mean "drained": not a TCP socket, or a hang-up, an error or urgent data was
/// seen.
const STICKY: u32 = 2;
/// A hang-up or an error was seen.
const HUNG_UP: u32 = 4;
const TICK: u32 = 8;

impl Readiness {
    /// Whether a try can succeed.
    #[inline]
    pub fn may_be_ready(self) -> bool {
        self.0 & READY != 0
    }

    /// Whether a hang-up or an error was seen.
    #[inline]
    pub fn is_hung_up(self) -> bool {
        self.0 & HUNG_UP != 0
    }
}

static TABLE: AtomicPtr<Entry> = AtomicPtr::new(core::ptr::null_mut());
static LENGTH: AtomicUsize = AtomicUsize::new(0);
/// Cached modes of an older epoch are asked for again: a descriptor's mode was changed through one
/// number, and others may share its description.
static MODES_EPOCH: AtomicU32 = AtomicU32::new(1);

/// Reserves the table, for every number that RLIMIT_NOFILE can allow. Not enough address space: a
/// shorter one; numbers beyond it are handled without memory.
pub fn initialise() {
    let mut limit = libc::rlimit64 { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: `limit` is writable.
    let _ = unsafe { syscall!(prlimit64, 0, libc::RLIMIT_NOFILE, 0, &raw mut limit) };
    let mut length = limit.rlim_max.clamp(1 << 16, 1 << 21) as usize;
    while length >= 1024 {
        if let Ok(memory) = linux::map(length * size_of::<Entry>()) {
            TABLE.store(memory.cast(), Ordering::Relaxed);
            LENGTH.store(length, Ordering::Release);
            return;
        }
        length /= 2;
    }
}

/// The entry of a descriptor number; `None`: out of the table's range.
#[inline]
pub fn entry(fd: i32) -> Option<&'static Entry> {
    if (fd as u32 as usize) >= LENGTH.load(Ordering::Acquire) {
        return None;
    }
    // SAFETY: within the mapping, which is never removed. Zeroed memory is a valid entry:
    // an open lock, an empty list, `Kind::Unknown`, and so on; see `Entry::is_virgin`.
    Some(unsafe { &*TABLE.load(Ordering::Relaxed).add(fd as usize) })
}

impl Entry {
    /// Locks the changeable part.
    pub fn lock(&self) -> Guard<'_, State> {
        let state = self.state.lock();
        if self.is_virgin() {
            for word in &self.readiness {
                word.store(TICK | READY | STICKY, Ordering::Release);
            }
        }
        state
    }

    /// The readiness of a direction, to be read before the call is tried.
    #[inline]
    pub fn readiness(&self, direction: Direction) -> Readiness {
        Readiness(self.readiness[direction as usize].load(Ordering::Acquire))
    }

    /// The call found the direction not ready (EAGAIN): clears it unless an event came after `seen`.
    #[inline]
    pub fn exhausted(&self, direction: Direction, seen: Readiness) {
        let _ = self.readiness[direction as usize].compare_exchange(
            seen.0,
            seen.0 & !READY,
            Ordering::AcqRel,
            Ordering::Relaxed,
        );
    }

    /// A transfer on a stream was shorter than asked: if nothing special was seen, it is exhausted.
    #[inline]
    pub fn drained(&self, direction: Direction, seen: Readiness) {
        if seen.0 & STICKY == 0 {
            self.exhausted(direction, seen);
        }
    }

    /// Zeroed memory: nobody has looked at the number yet. (A word can become zero again when its tick
    /// wraps; then one call is tried in vain.)
    fn is_virgin(&self) -> bool {
        self.readiness[0].load(Ordering::Relaxed) == 0
    }

    /// Generation of the number: changes whenever the number is closed or made.
    pub fn generation(&self) -> u32 {
        self.generation.load(Ordering::Relaxed)
    }

    /// What it is, as far as known.
    #[inline]
    pub fn kind(&self) -> Kind {
        Kind::from_byte(self.kind.load(Ordering::Relaxed))
    }

    /// Remembers what it is.
    pub fn set_kind(&self, kind: Kind) {
        self.kind.store(kind as u8, Ordering::Relaxed);
    }

    /// Whether it has to be asked by `poll` before a read or write, because it does not take RWF_NOWAIT.
    #[inline]
    pub fn is_poll_first(&self, direction: Direction) -> bool {
        self.poll_first.load(Ordering::Relaxed) & 1 << direction as u8 != 0
    }

    /// It does not take RWF_NOWAIT.
    pub fn set_poll_first(&self, direction: Direction) {
        self.poll_first.fetch_or(1 << direction as u8, Ordering::Relaxed);
    }

    /// Never take a short transfer for "drained" (TLS in the kernel, …).
    pub fn make_sticky(&self) {
        self.readiness[0].fetch_or(STICKY | READY, Ordering::AcqRel);
        self.readiness[1].fetch_or(STICKY | READY, Ordering::AcqRel);
    }

    /// Puts a waiter into the list. Under the lock.
    pub fn link(state: &mut State, waiter: &Waiter) {
        // SAFETY: the waiter's owner takes it out before it leaves the frame.
        state.waiters.push_back(unsafe { UnsafeRef::from_raw(&raw const *waiter) });
    }

    /// Takes a waiter out of the list if it still is in it.
    pub fn unlink(&self, waiter: &Waiter) {
        let mut state = self.lock();
        if waiter.link.is_linked() {
            // SAFETY: a linked waiter of this descriptor is in this list, whose lock we hold.
            unsafe { state.waiters.cursor_mut_from_ptr(&raw const *waiter) }.remove();
        }
    }

    /// Wakes those who wait for one of `directions`, under the lock; the ones to be made ready are
    /// appended to `list`.
    fn wake(state: &mut State, directions: u8, events: u32, reason: Reason, list: &mut ReadyList) {
        let mut cursor = state.waiters.front_mut();
        while let Some(waiter) = cursor.get() {
            if waiter.directions & directions == 0 {
                cursor.move_next();
                continue;
            }
            waiter.events.set(waiter.events.get() | events);
            let coroutine = waiter.coroutine;
            cursor.remove();
            // SAFETY: a linked waiter's coroutine is in its wait; it cannot leave before it has
            // taken the lock that we hold.
            let coroutine = unsafe { &*coroutine };
            if coroutine.wake.claim(reason) == Claim::Schedule {
                // SAFETY: claimed: it is in no other list.
                list.push_back(unsafe { UnsafeRef::from_raw(&raw const *coroutine) });
            }
        }
    }
}

impl State {
    /// The epoll instance with which it is registered.
    pub fn epoll(&self) -> Option<i32> {
        (self.epoll_plus_one != 0).then(|| self.epoll_plus_one - 1)
    }

    /// It is registered with `epoll` now.
    pub fn set_epoll(&mut self, epoll: i32) {
        self.epoll_plus_one = epoll + 1;
    }

    /// The cached modes, if they can be trusted.
    pub fn modes(&self) -> Option<Modes> {
        (self.known && self.modes_epoch == MODES_EPOCH.load(Ordering::Acquire))
            .then_some(self.modes)
            .map(|modes| self.with_immediate(modes))
    }

    fn with_immediate(&self, mut modes: Modes) -> Modes {
        for (timeout, at_once) in modes.timeouts.iter_mut().zip(self.at_once) {
            if at_once {
                *timeout = 1;
            }
        }
        modes
    }

    /// Remembers modes that were just asked for, or that a new descriptor has.
    pub fn set_modes(&mut self, modes: Modes, epoch: u32) -> Modes {
        self.modes = modes;
        self.modes_epoch = epoch;
        self.with_immediate(modes)
    }
}

/// The current epoch of modes, to be read before they are asked for.
pub fn modes_epoch() -> u32 {
    MODES_EPOCH.load(Ordering::Acquire)
}

/// Somebody changed O_NONBLOCK or a timeout of some description.
pub fn modes_changed() {
    MODES_EPOCH.fetch_add(1, Ordering::AcqRel);
}

/// Somebody has set SO_RCVTIMEO or SO_SNDTIMEO: new connections may have inherited one.
static TIMEOUTS_USED: AtomicBool = AtomicBool::new(false);

/// Sockets of this process have timeouts.
pub fn timeouts_are_used() {
    TIMEOUTS_USED.store(true, Ordering::Release);
}

/// Whether sockets of this process may have timeouts.
pub fn are_timeouts_used() -> bool {
    TIMEOUTS_USED.load(Ordering::Acquire)
}

/// The modes of one descriptor whose description has no other number were changed: they are asked for
/// at its next wait. Otherwise, those of all.
pub fn modes_changed_of(fd: i32) {
    if let Some(entry) = entry(fd) {
        let mut state = entry.lock();
        if state.known && !state.shared {
            state.modes_epoch = 0;
            return;
        }
    }
    modes_changed();
}

/// A timeout was set, perhaps a negative one.
pub fn timeout_set(fd: i32, direction: Direction, negative: bool) {
    if let Some(entry) = entry(fd) {
        entry.lock().at_once[direction as usize] = negative;
    }
    modes_changed_of(fd);
}

/// Another number refers to the same description from now on.
pub fn share(fd: i32) {
    if let Some(entry) = entry(fd) {
        entry.lock().shared = true;
    }
}

/// What a call that we export knows of a descriptor that it has just made.
#[derive(Clone, Copy)]
pub struct Made {
    /// Its kind, or `Unknown`.
    pub kind: Kind,
    /// Its modes, if they follow from the call.
    pub modes: Option<Modes>,
    /// It is another number of an existing description.
    pub shared: bool,
}

/// Forgets what was known of the number, wakes those who wait on it with `Closed`, and notes what is
/// known of its next descriptor (`made`; `None`: it is being closed, or of unknown origin).
pub fn forget(fd: i32, made: Option<Made>) {
    let Some(entry) = entry(fd) else { return };
    if made.is_none() && entry.is_virgin() {
        // Do not commit its page.
        return;
    }
    let mut list = ReadyList::new(ReadyAdapter::new());
    let kind = made.map_or(Kind::Unknown, |made| made.kind);
    let sticky = if kind == Kind::Tcp { 0 } else { STICKY };
    {
        let mut state = entry.lock();
        entry.generation.store(entry.generation().wrapping_add(1).max(1), Ordering::Relaxed);
        for word in &entry.readiness {
            let tick = word.load(Ordering::Relaxed) & !(READY | STICKY | HUNG_UP);
            word.store(tick.wrapping_add(TICK) | READY | sticky, Ordering::Release);
        }
        Entry::wake(&mut state, 3, 0, Reason::Closed, &mut list);
        if let (true, Some(epoll)) = (state.shared, state.epoll()) {
            // Another number keeps the description alive, and with it the registration.
            // SAFETY: removes a registration of ours; an error means that there is none.
            let _ = unsafe { syscall!(epoll_ctl, epoll, libc::EPOLL_CTL_DEL, fd, 0) };
        }
        state.epoll_plus_one = 0;
        state.known = made.is_some();
        entry.set_kind(kind);
        entry.poll_first.store(0, Ordering::Relaxed);
        state.shared = made.is_some_and(|made| made.shared);
        state.modes_epoch = 0;
        state.at_once = [false; 2];
        entry.accepting.store(0, Ordering::Release);
        if let Some(modes) = made.and_then(|made| made.modes) {
            state.set_modes(modes, modes_epoch());
        }
    }
    while let Some(coroutine) = list.pop_front() {
        // SAFETY: claimed by us: alive until it has run.
        crate::sched::make_ready(unsafe { &*UnsafeRef::into_raw(coroutine) });
    }
    if made.is_none() {
        crate::futex::wake(entry.accepting.as_ptr() as usize, usize::MAX);
    }
}

/// Coroutines that wait to write to a socket that is not TCP.
static SOCKET_WRITERS: AtomicUsize = AtomicUsize::new(0);
/// One more than the highest number that was ever looked at.
static TOUCHED: AtomicUsize = AtomicUsize::new(0);

/// A coroutine begins, or ends, to wait to write to a socket that is not TCP.
pub fn count_socket_writer(fd: i32, begins: bool) {
    if begins {
        SOCKET_WRITERS.fetch_add(1, Ordering::SeqCst);
        TOUCHED.fetch_max(fd as usize + 1, Ordering::SeqCst);
    } else {
        SOCKET_WRITERS.fetch_sub(1, Ordering::SeqCst);
    }
}

/// A socket's reading side was shut down. The kernel wakes a writer on the other side of a UNIX socket, but
/// has no epoll event for it; so all who wait to write to such sockets try again.
pub fn peer_may_be_gone() {
    if SOCKET_WRITERS.load(Ordering::SeqCst) == 0 {
        return;
    }
    for fd in 0..TOUCHED.load(Ordering::SeqCst) {
        let Some(entry) = entry(fd as i32) else { return };
        if !entry.is_virgin() && entry.kind() == Kind::Socket {
            event(fd as i32, entry.generation(), libc::EPOLLOUT as u32, &mut |coroutine| {
                crate::sched::make_ready(coroutine);
            });
        }
    }
}

/// Forgets every number of an inclusive range.
pub fn forget_range(first: u32, last: u32) {
    let length = LENGTH.load(Ordering::Acquire) as u32;
    if length == 0 {
        return;
    }
    for fd in first..=last.min(length - 1) {
        if !is_own(fd as i32) {
            forget(fd as i32, None);
        }
    }
}

/// Calls `visit` with each of the library's own descriptors in an inclusive range, in ascending order.
pub fn for_each_own(first: u32, last: u32, mut visit: impl FnMut(u32)) {
    let mut from = first;
    loop {
        let next = OWN
            .iter()
            .map(|slot| slot.load(Ordering::Relaxed))
            .filter(|&own| own != 0 && own != FREED && (from..=last).contains(&(own - 1)))
            .min();
        let Some(own) = next else { return };
        visit(own - 1);
        from = own;
    }
}

/// An event from epoll for the descriptor `fd` of generation `generation`.
pub fn event(fd: i32, generation: u32, events: u32, schedule: &mut impl FnMut(&'static Coroutine)) {
    const IN: u32 = (libc::EPOLLIN | libc::EPOLLPRI | libc::EPOLLRDHUP) as u32;
    const OUT: u32 = libc::EPOLLOUT as u32;
    const BOTH: u32 = (libc::EPOLLERR | libc::EPOLLHUP) as u32;
    const SPECIAL: u32 =
        (libc::EPOLLERR | libc::EPOLLHUP | libc::EPOLLRDHUP | libc::EPOLLPRI) as u32;
    const GONE: u32 = (libc::EPOLLERR | libc::EPOLLHUP | libc::EPOLLRDHUP) as u32;
    let Some(entry) = entry(fd) else { return };
    let mut list = ReadyList::new(ReadyAdapter::new());
    {
        let mut state = entry.lock();
        if entry.generation() != generation {
            return;
        }
        let mut sticky = if events & SPECIAL != 0 { STICKY } else { 0 };
        if events & GONE != 0 {
            sticky |= HUNG_UP;
        }
        let mut directions = 0;
        for (bit, mask) in [(0, IN | BOTH), (1, OUT | BOTH)] {
            if events & mask == 0 {
                continue;
            }
            directions |= 1 << bit;
            let word = &entry.readiness[bit];
            // Others only clear READY by compare-and-exchange, so this update cannot be lost: either
            // their exchange fails, or it comes first.
            let mut seen = word.load(Ordering::Relaxed);
            while let Err(now) = word.compare_exchange_weak(
                seen,
                seen.wrapping_add(TICK) | READY | sticky,
                Ordering::AcqRel,
                Ordering::Relaxed,
            ) {
                seen = now;
            }
        }
        Entry::wake(&mut state, directions, events, Reason::Ready, &mut list);
    }
    while let Some(coroutine) = list.pop_front() {
        // SAFETY: claimed by us: alive until it has run.
        schedule(unsafe { &*UnsafeRef::into_raw(coroutine) });
    }
}

/// Marks a number as one of the library's own, which the program cannot close.
pub fn reserve(fd: i32) {
    for slot in &OWN {
        let take =
            |free| slot.compare_exchange(free, fd as u32 + 1, Ordering::AcqRel, Ordering::Relaxed);
        if take(FREED).is_ok() || take(0).is_ok() {
            return;
        }
    }
}

/// A number that is no longer ours.
pub fn unreserve(fd: i32) {
    for slot in &OWN {
        if slot.load(Ordering::Relaxed) == fd as u32 + 1 {
            // Not 0: the search for a number of ours ends at the first place that was never used.
            slot.store(FREED, Ordering::Release);
            return;
        }
    }
}

/// A place in [`OWN`] that can be used again.
const FREED: u32 = u32::MAX;

/// Descriptors of ours that are protected: three a worker, and one a spare carrier. A process with more has
/// some unprotected ones.
static OWN: [AtomicU32; 4096] = [const { AtomicU32::new(0) }; 4096];

/// Whether the number is one of the library's own.
pub fn is_own(fd: i32) -> bool {
    for slot in &OWN {
        match slot.load(Ordering::Relaxed) {
            0 => return false,
            own if own == fd as u32 + 1 => return true,
            _ => {}
        }
    }
    false
}

/// In a forked child: nobody waits, nothing is registered, no descriptor is ours.
///
/// # Safety
/// Only in the child, which has one thread.
pub unsafe fn reset_after_fork() {
    for slot in &OWN {
        let own = slot.swap(0, Ordering::Relaxed);
        if own != 0 && own != FREED {
            // SAFETY: the child's copy of a descriptor of ours.
            let _ = unsafe { syscall!(close, own - 1) };
        }
    }
    let table = TABLE.load(Ordering::Relaxed);
    let length = LENGTH.load(Ordering::Relaxed);
    if !table.is_null() {
        // Private anonymous memory reads as zeros afterwards: the table as it was at the start.
        // SAFETY: our own mapping; the child has no other thread that could use it.
        let _ =
            unsafe { syscall!(madvise, table, length * size_of::<Entry>(), libc::MADV_DONTNEED) };
    }
}
