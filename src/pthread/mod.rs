//! What a thread is: POSIX threads on coroutines, for coroutines and native threads alike.

pub mod attr;
pub mod barrier;
pub mod c11;
pub mod cond;
pub mod create;
pub mod exit;
pub mod join;
pub mod mutex;
pub mod name;
pub mod once;
pub mod robust;
pub mod rwlock;
pub mod sem;
pub mod sigmask;
pub mod signal;
pub mod spin;
pub mod syscall;
