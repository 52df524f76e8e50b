//! `pthread_exit`.

use crate::coroutine::Coroutine;
use crate::sched;
use crate::sys::{linux, real};
use core::ffi::c_void;
use core::sync::atomic::{AtomicU32, Ordering};

/// Ends the calling thread: glibc's own unwinding runs clean-up handlers and C++ destructors, on the
/// coroutine's own stack, and lands in its first frame.
///
/// # Safety
/// As `pthread_exit`.
pub unsafe fn exit(value: *mut c_void) -> ! {
    match Coroutine::current() {
        Some(coroutine) => {
            coroutine.result.set(value);
            coroutine.has_result.set(true);
        }
        None => watch_initial_thread(),
    }
    // SAFETY: the caller keeps the contract. There is no value with a `Drop` in this frame.
    unsafe { real::pthread_exit(value) }
}

/// When the initial thread leaves by `pthread_exit`, the process goes on until its last thread ends.
/// glibc counts kernel threads, and our carriers never end; so we must notice ourselves. A key's
/// destructor runs late enough: after the program's clean-up handlers and C++ destructors.
fn watch_initial_thread() {
    // SAFETY: no arguments.
    let process = unsafe { linux::syscall!(getpid) }.unwrap_or(0) as i32;
    if !sched::is_started() || linux::gettid() != process {
        return;
    }
    const FIRST_ROUND: usize = 1;
    static KEY: AtomicU32 = AtomicU32::new(u32::MAX);
    let mut key = 0;
    // SAFETY: a destructor of ours; the value is only a mark, and counts the rounds.
    unsafe {
        if libc::pthread_key_create(&mut key, Some(last_round)) == 0 {
            KEY.store(key, Ordering::Relaxed);
            libc::pthread_setspecific(key, FIRST_ROUND as *const c_void);
        }
    }

    unsafe extern "C" fn last_round(round: *mut c_void) {
        let round = round as usize;
        // Destructors run in up to four rounds; those of the program may need all of them.
        if round < 4 {
            // SAFETY: the key exists; a value stored by a destructor asks for another round.
            unsafe {
                libc::pthread_setspecific(KEY.load(Ordering::Relaxed), (round + 1) as *const c_void)
            };
        } else {
            sched::start::main_exited();
        }
    }
}
