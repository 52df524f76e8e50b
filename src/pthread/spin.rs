//! Spin locks: a holder that has parked must get its carrier back, so a waiter that has spun for a
//! while gives way.
//!
//! The object is glibc's: 1 is free and anything below is locked, so that the other calls stay glibc's.

use crate::coroutine::Coroutine;
use crate::sched;
use crate::sys::linux::syscall;
use core::ffi::c_int;
use core::sync::atomic::{AtomicI32, Ordering};
use libc::pthread_spinlock_t;

const FREE: i32 = 1;
const LOCKED: i32 = 0;
/// Looks at the lock before the CPU is given to others.
const SPINS: u32 = 100;

/// `pthread_spin_lock`.
///
/// # Safety
/// As `pthread_spin_lock`.
#[inline]
pub unsafe fn lock(lock: *mut pthread_spinlock_t) -> c_int {
    // SAFETY: a valid spin lock is one `int`.
    let word = unsafe { AtomicI32::from_ptr(lock.cast()) };
    if word.swap(LOCKED, Ordering::Acquire) != FREE {
        contended(word);
    }
    0
}

#[cold]
#[inline(never)]
fn contended(word: &AtomicI32) {
    loop {
        let mut spins = 0;
        while word.load(Ordering::Relaxed) != FREE {
            if spins < SPINS {
                spins += 1;
                core::hint::spin_loop();
                continue;
            }
            spins = 0;
            match Coroutine::current() {
                Some(coroutine) => sched::yield_now(coroutine),
                None => {
                    // SAFETY: no arguments, no effect but on scheduling.
                    let _ = unsafe { syscall!(sched_yield) };
                }
            }
        }
        if word.swap(LOCKED, Ordering::Acquire) == FREE {
            return;
        }
    }
}
