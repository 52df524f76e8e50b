//! SIGSEGV: three things behind one signal.
//!
//! * A fault in [`crate::arch::copy_user`]: the program gave a bad pointer, and the call answers EFAULT.
//! * A fault in the guard of the running coroutine's stack: reported as a stack overflow of that coroutine.
//! * Everything else, and what follows the report: the program's own disposition.
//!
//! The handler is installed when the runtime starts. From then on the program's disposition of SIGSEGV is
//! kept here: `sigaction` and `signal` show and change that, with its mask and flags. The handler runs on
//! an alternate stack of the carrier, because an overflown stack has no room; a coroutine's own
//! `sigaltstack` is noted and shown, and a handler of the program's that asks for it gets the carrier's.

use crate::coroutine::Coroutine;
use crate::coroutine::stack::guard_hit;
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

/// The program's disposition of SIGSEGV, once ours is installed.
static PROGRAM: SpinLock<MaybeUninit<Action>> = SpinLock::new(MaybeUninit::uninit());
static INSTALLED: AtomicBool = AtomicBool::new(false);

/// Bytes of a carrier's alternate stack. The program's handler may run there.
const ALTERNATE: usize = 64 << 10;

/// Installs the handler. Once, before the first carrier runs.
pub fn install_overflow_handler() {
    let mut program = MaybeUninit::<Action>::zeroed();
    // SAFETY: `program` is writable.
    if unsafe { real::sigaction(libc::SIGSEGV, core::ptr::null(), program.as_mut_ptr()) } != 0 {
        return;
    }
    *PROGRAM.lock() = program;
    INSTALLED.store(true, Ordering::Release);
    // SAFETY: filled by the call above.
    install(unsafe { program.assume_init_ref() });
}

/// Installs our handler with the mask and flags of the program's action.
fn install(program: &Action) {
    let mut ours = *program;
    ours.sa_sigaction = on_fault as *const () as usize;
    ours.sa_flags = (program.sa_flags & !libc::SA_RESETHAND) | libc::SA_SIGINFO | libc::SA_ONSTACK;
    // SAFETY: a valid action with a handler of ours.
    unsafe { real::sigaction(libc::SIGSEGV, &ours, core::ptr::null_mut()) };
}

/// Gives the calling carrier an alternate stack. Without memory, an overflow ends the process unreported.
pub fn prepare_carrier() {
    if let Ok(memory) = linux::map(ALTERNATE) {
        let stack = stack_t { ss_sp: memory.cast(), ss_flags: 0, ss_size: ALTERNATE };
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
            linux::unmap(stack.ss_sp.cast(), stack.ss_size);
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
        let program = *PROGRAM.lock();
        let program = program.assume_init();
        match program.sa_sigaction {
            libc::SIG_IGN if !from_kernel => {}
            libc::SIG_DFL | libc::SIG_IGN => die(number, from_kernel),
            handler => {
                if program.sa_flags & libc::SA_RESETHAND != 0 {
                    (*PROGRAM.lock()).assume_init_mut().sa_sigaction = libc::SIG_DFL;
                }
                if program.sa_flags & libc::SA_SIGINFO != 0 {
                    core::mem::transmute::<
                        usize,
                        unsafe extern "C-unwind" fn(c_int, *mut siginfo_t, *mut ucontext_t),
                    >(handler)(number, info, context);
                } else {
                    core::mem::transmute::<usize, unsafe extern "C-unwind" fn(c_int)>(handler)(
                        number,
                    );
                }
            }
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

/// `sigaction`. For SIGSEGV, of what the program knows.
///
/// # Safety
/// As the C function.
pub unsafe fn sigaction(number: c_int, new: *const Action, old: *mut Action) -> c_int {
    if number != libc::SIGSEGV || !INSTALLED.load(Ordering::Acquire) {
        // SAFETY: the caller keeps the contract.
        return unsafe { real::sigaction(number, new, old) };
    }
    // SAFETY: the caller's pointers. A fault in here would come while the lock is held, so they are
    // touched outside of it.
    unsafe {
        let wanted = new.as_ref().copied();
        let before = {
            let mut program = PROGRAM.lock();
            let before = program.assume_init();
            if let Some(wanted) = wanted {
                *program = MaybeUninit::new(wanted);
            }
            before
        };
        if let Some(wanted) = wanted {
            install(&wanted);
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
    if number != libc::SIGSEGV || !INSTALLED.load(Ordering::Acquire) {
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
        sigaction(number, &new, &mut old);
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
