//! `pthread_create`.

use crate::config;
use crate::coroutine::Start;
use crate::coroutine::stack::Request;
use crate::sched;
use crate::sys::real;
use crate::sys::report::report;
use core::ffi::{c_int, c_void};
use libc::{pthread_attr_t, pthread_t};

unsafe extern "C" {
    fn pthread_attr_getsigmask_np(attr: *const pthread_attr_t, mask: *mut libc::sigset_t) -> c_int;
    fn pthread_attr_getdetachstate(attr: *const pthread_attr_t, state: *mut c_int) -> c_int;
}

/// Makes a coroutine; a kernel thread when threads are native.
///
/// Returns 0 or EAGAIN (no memory) or EINVAL (bad attributes).
///
/// # Safety
/// As `pthread_create`.
pub unsafe fn create(
    thread: *mut pthread_t,
    attr: *const pthread_attr_t,
    start: Start,
    argument: *mut c_void,
) -> c_int {
    if !sched::is_started() {
        crate::init::ensure();
        if config::get().green && sched::start::start_runtime().is_err() {
            report!(
                "not enough descriptors, memory or kernel threads to start, so this program runs on \
                 native threads. Raise the limits (ulimit -n, -v, -u), or set PRELOOM_WORKERS=1"
            );
            config::fall_back_to_native();
        }
    }
    if !config::get().green {
        // SAFETY: the caller keeps the contract. `Start` and the real type differ in name only.
        return unsafe { real::pthread_create(thread, attr, start, argument) };
    }
    // SAFETY: a valid attribute object or null.
    let (request, detached, mask) = unsafe { request(attr) };
    let store = |coroutine: &crate::coroutine::Coroutine| {
        // SAFETY: the caller gives a writable place. It is written before the coroutine can run.
        unsafe { *thread = coroutine.pthread() }
    };
    match sched::spawn(&request, detached, mask, start, argument, store) {
        Ok(_) => 0,
        Err(error) => error.0,
    }
}

/// What the attributes ask for, whether the thread is detached, and its signal mask if they have one.
unsafe fn request(attr: *const pthread_attr_t) -> (Request, bool, Option<u64>) {
    const GUARD: usize = 4096;
    let mut request = Request { size: None, guard: GUARD, own_stack: None };
    if attr.is_null() {
        return (request, false, None);
    }
    let mut mask = None;
    let (mut address, mut size, mut guard, mut state) = (core::ptr::null_mut(), 0, 0, 0);
    // SAFETY: a valid attribute object; the getters write to our own variables.
    unsafe {
        libc::pthread_attr_getstack(attr, &mut address, &mut size);
        if (address as usize).wrapping_add(size) != 0 && !address.is_null() {
            request.own_stack = Some((address as usize, size));
        } else {
            libc::pthread_attr_getstacksize(attr, &mut size);
            request.size = (size != default_size()).then_some(size);
        }
        libc::pthread_attr_getguardsize(attr, &mut guard);
        pthread_attr_getdetachstate(attr, &mut state);
        let mut set = core::mem::MaybeUninit::<libc::sigset_t>::zeroed();
        // PTHREAD_ATTR_NO_SIGMASK_NP (−1): the attributes have none.
        if pthread_attr_getsigmask_np(attr, set.as_mut_ptr()) == 0 {
            mask = Some(*set.as_ptr().cast::<u64>());
        }
    }
    request.guard = guard;
    (request, state == libc::PTHREAD_CREATE_DETACHED, mask)
}

/// The size that attributes show when the program has not set one.
fn default_size() -> usize {
    static SIZE: core::sync::atomic::AtomicUsize = core::sync::atomic::AtomicUsize::new(0);
    let known = SIZE.load(core::sync::atomic::Ordering::Relaxed);
    if known != 0 {
        return known;
    }
    let mut attr = core::mem::MaybeUninit::<pthread_attr_t>::uninit();
    let mut size = 0;
    // SAFETY: initialised before it is read, destroyed after.
    unsafe {
        libc::pthread_attr_init(attr.as_mut_ptr());
        libc::pthread_attr_getstacksize(attr.as_ptr(), &mut size);
        libc::pthread_attr_destroy(attr.as_mut_ptr());
    }
    SIZE.store(size, core::sync::atomic::Ordering::Relaxed);
    size
}
