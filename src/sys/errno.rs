//! Error numbers: the type that internal functions return and the conversion to C's convention.

use libc::c_int;

/// An error number of `errno.h`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Errno(pub c_int);

/// What a system call or an internal function gives.
pub type Result<T> = core::result::Result<T, Errno>;

impl Errno {
    /// Stores the number in the caller's `errno`.
    #[inline]
    pub fn set(self) {
        // SAFETY: glibc's `__errno_location` points at this thread's (or coroutine's) own variable.
        unsafe { *libc::__errno_location() = self.0 }
    }
}

/// The caller's `errno`.
#[inline]
pub fn get() -> c_int {
    // SAFETY: as in [`Errno::set`].
    unsafe { *libc::__errno_location() }
}

/// Converts to C's convention: the value, or −1 with `errno` set.
#[inline]
pub fn to_c(result: Result<usize>) -> isize {
    match result {
        Ok(value) => value as isize,
        Err(error) => {
            error.set();
            -1
        }
    }
}

/// Like [`to_c`] for functions that return `int`.
#[inline]
pub fn to_c_int(result: Result<usize>) -> c_int {
    to_c(result) as c_int
}

/// Converts to the convention of `pthread_*`: 0 or the error number.
#[inline]
pub fn to_code(result: Result<()>) -> c_int {
    match result {
        Ok(()) => 0,
        Err(error) => error.0,
    }
}
