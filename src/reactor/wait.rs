//! Parks a coroutine until a descriptor may be ready.

use super::table::{Direction, Entry, Kind, Modes, Readiness, State, Waiter, modes_epoch};
use crate::coroutine::Coroutine;
use crate::coroutine::wake::Reason;
use crate::sched;
use crate::sys::errno::{Errno, Result};
use crate::sys::linux::syscall;
use crate::sys::time::SECOND;

/// How a wait ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Outcome {
    /// Try the call again.
    Ready,
    /// The deadline passed.
    Timeout,
    /// The descriptor was closed meanwhile: EBADF.
    Closed,
    /// It cannot be polled (a regular file): make the real, blocking call.
    Unpollable,
}

/// Registers the descriptor with the caller's epoll instance unless it is registered. Under the lock.
///
/// A descriptor of unknown origin may have been closed and reused behind our back, in which case the
/// kernel has dropped the registration that we remember; it is confirmed each time.
fn register(coroutine: &Coroutine, fd: i32, entry: &Entry, state: &mut State) -> Result<()> {
    const EVENTS: i32 =
        libc::EPOLLIN | libc::EPOLLOUT | libc::EPOLLRDHUP | libc::EPOLLPRI | libc::EPOLLET;
    let registered = state.epoll();
    if registered.is_some() && state.known {
        return Ok(());
    }
    let epoll = registered.unwrap_or_else(|| coroutine.home().epoll);
    let mut event = libc::epoll_event {
        events: EVENTS as u32,
        u64: fd as u32 as u64 | (entry.generation() as u64) << 32,
    };
    let orders = if registered.is_none() {
        [libc::EPOLL_CTL_ADD, libc::EPOLL_CTL_MOD]
    } else {
        [libc::EPOLL_CTL_MOD, libc::EPOLL_CTL_ADD]
    };
    for order in orders {
        // SAFETY: the event lives through the call.
        match unsafe { syscall!(epoll_ctl, epoll, order, fd, &raw mut event) } {
            Ok(_) => {
                state.set_epoll(epoll);
                return Ok(());
            }
            // Registered under this number for the same description, or not any more.
            Err(Errno(libc::EEXIST | libc::ENOENT)) => {}
            Err(error) => return Err(error),
        }
    }
    Err(Errno(libc::EBADF))
}

/// Puts `waiter` on the descriptor and makes sure that events come. `false`: readiness has changed
/// since `seen`, or it cannot be waited for (then the error says why); the waiter is not linked.
pub fn link(
    coroutine: &Coroutine,
    fd: i32,
    entry: &Entry,
    seen: [Readiness; 2],
    directions: u8,
    waiter: &Waiter,
) -> Result<bool> {
    let mut state = entry.lock();
    register(coroutine, fd, entry, &mut state)?;
    for (bit, direction) in [Direction::Read, Direction::Write].into_iter().enumerate() {
        if directions & 1 << bit != 0 && entry.readiness(direction) != seen[bit] {
            return Ok(false);
        }
    }
    Entry::link(&mut state, waiter);
    Ok(true)
}

/// Parks the calling coroutine until the direction may be ready, unless its readiness is no longer
/// `seen` (after [`Entry::exhausted`]), or until the deadline.
pub fn until_ready(
    coroutine: &Coroutine,
    fd: i32,
    entry: &Entry,
    direction: Direction,
    deadline: Option<u64>,
) -> Outcome {
    let seen = entry.readiness(direction);
    if seen.may_be_ready() {
        return Outcome::Ready;
    }
    let directions = 1 << direction as u8;
    let waiter = Waiter::new(coroutine, directions);
    sched::arm(coroutine);
    match link(coroutine, fd, entry, [seen; 2], directions, &waiter) {
        Ok(true) => {}
        Ok(false) => {
            sched::disarm(coroutine);
            return Outcome::Ready;
        }
        Err(error) => {
            sched::disarm(coroutine);
            return if error.0 == libc::EBADF { Outcome::Closed } else { Outcome::Unpollable };
        }
    }
    let reason = sched::park(coroutine, deadline);
    match reason {
        // Whoever claimed it took the waiter out first.
        Reason::Ready => Outcome::Ready,
        Reason::Closed => Outcome::Closed,
        Reason::Timeout => {
            entry.unlink(&waiter);
            Outcome::Timeout
        }
    }
}

/// The program's modes for the descriptor: remembered where that is safe, else asked of the kernel.
pub fn modes(fd: i32, entry: &Entry) -> Modes {
    let mut state = entry.lock();
    if let Some(modes) = state.modes() {
        return modes;
    }
    let epoch = modes_epoch();
    let modes = ask_modes(fd);
    state.set_modes(modes, epoch)
}

/// Asks the kernel for the modes of a descriptor.
pub fn ask_modes(fd: i32) -> Modes {
    // SAFETY: reads flags.
    let flags = unsafe { syscall!(fcntl, fd, libc::F_GETFL) }.unwrap_or(0) as i32;
    let nonblocking = flags & libc::O_NONBLOCK != 0;
    let timeouts = if nonblocking {
        [0, 0]
    } else {
        [timeout(fd, libc::SO_RCVTIMEO), timeout(fd, libc::SO_SNDTIMEO)]
    };
    Modes { nonblocking, timeouts }
}

/// A socket's timeout in nanoseconds; 0: none, or no socket.
fn timeout(fd: i32, option: i32) -> u64 {
    let mut time = libc::timeval { tv_sec: 0, tv_usec: 0 };
    let mut length = size_of::<libc::timeval>() as u32;
    // SAFETY: the buffer is as long as we say.
    let answer = unsafe {
        syscall!(getsockopt, fd, libc::SOL_SOCKET, option, &raw mut time, &raw mut length)
    };
    if answer.is_err() {
        return 0;
    }
    (time.tv_sec as u64).saturating_mul(SECOND).saturating_add(time.tv_usec as u64 * 1000)
}

/// The kind of file.
#[inline]
pub fn kind(fd: i32, entry: &Entry) -> Kind {
    match entry.kind() {
        Kind::Unknown => {
            let kind = ask_kind(fd);
            entry.set_kind(kind);
            kind
        }
        kind => kind,
    }
}

/// Asks the kernel what kind of file a descriptor refers to.
pub fn ask_kind(fd: i32) -> Kind {
    // SAFETY: an all-zero stat is a valid one.
    let mut stat: libc::stat = unsafe { core::mem::zeroed() };
    // SAFETY: `stat` is writable and laid out as the kernel's on 64-bit systems.
    if unsafe { syscall!(fstat, fd, &raw mut stat) }.is_err() {
        return Kind::Unknown;
    }
    match stat.st_mode & libc::S_IFMT {
        libc::S_IFSOCK => {
            if is_tcp(fd) {
                Kind::Tcp
            } else {
                Kind::Socket
            }
        }
        libc::S_IFIFO => Kind::Fifo,
        libc::S_IFREG | libc::S_IFDIR | libc::S_IFBLK => Kind::File,
        _ => Kind::Stream,
    }
}

fn is_tcp(fd: i32) -> bool {
    let mut protocol = 0i32;
    let mut length = size_of::<i32>() as u32;
    // SAFETY: the buffer is as long as we say.
    let answer = unsafe {
        syscall!(
            getsockopt,
            fd,
            libc::SOL_SOCKET,
            libc::SO_PROTOCOL,
            &raw mut protocol,
            &raw mut length
        )
    };
    answer.is_ok() && protocol == libc::IPPROTO_TCP
}
