//! The signal mask of each thread: `pthread_sigmask` and `sigprocmask`, and jumps that restore a mask.
//!
//! A coroutine's mask moves with it: the kernel thread that runs it takes it over, by a system call only if
//! the masks differ (`sched::take_over_mask`). glibc's `siglongjmp` restores a mask inside libc; so it is
//! looked at before.

use crate::coroutine::Coroutine;
use crate::sys::errno::{Errno, Result};
use crate::sys::linux::syscall;
use core::ffi::c_int;
use libc::sigset_t;

/// The signals that glibc keeps for itself (32 and 33) are never blocked.
const RESERVED: u64 = 1 << 31 | 1 << 32;
/// The kernel does not block these.
const UNBLOCKABLE: u64 = 1 << (libc::SIGKILL - 1) | 1 << (libc::SIGSTOP - 1);

/// The mask of the calling kernel thread, as the kernel has it.
pub fn of_kernel_thread() -> u64 {
    let mut mask = 0u64;
    // SAFETY: `mask` is as large as we say.
    let _ =
        unsafe { syscall!(rt_sigprocmask, libc::SIG_BLOCK, 0, &raw mut mask, size_of::<u64>()) };
    mask
}

/// Gives the calling kernel thread a mask. SIGSEGV stays open: our own copies from the program's memory stand on
/// it, and a fault while it is blocked would end the process.
pub fn set_of_kernel_thread(mask: u64) {
    let mask = mask & !(1 << (libc::SIGSEGV - 1));
    // SAFETY: `mask` is as large as we say.
    let _ = unsafe {
        syscall!(rt_sigprocmask, libc::SIG_SETMASK, &raw const mask, 0, size_of::<u64>())
    };
}

unsafe fn change(
    coroutine: &Coroutine,
    how: c_int,
    new: *const sigset_t,
    old: *mut sigset_t,
) -> Result<usize> {
    let before = coroutine.mask.get();
    // SAFETY: the caller's sets; the kernel's is the first word of libc's.
    unsafe {
        if !new.is_null() {
            let set = *new.cast::<u64>() & !(RESERVED | UNBLOCKABLE);
            let mask = match how {
                libc::SIG_BLOCK => before | set,
                libc::SIG_UNBLOCK => before & !set,
                libc::SIG_SETMASK => set,
                _ => return Err(Errno(libc::EINVAL)),
            };
            note(coroutine, mask);
            set_of_kernel_thread(mask);
        }
        if !old.is_null() {
            // libc writes the whole set.
            old.write_bytes(0, 1);
            *old.cast::<u64>() = before;
        }
    }
    Ok(0)
}

/// The calling coroutine's mask, and that of the kernel thread that runs it, are this from now on.
fn note(coroutine: &Coroutine, mask: u64) {
    coroutine.mask.set(mask);
    // SAFETY: the carrier of the calling coroutine belongs to this kernel thread.
    unsafe { (*coroutine.carrier.get()).mask = mask };
}

/// `pthread_sigmask`: 0 or EINVAL.
///
/// # Safety
/// As the C function.
pub unsafe fn pthread_sigmask(
    coroutine: &Coroutine,
    how: c_int,
    new: *const sigset_t,
    old: *mut sigset_t,
) -> c_int {
    // SAFETY: the caller keeps the contract.
    unsafe { change(coroutine, how, new, old) }.err().map_or(0, |error| error.0)
}

/// `sigprocmask`: −1 and EINVAL.
///
/// # Safety
/// As the C function.
pub unsafe fn sigprocmask(
    coroutine: &Coroutine,
    how: c_int,
    new: *const sigset_t,
    old: *mut sigset_t,
) -> c_int {
    // SAFETY: the caller keeps the contract.
    crate::sys::errno::to_c_int(unsafe { change(coroutine, how, new, old) })
}

/// A jump to `buffer` (`jmp_buf`) is about to happen: if it restores a mask, the caller has that.
///
/// # Safety
/// `buffer` was filled by `setjmp` or `sigsetjmp`.
pub unsafe extern "C" fn about_to_jump(buffer: *const u8) {
    /// Eight words of registers come first, then "mask was saved", then the mask.
    const SAVED: usize = 64;
    const MASK: usize = 72;
    if let Some(coroutine) = Coroutine::current() {
        // SAFETY: the layout of `struct __jmp_buf_tag` on x86-64.
        unsafe {
            if *buffer.add(SAVED).cast::<c_int>() != 0 {
                note(coroutine, *buffer.add(MASK).cast::<u64>());
            }
        }
    }
}
