//! The monitor (Go's sysmon): the one kernel thread that notices stuck carriers.
//!
//! While some scheduler runs, it looks every few milliseconds. A scheduler that has not switched since the
//! last look, although work waits for it, is taken from its carrier and given to a spare one, if
//!
//! * the carrier's kernel thread is blocked, or
//! * it has computed for some milliseconds without a switch.
//!
//! A carrier that merely waits for a CPU is left alone: another kernel thread would wait as well. When all
//! schedulers sleep the monitor sleeps too, without a deadline; the first that wakes calls it.

use super::{Scheduler, spare, start};
use crate::sys::errno::{Errno, Result};
use crate::sys::{glibc, linux, real, time};
use core::ffi::c_void;
use core::fmt::{self, Write};
use core::mem::MaybeUninit;
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};

/// Nanoseconds between looks: a stuck scheduler is taken at the second look.
const PERIOD: u64 = 5_000_000;
/// Nanoseconds of CPU time after which a coroutine that has not switched counts as computing.
const COMPUTING: u64 = 4_000_000;
/// Looks without a running scheduler after which the monitor sleeps.
const QUIET_LOOKS: u32 = 10;

const AWAKE: u32 = 0;
const ASLEEP: u32 = 1;

static STATE: AtomicU32 = AtomicU32::new(AWAKE);
static HANDOFFS: AtomicU64 = AtomicU64::new(0);

/// Schedulers taken from stuck carriers since the start.
pub fn handoffs() -> u64 {
    HANDOFFS.load(Ordering::Relaxed)
}

/// A scheduler's carrier has woken up. Called after `sleeping` is cleared and a sequentially consistent
/// operation on the count of idle schedulers, which pairs with the fence in `sleep_if_quiet`.
#[inline]
pub(super) fn somebody_runs() {
    if STATE.load(Ordering::Relaxed) == ASLEEP {
        wake();
    }
}

#[cold]
fn wake() {
    if STATE.swap(AWAKE, Ordering::AcqRel) == ASLEEP {
        linux::futex_wake(STATE.as_ptr(), 1);
    }
}

/// Starts the monitor's thread, with all signals blocked: it never runs the program's handlers.
pub(super) fn start() -> Result<()> {
    const STACK: usize = 64 << 10;
    STATE.store(AWAKE, Ordering::Relaxed);
    // SAFETY: all objects are initialised by the calls that need them.
    let code = unsafe {
        let mut all = MaybeUninit::<libc::sigset_t>::uninit();
        let mut before = MaybeUninit::<libc::sigset_t>::uninit();
        libc::sigfillset(all.as_mut_ptr());
        real::pthread_sigmask(libc::SIG_BLOCK, all.as_ptr(), before.as_mut_ptr());
        let mut attr = MaybeUninit::<libc::pthread_attr_t>::uninit();
        libc::pthread_attr_init(attr.as_mut_ptr());
        // glibc takes the thread's TLS out of the stack.
        let size = STACK + glibc::facts().static_tls_size;
        libc::pthread_attr_setstacksize(attr.as_mut_ptr(), size);
        libc::pthread_attr_setdetachstate(attr.as_mut_ptr(), libc::PTHREAD_CREATE_DETACHED);
        let mut thread = 0;
        let code = real::pthread_create(&mut thread, attr.as_ptr(), main, core::ptr::null_mut());
        libc::pthread_attr_destroy(attr.as_mut_ptr());
        real::pthread_sigmask(libc::SIG_SETMASK, before.as_ptr(), core::ptr::null_mut());
        code
    };
    if code == 0 { Ok(()) } else { Err(Errno(code)) }
}

