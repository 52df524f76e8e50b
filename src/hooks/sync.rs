//! The table of exported symbols: locks and what else threads meet at.
//!
//! Calls that never wait and that leave the objects as glibc knows them are not here: `init` and
//! `destroy`, `pthread_mutex_trylock`, `sem_trywait`, `sem_getvalue`, `pthread_spin_trylock` and `_unlock`.

use super::hooks;
use crate::pthread::c11::{self, C11Start};
use crate::pthread::once::{self, Routine};
use crate::pthread::{barrier, cond, mutex, rwlock, sem, spin};
use core::ffi::{c_int, c_void};
use libc::{
    clockid_t, pthread_barrier_t, pthread_cond_t, pthread_mutex_t, pthread_once_t,
    pthread_rwlock_t, pthread_spinlock_t, pthread_t, sem_t, timespec,
};

hooks! {
    // mutex
    every fn pthread_mutex_init(mutex: *mut pthread_mutex_t, attr: *const libc::pthread_mutexattr_t) -> c_int = mutex::init;
    every fn pthread_mutex_lock(mutex: *mut pthread_mutex_t) -> c_int = mutex::lock;
    every fn __pthread_mutex_lock(mutex: *mut pthread_mutex_t) -> c_int = mutex::lock;
    every fn pthread_mutex_timedlock(mutex: *mut pthread_mutex_t, time: *const timespec) -> c_int = mutex::timedlock;
    every fn pthread_mutex_clocklock(mutex: *mut pthread_mutex_t, clock: clockid_t, time: *const timespec) -> c_int = mutex::clocklock;
    every fn pthread_mutex_unlock(mutex: *mut pthread_mutex_t) -> c_int = mutex::unlock;
    every fn __pthread_mutex_unlock(mutex: *mut pthread_mutex_t) -> c_int = mutex::unlock;

    // condition variable
    every fn pthread_cond_wait(cond: *mut pthread_cond_t, mutex: *mut pthread_mutex_t) -> c_int = cond::wait;
    every fn pthread_cond_timedwait(cond: *mut pthread_cond_t, mutex: *mut pthread_mutex_t, time: *const timespec) -> c_int = cond::timedwait;
    every fn pthread_cond_clockwait(cond: *mut pthread_cond_t, mutex: *mut pthread_mutex_t, clock: clockid_t, time: *const timespec) -> c_int = cond::clockwait;
    every fn pthread_cond_signal(cond: *mut pthread_cond_t) -> c_int = cond::signal;
    every fn pthread_cond_broadcast(cond: *mut pthread_cond_t) -> c_int = cond::broadcast;

    // read-write lock
    every fn pthread_rwlock_rdlock(lock: *mut pthread_rwlock_t) -> c_int = rwlock::rdlock;
    every fn __pthread_rwlock_rdlock(lock: *mut pthread_rwlock_t) -> c_int = rwlock::rdlock;
    every fn pthread_rwlock_wrlock(lock: *mut pthread_rwlock_t) -> c_int = rwlock::wrlock;
    every fn __pthread_rwlock_wrlock(lock: *mut pthread_rwlock_t) -> c_int = rwlock::wrlock;
    every fn pthread_rwlock_tryrdlock(lock: *mut pthread_rwlock_t) -> c_int = rwlock::tryrdlock;
    every fn __pthread_rwlock_tryrdlock(lock: *mut pthread_rwlock_t) -> c_int = rwlock::tryrdlock;
    every fn pthread_rwlock_trywrlock(lock: *mut pthread_rwlock_t) -> c_int = rwlock::trywrlock;
    every fn __pthread_rwlock_trywrlock(lock: *mut pthread_rwlock_t) -> c_int = rwlock::trywrlock;
    every fn pthread_rwlock_timedrdlock(lock: *mut pthread_rwlock_t, time: *const timespec) -> c_int = rwlock::timedrdlock;
    every fn pthread_rwlock_timedwrlock(lock: *mut pthread_rwlock_t, time: *const timespec) -> c_int = rwlock::timedwrlock;
    every fn pthread_rwlock_clockrdlock(lock: *mut pthread_rwlock_t, clock: clockid_t, time: *const timespec) -> c_int = rwlock::clockrdlock;
    every fn pthread_rwlock_clockwrlock(lock: *mut pthread_rwlock_t, clock: clockid_t, time: *const timespec) -> c_int = rwlock::clockwrlock;
    every fn pthread_rwlock_unlock(lock: *mut pthread_rwlock_t) -> c_int = rwlock::unlock;
    every fn __pthread_rwlock_unlock(lock: *mut pthread_rwlock_t) -> c_int = rwlock::unlock;

    // semaphore
    every fn sem_wait(semaphore: *mut sem_t) -> c_int = sem::wait;
    every fn sem_timedwait(semaphore: *mut sem_t, time: *const timespec) -> c_int = sem::timedwait;
    every fn sem_clockwait(semaphore: *mut sem_t, clock: clockid_t, time: *const timespec) -> c_int = sem::clockwait;
    every fn sem_post(semaphore: *mut sem_t) -> c_int = sem::post;

    // barrier, spin lock, once
    every fn pthread_barrier_wait(barrier: *mut pthread_barrier_t) -> c_int = barrier::wait;
    every fn pthread_spin_lock(lock: *mut pthread_spinlock_t) -> c_int = spin::lock;
    every fn pthread_once(word: *mut pthread_once_t, routine: Routine) -> c_int = once::once;
    every fn __pthread_once(word: *mut pthread_once_t, routine: Routine) -> c_int = once::once;

    // C11
    every fn thrd_create(thread: *mut pthread_t, start: C11Start, argument: *mut c_void) -> c_int = c11::thrd_create;
    every fn thrd_join(thread: pthread_t, status: *mut c_int) -> c_int = c11::thrd_join;
    every fn thrd_detach(thread: pthread_t) -> c_int = c11::thrd_detach;
    every fn thrd_exit(status: c_int) -> ! = c11::thrd_exit;
    green fn thrd_sleep(time: *const timespec, rest: *mut timespec) -> c_int = c11::thrd_sleep;
    every fn mtx_lock(mutex: *mut pthread_mutex_t) -> c_int = c11::mtx_lock;
    every fn mtx_timedlock(mutex: *mut pthread_mutex_t, time: *const timespec) -> c_int = c11::mtx_timedlock;
    every fn mtx_unlock(mutex: *mut pthread_mutex_t) -> c_int = c11::mtx_unlock;
    every fn cnd_wait(cond: *mut pthread_cond_t, mutex: *mut pthread_mutex_t) -> c_int = c11::cnd_wait;
    every fn cnd_timedwait(cond: *mut pthread_cond_t, mutex: *mut pthread_mutex_t, time: *const timespec) -> c_int = c11::cnd_timedwait;
    every fn cnd_signal(cond: *mut pthread_cond_t) -> c_int = c11::cnd_signal;
    every fn cnd_broadcast(cond: *mut pthread_cond_t) -> c_int = c11::cnd_broadcast;
    every fn call_once(flag: *mut pthread_once_t, routine: Routine) = c11::call_once;

    // the locks of other libraries
    every fn syscall(number: core::ffi::c_long, a: usize, b: usize, c: usize, d: usize, e: usize, f: usize) -> core::ffi::c_long = crate::pthread::syscall::syscall;
}
