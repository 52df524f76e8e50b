//! x86-64, System V ABI.
//!
//! A saved context is one stack pointer. What lies on the stack, from that pointer up:
//!
//! ```text
//!  rsp → MXCSR (4 bytes), x87 control word (2), padding (2)
//!        r15 r14 r13 r12 rbx rbp
//!        return address
//! ```
//!
//! Everything else is caller-saved: the compiler has spilled what it needs around the call. MXCSR and
//! the x87 control word hold rounding modes and masks, which the ABI says a callee preserves; loading
//! them is slow and mostly needless, so it is done only if they differ. The FS base is the thread
//! pointer, so writing it switches `errno`, `thread_local` and all else in TLS.
//!
//! The first frame of a coroutine is [`entry`]. Its return address is marked undefined in the unwind
//! information, which is how debuggers and unwinders know that the stack ends there.

use core::arch::naked_asm;

/// Saves the running context to `*save` and continues the one that `load` points at, with thread
/// pointer `tcb`. The other side's call of `switch` (or its entry) gets `message`; this call returns the
/// message of whoever switches back.
///
/// # Safety
/// `load` was made by [`prepare`] or saved by `switch` and is used once; `tcb` is that context's
/// thread pointer; `save` stays valid until the switch back. FSGSBASE is enabled.
#[unsafe(naked)]
pub unsafe extern "C-unwind" fn switch(
    save: *mut usize,
    load: usize,
    tcb: usize,
    message: usize,
) -> usize {
    naked_asm!(
        ".cfi_startproc",
        "push rbp",
        ".cfi_adjust_cfa_offset 8",
        ".cfi_rel_offset rbp, 0",
        "push rbx",
        ".cfi_adjust_cfa_offset 8",
        ".cfi_rel_offset rbx, 0",
        "push r12",
        ".cfi_adjust_cfa_offset 8",
        ".cfi_rel_offset r12, 0",
        "push r13",
        ".cfi_adjust_cfa_offset 8",
        ".cfi_rel_offset r13, 0",
        "push r14",
        ".cfi_adjust_cfa_offset 8",
        ".cfi_rel_offset r14, 0",
        "push r15",
        ".cfi_adjust_cfa_offset 8",
        ".cfi_rel_offset r15, 0",
        "sub rsp, 8",
        ".cfi_adjust_cfa_offset 8",
        "mov dword ptr [rsp + 4], 0", // the padding must compare equal
        "stmxcsr [rsp]",
        "fnstcw [rsp + 4]",
        "mov r8, [rsp]", // our MXCSR and control word
        "mov [rdi], rsp",
        "mov rsp, rsi",  // from here on the other stack,
        "wrfsbase rdx",  // and its TLS
        "cmp r8, [rsp]", // same modes and masks?
        "je 2f",
        "ldmxcsr [rsp]",
        "fldcw [rsp + 4]",
        "2:",
        "add rsp, 8",
        ".cfi_adjust_cfa_offset -8",
        "pop r15",
        ".cfi_adjust_cfa_offset -8",
        ".cfi_same_value r15",
        "pop r14",
        ".cfi_adjust_cfa_offset -8",
        ".cfi_same_value r14",
        "pop r13",
        ".cfi_adjust_cfa_offset -8",
        ".cfi_same_value r13",
        "pop r12",
        ".cfi_adjust_cfa_offset -8",
        ".cfi_same_value r12",
        "pop rbx",
        ".cfi_adjust_cfa_offset -8",
        ".cfi_same_value rbx",
        "pop rbp",
        ".cfi_adjust_cfa_offset -8",
        ".cfi_same_value rbp",
        "mov rax, rcx", // the message
        "ret",
        ".cfi_endproc",
    )
}

