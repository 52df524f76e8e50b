//! The real libc functions behind the symbols that we export, by `dlsym(RTLD_NEXT)`.
//!
//! Each is looked up at its first use, so that hooks work before our constructor has run (allocators
//! and other preloaded libraries call us from theirs). On glibc 2.36 `dlsym` neither allocates nor
//! re-enters a hook.

use core::ffi::{CStr, c_void};
use core::num::NonZeroUsize;
use once_cell::race::OnceNonZeroUsize;

/// The address of the next definition of `name` after ours; ends the process when there is none,
/// because the program could not have called it either.
#[cold]
pub fn lookup(name: &CStr) -> NonZeroUsize {
    // Condition variables were redone in glibc 2.3.2, and before 2.36 `dlsym` may give the old ones.
    let versioned = name.to_bytes().starts_with(b"pthread_cond_");
    // SAFETY: valid C strings; RTLD_NEXT is resolved against this library.
    let address = unsafe {
        let new = if versioned {
            libc::dlvsym(libc::RTLD_NEXT, name.as_ptr(), c"GLIBC_2.3.2".as_ptr())
        } else {
            core::ptr::null_mut()
        };
        if new.is_null() { libc::dlsym(libc::RTLD_NEXT, name.as_ptr()) } else { new }
    };
    NonZeroUsize::new(address as usize).unwrap_or_else(|| {
        super::report::line(format_args!(
            "the C library has no {}; run the program without preloom",
            name.to_str().unwrap_or("?")
        ));
        // SAFETY: ends the process at once.
        let _ = unsafe { super::linux::syscall!(exit_group, 127) };
        loop {
            core::hint::spin_loop();
        }
    })
}

/// A real symbol, looked up once.
pub struct Symbol {
    name: &'static CStr,
    address: OnceNonZeroUsize,
}

impl Symbol {
    /// A symbol that is not looked up yet.
    pub const fn new(name: &'static CStr) -> Self {
        Self { name, address: OnceNonZeroUsize::new() }
    }

    /// Its address.
    #[inline]
    pub fn address(&self) -> *const c_void {
        self.address.get_or_init(|| lookup(self.name)).get() as *const c_void
    }
}

/// `symbol!(name)`: a [`Symbol`] that is not looked up yet.
macro_rules! symbol {
    ($name:ident) => {
        $crate::sys::real::Symbol::new(
            match ::core::ffi::CStr::from_bytes_with_nul(
                concat!(stringify!($name), "\0").as_bytes(),
            ) {
                Ok(name) => name,
                Err(_) => panic!("a C name"),
            },
        )
    };
}
pub(crate) use symbol;

/// Declares real functions that are used inside the library (the hook table declares the others).
macro_rules! real_functions {
    ($($(#[$doc:meta])* fn $name:ident($($arg:ident: $ty:ty),* $(,)?) $(-> $ret:ty)?;)*) => {$(
        $(#[$doc])*
        ///
        /// # Safety
        /// As the C function.
        #[inline]
        pub unsafe fn $name($($arg: $ty),*) $(-> $ret)? {
            static SYMBOL: $crate::sys::real::Symbol = $crate::sys::real::symbol!($name);
            // SAFETY: the symbol has this signature in every libc that we accept.
            unsafe {
                let function: unsafe extern "C-unwind" fn($($ty),*) $(-> $ret)? =
                    ::core::mem::transmute(SYMBOL.address());
                function($($arg),*)
            }
        }
    )*};
}
pub(crate) use real_functions;

real_functions! {
    /// The real `clock_gettime`.
    fn clock_gettime(clock: libc::clockid_t, time: *mut libc::timespec) -> libc::c_int;
    /// The real `pthread_create`: makes kernel threads.
    fn pthread_create(
        thread: *mut libc::pthread_t,
        attr: *const libc::pthread_attr_t,
        start: unsafe extern "C-unwind" fn(*mut c_void) -> *mut c_void,
        arg: *mut c_void,
    ) -> libc::c_int;
    /// The real `pthread_exit`: unwinds the caller, be it a native thread or a coroutine.
    fn pthread_exit(value: *mut c_void) -> !;
    /// The real `sigaction`.
    fn sigaction(signal: libc::c_int, new: *const libc::sigaction, old: *mut libc::sigaction) -> libc::c_int;
    /// The real `pthread_sigmask`.
    fn pthread_sigmask(how: libc::c_int, new: *const libc::sigset_t, old: *mut libc::sigset_t) -> libc::c_int;
}
