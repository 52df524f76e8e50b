//! What a call means: the POSIX functions that can wait, for coroutines.

pub mod signal;
pub mod time;