/// Lays the first frame of a coroutine on a stack that ends at `top`; returns the context.
///
/// On its first run the coroutine calls `coroutine_begin(message, coroutine)`, then
/// `coroutine_run(coroutine)` and, when that returns or the program's `pthread_exit` unwinds to it,
/// `coroutine_end(coroutine)`, which does not return.
///
/// # Safety
/// At least 512 bytes below `top` are writable.
pub unsafe fn prepare(top: *mut u8, coroutine: *mut u8) -> usize {
    let top = (top as usize & !15) as *mut usize;
    let (mut mxcsr, mut control) = (0u32, 0u16);
    // SAFETY: stores of the current modes, which a new thread inherits.
    unsafe {
        core::arch::asm!("stmxcsr [{}]", in(reg) &raw mut mxcsr, options(nostack, preserves_flags));
        core::arch::asm!("fnstcw [{}]", in(reg) &raw mut control, options(nostack, preserves_flags));
    }
    // Exception flags are not inherited state; the modes and masks are.
    let modes = (mxcsr & !0x3f) as usize | (control as usize) << 32;
    // SAFETY: within the 512 bytes. The frame has the layout that `switch` pops; `entry` starts with
    // the stack pointer 16-aligned, as it is not called.
    unsafe {
        let frame = top.sub(2 + 7 + 1);
        frame.write(modes);
        frame.add(1).write(0); // r15
        frame.add(2).write(0); // r14
        frame.add(3).write(0); // r13
        frame.add(4).write(coroutine as usize); // r12
        frame.add(5).write(0); // rbx
        frame.add(6).write(0); // rbp: the end of the chain of frame pointers
        frame.add(7).write(entry as *const () as usize);
        frame.add(8).write(0);
        frame as usize
    }
}

/// The first frame. `pthread_exit` and cancellation unwind to the jump buffer that it registers, as
/// they do in glibc's own thread start.
#[unsafe(naked)]
unsafe extern "C-unwind" fn entry() {
    naked_asm!(
        ".cfi_startproc",
        ".cfi_undefined rip",
        "and rsp, -16",
        "sub rsp, 128", // struct __pthread_unwind_buf_t: 104 bytes
        ".cfi_def_cfa rsp, 136",
        "mov rdi, rax",
        "mov rsi, r12",
        "call {begin}",
        "mov rdi, rsp",
        "xor esi, esi",
        "call {setjmp}",
        "test eax, eax",
        "jnz 2f",
        "mov rdi, rsp",
        "call {register}",
        "mov rdi, r12",
        "call {run}",
        "2:",
        "mov rdi, r12",
        "call {end}",
        "ud2",
        ".cfi_endproc",
        begin = sym crate::coroutine::entry::coroutine_begin,
        run = sym crate::coroutine::entry::coroutine_run,
        end = sym crate::coroutine::entry::coroutine_end,
        setjmp = sym __sigsetjmp,
        register = sym __pthread_register_cancel,
    )
}

unsafe extern "C" {
    fn __sigsetjmp(buffer: *mut u8, save_mask: i32) -> i32;
    fn __pthread_register_cancel(buffer: *mut u8);
}

/// Calls `function(argument)`. If it is left by an exception or a forced unwind, calls
/// `cleanup(cleanup_argument)` and lets the unwinding go on.
///
/// The unwind information is written by hand because a build with `panic = "abort"` makes none: one
/// call site with a landing pad, and the C personality routine, as `__attribute__((cleanup))` in C.
///
/// # Safety
/// As for the two functions.
#[unsafe(naked)]
pub unsafe extern "C-unwind" fn call_with_cleanup(
    function: unsafe extern "C-unwind" fn(*mut core::ffi::c_void),
    argument: *mut core::ffi::c_void,
    cleanup: unsafe extern "C" fn(*mut core::ffi::c_void),
    cleanup_argument: *mut core::ffi::c_void,
) {
    naked_asm!(
        ".cfi_startproc",
        ".cfi_personality 0x9b, DW.ref.preloom_personality",
        ".cfi_lsda 0x1b, .Lpreloom_cleanup_lsda",
        "20:",
        "push rbx",
        ".cfi_adjust_cfa_offset 8",
        ".cfi_rel_offset rbx, 0",
        "push r12",
        ".cfi_adjust_cfa_offset 8",
        ".cfi_rel_offset r12, 0",
        "sub rsp, 8",
        ".cfi_adjust_cfa_offset 8",
        "mov rbx, rdx",
        "mov r12, rcx",
        "mov rax, rdi",
        "mov rdi, rsi",
        "21:",
        "call rax",
        "22:",
        "add rsp, 8",
        ".cfi_remember_state",
        ".cfi_adjust_cfa_offset -8",
        "pop r12",
        ".cfi_adjust_cfa_offset -8",
        "pop rbx",
        ".cfi_adjust_cfa_offset -8",
        "ret",
        ".cfi_restore_state",
        "23:", // the landing pad: rax is the exception
        "mov [rsp], rax",
        "mov rdi, r12",
        "call rbx",
        "mov rdi, [rsp]",
        "24:",
        "call {resume}",
        "25:",
        "ud2",
        ".cfi_endproc",
        ".pushsection .gcc_except_table,\"a\",@progbits",
        ".p2align 2",
        ".Lpreloom_cleanup_lsda:",
        ".byte 0xff", // landing pads are relative to the function's start
        ".byte 0xff", // no type table
        ".byte 0x01", // call sites as ULEB128
        ".uleb128 32f-31f",
        "31:",
        ".uleb128 21b-20b", // the call …
        ".uleb128 22b-21b",
        ".uleb128 23b-20b", // … lands at the pad,
        ".uleb128 0",       // for clean-up only
        ".uleb128 24b-20b", // the resumption lands nowhere
        ".uleb128 25b-24b",
        ".uleb128 0",
        ".uleb128 0",
        "32:",
        ".popsection",
        ".pushsection .data.rel.preloom_personality,\"aw\",@progbits",
        ".p2align 3",
        "DW.ref.preloom_personality:",
        ".quad __gcc_personality_v0",
        ".popsection",
        resume = sym _Unwind_Resume,
    )
}

