//! `recv`, `recvfrom`, `send`, `sendto`.

use super::attempt::{AGAIN, Call, has_error};
use crate::coroutine::Coroutine;
use crate::reactor::table::Direction;
use crate::sys::errno::{Errno, Result, to_c};
use crate::sys::linux::syscall;
use core::ffi::{c_int, c_void};
use libc::{size_t, sockaddr, socklen_t, ssize_t};

/// Flags with which a call never waits.
pub const NEVER_WAITS: c_int = libc::MSG_DONTWAIT | libc::MSG_ERRQUEUE | libc::MSG_OOB;

/// Whether the socket carries a stream of bytes (a partial transfer can be continued).
pub fn is_stream(fd: c_int) -> bool {
    let mut kind = 0;
    let mut length = size_of::<c_int>() as socklen_t;
    // SAFETY: the buffer is as long as we say.
    let answer = unsafe {
        syscall!(getsockopt, fd, libc::SOL_SOCKET, libc::SO_TYPE, &raw mut kind, &raw mut length)
    };
    answer.is_ok() && kind == libc::SOCK_STREAM
}

/// `recv`.
///
/// # Safety
/// As the C function.
pub unsafe fn recv(
    coroutine: &Coroutine,
    fd: c_int,
    buffer: *mut c_void,
    length: size_t,
    flags: c_int,
) -> ssize_t {
    let none = core::ptr::null_mut();
    // SAFETY: the caller keeps the contract; null addresses are allowed.
    unsafe { recvfrom(coroutine, fd, buffer, length, flags, none, none.cast()) }
}

/// `recvfrom`.
///
/// # Safety
/// As the C function.
pub unsafe fn recvfrom(
    coroutine: &Coroutine,
    fd: c_int,
    buffer: *mut c_void,
    length: size_t,
    flags: c_int,
    address: *mut sockaddr,
    address_length: *mut socklen_t,
) -> ssize_t {
    // SAFETY: the caller's buffers.
    let real =
        |flags| unsafe { syscall!(recvfrom, fd, buffer, length, flags, address, address_length) };
    if flags & NEVER_WAITS != 0 {
        return to_c(real(flags));
    }
    let Some(mut call) = Call::new(coroutine, fd, Direction::Read) else {
        return to_c(real(flags));
    };
    if address.is_null() {
        // SAFETY: the caller's buffer.
        return to_c(unsafe { receive(&mut call, buffer, length, flags) });
    }
    // An address is asked for of datagrams; on streams MSG_WAITALL is honoured without one.
    let (result, _) = call.run(|| real(flags | libc::MSG_DONTWAIT), || real(flags));
    to_c(result)
}

/// Receives without an address. ENOTSOCK comes before any wait.
///
/// # Safety
/// `buffer` has `length` writable bytes.
#[inline]
pub unsafe fn receive(
    call: &mut Call<'_>,
    buffer: *mut c_void,
    length: usize,
    flags: c_int,
) -> Result<usize> {
    let fd = call.fd;
    // SAFETY: the caller's buffer.
    let real = |flags: c_int| unsafe { syscall!(recvfrom, fd, buffer, length, flags, 0, 0) };
    let (result, seen) = call.run(|| real(flags | libc::MSG_DONTWAIT), || real(flags));
    match result {
        Ok(count) if count < length && count != 0 => {
            if flags & libc::MSG_WAITALL != 0 && is_stream(fd) {
                // SAFETY: as above.
                return unsafe { receive_all(call, buffer, length, flags, count) };
            }
            if flags & libc::MSG_PEEK == 0 {
                call.entry.drained(Direction::Read, seen);
            }
            Ok(count)
        }
        result => result,
    }
}

/// Goes on with MSG_WAITALL after `count` bytes. With MSG_PEEK they are still in the socket.
unsafe fn receive_all(
    call: &mut Call<'_>,
    buffer: *mut c_void,
    length: usize,
    flags: c_int,
    mut count: usize,
) -> Result<usize> {
    let peek = flags & libc::MSG_PEEK != 0;
    while count < length {
        let fd = call.fd;
        let start = if peek { 0 } else { count };
        let before = count;
        let attempt = || {
            // SAFETY: the rest of the caller's buffer.
            let result = unsafe {
                let rest = buffer.byte_add(start);
                syscall!(recvfrom, fd, rest, length - start, flags | libc::MSG_DONTWAIT, 0, 0)
            };
            match result {
                // No more than before, and no end either: wait for more.
                Ok(seen) if peek && seen == before && !is_at_end(fd) => Err(AGAIN),
                result => result,
            }
        };
        match call.run(attempt, || Ok(0)).0 {
            // What has come counts, whatever comes after it.
            Ok(0) | Err(_) => break,
            Ok(seen) if peek && seen == before => break,
            Ok(more) => count = start + more,
        }
    }
    Ok(count)
}

