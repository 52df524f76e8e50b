//! The spin lock of the runtime's own short critical sections.
//!
//! The lock is a critical section ([`super::critical`]): no signal handler of the program runs on the
//! holder's thread. A holder never parks, never calls out of the library and holds it for some tens of instructions.
//! The kernel may still preempt a holder, so a waiter gives its CPU away after a short spin.

use super::critical;
use core::cell::UnsafeCell;
use core::ops::{Deref, DerefMut};
use core::sync::atomic::{AtomicBool, Ordering};

/// A value behind a spin lock.
pub struct SpinLock<T> {
    locked: AtomicBool,
    value: UnsafeCell<T>,
}

// SAFETY: the lock gives out one reference at a time.
unsafe impl<T> Sync for SpinLock<T> {}
// SAFETY: the lock adds nothing that is bound to a thread; values put into it may be sent by the
// runtime's own discipline (intrusive nodes are only reached under the lock).
unsafe impl<T> Send for SpinLock<T> {}

/// Holds the lock until dropped.
pub struct Guard<'a, T> {
    lock: &'a SpinLock<T>,
}

impl<T> SpinLock<T> {
    /// An unlocked lock around `value`.
    pub const fn new(value: T) -> Self {
        Self { locked: AtomicBool::new(false), value: UnsafeCell::new(value) }
    }

    /// Takes the lock.
    #[inline]
    pub fn lock(&self) -> Guard<'_, T> {
        critical::enter();
        if self.locked.compare_exchange(false, true, Ordering::Acquire, Ordering::Relaxed).is_err()
        {
            self.lock_contended();
        }
        Guard { lock: self }
    }

    #[cold]
    fn lock_contended(&self) {
        let mut spins = 0u32;
        loop {
            while self.locked.load(Ordering::Relaxed) {
                spins += 1;
                if spins < 100 {
                    core::hint::spin_loop();
                } else {
                    // SAFETY: no arguments; gives the CPU to the preempted holder.
                    let _ = unsafe { super::linux::syscall!(sched_yield) };
                }
            }
            if self
                .locked
                .compare_exchange_weak(false, true, Ordering::Acquire, Ordering::Relaxed)
                .is_ok()
            {
                return;
            }
        }
    }

    /// Opens the lock, whoever held it; the value stays as it is.
    ///
    /// # Safety
    /// Nobody else can reach the lock: the only thread of a forked child, which does not hold it.
    pub unsafe fn open(&self) {
        self.locked.store(false, Ordering::Release);
    }

    /// Replaces the value and opens the lock.
    ///
    /// # Safety
    /// Nobody else can reach the lock: start-up, or the only thread of a forked child.
    pub unsafe fn reset(&self, value: T) {
        // SAFETY: the caller is alone. The old value is forgotten, not dropped: its nodes may be
        // linked into lists of threads that no longer exist.
        unsafe { core::ptr::write(self.value.get(), value) };
        self.locked.store(false, Ordering::Release);
    }
}

impl<T> Deref for Guard<'_, T> {
    type Target = T;
    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: the lock is held.
        unsafe { &*self.lock.value.get() }
    }
}

impl<T> DerefMut for Guard<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: the lock is held, and `&mut self` makes the borrow unique.
        unsafe { &mut *self.lock.value.get() }
    }
}

impl<T> Drop for Guard<'_, T> {
    #[inline]
    fn drop(&mut self) {
        self.lock.locked.store(false, Ordering::Release);
        critical::leave();
    }
}