#[link(name = "gcc_s")]
unsafe extern "C-unwind" {
    fn _Unwind_Resume(exception: *mut core::ffi::c_void) -> !;
}

/// Copies `size` bytes; false if a page was not there. The handler of SIGSEGV sends a fault in here to the
/// end, as the kernel's exception table does for its own copies.
///
/// # Safety
/// One side is valid for `size` bytes; the other is the program's.
#[unsafe(naked)]
pub unsafe extern "C" fn copy_user(
    to: *mut core::ffi::c_void,
    from: *const core::ffi::c_void,
    size: usize,
) -> bool {
    naked_asm!(
        ".cfi_startproc",
        "mov rcx, rdx",
        ".globl preloom_copy_start",
        ".hidden preloom_copy_start",
        "preloom_copy_start:",
        "rep movsb",
        ".globl preloom_copy_end",
        ".hidden preloom_copy_end",
        "preloom_copy_end:",
        "mov eax, 1",
        "ret",
        ".globl preloom_copy_fault",
        ".hidden preloom_copy_fault",
        "preloom_copy_fault:",
        "xor eax, eax",
        "ret",
        ".cfi_endproc",
    )
}

/// If the fault happened in [`copy_user`], lets it go on there as failed.
///
/// # Safety
/// `context` is what the kernel gave to the handler of SIGSEGV.
pub unsafe fn fix_copy_fault(context: *mut libc::ucontext_t) -> bool {
    let (start, end, fault): (usize, usize, usize);
    // SAFETY: loads three addresses.
    unsafe {
        core::arch::asm!(
            "lea {0}, [rip + preloom_copy_start]",
            "lea {1}, [rip + preloom_copy_end]",
            "lea {2}, [rip + preloom_copy_fault]",
            out(reg) start, out(reg) end, out(reg) fault,
            options(nostack, nomem, preserves_flags)
        );
        let ip = &mut (*context).uc_mcontext.gregs[libc::REG_RIP as usize];
        if (start..end).contains(&(*ip as usize)) {
            *ip = fault as i64;
            return true;
        }
    }
    false
}

/// `dlopen`, without RTLD_DEEPBIND (8): a library opened with it would find libc's symbols before ours.
/// Afterwards [`crate::sys::tls_image::libraries_changed`] looks at what was loaded.
///
/// The loader searches the RUNPATH of the library that the call came from, which it tells from its return
/// address. So the real function is given a return address in that library: that of a `ret` instruction,
/// which returns to us.
///
/// # Safety
/// As the C function.
#[cfg(not(test))]
#[unsafe(naked)]
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn dlopen(path: *const i8, flags: i32) -> *mut core::ffi::c_void {
    naked_asm!(
        ".cfi_startproc",
        "and esi, -9",
        "push rdi",
        ".cfi_adjust_cfa_offset 8",
        "push rsi",
        ".cfi_adjust_cfa_offset 8",
        "sub rsp, 8",
        ".cfi_adjust_cfa_offset 8",
        "mov rdi, [rsp + 24]", // our return address
        "call {route}",
        "add rsp, 8",
        ".cfi_adjust_cfa_offset -8",
        "pop rsi",
        ".cfi_adjust_cfa_offset -8",
        "pop rdi",
        ".cfi_adjust_cfa_offset -8",
        "test rdx, rdx",
        "jz 2f",
        "lea r11, [rip + 3f]",
        "push r11",
        ".cfi_adjust_cfa_offset 8",
        "push rdx",
        ".cfi_adjust_cfa_offset 8",
        "2:",
        "jmp rax",
        ".cfi_adjust_cfa_offset -16",
        "3:",
        "push rax",
        ".cfi_adjust_cfa_offset 8",
        "call {after}",
        "pop rax",
        ".cfi_adjust_cfa_offset -8",
        "ret",
        ".cfi_endproc",
        route = sym dlopen_route,
        after = sym crate::sys::tls_image::libraries_changed,
    )
}

