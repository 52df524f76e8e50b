//! "The current coroutine": one machine word of initial-exec thread-local storage.
//!
//! It is null in native threads. In a coroutine it is set once, because the word lives in the
//! coroutine's own TLS block and moves with it. Stable Rust has no `#[thread_local]`, so the symbol is
//! made by the assembler; initial-exec access needs no call and is safe in signal handlers.

use core::arch::{asm, global_asm};

#[cfg(target_arch = "x86_64")]
global_asm!(
    ".pushsection .tbss.preloom_current,\"awT\",@nobits",
    ".p2align 3",
    ".hidden preloom_current",
    ".globl preloom_current",
    ".type preloom_current,@object",
    ".size preloom_current,8",
    "preloom_current:",
    ".zero 8",
    ".popsection",
);

/// The word of the running kernel thread or coroutine; null in a native thread.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
pub fn get() -> *mut u8 {
    let word: *mut u8;
    // SAFETY: reads a word of this thread's static TLS. Not `pure`: the value differs between
    // threads, but a coroutine keeps its own for life, so the compiler may not see it change.
    unsafe {
        asm!(
            "mov {0}, qword ptr [rip + preloom_current@gottpoff]",
            "mov {0}, qword ptr fs:[{0}]",
            out(reg) word,
            options(nostack, readonly, preserves_flags)
        );
    }
    word
}

/// Distance in bytes from the thread pointer to the word (negative on x86-64).
#[cfg(target_arch = "x86_64")]
#[inline]
pub fn offset_from_tp() -> isize {
    let offset: isize;
    // SAFETY: reads a constant that the loader wrote into our GOT.
    unsafe {
        asm!(
            "mov {0}, qword ptr [rip + preloom_current@gottpoff]",
            out(reg) offset,
            options(nostack, readonly, preserves_flags)
        );
    }
    offset
}

/// The word in the TLS block of the thread whose control block is `tcb`.
///
/// # Safety
/// `tcb` is the thread pointer of a thread whose static TLS is mapped.
#[inline]
pub unsafe fn slot_of(tcb: *mut u8) -> *mut *mut u8 {
    // SAFETY: the static TLS of every thread holds the word at the same offset.
    unsafe { tcb.offset(offset_from_tp()).cast() }
}
