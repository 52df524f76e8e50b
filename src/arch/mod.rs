//! What depends on the CPU: the context switch, the first frame of a coroutine, and the frame that
//! runs a clean-up when the program unwinds through us. Nothing else knows the CPU.
//!
//! Each architecture's file offers:
//! * [`prepare`]: lays the first frame on a fresh stack;
//! * [`switch`]: saves the running context, loads another, and hands one word over;
//! * [`call_with_cleanup`]: calls a C function and, if it is left by an exception or a forced unwind,
//!   calls a clean-up on the way;
//! * [`copy_user`]: copies from or to memory of the program that may not be there, with
//!   [`fix_copy_fault`] for the handler of SIGSEGV;
//! * the exported `dlopen`, because the loader looks at its caller's address, and `vfork`, because it
//!   returns twice.

#[cfg(target_arch = "x86_64")]
mod x86_64;
#[cfg(target_arch = "x86_64")]
pub use x86_64::{call_with_cleanup, copy_user, fix_copy_fault, prepare, switch};
