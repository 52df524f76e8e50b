//! A coroutine's first and last steps, called from the first frame (`arch`), on its own stack.

use super::Coroutine;
use crate::sched::{self, Carrier, Post};
use crate::sys::{critical, errno, glibc};

/// First step: completes the switch that led here.
///
/// # Safety
/// Only by the first frame, with the carrier that the switch handed over.
pub unsafe extern "C-unwind" fn coroutine_begin(
    carrier: *mut Carrier,
    coroutine: *const Coroutine,
) {
    // SAFETY: every switch hands over the carrier on which it happens.
    unsafe {
        sched::finish_switch(carrier);
        sched::take_over_mask(carrier, &*coroutine);
        Carrier::exit(carrier);
    }
    critical::leave();
    glibc::facts().ctype_init();
}

/// Runs the start routine.
///
/// # Safety
/// Only by the first frame, with the coroutine that runs.
pub unsafe extern "C-unwind" fn coroutine_run(coroutine: *const Coroutine) {
    // SAFETY: the first frame passes the coroutine that runs.
    let coroutine = unsafe { &*coroutine };
    let (Some(start), argument) = coroutine.start.get() else {
        return;
    };
    // SAFETY: the program's own start routine with the argument that it gave.
    let result = unsafe { start(argument) };
    coroutine.result.set(result);
    coroutine.has_result.set(true);
}

/// Last step, after the start routine returned or was unwound: what glibc runs at the end of a
/// thread, in its order, then leaves the stack for good.
///
/// # Safety
/// As [`coroutine_run`].
pub unsafe extern "C-unwind" fn coroutine_end(coroutine: *const Coroutine) -> ! {
    // SAFETY: as in `coroutine_run`.
    let coroutine = unsafe { &*coroutine };
    if !coroutine.has_result.get() {
        // Unwound without `pthread_exit`: cancelled (PTHREAD_CANCELED is −1).
        coroutine.result.set(usize::MAX as *mut _);
    }
    let facts = glibc::facts();
    facts.call_tls_dtors();
    facts.call_key_destructors();
    facts.release_robust_mutexes(|word| {
        crate::futex::wake(word, 1);
    });
    reset_libc_state();
    if Coroutine::current().is_none() {
        end_of_forked_child();
    }
    sched::coroutine_ended();
    sched::leave(coroutine, Post::Exit);
    unreachable!()
}

/// The coroutine called `fork`, and this is the child, whose initial thread it became. As in glibc, the process
/// goes on until its last thread ends.
fn end_of_forked_child() -> ! {
    sched::start::main_exited();
    loop {
        // SAFETY: waits for a signal.
        let _ = unsafe { crate::sys::linux::syscall!(pause) };
    }
}

/// What libc keeps per thread and a later coroutine on this TLS block must not see.
fn reset_libc_state() {
    unsafe extern "C" {
        fn uselocale(locale: *mut u8) -> *mut u8;
        fn dlerror() -> *mut libc::c_char;
    }
    const GLOBAL_LOCALE: *mut u8 = usize::MAX as *mut u8;
    // SAFETY: asks for, and perhaps resets, the caller's own locale and last loader error.
    unsafe {
        if uselocale(core::ptr::null_mut()) != GLOBAL_LOCALE {
            uselocale(GLOBAL_LOCALE);
        }
        dlerror();
    }
    errno::Errno(0).set();
}
