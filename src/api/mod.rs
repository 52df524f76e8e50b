//! What `preloom.h` declares. The header holds the documentation for C; the two are compared by a test
//! that links with the library (`c-tests/api`).

use crate::coroutine::Coroutine;
use crate::observe::{self, Stats};
use crate::sched;
use crate::sys::linux::syscall;
use core::ffi::{c_char, c_int};

/// The version of the library, a static C string.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub extern "C" fn preloom_version() -> *const c_char {
    concat!(env!("CARGO_PKG_VERSION"), "\0").as_ptr().cast()
}

/// Whether the calling thread is a coroutine.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub extern "C" fn preloom_is_green() -> c_int {
    c_int::from(Coroutine::current().is_some())
}

/// Gives way to every coroutine that is ready.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub extern "C-unwind" fn preloom_yield() {
    match Coroutine::current() {
        Some(coroutine) => sched::yield_now(coroutine),
        None => {
            // SAFETY: no arguments.
            let _ = unsafe { syscall!(sched_yield) };
        }
    }
}

/// The calling coroutine's number, from 1; 0 in a kernel thread.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub extern "C" fn preloom_id() -> u64 {
    Coroutine::current().map_or(0, |coroutine| coroutine.id.get())
}

/// Fills `size` bytes of `stats`. 0 or EINVAL.
///
/// # Safety
/// `stats` is null or has `size` writable bytes.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C" fn preloom_stats(stats: *mut Stats, size: usize) -> c_int {
    if stats.is_null() || size == 0 {
        return libc::EINVAL;
    }
    let now = observe::snapshot();
    let known = size.min(size_of::<Stats>());
    // SAFETY: `size` bytes are writable; plain numbers may be copied in part.
    unsafe {
        core::ptr::copy_nonoverlapping((&raw const now).cast::<u8>(), stats.cast(), known);
        core::ptr::write_bytes(stats.cast::<u8>().add(known), 0, size - known);
    }
    0
}
