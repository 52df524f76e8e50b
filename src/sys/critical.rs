//! Critical sections: stretches in which a signal handler of the program must not run on this thread.
//!
//! A handler may call `sem_post` or `write`, as POSIX allows. If it interrupted code of ours that holds a spin
//! lock, or that is about to park, it would wait for that lock for ever, or park twice. So each thread and
//! coroutine counts how deep it is in such code ([`enter`], [`leave`]); the wrapper around the program's
//! handlers (`posix::signal`) puts a signal that comes meanwhile aside ([`defer`]), with all others blocked,
//! and the last `leave` sends it again.
//!
//! The count lies in the thread's own TLS, so it costs two instructions and moves with a coroutine. A
//! coroutine that is switched away is inside; whoever runs next takes over what was put aside
//! ([`take_over`]).

use super::linux::{self, syscall};
use core::arch::{asm, global_asm};
use core::sync::atomic::{Ordering, compiler_fence};
use libc::siginfo_t;

/// What a thread has in its TLS. All zero in a new one.
#[repr(C)]
struct Area {
    depth: u32,
    /// A signal was put aside.
    pending: u32,
    /// The mask that was in force when it came.
    mask: u64,
    info: [u64; 16],
}

global_asm!(
    ".pushsection .tbss.preloom_critical,\"awT\",@nobits",
    ".p2align 3",
    ".hidden preloom_critical",
    ".globl preloom_critical",
    ".type preloom_critical,@object",
    ".size preloom_critical,{size}",
    "preloom_critical:",
    ".zero {size}",
    ".popsection",
    size = const size_of::<Area>(),
);

#[inline]
fn offset_from_tp() -> isize {
    let offset: isize;
    // SAFETY: reads a constant that the loader wrote into our GOT.
    unsafe {
        asm!("mov {0}, qword ptr [rip + preloom_critical@gottpoff]", out(reg) offset,
            options(nostack, readonly, preserves_flags));
    }
    offset
}

#[inline]
fn own() -> *mut Area {
    super::glibc::thread_pointer().wrapping_offset(offset_from_tp()).cast()
}

fn of(tcb: *mut u8) -> *mut Area {
    tcb.wrapping_offset(offset_from_tp()).cast()
}

/// Begins a critical section. They nest.
#[inline(always)]
pub fn enter() {
    // SAFETY: increments a word of this thread's TLS; the default clobbers keep memory accesses inside.
    unsafe {
        asm!(
            "mov {0}, qword ptr [rip + preloom_critical@gottpoff]",
            "inc dword ptr fs:[{0}]",
            out(reg) _,
            options(nostack)
        );
    }
}

/// Ends a critical section. A signal that came meanwhile is sent again by the last one.
#[inline(always)]
pub fn leave() {
    let both: u64;
    // SAFETY: as in `enter`; reads depth and "pending" together.
    unsafe {
        asm!(
            "mov {0}, qword ptr [rip + preloom_critical@gottpoff]",
            "dec dword ptr fs:[{0}]",
            "mov {0}, qword ptr fs:[{0}]",
            out(reg) both,
            options(nostack)
        );
    }
    if both != 0 && both as u32 == 0 {
        send_again();
    }
}

/// Whether the caller is inside; for the signal wrapper.
pub fn is_inside() -> bool {
    // SAFETY: a word of this thread's TLS.
    unsafe { core::ptr::read_volatile(&raw const (*own()).depth) != 0 }
}

/// Whether a signal was put aside and waits for the last [`leave`], which gives the thread its mask.
pub fn is_pending() -> bool {
    // SAFETY: a word of this thread's TLS.
    unsafe { core::ptr::read_volatile(&raw const (*own()).pending) != 0 }
}

/// Makes a new coroutine's count what a context that was switched away has: one.
///
/// # Safety
/// Nobody runs on `tcb`.
pub unsafe fn prepare(tcb: *mut u8) {
    // SAFETY: the area of a thread that does not run.
    unsafe {
        (*of(tcb)).depth = 1;
        (*of(tcb)).pending = 0;
    }
}

/// Puts a signal aside. Returns the mask that its handler's frame must restore: everything blocked, so that
/// no second one comes.
///
/// # Safety
/// Only by the signal wrapper, inside a critical section, with what the kernel gave it.
pub unsafe fn defer(info: *const siginfo_t, mask: u64) -> u64 {
    // SAFETY: this thread's area; a siginfo_t has 128 bytes.
    unsafe {
        let area = own();
        (*area).mask = mask;
        core::ptr::copy_nonoverlapping(info.cast::<u64>(), (&raw mut (*area).info).cast(), 16);
        compiler_fence(Ordering::SeqCst);
        core::ptr::write_volatile(&raw mut (*area).pending, 1);
    }
    // Faults are never put aside and must not be blocked: the kernel would end the process.
    const FAULTS: [i32; 6] =
        [libc::SIGSEGV, libc::SIGBUS, libc::SIGFPE, libc::SIGILL, libc::SIGTRAP, libc::SIGSYS];
    FAULTS.iter().fold(u64::MAX, |all, fault| all & !(1 << (fault - 1)))
}

#[cold]
#[inline(never)]
fn send_again() {
    // SAFETY: our own area, outside of any critical section.
    unsafe { resend(own()) }
}

/// After a switch: if a signal was put aside on the context that was left, it is sent to this kernel thread
/// again, and the thread gets the mask of then.
///
/// # Safety
/// `tcb` is the thread pointer of the context that was just left on this kernel thread.
#[inline]
pub unsafe fn take_over(tcb: *mut u8) {
    // SAFETY: the left context's area; nobody runs it yet.
    unsafe {
        if (*of(tcb)).pending != 0 {
            resend(of(tcb));
        }
    }
}

/// # Safety
/// An area with a signal, whose context runs here or was just left.
#[cold]
unsafe fn resend(area: *mut Area) {
    // SAFETY: plain system calls with live memory. The signal is blocked until the mask is restored.
    unsafe {
        let info = (*area).info;
        let mask = (*area).mask;
        core::ptr::write_volatile(&raw mut (*area).pending, 0);
        let number = info[0] as u32 as usize;
        let process = syscall!(getpid).unwrap_or(0);
        let thread = linux::gettid();
        // The queue of signals may be full, or the sender's identity not ours to repeat: then it is a
        // plain signal.
        if syscall!(rt_tgsigqueueinfo, process, thread, number, &raw const info).is_err() {
            let _ = syscall!(tgkill, process, thread, number);
        }
        let _ = syscall!(rt_sigprocmask, libc::SIG_SETMASK, &raw const mask, 0, size_of::<u64>());
    }
}
