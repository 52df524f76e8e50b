//! The lowest layer: raw system calls, the real libc symbols, facts about glibc, clocks, spin locks.
//!
//! Nothing here knows what a coroutine is, except [`current`], which holds the word that says whether
//! the caller is one.

pub mod critical;
pub mod current;
pub mod errno;
pub mod glibc;
pub mod linux;
pub mod real;
pub mod report;
pub mod spin;
pub mod time;
pub mod tls_image;