/// Whether no more data will come.
fn is_at_end(fd: c_int) -> bool {
    let mut poll = libc::pollfd { fd, events: libc::POLLRDHUP, revents: 0 };
    let zero = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: both live through the call, which does not wait.
    let _ = unsafe { syscall!(ppoll, &raw mut poll, 1, &raw const zero, 0, 0) };
    poll.revents != 0
}

/// `send`.
///
/// # Safety
/// As the C function.
pub unsafe fn send(
    coroutine: &Coroutine,
    fd: c_int,
    buffer: *const c_void,
    length: size_t,
    flags: c_int,
) -> ssize_t {
    // SAFETY: the caller's buffer.
    let real = || unsafe { syscall!(sendto, fd, buffer, length, flags, 0, 0) };
    if flags & libc::MSG_DONTWAIT != 0 {
        return to_c(real());
    }
    match Call::new(coroutine, fd, Direction::Write) {
        // SAFETY: the caller's buffer.
        Some(mut call) => to_c(unsafe { transmit(&mut call, buffer, length, flags) }),
        None => to_c(real()),
    }
}

/// `sendto`.
///
/// # Safety
/// As the C function.
pub unsafe fn sendto(
    coroutine: &Coroutine,
    fd: c_int,
    buffer: *const c_void,
    length: size_t,
    flags: c_int,
    address: *const sockaddr,
    address_length: socklen_t,
) -> ssize_t {
    if address.is_null() {
        // SAFETY: the caller keeps the contract.
        return unsafe { send(coroutine, fd, buffer, length, flags) };
    }
    // SAFETY: the caller's buffers.
    let real =
        |flags| unsafe { syscall!(sendto, fd, buffer, length, flags, address, address_length) };
    if flags & libc::MSG_DONTWAIT != 0 {
        return to_c(real(flags));
    }
    let Some(mut call) = Call::new(coroutine, fd, Direction::Write) else {
        return to_c(real(flags));
    };
    call.by_address = true;
    let (result, _) = call.run(|| real(flags | libc::MSG_DONTWAIT), || real(flags));
    call.by_address = false;
    match result {
        // A stream takes an address only where it is connected already (or by MSG_FASTOPEN).
        Ok(count) if count < length => {
            // SAFETY: the rest of the caller's buffer.
            let rest = unsafe {
                transmit(
                    &mut call,
                    buffer.byte_add(count),
                    length - count,
                    flags & !libc::MSG_FASTOPEN,
                )
            };
            (count + rest.unwrap_or(0)) as ssize_t
        }
        result => to_c(result),
    }
}

/// Sends everything; ENOTSOCK comes before any wait. An error after a part has been sent gives the
/// count so far, as in the kernel.
///
/// # Safety
/// `buffer` has `length` readable bytes.
#[inline]
pub unsafe fn transmit(
    call: &mut Call<'_>,
    buffer: *const c_void,
    length: usize,
    flags: c_int,
) -> Result<usize> {
    let fd = call.fd;
    let mut done = 0;
    loop {
        let partly = done != 0;
        // SAFETY: the rest of the caller's buffer.
        let real = |flags: c_int| unsafe {
            syscall!(sendto, fd, buffer.byte_add(done), length - done, flags, 0, 0)
        };
        let attempt = || {
            if partly && has_error(fd) {
                return Err(Errno(libc::EPIPE));
            }
            real(flags | libc::MSG_DONTWAIT)
        };
        let (result, seen) = call.run(attempt, || real(flags));
        match result {
            Ok(count) if done + count < length => {
                done += count;
                call.entry.drained(Direction::Write, seen);
            }
            Ok(count) => return Ok(done + count),
            Err(_) if done != 0 => return Ok(done),
            Err(error) => return Err(error),
        }
    }
}
