//! The table of exported symbols: locks and what else threads meet at.
//!
//! Calls that never wait and that leave the objects as glibc knows them are not here: `init` and
//! `destroy`, `pthread_mutex_trylock`, `sem_trywait`, `sem_getvalue`, `pthread_spin_trylock` and `_unlock`.

use super::hooks;
use crate::pthread::{cond, mutex};
use core::ffi::c_int;
use libc::{clockid_t, pthread_cond_t, pthread_mutex_t, timespec};

hooks! {
    // mutex
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
}
