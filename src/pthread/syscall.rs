//! `syscall`, for the locks of other libraries: `SYS_futex` on memory of this process (Rust's standard
//! library, C++20 `atomic::wait`, guards of function-local statics) parks coroutines; `SYS_gettid` is the
//! coroutine's own. Everything else is made as it is: what blocks there keeps a kernel thread.
//!
//! Coroutines wait in the parking lot, native threads in the kernel. A wake-up serves the parking lot first,
//! then the kernel with what is left of its count. A wait without FUTEX_PRIVATE_FLAG may be meant for other
//! processes and happens in the kernel, unless the word lies in the data of the program or of a library, which
//! nobody shares (that is where guards of function-local statics are).

use crate::coroutine::Coroutine;
use crate::futex::{self, Outcome, Wait};
use crate::posix::signal::read_user;
use crate::sched;
use crate::sys::errno::{Errno, Result, to_c};
use crate::sys::linux;
use crate::sys::time;
use core::ffi::{c_int, c_long};
use libc::timespec;

/// FUTEX_* of the kernel.
const WAIT: c_int = libc::FUTEX_WAIT;
const WAKE: c_int = libc::FUTEX_WAKE;
const REQUEUE: c_int = libc::FUTEX_REQUEUE;
const CMP_REQUEUE: c_int = libc::FUTEX_CMP_REQUEUE;
const WAIT_BITSET: c_int = libc::FUTEX_WAIT_BITSET;
const WAKE_BITSET: c_int = libc::FUTEX_WAKE_BITSET;
const PRIVATE: c_int = libc::FUTEX_PRIVATE_FLAG;
const REALTIME: c_int = libc::FUTEX_CLOCK_REALTIME;

/// `syscall`: −1 with `errno`, or what the system call gave.
///
/// # Safety
/// As the C function.
#[allow(clippy::too_many_arguments, reason = "the C function takes as many")]
pub unsafe fn syscall(
    number: c_long,
    a: usize,
    b: usize,
    c: usize,
    d: usize,
    e: usize,
    f: usize,
) -> c_long {
    let real = |third: usize| {
        // SAFETY: the caller keeps the contract of the system call.
        linux::check(unsafe { syscalls::raw::syscall6(number as usize, a, b, third, d, e, f) })
    };
    let own = Coroutine::current();
    let result = match number {
        libc::SYS_gettid if let Some(coroutine) = own => Ok(coroutine.tid() as usize),
        libc::SYS_futex if sched::is_started() => {
            let call = FutexCall {
                word: a,
                operation: b as c_int & !(PRIVATE | REALTIME),
                clock: if b as c_int & REALTIME != 0 {
                    libc::CLOCK_REALTIME
                } else {
                    libc::CLOCK_MONOTONIC
                },
                value: c as u32,
                fourth: d,
                target: e,
                last: f as u32,
            };
            match call.operation {
                WAIT | WAIT_BITSET
                    if own.is_some() && (b as c_int & PRIVATE != 0 || is_in_static_data(a)) =>
                {
                    call.wait()
                }
                WAKE => call.wake(u32::MAX, real),
                WAKE_BITSET if call.last != 0 => call.wake(call.last, real),
                REQUEUE | CMP_REQUEUE => call.requeue(real),
                _ => real(c),
            }
        }
        _ => real(c),
    };
    to_c(result) as c_long
}

/// The arguments of a futex call.
struct FutexCall {
    word: usize,
    operation: c_int,
    clock: c_int,
    /// The value that is expected, or the number to wake.
    value: u32,
    /// A timeout, or the number to move.
    fourth: usize,
    target: usize,
    /// A bitset, or the value that CMP_REQUEUE expects.
    last: u32,
}

impl FutexCall {
    /// EAGAIN: another value; ETIMEDOUT; EINVAL: bad alignment, time or bitset; EFAULT.
    fn wait(&self) -> Result<usize> {
        if !self.word.is_multiple_of(4) {
            return Err(Errno(libc::EINVAL));
        }
        let bitset = if self.operation == WAIT_BITSET { self.last } else { u32::MAX };
        if bitset == 0 {
            return Err(Errno(libc::EINVAL));
        }
        let mut deadline = None;
        if self.fourth != 0 {
            let time = read_user(self.fourth as *const timespec)?;
            let span = time::from_timespec(&time)?;
            // WAIT takes a span, WAIT_BITSET a point in time.
            deadline = Some(if self.operation == WAIT_BITSET {
                time::deadline_on(self.clock, &time)?
            } else {
                time::after(span)
            });
        }
        let word = self.word as *const u32;
        read_user(word)?;
        let wait = Wait { bitset, ..Wait::on(self.word, deadline) };
        match futex::wait(&wait, || read_user(word) == Ok(self.value), || {}) {
            Outcome::Mismatch => Err(Errno(libc::EAGAIN)),
            Outcome::Timeout => Err(Errno(libc::ETIMEDOUT)),
            _ => Ok(0),
        }
    }

    /// How many were woken.
    fn wake(&self, bitset: u32, real: impl Fn(usize) -> Result<usize>) -> Result<usize> {
        let count = self.value as i32;
        // The kernel wakes one where less is asked for.
        let count = count.max(1) as usize;
        let woken = futex::wake_with(self.word, count, bitset, |_, _| {});
        if woken == count {
            return Ok(woken);
        }
        real(count - woken).map(|more| woken + more)
    }

    /// How many were woken and moved. EAGAIN: the word has another value.
    fn requeue(&self, real: impl Fn(usize) -> Result<usize>) -> Result<usize> {
        let word = self.word as *const u32;
        if self.operation == CMP_REQUEUE && read_user(word)? != self.last {
            return Err(Errno(libc::EAGAIN));
        }
        let (wake, moves) = (self.value as i32, self.fourth as i32);
        if wake < 0 || moves < 0 {
            return Err(Errno(libc::EINVAL));
        }
        let done = futex::requeue(
            self.word,
            self.target,
            0,
            0,
            || (wake as usize, moves as usize),
            |_| {},
        );
        let left = wake as usize - done.woken;
        real(left).map(|more| done.woken + done.moved + more)
    }
}

/// Whether an address lies in a segment of the program or of a library.
fn is_in_static_data(address: usize) -> bool {
    struct Question {
        address: usize,
        answer: bool,
    }
    unsafe extern "C" fn look(
        info: *mut libc::dl_phdr_info,
        _: usize,
        question: *mut core::ffi::c_void,
    ) -> c_int {
        // SAFETY: the loader passes a valid record and our own pointer.
        unsafe {
            let question = &mut *question.cast::<Question>();
            for index in 0..(*info).dlpi_phnum as usize {
                let header = &*(*info).dlpi_phdr.add(index);
                let start = (*info).dlpi_addr as usize + header.p_vaddr as usize;
                if header.p_type == libc::PT_LOAD
                    && (start..start + header.p_memsz as usize).contains(&question.address)
                {
                    question.answer = true;
                    return 1;
                }
            }
        }
        0
    }
    let mut question = Question { address, answer: false };
    // SAFETY: the callback matches, and the question outlives the call.
    unsafe { libc::dl_iterate_phdr(Some(look), (&raw mut question).cast()) };
    question.answer
}
