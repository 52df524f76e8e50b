//! The order of start-up, fork and exit.
//!
//! * **Constructor** ([`constructor`], from `.init_array`): options; whether this process can have green
//!   threads; the descriptor table; the fork handler. Nothing is started and no descriptor is opened, so
//!   a program that creates no thread pays nothing else. Hooks work before it has run: native threads
//!   pass through, and there is no coroutine yet.
//! * **Start** (`sched::start`): at the first `pthread_create`.
//! * **Fork**: the child has one thread, the caller of `fork`. It becomes native; all tables are as at the
//!   start, and its first `pthread_create` starts the runtime anew.
//! * **Exit** ([`destructor`], from `.fini_array`): counters are printed if asked for. Carriers go on
//!   until the kernel ends them, as threads do.

use crate::config;
use crate::sys::report::report;
use crate::sys::{current, glibc};
use core::ffi::{c_int, c_void};
use core::sync::atomic::{AtomicBool, Ordering};

#[cfg(not(test))]
#[used]
#[unsafe(link_section = ".init_array")]
static CONSTRUCTOR: extern "C" fn() = constructor;

#[cfg(not(test))]
#[used]
#[unsafe(link_section = ".fini_array")]
static DESTRUCTOR: extern "C" fn() = destructor;

/// The constructor has run, or runs.
static DONE: AtomicBool = AtomicBool::new(false);

/// Does the constructor's work if that has not run yet: another library's constructor makes a thread.
pub fn ensure() {
    constructor();
}

extern "C" fn constructor() {
    if DONE.swap(true, Ordering::AcqRel) {
        return;
    }
    config::load();
    if config::get().green
        && let Err(reason) = can_be_green()
    {
        report!(
            "{} is missing here, so this program runs on native threads (glibc {}). \
             PRELOOM_THREADS=native says so without this line",
            reason,
            glibc::version().to_str().unwrap_or("?")
        );
        config::fall_back_to_native();
    }
    if !config::get().green {
        return;
    }
    crate::reactor::table::initialise();
    unsafe extern "C" {
        fn __register_atfork(
            prepare: Option<extern "C" fn()>,
            parent: Option<extern "C" fn()>,
            child: Option<extern "C" fn()>,
            dso: *mut c_void,
        ) -> c_int;
    }
    // SAFETY: the handler is a function of ours, and the library is never unloaded.
    unsafe { __register_atfork(None, None, Some(after_fork_in_child), core::ptr::null_mut()) };
}

/// What green threads need, in words.
fn can_be_green() -> Result<(), &'static str> {
    if !glibc::has_fsgsbase() {
        return Err("user-space access to the FS base (FSGSBASE, Linux 5.9)");
    }
    glibc::load().map_err(|symbol| symbol.to_str().unwrap_or("a private symbol of glibc"))
}

/// The runtime is about to start its carriers.
pub fn runtime_starts() {
    crate::posix::signal::install_wrappers();
}

static IN_FORKED_CHILD: AtomicBool = AtomicBool::new(false);

/// `_Fork`: as `fork`, without the program's handlers; ours must run all the same.
///
/// # Safety
/// As the C function.
pub unsafe fn fork_without_handlers() -> c_int {
    // SAFETY: the caller keeps the contract.
    let process = unsafe { real::_Fork() };
    if process == 0 && config::get().green {
        after_fork_in_child();
    }
    process
}

#[allow(non_snake_case, reason = "glibc's name")]
mod real {
    use super::c_int;
    crate::sys::real::real_functions! {
        /// The real `_Fork`.
        fn _Fork() -> c_int;
    }
}

extern "C" fn after_fork_in_child() {
    IN_FORKED_CHILD.store(true, Ordering::Relaxed);
    // SAFETY: the child has one thread. It keeps its stack and TLS, whatever it was.
    unsafe {
        *current::slot_of(glibc::thread_pointer()) = core::ptr::null_mut();
        crate::sched::start::reset_after_fork();
        crate::futex::reset_after_fork();
        crate::reactor::table::reset_after_fork();
        crate::coroutine::stack::reset_after_fork();
        crate::sys::tls_image::reset_after_fork();
        crate::posix::signal::reset_after_fork();
    }
}

#[cfg_attr(test, allow(dead_code))]
extern "C" fn destructor() {
    // A forked child that made no thread has nothing to tell; its parent speaks for itself.
    let silent = IN_FORKED_CHILD.load(Ordering::Relaxed) && !crate::sched::is_started();
    if config::get().stats && !silent {
        crate::observe::print();
    }
}
