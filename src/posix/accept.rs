//! `accept` and `accept4`.
//!
//! The listener stays as the program made it, so a call could block although `poll` said that somebody is
//! there, if another takes the connection in between. Coroutines take turns between the two calls; a
//! native thread or another process can still win, in which case one carrier waits.

use super::attempt::{AGAIN, Call, poll_now};
use crate::coroutine::Coroutine;
use crate::futex::{self, Wait};
use crate::reactor::table::{self, Direction, Kind, Made, Modes};
use crate::reactor::wait;
use crate::sched;
use crate::sys::errno::{Result, to_c_int};
use crate::sys::linux::syscall;
use crate::sys::real::real_functions;
use core::ffi::c_int;
use core::sync::atomic::{AtomicU32, Ordering};
use libc::{sockaddr, socklen_t};

mod real {
    use super::*;
    real_functions! {
        /// The real `accept`: a cancellation point.
        fn accept(fd: c_int, address: *mut sockaddr, length: *mut socklen_t) -> c_int;
        /// The real `accept4`.
        fn accept4(fd: c_int, address: *mut sockaddr, length: *mut socklen_t, flags: c_int) -> c_int;
    }
}

/// `accept`.
///
/// # Safety
/// As the C function.
pub unsafe fn accept(fd: c_int, address: *mut sockaddr, length: *mut socklen_t) -> c_int {
    // SAFETY: the caller keeps the contract.
    unsafe {
        match Coroutine::current() {
            Some(coroutine) => to_c_int(accept_on(coroutine, fd, address, length, 0)),
            None => note(fd, real::accept(fd, address, length), 0),
        }
    }
}

/// `accept4`.
///
/// # Safety
/// As the C function.
pub unsafe fn accept4(
    fd: c_int,
    address: *mut sockaddr,
    length: *mut socklen_t,
    flags: c_int,
) -> c_int {
    // SAFETY: the caller keeps the contract.
    unsafe {
        match Coroutine::current() {
            Some(coroutine) => to_c_int(accept_on(coroutine, fd, address, length, flags)),
            None => note(fd, real::accept4(fd, address, length, flags), flags),
        }
    }
}

unsafe fn accept_on(
    coroutine: &Coroutine,
    fd: c_int,
    address: *mut sockaddr,
    length: *mut socklen_t,
    flags: c_int,
) -> Result<usize> {
    // SAFETY: the caller's buffers.
    let real = || unsafe { syscall!(accept4, fd, address, length, flags) };
    if flags & !(libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC) != 0 {
        return real(); // EINVAL, or what comes before it
    }
    let Some(mut call) = Call::new(coroutine, fd, Direction::Read) else {
        return real();
    };
    let entry = call.entry;
    let nonblocking = wait::modes(fd, entry).nonblocking;
    let attempt = || {
        if nonblocking {
            return real();
        }
        take_turn(&entry.accepting);
        let result = match poll_now(fd, libc::POLLIN) {
            Ok(false) if listens(fd) => Err(AGAIN),
            Ok(_) => real(),
            Err(error) => Err(error),
        };
        if entry.accepting.swap(0, Ordering::Release) == 2 {
            futex::wake(entry.accepting.as_ptr() as usize, 1);
        }
        result
    };
    let result = if nonblocking { attempt() } else { call.run(attempt, real).0 };
    if let Ok(new) = result {
        note(fd, new as c_int, flags);
    }
    result
}

/// Waits for the turn to accept: a lock with the usual three states, on which coroutines park. Its holder
/// may block in the kernel if somebody else takes the connection that it saw.
fn take_turn(turn: &AtomicU32) {
    let mut taken = turn.compare_exchange(0, 1, Ordering::Acquire, Ordering::Relaxed).is_ok();
    while !taken {
        taken = turn.swap(2, Ordering::Acquire) == 0;
        if !taken {
            let wait = Wait::on(turn.as_ptr() as usize, None);
            futex::wait(&wait, || turn.load(Ordering::Relaxed) == 2, || {});
        }
    }
}

/// Whether connections can come; if not, `accept` has an error to tell.
fn listens(fd: c_int) -> bool {
    let mut listens = 0;
    let mut length = size_of::<c_int>() as socklen_t;
    // SAFETY: the buffer is as long as we say.
    let answer = unsafe {
        syscall!(
            getsockopt,
            fd,
            libc::SOL_SOCKET,
            libc::SO_ACCEPTCONN,
            &raw mut listens,
            &raw mut length
        )
    };
    answer.is_ok() && listens != 0
}

/// Remembers what a new connection is: what its listener is.
fn note(listener: c_int, new: c_int, flags: c_int) -> c_int {
    if new < 0 || !sched::is_started() {
        return new;
    }
    let Some(entry) = table::entry(listener) else {
        return new;
    };
    if entry.kind() == Kind::Unknown {
        // Once per listener: connections inherit its timeouts.
        if wait::ask_modes(listener).timeouts != [0, 0] {
            table::timeouts_are_used();
        }
    }
    let kind = wait::kind(listener, entry);
    let modes = (!table::are_timeouts_used())
        .then_some(Modes { nonblocking: flags & libc::SOCK_NONBLOCK != 0, timeouts: [0, 0] });
    table::forget(new, Some(Made { kind, modes, shared: false }));
    new
}
