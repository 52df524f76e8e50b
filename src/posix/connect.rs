//! `connect`.
//!
//! The socket is made non-blocking for the length of the system call only, then restored; the coroutine
//! parks until the handshake has ended.

use super::attempt::{AGAIN, Call, Next, poll_now, without_blocking};
use crate::coroutine::Coroutine;
use crate::reactor::table::Direction;
use crate::reactor::wait;
use crate::sched;
use crate::sys::errno::{Errno, Result, to_c_int};
use crate::sys::linux::syscall;
use crate::sys::time;
use core::ffi::c_int;
use libc::{sockaddr, socklen_t};

/// `connect`. Errors as in the kernel; EINPROGRESS when SO_SNDTIMEO passes first.
///
/// # Safety
/// As the C function.
pub unsafe fn connect(
    coroutine: &Coroutine,
    fd: c_int,
    address: *const sockaddr,
    length: socklen_t,
) -> c_int {
    // SAFETY: the caller keeps the contract.
    to_c_int(unsafe { connect_on(coroutine, fd, address, length) })
}

unsafe fn connect_on(
    coroutine: &Coroutine,
    fd: c_int,
    address: *const sockaddr,
    length: socklen_t,
) -> Result<usize> {
    // SAFETY: the caller's address.
    let real = || unsafe { syscall!(connect, fd, address, length) };
    let Some(mut call) = Call::new(coroutine, fd, Direction::Write) else {
        return real();
    };
    let modes = wait::modes(fd, call.entry);
    if modes.nonblocking {
        return real();
    }
    let timeout = modes.timeouts[Direction::Write as usize];
    let deadline = (timeout != 0).then(|| time::after(timeout));
    let mut pause = 100_000;
    // What it is to be called if it is not over in time: EALREADY if an earlier call began it.
    let unfinished = loop {
        match without_blocking(call.entry, fd, real) {
            Err(error @ Errno(libc::EINPROGRESS | libc::EALREADY)) => break error,
            // A UNIX socket whose listener's backlog is full. The kernel gives no event for "there is
            // room", so it is tried again, at growing intervals.
            Err(AGAIN) => {
                let until = time::after(pause).min(deadline.unwrap_or(u64::MAX));
                sched::sleep_until(coroutine, until);
                if deadline.is_some_and(|deadline| deadline <= time::now()) {
                    return Err(AGAIN);
                }
                pause = (pause * 2).min(10_000_000);
            }
            result => return result,
        }
    };
    loop {
        let seen = call.entry.readiness(Direction::Write);
        if poll_now(fd, libc::POLLOUT)? {
            // The second call gives the outcome, and tells the socket that its owner knows.
            match without_blocking(call.entry, fd, real) {
                Err(Errno(libc::EALREADY | libc::EINPROGRESS)) => {}
                Err(Errno(libc::EISCONN)) => return Ok(0),
                result => return result,
            }
        }
        call.entry.exhausted(Direction::Write, seen);
        match call.wait() {
            Ok(Next::Retry) => {}
            Ok(Next::Block) => return real(),
            Err(AGAIN) => return Err(unfinished),
            Err(error) => return Err(error),
        }
    }
}
