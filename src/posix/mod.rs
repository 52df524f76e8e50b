//! What a call means: the POSIX functions that can wait, for coroutines, and those that make, change or
//! close descriptors, for everybody.

pub mod accept;
pub mod attempt;
pub mod connect;
pub mod fd;
pub mod io;
pub mod message;
pub mod poll;
pub mod signal;
pub mod socket;
pub mod time;
