//! `read`, `write`, `readv`, `writev`, and `preadv2`/`pwritev2` at the current position.
//!
//! Sockets go by `recv` and `send` with MSG_DONTWAIT; everything else by RWF_NOWAIT where the kernel takes
//! it, else by asking `poll` first. A blocking `write` to a stream returns when everything is written.

use super::attempt::{AGAIN, Call, poll_now, without_blocking};
use super::socket;
use crate::coroutine::Coroutine;
use crate::reactor::table::{Direction, Kind};
use crate::reactor::wait;
use crate::sys::errno::{Errno, Result, to_c};
use crate::sys::linux::syscall;
use core::ffi::{c_int, c_void};
use libc::{iovec, size_t, ssize_t};

/// `read`.
///
/// # Safety
/// As the C function.
pub unsafe fn read(
    coroutine: &Coroutine,
    fd: c_int,
    buffer: *mut c_void,
    count: size_t,
) -> ssize_t {
    // SAFETY: the caller keeps the contract.
    to_c(unsafe { read_any(coroutine, fd, buffer, count) })
}

unsafe fn read_any(
    coroutine: &Coroutine,
    fd: c_int,
    buffer: *mut c_void,
    count: size_t,
) -> Result<usize> {
    // SAFETY: the caller's buffer.
    let real = || unsafe { syscall!(read, fd, buffer, count) };
    let Some(mut call) = Call::new(coroutine, fd, Direction::Read) else {
        return real();
    };
    loop {
        match wait::kind(fd, call.entry) {
            // Nothing is waited for when nothing is asked for.
            _ if count == 0 => return real(),
            Kind::File | Kind::Unknown => return real(),
            Kind::Tcp | Kind::Socket => {
                // SAFETY: the caller's buffer.
                match unsafe { socket::receive(&mut call, buffer, count, 0) } {
                    Err(Errno(libc::ENOTSOCK)) => call.entry.set_kind(Kind::Unknown),
                    result => return result,
                }
            }
            Kind::Stream | Kind::Fifo => {
                let vector = iovec { iov_base: buffer, iov_len: count };
                // SAFETY: the caller's buffer.
                return unsafe { read_stream(&mut call, &vector, 1) };
            }
        }
    }
}

/// `readv`.
///
/// # Safety
/// As the C function.
pub unsafe fn readv(
    coroutine: &Coroutine,
    fd: c_int,
    vectors: *const iovec,
    count: c_int,
) -> ssize_t {
    // SAFETY: the caller's vectors.
    let real = || unsafe { syscall!(readv, fd, vectors, count) };
    let Some(mut call) = Call::new(coroutine, fd, Direction::Read) else {
        return to_c(real());
    };
    match wait::kind(fd, call.entry) {
        Kind::File | Kind::Unknown => to_c(real()),
        // SAFETY: the caller's vectors.
        _ => to_c(unsafe { read_stream(&mut call, vectors, count) }),
    }
}

/// Reads from what is not a regular file.
unsafe fn read_stream(call: &mut Call<'_>, vectors: *const iovec, count: c_int) -> Result<usize> {
    let (fd, entry) = (call.fd, call.entry);
    // SAFETY: the caller's vectors.
    let real = || unsafe { syscall!(readv, fd, vectors, count) };
    let attempt = || {
        if !entry.is_poll_first(Direction::Read) {
            // SAFETY: as above. Offset −1: the current position.
            let result =
                unsafe { syscall!(preadv2, fd, vectors, count, -1isize, 0, libc::RWF_NOWAIT) };
            match result {
                Err(Errno(libc::EOPNOTSUPP | libc::ENOSYS)) => {}
                result => return result,
            }
            entry.set_poll_first(Direction::Read);
        }
        if poll_now(fd, libc::POLLIN)? || has_read_timer(fd) {
            return real();
        }
        // A FIFO that never had a writer: `poll` waits for one, `read` says that there is none.
        if entry.kind() == Kind::Fifo { without_blocking(entry, fd, real) } else { Err(AGAIN) }
    };
    call.run(attempt, real).0
}

/// Whether it is a terminal in raw mode whose reads are governed by a minimum or a timer (VMIN, VTIME): only
/// the kernel knows when such a read ends, so it is made for real.
fn has_read_timer(fd: c_int) -> bool {
    // SAFETY: an all-zero termios is a valid one; the kernel's is a prefix of it.
    let mut settings: libc::termios = unsafe { core::mem::zeroed() };
    // SAFETY: `settings` is writable.
    if unsafe { syscall!(ioctl, fd, libc::TCGETS, &raw mut settings) }.is_err() {
        return false;
    }
    settings.c_lflag & libc::ICANON == 0
        && (settings.c_cc[libc::VTIME] != 0 || settings.c_cc[libc::VMIN] != 1)
}

/// `write`.
///
/// # Safety
/// As the C function.
pub unsafe fn write(
    coroutine: &Coroutine,
    fd: c_int,
    buffer: *const c_void,
    count: size_t,
) -> ssize_t {
    // SAFETY: the caller keeps the contract.
    to_c(unsafe { write_any(coroutine, fd, buffer, count) })
}

