//! What libc callers see: the exported symbols.
//!
//! [`table`] names each symbol once, with the function that serves it. Two kinds:
//!
//! * `green`: coroutines are served by ours, native threads pass straight through to libc after one test
//!   of one word.
//! * `every`: both are served by ours, because the object (a mutex, a descriptor's entry) is shared
//!   between them; the function calls libc itself where that is right.
//!
//! Every hook is `extern "C-unwind"`: cancellation and `pthread_exit` may unwind through it, so no frame
//! between a hook's entry and the park holds a value with a `Drop`.

pub mod chk;
pub mod sync;
pub mod table;

/// Declares the exported symbols; see the module's documentation.
macro_rules! hooks {
    ($($kind:ident fn $name:ident($($arg:ident: $ty:ty),* $(,)?) $(-> $ret:ty)? = $serve:path;)*) => {
        $($crate::hooks::hook!($kind $name ($($arg: $ty),*) ($($ret)?) $serve);)*

        /// Every exported symbol, in the order of the table.
        pub const NAMES: &[&str] = &[$(stringify!($name)),*];
    };
}
pub(crate) use hooks;

macro_rules! hook {
    (green $name:ident ($($arg:ident: $ty:ty),*) ($($ret:ty)?) $serve:path) => {
        #[doc = concat!("`", stringify!($name), "` of libc.")]
        ///
        /// # Safety
        /// As the C function.
        #[allow(non_snake_case, reason = "C's names")]
        #[cfg_attr(not(test), unsafe(no_mangle))]
        pub unsafe extern "C-unwind" fn $name($($arg: $ty),*) $(-> $ret)? {
            static REAL: $crate::sys::real::Symbol = $crate::sys::real::symbol!($name);
            // SAFETY: the caller keeps the C function's contract, which is also the server's; the real
            // symbol has this signature.
            unsafe {
                match $crate::coroutine::Coroutine::current() {
                    Some(coroutine) => $serve(coroutine, $($arg),*),
                    None => {
                        let real: unsafe extern "C-unwind" fn($($ty),*) $(-> $ret)? =
                            ::core::mem::transmute(REAL.address());
                        real($($arg),*)
                    }
                }
            }
        }
    };
    (every $name:ident ($($arg:ident: $ty:ty),*) ($($ret:ty)?) $serve:path) => {
        #[doc = concat!("`", stringify!($name), "` of libc.")]
        ///
        /// # Safety
        /// As the C function.
        #[allow(non_snake_case, reason = "C's names")]
        #[cfg_attr(not(test), unsafe(no_mangle))]
        pub unsafe extern "C-unwind" fn $name($($arg: $ty),*) $(-> $ret)? {
            // SAFETY: the caller keeps the C function's contract, which is also the server's.
            unsafe { $serve($($arg),*) }
        }
    };
}
pub(crate) use hook;