extern "C-unwind" fn main(_: *mut c_void) -> *mut c_void {
    let mut quiet = 0;
    loop {
        let pause = time::to_timespec(PERIOD);
        // SAFETY: `pause` lives through the call.
        let _ = unsafe { linux::syscall!(nanosleep, &raw const pause, 0) };
        let mut running = false;
        for scheduler in start::schedulers() {
            if !scheduler.is_sleeping() {
                running = true;
                look_at(scheduler);
            }
        }
        quiet = if running { 0 } else { quiet + 1 };
        if quiet >= QUIET_LOOKS {
            sleep_if_quiet();
            quiet = 0;
        }
    }
}

fn sleep_if_quiet() {
    STATE.store(ASLEEP, Ordering::Relaxed);
    fence(Ordering::SeqCst);
    if start::schedulers().iter().any(|scheduler| !scheduler.is_sleeping()) {
        STATE.store(AWAKE, Ordering::Relaxed);
        return;
    }
    while STATE.load(Ordering::Acquire) == ASLEEP {
        let _ = linux::futex_wait(&STATE, ASLEEP, None);
    }
}

/// Takes the scheduler from its carrier if that is stuck while work waits.
fn look_at(scheduler: &'static Scheduler) {
    // SAFETY: carriers are never freed.
    let Some(carrier) = (unsafe { scheduler.carrier.load(Ordering::Acquire).as_ref() }) else {
        return;
    };
    let progress = scheduler.counters.switches.get() + scheduler.counters.polls.get();
    if scheduler.seen_progress.swap(progress, Ordering::Relaxed) != progress {
        scheduler.seen_cpu.store(cpu_time(carrier.tid()), Ordering::Relaxed);
        return;
    }
    if !scheduler.has_work() {
        return;
    }
    let computed = cpu_time(carrier.tid()).wrapping_sub(scheduler.seen_cpu.load(Ordering::Relaxed));
    if computed < COMPUTING && !is_blocked(carrier.stat()) {
        return;
    }
    // No kernel thread to be had: it stays as it is, and the next look tries again.
    if let Ok(true) = spare::hand_over(scheduler, || carrier.take()) {
        HANDOFFS.fetch_add(1, Ordering::Relaxed);
        scheduler.seen_progress.store(u64::MAX, Ordering::Relaxed);
    }
}

/// Nanoseconds of CPU time that a kernel thread has used.
fn cpu_time(tid: i32) -> u64 {
    /// CPUCLOCK_PERTHREAD_MASK | CPUCLOCK_SCHED of the kernel.
    const THREAD_CPU_TIME: i32 = 4 | 2;
    time::clock_now(!tid << 3 | THREAD_CPU_TIME)
}

/// Opens `/proc/self/task/TID/stat`.
pub(super) fn open_stat(tid: i32) -> Result<i32> {
    let mut path = Text { bytes: [0; 48], length: 0 };
    let _ = write!(path, "/proc/self/task/{tid}/stat\0");
    let flags = libc::O_RDONLY | libc::O_CLOEXEC;
    // SAFETY: a path that ends with a zero.
    unsafe { linux::syscall!(openat, libc::AT_FDCWD, path.bytes.as_ptr(), flags, 0) }
        .map(|fd| fd as i32)
}

/// Whether a kernel thread is blocked, by its state in `/proc`; yes if that cannot be read, because a
/// needless spare thread costs less than a stuck scheduler.
fn is_blocked(stat: i32) -> bool {
    let mut text = [0u8; 128];
    // SAFETY: a buffer as long as we say, and a descriptor of our own.
    let length = unsafe { linux::syscall!(pread64, stat, text.as_mut_ptr(), text.len(), 0) };
    // "tid (name) S …": the name may hold anything, the last parenthesis ends it.
    let text = &text[..length.unwrap_or(0)];
    let state = text.iter().rposition(|&byte| byte == b')').and_then(|end| text.get(end + 2));
    state != Some(&b'R')
}

/// A short text on the stack.
struct Text {
    bytes: [u8; 48],
    length: usize,
}

impl Write for Text {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let end = self.length + text.len();
        self.bytes.get_mut(self.length..end).ok_or(fmt::Error)?.copy_from_slice(text.as_bytes());
        self.length = end;
        Ok(())
    }
}
