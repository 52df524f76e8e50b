//! The program's signal handlers, and SIGSEGV.
//!
//! From the start of the runtime on, a wrapper stands before each handler that the program has or installs:
//!
//! * A signal that comes while the thread is inside a critical section of ours is put aside until its end
//!   ([`critical`]): the handler may call `sem_post` or `write`, which need what the section holds.
//! * A SIGSEGV in [`crate::arch::copy_user`] means that the program gave a bad pointer: the call answers EFAULT.
//! * A SIGSEGV in the guard of the running coroutine's stack is reported as a stack overflow of that coroutine.
//! * Then, and for everything else, the program's own disposition applies.
//!
//! What the program set is kept here; `sigaction` and `signal` show and change that. Handlers of the other
//! signals that stand for faults (SIGBUS, SIGFPE, …) are not wrapped: a fault cannot be put aside.
//!
//! The handler of SIGSEGV runs on an alternate stack of the carrier, because an overflown stack has no room; a
//! coroutine's own `sigaltstack` is noted and shown, and a handler of the program's that asks for it gets the
//! carrier's.

use crate::coroutine::Coroutine;
use crate::coroutine::stack::guard_hit;
use crate::sys::critical;
use crate::sys::errno::Errno;
use crate::sys::linux::{self, syscall};
use crate::sys::real::{self, real_functions};
use crate::sys::report::report;
use crate::sys::spin::SpinLock;
use core::ffi::{CStr, c_int, c_void};
use core::mem::MaybeUninit;
use core::sync::atomic::{AtomicBool, Ordering};
use libc::{sigaction as Action, sighandler_t, siginfo_t, stack_t, ucontext_t};

mod real_signal {
    use super::*;
    real_functions! {
        /// The real `signal`.
        fn signal(number: c_int, handler: sighandler_t) -> sighandler_t;

    }
}

/// Signals, from 1; 0 is not used.
const SIGNALS: usize = 65;

/// What the program wants for each signal that we stand before.
static PROGRAM: SpinLock<[Action; SIGNALS]> = SpinLock::new(
    // SAFETY: an all-zero action is SIG_DFL.
    unsafe { MaybeUninit::zeroed().assume_init() },
);
static INSTALLED: AtomicBool = AtomicBool::new(false);

/// Bytes of a carrier's alternate stack. The program's handler may run there.
const ALTERNATE: usize = 64 << 10;
/// Bytes below it that fault.
const GUARD: usize = 4096;

/// Whether we keep the program's disposition of the signal.
fn is_ours(number: c_int) -> bool {
    const FAULTS: [c_int; 5] =
        [libc::SIGBUS, libc::SIGFPE, libc::SIGILL, libc::SIGTRAP, libc::SIGSYS];
    (1..SIGNALS as c_int).contains(&number)
        && !FAULTS.contains(&number)
        && INSTALLED.load(Ordering::Acquire)
}

/// Installs the wrappers. Once, before the first carrier runs.
pub fn install_wrappers() {
    if INSTALLED.load(Ordering::Acquire) {
        return; // a forked child has them from its parent
    }
    // glibc answers EINVAL for the signals that it keeps for itself; the caller's errno stays.
    let errno = crate::sys::errno::get();
    INSTALLED.store(true, Ordering::Release);
    for number in 1..SIGNALS as c_int {
        let mut program = MaybeUninit::<Action>::zeroed();
        // SAFETY: `program` is writable. glibc refuses the two signals that it keeps for itself.
        let known =
            unsafe { real::sigaction(number, core::ptr::null(), program.as_mut_ptr()) } == 0;
        if known && is_ours(number) {
            // SAFETY: filled by the call above.
            let program = unsafe { program.assume_init() };
            PROGRAM.lock()[number as usize] = program;
            install(number, &program);
        }
    }
    Errno(errno).set();
}

/// Gives the kernel what stands for the program's action.
fn install(number: c_int, program: &Action) -> c_int {
    let mut ours = *program;
    if number == libc::SIGSEGV {
        ours.sa_sigaction = on_fault as *const () as usize;
        ours.sa_flags |= libc::SA_ONSTACK;
    } else if !matches!(program.sa_sigaction, libc::SIG_DFL | libc::SIG_IGN) {
        ours.sa_sigaction = on_signal as *const () as usize;
    } else {
        // SAFETY: the program's own action.
        return unsafe { real::sigaction(number, program, core::ptr::null_mut()) };
    }
    ours.sa_flags = (ours.sa_flags & !libc::SA_RESETHAND) | libc::SA_SIGINFO;
    // SAFETY: a valid action with a handler of ours.
    unsafe { real::sigaction(number, &ours, core::ptr::null_mut()) }
}

