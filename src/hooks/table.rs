//! The table of exported symbols.

use super::hooks;
use crate::coroutine::Start;
use crate::{posix, pthread};
use core::ffi::{c_char, c_int, c_uint, c_void};
use libc::{clockid_t, pthread_attr_t, pthread_t, size_t, timespec};

hooks! {
    // pthread: life of a thread
    every fn pthread_create(thread: *mut pthread_t, attr: *const pthread_attr_t, start: Start, argument: *mut c_void) -> c_int = pthread::create::create;
    every fn pthread_join(thread: pthread_t, result: *mut *mut c_void) -> c_int = pthread::join::join;
    every fn pthread_tryjoin_np(thread: pthread_t, result: *mut *mut c_void) -> c_int = pthread::join::tryjoin;
    every fn pthread_timedjoin_np(thread: pthread_t, result: *mut *mut c_void, time: *const timespec) -> c_int = pthread::join::timedjoin;
    every fn pthread_clockjoin_np(thread: pthread_t, result: *mut *mut c_void, clock: clockid_t, time: *const timespec) -> c_int = pthread::join::clockjoin;
    every fn pthread_detach(thread: pthread_t) -> c_int = pthread::join::detach;
    every fn pthread_exit(value: *mut c_void) -> ! = pthread::exit::exit;
    every fn pthread_getattr_np(thread: pthread_t, attr: *mut pthread_attr_t) -> c_int = pthread::attr::getattr;
    every fn pthread_setname_np(thread: pthread_t, name: *const c_char) -> c_int = pthread::name::setname;
    every fn pthread_getname_np(thread: pthread_t, name: *mut c_char, length: size_t) -> c_int = pthread::name::getname;
    every fn pthread_kill(thread: pthread_t, signal: c_int) -> c_int = pthread::signal::kill;

    // time
    green fn sleep(seconds: c_uint) -> c_uint = posix::time::sleep;
    green fn usleep(microseconds: c_uint) -> c_int = posix::time::usleep;
    green fn nanosleep(time: *const timespec, rest: *mut timespec) -> c_int = posix::time::nanosleep;
    green fn clock_nanosleep(clock: clockid_t, flags: c_int, time: *const timespec, rest: *mut timespec) -> c_int = posix::time::clock_nanosleep;
    green fn sched_yield() -> c_int = posix::time::sched_yield;
    green fn pthread_yield() -> c_int = posix::time::sched_yield;
    green fn thrd_yield() = posix::time::thrd_yield;
}
