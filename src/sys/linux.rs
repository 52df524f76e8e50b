//! Raw system calls. Made by inline assembly of the `syscalls` crate, never through libc, whose
//! symbols are the very ones that we export.

use super::errno::{Errno, Result};
pub use syscalls::Sysno;

/// The kernel's answer, split into value and error.
#[inline(always)]
pub fn check(raw: usize) -> Result<usize> {
    if raw > -4096isize as usize { Err(Errno(-(raw as isize) as i32)) } else { Ok(raw) }
}

/// `syscall!(name, args…)`: makes the call and gives `Result<usize>`.
macro_rules! syscall {
    ($name:ident $(, $arg:expr)* $(,)?) => {
        $crate::sys::linux::check(syscalls::raw_syscall!(
            $crate::sys::linux::Sysno::$name $(, ($arg) as usize)*
        ))
    };
}
pub(crate) use syscall;

/// An anonymous private mapping without reservation of memory.
pub fn map(size: usize) -> Result<*mut u8> {
    // SAFETY: a fresh mapping at an address of the kernel's choice touches no existing memory.
    let address = unsafe {
        syscall!(
            mmap,
            0,
            size,
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE,
            -1isize,
            0
        )
    }?;
    Ok(address as *mut u8)
}

/// Removes a mapping.
///
/// # Safety
/// Nothing may use `[address, address + size)` any more.
pub unsafe fn unmap(address: *mut u8, size: usize) {
    // SAFETY: the caller's promise. The call fails only for misaligned addresses.
    let _ = unsafe { syscall!(munmap, address, size) };
}

/// The kernel's id of the calling kernel thread.
pub fn gettid() -> i32 {
    // SAFETY: no arguments, no effect.
    unsafe { syscall!(gettid) }.unwrap_or(0) as i32
}

/// Sleeps in the kernel while `*word == expected`, at most until `deadline` (CLOCK_MONOTONIC, ns).
///
/// Errors: EAGAIN the word differs, EINTR, ETIMEDOUT.
pub fn futex_wait(
    word: &core::sync::atomic::AtomicU32,
    expected: u32,
    deadline: Option<u64>,
) -> Result<usize> {
    let time = super::time::to_timespec(deadline.unwrap_or(0));
    let time: *const libc::timespec = if deadline.is_some() { &time } else { core::ptr::null() };
    // SAFETY: the word and the time outlive the call. WAIT_BITSET takes an absolute time.
    unsafe {
        syscall!(
            futex,
            word.as_ptr(),
            libc::FUTEX_WAIT_BITSET | libc::FUTEX_PRIVATE_FLAG,
            expected,
            time,
            0,
            u32::MAX
        )
    }
}

/// Wakes up to `count` kernel threads that sleep on `word`.
pub fn futex_wake(word: *const u32, count: i32) {
    // SAFETY: the kernel only hashes the address; a stale one wakes nobody of ours.
    let _ = unsafe { syscall!(futex, word, libc::FUTEX_WAKE | libc::FUTEX_PRIVATE_FLAG, count) };
}