unsafe fn write_any(
    coroutine: &Coroutine,
    fd: c_int,
    buffer: *const c_void,
    count: size_t,
) -> Result<usize> {
    // SAFETY: the caller's buffer.
    let real = || unsafe { syscall!(write, fd, buffer, count) };
    let Some(mut call) = Call::new(coroutine, fd, Direction::Write) else {
        return real();
    };
    loop {
        match wait::kind(fd, call.entry) {
            Kind::File | Kind::Unknown => return real(),
            Kind::Tcp | Kind::Socket => {
                // SAFETY: the caller's buffer.
                match unsafe { socket::transmit(&mut call, buffer, count, 0) } {
                    Err(Errno(libc::ENOTSOCK)) => call.entry.set_kind(Kind::Unknown),
                    result => return result,
                }
            }
            Kind::Stream | Kind::Fifo => {
                let vector = iovec { iov_base: buffer.cast_mut(), iov_len: count };
                // SAFETY: the caller's buffer.
                return unsafe { write_stream(&mut call, &vector, 1) };
            }
        }
    }
}

/// `writev`.
///
/// # Safety
/// As the C function.
pub unsafe fn writev(
    coroutine: &Coroutine,
    fd: c_int,
    vectors: *const iovec,
    count: c_int,
) -> ssize_t {
    // SAFETY: the caller's vectors.
    let real = || unsafe { syscall!(writev, fd, vectors, count) };
    let Some(mut call) = Call::new(coroutine, fd, Direction::Write) else {
        return to_c(real());
    };
    match wait::kind(fd, call.entry) {
        Kind::File | Kind::Unknown => to_c(real()),
        // SAFETY: the caller's vectors.
        _ => to_c(unsafe { write_stream(&mut call, vectors, count) }),
    }
}

/// Writes all of the vectors to what is not a regular file.
unsafe fn write_stream(call: &mut Call<'_>, vectors: *const iovec, count: c_int) -> Result<usize> {
    let (fd, entry) = (call.fd, call.entry);
    let attempt = |vectors: *const iovec, count: usize| {
        if !entry.is_poll_first(Direction::Write) {
            // SAFETY: the caller's vectors, or our window on them.
            let result =
                unsafe { syscall!(pwritev2, fd, vectors, count, -1isize, 0, libc::RWF_NOWAIT) };
            match result {
                Err(Errno(libc::EOPNOTSUPP | libc::ENOSYS)) => {}
                result => return result,
            }
            entry.set_poll_first(Direction::Write);
        }
        // SAFETY: as above.
        let real = || unsafe { syscall!(writev, fd, vectors, count) };
        if poll_now(fd, libc::POLLOUT)? { real() } else { Err(AGAIN) }
    };
    // SAFETY: as above.
    let real = |vectors, count: usize| unsafe { syscall!(writev, fd, vectors, count) };
    let first = call.run(|| attempt(vectors, count as usize), || real(vectors, count as usize));
    let written = first.0?;
    // SAFETY: the kernel has just read the vectors, so they are valid.
    let mut rest = unsafe { Rest::after(vectors, count as usize, written) };
    while let Some((window, length)) = rest.window() {
        match call.run(|| attempt(window, length), || real(window, length)).0 {
            Ok(more) => rest.advance(more),
            // What was written counts; the error comes with the next call, as in the kernel.
            Err(_) => break,
        }
    }
    Ok(rest.done)
}

/// What is left of a list of vectors, seen through a window on the stack.
pub struct Rest {
    vectors: *const iovec,
    count: usize,
    /// Bytes of the first vector that are done.
    offset: usize,
    /// Bytes done in all.
    pub done: usize,
    window: [iovec; Self::WINDOW],
}

impl Rest {
    const WINDOW: usize = 16;

    /// What is left of `count` vectors after `done` bytes.
    ///
    /// # Safety
    /// The vectors are readable as long as this lives.
    pub unsafe fn after(vectors: *const iovec, count: usize, done: usize) -> Self {
        let none = iovec { iov_base: core::ptr::null_mut(), iov_len: 0 };
        let mut rest = Self { vectors, count, offset: 0, done: 0, window: [none; Self::WINDOW] };
        rest.advance(done);
        rest
    }

    /// Counts `bytes` as done.
    pub fn advance(&mut self, bytes: usize) {
        self.done += bytes;
        self.offset += bytes;
        // SAFETY: `count` vectors are readable.
        unsafe {
            while self.count != 0 && self.offset >= (*self.vectors).iov_len {
                self.offset -= (*self.vectors).iov_len;
                self.vectors = self.vectors.add(1);
                self.count -= 1;
            }
        }
    }

    /// The next vectors and their number; none when all is done.
    pub fn window(&mut self) -> Option<(*const iovec, usize)> {
        if self.count == 0 {
            return None;
        }
        let length = self.count.min(Self::WINDOW);
        for index in 0..length {
            // SAFETY: `count` vectors are readable.
            self.window[index] = unsafe { *self.vectors.add(index) };
        }
        let first = &mut self.window[0];
        first.iov_base = first.iov_base.wrapping_byte_add(self.offset);
        first.iov_len -= self.offset;
        Some((self.window.as_ptr(), length))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rest_of_vectors_skips_what_is_done() {
        let base = 0x1000 as *mut c_void;
        let vector =
            |offset, length| iovec { iov_base: base.wrapping_byte_add(offset), iov_len: length };
        let all = [vector(0, 10), vector(10, 0), vector(10, 5)];
        // SAFETY: `all` lives through the test.
        let mut rest = unsafe { Rest::after(all.as_ptr(), 3, 4) };
        let (window, length) = rest.window().unwrap();
        // SAFETY: the window has `length` vectors.
        let first = unsafe { *window };
        assert_eq!((first.iov_base as usize, first.iov_len, length), (0x1004, 6, 3));
        rest.advance(7);
        let (window, length) = rest.window().unwrap();
        // SAFETY: as above.
        let first = unsafe { *window };
        assert_eq!((first.iov_base as usize, first.iov_len, length), (0x100b, 4, 1));
        rest.advance(4);
        assert!(rest.window().is_none());
        assert_eq!(rest.done, 15);
    }
}
