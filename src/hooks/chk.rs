//! The fortified twins that programs call when built with `_FORTIFY_SOURCE`: they know how large the buffer
//! is and end the program when more is asked for.

use crate::coroutine::Coroutine;
use crate::posix;
use core::ffi::{c_int, c_void};
use libc::{nfds_t, pollfd, sigset_t, size_t, sockaddr, socklen_t, ssize_t, timespec};

unsafe extern "C" {
    fn __chk_fail() -> !;
}

/// Ends the program, as glibc does, if the buffer is too small.
#[inline]
fn check(fits: bool) {
    if !fits {
        // SAFETY: reports "buffer overflow detected" and aborts.
        unsafe { __chk_fail() }
    }
}

/// `__read_chk`.
///
/// # Safety
/// As `read`.
pub unsafe fn read(
    coroutine: &Coroutine,
    fd: c_int,
    buffer: *mut c_void,
    count: size_t,
    room: size_t,
) -> ssize_t {
    check(count <= room);
    // SAFETY: the caller keeps the contract.
    unsafe { posix::io::read(coroutine, fd, buffer, count) }
}

/// `__recv_chk`.
///
/// # Safety
/// As `recv`.
pub unsafe fn recv(
    coroutine: &Coroutine,
    fd: c_int,
    buffer: *mut c_void,
    length: size_t,
    room: size_t,
    flags: c_int,
) -> ssize_t {
    check(length <= room);
    // SAFETY: the caller keeps the contract.
    unsafe { posix::socket::recv(coroutine, fd, buffer, length, flags) }
}

/// `__recvfrom_chk`.
///
/// # Safety
/// As `recvfrom`.
#[allow(clippy::too_many_arguments, reason = "the C function has as many")]
pub unsafe fn recvfrom(
    coroutine: &Coroutine,
    fd: c_int,
    buffer: *mut c_void,
    length: size_t,
    room: size_t,
    flags: c_int,
    address: *mut sockaddr,
    address_length: *mut socklen_t,
) -> ssize_t {
    check(length <= room);
    // SAFETY: the caller keeps the contract.
    unsafe {
        posix::socket::recvfrom(coroutine, fd, buffer, length, flags, address, address_length)
    }
}

/// `__poll_chk`.
///
/// # Safety
/// As `poll`.
pub unsafe fn poll(
    coroutine: &Coroutine,
    fds: *mut pollfd,
    count: nfds_t,
    timeout: c_int,
    room: size_t,
) -> c_int {
    check(room / size_of::<pollfd>() >= count as usize);
    // SAFETY: the caller keeps the contract.
    unsafe { posix::poll::poll(coroutine, fds, count, timeout) }
}

/// `__ppoll_chk`.
///
/// # Safety
/// As `ppoll`.
pub unsafe fn ppoll(
    coroutine: &Coroutine,
    fds: *mut pollfd,
    count: nfds_t,
    timeout: *const timespec,
    mask: *const sigset_t,
    room: size_t,
) -> c_int {
    check(room / size_of::<pollfd>() >= count as usize);
    // SAFETY: the caller keeps the contract.
    unsafe { posix::poll::ppoll(coroutine, fds, count, timeout, mask) }
}
