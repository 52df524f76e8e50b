//! The one loop behind every call on a descriptor: try without blocking; when it is not ready, park until
//! it may be; try again.

use crate::coroutine::Coroutine;
use crate::reactor::table::{self, Direction, Entry, Kind, Readiness};
use crate::reactor::wait::{self, Outcome};
use crate::sys::errno::{Errno, Result};
use crate::sys::linux::syscall;
use crate::sys::time;

/// EAGAIN, which on Linux is also EWOULDBLOCK.
pub const AGAIN: Errno = Errno(libc::EAGAIN);

/// A call on one descriptor in one direction, by one coroutine.
pub struct Call<'a> {
    /// The calling coroutine.
    pub coroutine: &'a Coroutine,
    /// The descriptor.
    pub fd: i32,
    /// What is known of it.
    pub entry: &'static Entry,
    /// Which way data flows.
    pub direction: Direction,
    /// From SO_RCVTIMEO or SO_SNDTIMEO, once it had to wait.
    deadline: Option<Option<u64>>,
    /// It goes to an address of its own: the receiver's queue decides, of which the descriptor's events say
    /// nothing.
    pub by_address: bool,
    /// It is counted among those who wait to write to a socket.
    counted: bool,
}

/// What to do after the descriptor was not ready.
pub enum Next {
    /// Try again.
    Retry,
    /// Make the real, blocking call.
    Block,
}

impl<'a> Call<'a> {
    /// The call; `None` if the number is beyond the table, so that it has to be made for real.
    #[inline]
    pub fn new(coroutine: &'a Coroutine, fd: i32, direction: Direction) -> Option<Self> {
        let entry = table::entry(fd)?;
        Some(Self {
            coroutine,
            fd,
            entry,
            direction,
            deadline: None,
            by_address: false,
            counted: false,
        })
    }

    /// Parks until the descriptor may be ready.
    ///
    /// # Errors
    /// EAGAIN: its timeout passed; EBADF: it was closed meanwhile.
    pub fn wait(&mut self) -> Result<Next> {
        let deadline = match self.deadline {
            Some(deadline) => deadline,
            None => {
                let modes = wait::modes(self.fd, self.entry);
                if modes.nonblocking {
                    // The kernel's own answer, which does not wait.
                    return Ok(Next::Block);
                }
                let timeout = modes.timeouts[self.direction as usize];
                *self.deadline.insert((timeout != 0).then(|| time::after(timeout)))
            }
        };
        // Events that change nothing must not keep it from its end.
        if deadline.is_some_and(|deadline| deadline <= time::now()) {
            return Err(AGAIN);
        }
        match wait::until_ready(self.coroutine, self.fd, self.entry, self.direction, deadline) {
            Outcome::Ready => Ok(Next::Retry),
            Outcome::Timeout => Err(AGAIN),
            Outcome::Closed => Err(Errno(libc::EBADF)),
            Outcome::Unpollable => Ok(Next::Block),
        }
    }

    fn must_be_counted(&self) -> bool {
        !self.counted && self.direction == Direction::Write && self.entry.kind() == Kind::Socket
    }

    fn poll_events(&self) -> i16 {
        match self.direction {
            Direction::Read => libc::POLLIN | libc::POLLRDHUP,
            Direction::Write => libc::POLLOUT,
        }
    }

    /// Makes `attempt`, a system call that does not block, until it gives something other than EAGAIN.
    /// `blocking` is the real call, for what cannot be polled.
    ///
    /// Returns the result and the readiness that was seen before the last attempt.
    #[inline]
    pub fn run(
        &mut self,
        attempt: impl FnMut() -> Result<usize>,
        blocking: impl FnOnce() -> Result<usize>,
    ) -> (Result<usize>, Readiness) {
        let result = self.run_uncounted(attempt, blocking);
        if self.counted {
            self.counted = false;
            table::count_socket_writer(self.fd, false);
        }
        result
    }

    #[inline]
    fn run_uncounted(
        &mut self,
        mut attempt: impl FnMut() -> Result<usize>,
        blocking: impl FnOnce() -> Result<usize>,
    ) -> (Result<usize>, Readiness) {
        loop {
            let seen = self.entry.readiness(self.direction);
            if seen.may_be_ready() {
                match attempt() {
                    // After a hang-up the kernel may know an answer that it does not give to those
                    // who do not want to wait (a datagram socket that was shut down). And only the kernel
                    // knows when another socket's queue has room.
                    Err(AGAIN)
                        if (seen.is_hung_up() || self.by_address)
                            && poll_now(self.fd, self.poll_events()) == Ok(true) =>
                    {
                        return (blocking(), seen);
                    }
                    // Counted first, then tried again: a peer that shuts down looks at the count afterwards.
                    Err(AGAIN) if self.must_be_counted() => {
                        self.counted = true;
                        table::count_socket_writer(self.fd, true);
                        continue;
                    }
                    Err(AGAIN) => self.entry.exhausted(self.direction, seen),
                    result => return (result, seen),
                }
            }
            match self.wait() {
                Ok(Next::Retry) => {}
                Ok(Next::Block) => return (blocking(), seen),
                // Time is up: one last look.
                Err(AGAIN) => return (attempt(), seen),
                Err(error) => return (Err(error), seen),
            }
        }
    }
}

/// Whether an error waits to be reported on `fd`, or its other side is gone. After a part of a transfer
/// the kernel leaves that for the next call.
pub fn has_error(fd: i32) -> bool {
    poll_now(fd, 0) == Ok(true)
}

/// Whether `fd` has one of `events` (POLL*) now, or an error.
///
/// # Errors
/// EBADF.
pub fn poll_now(fd: i32, events: i16) -> Result<bool> {
    let mut poll = libc::pollfd { fd, events, revents: 0 };
    let zero = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: both live through the call, which does not wait.
    let count = unsafe { syscall!(ppoll, &raw mut poll, 1, &raw const zero, 0, 0) }?;
    if poll.revents & libc::POLLNVAL != 0 {
        return Err(Errno(libc::EBADF));
    }
    Ok(count != 0)
}

/// Makes a call while the descriptor is non-blocking. For the length of the call, whoever shares the
/// description sees it so too.
///
/// The entry's lock is held meanwhile, under which [`wait::modes`] asks too: no coroutine takes the passing
/// flag for the program's.
pub fn without_blocking(
    entry: &Entry,
    fd: i32,
    call: impl FnOnce() -> Result<usize>,
) -> Result<usize> {
    let _held = entry.lock();
    // SAFETY: reads and writes flags of the program's own descriptor, which get back their value.
    unsafe {
        let flags = syscall!(fcntl, fd, libc::F_GETFL)?;
        syscall!(fcntl, fd, libc::F_SETFL, flags | libc::O_NONBLOCK as usize)?;
        let result = call();
        let _ = syscall!(fcntl, fd, libc::F_SETFL, flags);
        result
    }
}