unsafe extern "C-unwind" fn on_signal(
    number: c_int,
    info: *mut siginfo_t,
    context: *mut ucontext_t,
) {
    // SAFETY: the kernel passes a valid record and context; its mask is the set's first word.
    unsafe {
        if critical::is_inside() {
            let mask = (&raw mut (*context).uc_sigmask).cast::<u64>();
            *mask = critical::defer(info, *mask);
            return;
        }
        let program = PROGRAM.lock()[number as usize];
        match program.sa_sigaction {
            // It was changed after the signal had been put aside.
            libc::SIG_IGN => {}
            libc::SIG_DFL => {
                real::sigaction(number, &program, core::ptr::null_mut());
                let process = syscall!(getpid).unwrap_or(0);
                let _ = syscall!(tgkill, process, linux::gettid(), number);
            }
            _ => call(&program, number, info, context),
        }
    }
}

/// Calls the program's handler.
unsafe fn call(program: &Action, number: c_int, info: *mut siginfo_t, context: *mut ucontext_t) {
    let handler = program.sa_sigaction;
    // SAFETY: the program installed this function with these flags.
    unsafe {
        if program.sa_flags & libc::SA_RESETHAND != 0 {
            let mut default: Action = core::mem::zeroed();
            default.sa_sigaction = libc::SIG_DFL;
            sigaction(number, &default, core::ptr::null_mut());
        }
        if program.sa_flags & libc::SA_SIGINFO != 0 {
            core::mem::transmute::<
                usize,
                unsafe extern "C-unwind" fn(c_int, *mut siginfo_t, *mut ucontext_t),
            >(handler)(number, info, context);
        } else {
            core::mem::transmute::<usize, unsafe extern "C-unwind" fn(c_int)>(handler)(number);
        }
    }
}

/// In a forked child: dispositions are inherited, the lock may have been held by another thread.
///
/// # Safety
/// Only in the child, which has one thread.
pub unsafe fn reset_after_fork() {
    // SAFETY: the child is alone.
    unsafe { PROGRAM.open() };
}

/// Gives the calling carrier an alternate stack. Without memory, an overflow ends the process unreported.
pub fn prepare_carrier() {
    if let Ok(memory) = linux::map(GUARD + ALTERNATE) {
        // SAFETY: the low end of our own fresh mapping. Without a guard it works as well.
        let _ = unsafe { syscall!(mprotect, memory, GUARD, libc::PROT_NONE) };
        let stack =
            stack_t { ss_sp: memory.wrapping_add(GUARD).cast(), ss_flags: 0, ss_size: ALTERNATE };
        // SAFETY: fresh memory of our own.
        let _ = unsafe { syscall!(sigaltstack, &raw const stack, 0) };
    }
}

/// Gives the calling carrier's alternate stack back, before its thread ends.
pub fn retire_carrier() {
    let mut stack = stack_t { ss_sp: core::ptr::null_mut(), ss_flags: 0, ss_size: 0 };
    let none = stack_t { ss_sp: core::ptr::null_mut(), ss_flags: libc::SS_DISABLE, ss_size: 0 };
    // SAFETY: the stack is not in use: the caller runs on its own.
    unsafe {
        if syscall!(sigaltstack, &raw const none, &raw mut stack).is_ok() && stack.ss_size != 0 {
            linux::unmap(stack.ss_sp.cast::<u8>().wrapping_sub(GUARD), GUARD + stack.ss_size);
        }
    }
}

unsafe extern "C-unwind" fn on_fault(
    number: c_int,
    info: *mut siginfo_t,
    context: *mut ucontext_t,
) {
    // SAFETY: the kernel passes a valid record and context.
    unsafe {
        if crate::arch::fix_copy_fault(context) {
            return;
        }
        let from_kernel = (*info).si_code > 0;
        if from_kernel && let Some(coroutine) = guard_hit((*info).si_addr() as usize) {
            report_overflow(coroutine);
        }
        let program = PROGRAM.lock()[number as usize];
        match program.sa_sigaction {
            libc::SIG_IGN if !from_kernel => {}
            libc::SIG_DFL | libc::SIG_IGN => die(number, from_kernel),
            _ => call(&program, number, info, context),
        }
    }
}

/// The default action: the fault happens again and ends the process, with a core dump that shows it.
unsafe fn die(number: c_int, from_kernel: bool) {
    // SAFETY: restores the default; a signal from a process is sent again.
    unsafe {
        let mut default: Action = core::mem::zeroed();
        default.sa_sigaction = libc::SIG_DFL;
        real::sigaction(number, &default, core::ptr::null_mut());
        if !from_kernel {
            let process = syscall!(getpid).unwrap_or(0);
            let _ = syscall!(tgkill, process, linux::gettid(), number);
        }
    }
}