/// The real `dlopen`, and the address of a `ret` near `caller` (0: none was found, do without).
#[cfg(not(test))]
#[repr(C)]
struct Route {
    real: *const core::ffi::c_void,
    ret: usize,
}

#[cfg(not(test))]
extern "C" fn dlopen_route(caller: usize) -> Route {
    static REAL: crate::sys::real::Symbol = crate::sys::real::symbol!(dlopen);
    const PAGE: usize = 4096;
    const RET: u8 = 0xc3;
    let page = caller & !(PAGE - 1);
    // SAFETY: the page that the caller's code lies in; jumped at, any byte of that value is a `ret`.
    let code = unsafe { core::slice::from_raw_parts(page as *const u8, PAGE) };
    let ret = code.iter().position(|&byte| byte == RET).map_or(0, |offset| page + offset);
    Route { real: REAL.address(), ret }
}

/// `vfork`. Once coroutines exist it is `fork`: a child that shares our memory would close descriptors in
/// our table, which are the parent's. Before, it is the real one. Either is jumped to, because `vfork`
/// returns twice to its caller's frame.
///
/// # Safety
/// As the C function.
#[cfg(not(test))]
#[unsafe(naked)]
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn vfork() -> i32 {
    naked_asm!(
        ".cfi_startproc",
        "sub rsp, 8",
        ".cfi_adjust_cfa_offset 8",
        "call {route}",
        "add rsp, 8",
        ".cfi_adjust_cfa_offset -8",
        "jmp rax",
        ".cfi_endproc",
        route = sym vfork_route,
    )
}

#[cfg(not(test))]
extern "C" fn vfork_route() -> *const core::ffi::c_void {
    static VFORK: crate::sys::real::Symbol = crate::sys::real::symbol!(vfork);
    static FORK: crate::sys::real::Symbol = crate::sys::real::symbol!(fork);
    if crate::sched::is_started() { FORK.address() } else { VFORK.address() }
}

/// Defines the jumps of `setjmp.h`: the mask that they restore is noted, then the real one is jumped to,
/// with its arguments and without a frame of ours.
#[cfg(not(test))]
macro_rules! jumps {
    ($($name:ident, $route:ident;)*) => {$(
        #[doc = concat!("`", stringify!($name), "`.")]
        ///
        /// # Safety
        /// As the C function.
        #[unsafe(naked)]
        #[unsafe(no_mangle)]
        pub unsafe extern "C-unwind" fn $name(buffer: *mut u8, value: i32) -> ! {
            naked_asm!(
                ".cfi_startproc",
                "push rdi",
                ".cfi_adjust_cfa_offset 8",
                "push rsi",
                ".cfi_adjust_cfa_offset 8",
                "sub rsp, 8",
                ".cfi_adjust_cfa_offset 8",
                "call {note}",
                "call {route}",
                "add rsp, 8",
                ".cfi_adjust_cfa_offset -8",
                "pop rsi",
                ".cfi_adjust_cfa_offset -8",
                "pop rdi",
                ".cfi_adjust_cfa_offset -8",
                "jmp rax",
                ".cfi_endproc",
                note = sym crate::pthread::sigmask::about_to_jump,
                route = sym $route,
            )
        }

        extern "C" fn $route() -> *const core::ffi::c_void {
            static REAL: crate::sys::real::Symbol = crate::sys::real::symbol!($name);
            REAL.address()
        }
    )*};
}

#[cfg(not(test))]
jumps! {
    longjmp, real_longjmp;
    _longjmp, real_underscore_longjmp;
    siglongjmp, real_siglongjmp;
    __longjmp_chk, real_longjmp_chk;
}

// The precompiled `core` names Rust's personality routine, which `std` would define. No frame of ours
// has anything to clean up: "continue unwinding" (8). Hidden, so that it never takes the place of the
// one in a program written in Rust.
#[cfg(not(test))]
core::arch::global_asm!(
    ".pushsection .text.rust_eh_personality,\"ax\",@progbits",
    ".globl rust_eh_personality",
    ".hidden rust_eh_personality",
    ".type rust_eh_personality,@function",
    "rust_eh_personality:",
    "mov eax, 8",
    "ret",
    ".size rust_eh_personality, . - rust_eh_personality",
    ".popsection",
);
