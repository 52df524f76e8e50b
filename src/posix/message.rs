//! `recvmsg`, `sendmsg`, `recvmmsg`, `sendmmsg`.

use super::attempt::{Call, has_error};
use super::io::Rest;
use super::signal::read_user;
use super::socket::{NEVER_WAITS, is_stream};
use crate::coroutine::Coroutine;
use crate::reactor::table::Direction;
use crate::sys::errno::{Errno, Result, to_c, to_c_int};
use crate::sys::linux::syscall;
use crate::sys::time;
use core::ffi::{c_int, c_uint};
use libc::{mmsghdr, msghdr, ssize_t, timespec};

/// `recvmsg`.
///
/// # Safety
/// As the C function.
pub unsafe fn recvmsg(
    coroutine: &Coroutine,
    fd: c_int,
    message: *mut msghdr,
    flags: c_int,
) -> ssize_t {
    // SAFETY: the caller's message.
    to_c(unsafe { receive(coroutine, fd, message, flags) })
}

unsafe fn receive(
    coroutine: &Coroutine,
    fd: c_int,
    message: *mut msghdr,
    flags: c_int,
) -> Result<usize> {
    // SAFETY: the caller's message.
    let real = |flags: c_int| unsafe { syscall!(recvmsg, fd, message, flags) };
    if flags & NEVER_WAITS != 0 {
        return real(flags);
    }
    let Some(mut call) = Call::new(coroutine, fd, Direction::Read) else {
        return real(flags);
    };
    let (result, _) = call.run(|| real(flags | libc::MSG_DONTWAIT), || real(flags));
    let count = result?;
    if flags & libc::MSG_WAITALL == 0 || flags & libc::MSG_PEEK != 0 || count == 0 || !is_stream(fd)
    {
        return Ok(count);
    }
    // SAFETY: the kernel has just used the message.
    let mut rest = unsafe { Rest::after((*message).msg_iov, (*message).msg_iovlen, count) };
    while let Some((window, length)) = rest.window() {
        // SAFETY: the window is part of the caller's vectors. No control data is asked for: it came
        // with the first part.
        let attempt = || unsafe {
            let mut part: msghdr = core::mem::zeroed();
            part.msg_iov = window.cast_mut();
            part.msg_iovlen = length;
            syscall!(recvmsg, fd, &raw mut part, flags | libc::MSG_DONTWAIT)
        };
        match call.run(attempt, || Ok(0)).0 {
            Ok(0) | Err(_) => break,
            Ok(more) => rest.advance(more),
        }
    }
    Ok(rest.done)
}

/// `sendmsg`.
///
/// # Safety
/// As the C function.
pub unsafe fn sendmsg(
    coroutine: &Coroutine,
    fd: c_int,
    message: *const msghdr,
    flags: c_int,
) -> ssize_t {
    // SAFETY: the caller's message.
    to_c(unsafe { transmit(coroutine, fd, message, flags) })
}

unsafe fn transmit(
    coroutine: &Coroutine,
    fd: c_int,
    message: *const msghdr,
    flags: c_int,
) -> Result<usize> {
    // SAFETY: the caller's message.
    let real = |flags: c_int| unsafe { syscall!(sendmsg, fd, message, flags) };
    if flags & libc::MSG_DONTWAIT != 0 {
        return real(flags);
    }
    let Some(mut call) = Call::new(coroutine, fd, Direction::Write) else {
        return real(flags);
    };
    // A bad message is told by the kernel.
    call.by_address = read_user(message).is_ok_and(|message: msghdr| !message.msg_name.is_null());
    let (result, _) = call.run(|| real(flags | libc::MSG_DONTWAIT), || real(flags));
    call.by_address = false;
    let count = result?;
    // SAFETY: the kernel has just read the message. A datagram is never sent in part.
    let mut rest = unsafe { Rest::after((*message).msg_iov, (*message).msg_iovlen, count) };
    while let Some((window, length)) = rest.window() {
        // SAFETY: the window is part of the caller's vectors. Control data went with the first part.
        let attempt = |flags: c_int| unsafe {
            let mut part: msghdr = core::mem::zeroed();
            part.msg_iov = window.cast_mut();
            part.msg_iovlen = length;
            if has_error(fd) {
                return Err(Errno(libc::EPIPE));
            }
            syscall!(sendmsg, fd, &raw const part, flags)
        };
        match call.run(|| attempt(flags | libc::MSG_DONTWAIT), || attempt(flags)).0 {
            Ok(more) => rest.advance(more),
            Err(_) => break,
        }
    }
    Ok(rest.done)
}

/// `recvmmsg`: waits for each message (with MSG_WAITFORONE: only for the first). The timeout is looked
/// at after each message, as in the kernel, whose manual page calls that a bug.
///
/// # Safety
/// As the C function.
pub unsafe fn recvmmsg(
    coroutine: &Coroutine,
    fd: c_int,
    messages: *mut mmsghdr,
    count: c_uint,
    flags: c_int,
    timeout: *mut timespec,
) -> c_int {
    // SAFETY: the caller's timeout, or null.
    let deadline = match unsafe { timeout.as_ref() }.map(time::from_timespec) {
        None => None,
        Some(Ok(span)) => Some(time::after(span)),
        Some(Err(error)) => return to_c_int(Err(error)),
    };
    let mut flags = flags;
    let mut received = 0;
    let mut failure = None;
    while received < count {
        // SAFETY: the caller's array has `count` elements.
        let message = unsafe { &mut *messages.add(received as usize) };
        // SAFETY: as above.
        match unsafe { receive(coroutine, fd, &mut message.msg_hdr, flags & !libc::MSG_WAITFORONE) }
        {
            Ok(length) => message.msg_len = length as c_uint,
            Err(error) => {
                failure = Some(error);
                break;
            }
        }
        received += 1;
        if flags & libc::MSG_WAITFORONE != 0 {
            flags |= libc::MSG_DONTWAIT;
        }
        if let Some(deadline) = deadline {
            let left = deadline.saturating_sub(time::now());
            // SAFETY: the caller's timeout, which the kernel updates too.
            unsafe { *timeout = time::to_timespec(left) };
            if left == 0 {
                break;
            }
        }
    }
    finish(received, failure)
}

/// `sendmmsg`: stops at the first message that cannot be sent.
///
/// # Safety
/// As the C function.
pub unsafe fn sendmmsg(
    coroutine: &Coroutine,
    fd: c_int,
    messages: *mut mmsghdr,
    count: c_uint,
    flags: c_int,
) -> c_int {
    /// UIO_MAXIOV: the kernel caps the count.
    const MOST: c_uint = 1024;
    let mut sent = 0;
    let mut failure = None;
    while sent < count.min(MOST) {
        // SAFETY: the caller's array has `count` elements.
        let message = unsafe { &mut *messages.add(sent as usize) };
        // SAFETY: as above.
        match unsafe { transmit(coroutine, fd, &message.msg_hdr, flags) } {
            Ok(length) => message.msg_len = length as c_uint,
            Err(error) => {
                failure = Some(error);
                break;
            }
        }
        sent += 1;
    }
    finish(sent, failure)
}

/// An error counts only if nothing was transferred.
fn finish(done: c_uint, failure: Option<Errno>) -> c_int {
    match failure {
        Some(error) if done == 0 => to_c_int(Err(error)),
        _ => done as c_int,
    }
}