fn report_overflow(coroutine: &Coroutine) {
    // SAFETY: the name ends with a zero.
    let name = unsafe { CStr::from_ptr(coroutine.name.get().cast()) };
    let (_, size) = coroutine.stack.get();
    report!(
        "stack overflow in thread {} \"{}\": its stack has {} KiB. Give it more with --stack SIZE or \
         PRELOOM_STACK, or by pthread_attr_setstacksize",
        coroutine.id.get(),
        name.to_str().unwrap_or(""),
        size >> 10
    );
}

/// `sigaction`.
///
/// # Safety
/// As the C function.
pub unsafe fn sigaction(number: c_int, new: *const Action, old: *mut Action) -> c_int {
    if !is_ours(number) {
        // SAFETY: the caller keeps the contract.
        return unsafe { real::sigaction(number, new, old) };
    }
    // SAFETY: the caller's pointers. A fault in here would come while the lock is held, so they are
    // touched outside of it.
    unsafe {
        let before = PROGRAM.lock()[number as usize];
        if let Some(wanted) = new.as_ref().copied() {
            // First here, then in the kernel: a signal in between finds the new handler.
            PROGRAM.lock()[number as usize] = wanted;
            if install(number, &wanted) != 0 {
                // EINVAL: SIGKILL, SIGSTOP, or one that libc keeps for itself.
                PROGRAM.lock()[number as usize] = before;
                return -1;
            }
        }
        if !old.is_null() {
            *old = before;
        }
    }
    0
}

/// `signal`, with BSD semantics: restarting, not reset.
///
/// # Safety
/// As the C function.
pub unsafe fn signal(number: c_int, handler: sighandler_t) -> sighandler_t {
    if !is_ours(number) {
        // SAFETY: the caller keeps the contract.
        return unsafe { real_signal::signal(number, handler) };
    }
    // SAFETY: valid objects.
    unsafe {
        let mut new: Action = core::mem::zeroed();
        new.sa_sigaction = handler;
        new.sa_flags = libc::SA_RESTART;
        libc::sigaddset(&mut new.sa_mask, number);
        let mut old: Action = core::mem::zeroed();
        if sigaction(number, &new, &mut old) != 0 {
            return libc::SIG_ERR;
        }
        old.sa_sigaction
    }
}

/// `sigaltstack`. A coroutine's is noted, not given to the kernel: the carrier has its own.
///
/// # Safety
/// As the C function.
pub unsafe fn sigaltstack(coroutine: &Coroutine, new: *const stack_t, old: *mut stack_t) -> c_int {
    let disabled = stack_t { ss_sp: core::ptr::null_mut(), ss_flags: libc::SS_DISABLE, ss_size: 0 };
    // SAFETY: the caller's pointers.
    unsafe {
        let before = coroutine.alternate_stack.get().unwrap_or(disabled);
        if let Some(new) = new.as_ref() {
            if new.ss_flags & !(libc::SS_DISABLE | SS_AUTODISARM | libc::SS_ONSTACK) != 0 {
                Errno(libc::EINVAL).set();
                return -1;
            }
            let disable = new.ss_flags & libc::SS_DISABLE != 0;
            if !disable && new.ss_size < libc::MINSIGSTKSZ {
                Errno(libc::ENOMEM).set();
                return -1;
            }
            coroutine.alternate_stack.set((!disable).then_some(*new));
        }
        if !old.is_null() {
            *old = before;
        }
    }
    0
}

/// SS_AUTODISARM of the kernel.
const SS_AUTODISARM: c_int = 1 << 31;

/// A value of the program's, read so that a bad pointer gives EFAULT.
///
/// # Errors
/// EFAULT.
pub fn read_user<T: Copy>(from: *const T) -> Result<T, Errno> {
    let mut value = MaybeUninit::<T>::uninit();
    // SAFETY: `value` has room; `from` may be anything: the copy survives a fault.
    let copied =
        unsafe { crate::arch::copy_user(value.as_mut_ptr().cast(), from.cast(), size_of::<T>()) };
    if !copied {
        return Err(Errno(libc::EFAULT));
    }
    // SAFETY: filled; plain C data has no invalid values.
    Ok(unsafe { value.assume_init() })
}

/// Writes a value to where the program wants it, so that a bad pointer gives EFAULT.
///
/// # Errors
/// EFAULT.
pub fn write_user<T: Copy>(to: *mut T, value: &T) -> Result<(), Errno> {
    // SAFETY: `value` is readable; `to` may be anything: the copy survives a fault.
    let copied = unsafe {
        crate::arch::copy_user(to.cast(), (&raw const *value).cast::<c_void>(), size_of::<T>())
    };
    if copied { Ok(()) } else { Err(Errno(libc::EFAULT)) }
}
