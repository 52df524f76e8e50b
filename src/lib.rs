//! preloom: unmodified, blocking, multi-threaded programs on green threads.
//!
//! The map, from the lowest layer up; each layer calls only those before it.
//!
//! * [`sys`]: raw system calls, the real libc symbols, facts about glibc, clocks.
//! * [`arch`]: the context switch.
//! * [`coroutine`]: the object, its stack and TLS, its first and last steps.
//! * [`sched`], [`reactor`], [`futex`]: who runs, who waits for a descriptor, who waits for a lock.
//! * [`pthread`], [`posix`]: what a thread is; what a call on a descriptor means.
//! * [`hooks`], [`api`]: the exported symbols; what `preloom.h` declares.
//!
//! [`config`] holds the options, [`init`] the order of start-up, [`observe`] the counters.
//!
//! Nothing in the hook path may end in a symbol that we export, so the library has no `std`: what `std`
//! does for locks, threads and output goes through the very calls that are hooked.
#![cfg_attr(not(test), no_std)]

pub mod api;
pub mod arch;
pub mod config;
pub mod coroutine;
pub mod futex;
pub mod hooks;
pub mod init;
pub mod observe;
pub mod posix;
pub mod pthread;
pub mod reactor;
pub mod sched;
pub mod sys;

/// A panic inside the library is a bug in it; it never leaves the library.
#[cfg(not(test))]
#[panic_handler]
fn panic(info: &core::panic::PanicInfo<'_>) -> ! {
    sys::report::line(format_args!("bug in the library, please report it: {info}"));
    // SAFETY: ends the process with a core dump, as an assertion in libc would.
    unsafe { libc::abort() }
}
