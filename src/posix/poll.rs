//! `poll`, `ppoll`, `select`, `pselect`.
//!
//! The kernel's own answer, asked without waiting, is what the program gets. When it is "nothing", the
//! coroutine puts a waiter on each descriptor and parks; any event makes it ask again. Ticks that were
//! read before the question tell whether something has happened since.

use super::signal::{read_user, write_user};
use crate::coroutine::Coroutine;
use crate::coroutine::wake::Reason;
use crate::reactor::table::{self, Direction, Readiness, Waiter};
use crate::reactor::wait;
use crate::sched;
use crate::sys::errno::{Errno, Result, to_c_int};
use crate::sys::linux::{self, syscall};
use crate::sys::time;
use core::ffi::c_int;
use core::mem::MaybeUninit;
use libc::{fd_set, nfds_t, pollfd, sigset_t, timespec, timeval};

/// What is waited for on one descriptor.
#[derive(Clone, Copy)]
struct Interest {
    fd: c_int,
    /// Bit 0: reading, bit 1: writing.
    directions: u8,
    seen: [Readiness; 2],
}

/// One descriptor's place in a wait.
struct Place {
    interest: Interest,
    waiter: MaybeUninit<Waiter>,
    linked: bool,
}

/// Places on the stack; more go into a mapping of their own.
const ON_STACK: usize = 8;

/// Room for the places of one call.
struct Places {
    few: [MaybeUninit<Place>; ON_STACK],
    mapped: *mut u8,
    mapped_size: usize,
    length: usize,
}

impl Places {
    /// Room for `most` places.
    fn new(most: usize) -> Result<Self> {
        let mut places = Self {
            few: [const { MaybeUninit::uninit() }; ON_STACK],
            mapped: core::ptr::null_mut(),
            mapped_size: 0,
            length: 0,
        };
        if most > ON_STACK {
            places.mapped_size = most * size_of::<Place>();
            places.mapped = linux::map(places.mapped_size).map_err(|_| Errno(libc::ENOMEM))?;
        }
        Ok(places)
    }

    fn first(&mut self) -> *mut Place {
        if self.mapped.is_null() { self.few.as_mut_ptr().cast() } else { self.mapped.cast() }
    }

    fn clear(&mut self) {
        self.length = 0;
    }

    /// Notes a descriptor and its readiness, before the kernel is asked.
    fn note(&mut self, fd: c_int, directions: u8) {
        let Some(entry) = table::entry(fd) else { return };
        let seen = [entry.readiness(Direction::Read), entry.readiness(Direction::Write)];
        let place = Place {
            interest: Interest { fd, directions, seen },
            waiter: MaybeUninit::uninit(),
            linked: false,
        };
        let length = self.length;
        // SAFETY: the caller notes at most as many as there is room for.
        unsafe { self.first().add(length).write(place) };
        self.length += 1;
    }

    fn slice(&mut self) -> &mut [Place] {
        let length = self.length;
        // SAFETY: `length` places were written.
        unsafe { core::slice::from_raw_parts_mut(self.first(), length) }
    }

    /// Gives the mapping back.
    fn release(&mut self) {
        if !self.mapped.is_null() {
            // SAFETY: our own mapping, no longer used.
            unsafe { linux::unmap(self.mapped, self.mapped_size) };
            self.mapped = core::ptr::null_mut();
        }
    }
}

/// Asks, and waits until the answer is not zero or the deadline has passed.
///
/// `note` lists the descriptors; `ask` asks the kernel without waiting.
fn wait_for_any(
    coroutine: &Coroutine,
    places: &mut Places,
    deadline: Option<u64>,
    note: impl Fn(&mut Places),
    mut ask: impl FnMut() -> Result<usize>,
) -> Result<usize> {
    loop {
        places.clear();
        note(places);
        let answer = ask()?;
        if answer != 0 {
            return Ok(answer);
        }
        if park_on_all(coroutine, places.slice(), deadline) == Reason::Timeout {
            return ask();
        }
    }
}

/// Parks until something happens on one of the places, or until the deadline.
fn park_on_all(coroutine: &Coroutine, places: &mut [Place], deadline: Option<u64>) -> Reason {
    sched::arm(coroutine);
    let mut changed = false;
    for place in &mut *places {
        let Interest { fd, directions, seen } = place.interest;
        let Some(entry) = table::entry(fd) else { continue };
        // For readiness that we remember as exhausted or not alike: only a change counts.
        let waiter = place.waiter.write(Waiter::new(coroutine, directions));
        match wait::link(coroutine, fd, entry, seen, directions, waiter) {
            Ok(true) => place.linked = true,
            Ok(false) => {
                changed = true;
                break;
            }
            // It cannot be polled by epoll (a regular file): the kernel's answer has counted it.
            Err(_) => {}
        }
    }
    let reason = if changed {
        unlink_all(places);
        // A claim may have come from a place that was linked: it is taken back with the arming.
        sched::disarm(coroutine);
        return Reason::Ready;
    } else {
        sched::park(coroutine, deadline)
    };
    unlink_all(places);
    reason
}

fn unlink_all(places: &mut [Place]) {
    for place in places.iter_mut().filter(|place| place.linked) {
        if let Some(entry) = table::entry(place.interest.fd) {
            // SAFETY: a linked place's waiter is written.
            entry.unlink(unsafe { place.waiter.assume_init_ref() });
        }
        place.linked = false;
    }
}

/// `poll`.
///
/// # Safety
/// As the C function.
pub unsafe fn poll(
    coroutine: &Coroutine,
    fds: *mut pollfd,
    count: nfds_t,
    timeout: c_int,
) -> c_int {
    let deadline = match timeout {
        0 => Some(0),
        1.. => Some(time::after(timeout as u64 * 1_000_000)),
        _ => None,
    };
    // SAFETY: the caller's array.
    to_c_int(unsafe { poll_until(coroutine, fds, count, deadline) })
}

/// `ppoll`. The signal mask is not looked at by a coroutine, which takes no signals while it waits.
///
/// # Safety
/// As the C function.
pub unsafe fn ppoll(
    coroutine: &Coroutine,
    fds: *mut pollfd,
    count: nfds_t,
    timeout: *const timespec,
    _mask: *const sigset_t,
) -> c_int {
    // SAFETY: the caller's pointers.
    unsafe {
        let deadline = match deadline_of(timeout) {
            Ok(deadline) => deadline,
            Err(error) => return to_c_int(Err(error)),
        };
        to_c_int(poll_until(coroutine, fds, count, deadline))
    }
}

/// When a relative timeout is over: `None` for a null one, 0 for "do not wait".
fn deadline_of(timeout: *const timespec) -> Result<Option<u64>> {
    if timeout.is_null() {
        return Ok(None);
    }
    let span = time::from_timespec(&read_user(timeout)?)?;
    Ok(Some(if span == 0 { 0 } else { time::after(span) }))
}

unsafe fn poll_until(
    coroutine: &Coroutine,
    fds: *mut pollfd,
    count: nfds_t,
    deadline: Option<u64>,
) -> Result<usize> {
    let zero = timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the caller's array; the call does not wait.
    let ask = || unsafe { syscall!(ppoll, fds, count, &raw const zero, 0, 0) };
    if deadline == Some(0) {
        return ask();
    }
    // The first answer also checks the arguments: EFAULT, EINVAL.
    let first = ask()?;
    if first != 0 {
        return Ok(first);
    }
    // SAFETY: the kernel has just read and written the array.
    let list = || unsafe {
        let list: &[pollfd] =
            if count == 0 { &[] } else { core::slice::from_raw_parts(fds, count as usize) };
        list
    };
    let interesting = list().iter().filter(|poll| poll.fd >= 0).count();
    let mut places = Places::new(interesting)?;
    let note = |places: &mut Places| {
        for poll in list().iter().filter(|poll| poll.fd >= 0) {
            places.note(poll.fd, directions(poll.events));
        }
    };
    let result = wait_for_any(coroutine, &mut places, deadline, note, ask);
    places.release();
    result
}

/// Which directions' events can answer a `poll` for `events`. Hang-ups and errors come with both.
fn directions(events: i16) -> u8 {
    const READ: i16 =
        libc::POLLIN | libc::POLLPRI | libc::POLLRDHUP | libc::POLLRDNORM | libc::POLLRDBAND;
    const WRITE: i16 = libc::POLLOUT | libc::POLLWRNORM | libc::POLLWRBAND;
    let directions = u8::from(events & READ != 0) | u8::from(events & WRITE != 0) << 1;
    // Nothing asked for: still POLLHUP and POLLERR.
    if directions == 0 { 1 } else { directions }
}

/// `select`. Like the kernel's, it leaves the time that was not slept in `timeout`.
///
/// # Safety
/// As the C function.
pub unsafe fn select(
    coroutine: &Coroutine,
    count: c_int,
    read: *mut fd_set,
    write: *mut fd_set,
    except: *mut fd_set,
    timeout: *mut timeval,
) -> c_int {
    // SAFETY: the caller's pointers.
    unsafe {
        let limit = if timeout.is_null() { None } else { Some(read_user(timeout)) };
        let deadline = match limit {
            None => None,
            Some(Err(error)) => return to_c_int(Err(error)),
            Some(Ok(time)) => {
                // Microseconds above a second are carried over, as the kernel does.
                if time.tv_sec < 0 || time.tv_usec < 0 {
                    return to_c_int(Err(Errno(libc::EINVAL)));
                }
                let span = (time.tv_sec as u64)
                    .saturating_mul(time::SECOND)
                    .saturating_add((time.tv_usec as u64).saturating_mul(1000));
                Some(if span == 0 { 0 } else { time::after(span) })
            }
        };
        let result = select_until(coroutine, count, [read, write, except], deadline);
        if let Some(deadline) = deadline
            && !timeout.is_null()
        {
            let left = deadline.saturating_sub(time::now());
            let left = timeval {
                tv_sec: (left / time::SECOND) as i64,
                tv_usec: (left % time::SECOND / 1000) as i64,
            };
            // As in the kernel, a timeout that cannot be written (a constant) is no error.
            let _ = write_user(timeout, &left);
        }
        to_c_int(result)
    }
}

/// `pselect`. The signal mask is not looked at by a coroutine.
///
/// # Safety
/// As the C function.
pub unsafe fn pselect(
    coroutine: &Coroutine,
    count: c_int,
    read: *mut fd_set,
    write: *mut fd_set,
    except: *mut fd_set,
    timeout: *const timespec,
    _mask: *const sigset_t,
) -> c_int {
    // SAFETY: the caller's pointers.
    unsafe {
        let deadline = match deadline_of(timeout) {
            Ok(deadline) => deadline,
            Err(error) => return to_c_int(Err(error)),
        };
        to_c_int(select_until(coroutine, count, [read, write, except], deadline))
    }
}

/// Bytes of descriptor sets that are copied on the stack: three of FD_SETSIZE.
const SETS_ON_STACK: usize = 3 * 128;

unsafe fn select_until(
    coroutine: &Coroutine,
    count: c_int,
    sets: [*mut fd_set; 3],
    deadline: Option<u64>,
) -> Result<usize> {
    let zero = timespec { tv_sec: 0, tv_nsec: 0 };
    if count < 0 {
        return Err(Errno(libc::EINVAL));
    }
    // The kernel looks at no more than the process has descriptors for; sets come in words.
    let bytes = (count as usize).div_ceil(64) * 8;
    // SAFETY: the sets are the caller's or our copies of them; the call does not wait.
    let ask = |sets: [*mut u8; 3]| unsafe {
        let mut time = zero;
        syscall!(pselect6, count, sets[0], sets[1], sets[2], &raw mut time, 0)
    };
    let own = sets.map(|set| set.cast::<u8>());
    if deadline == Some(0) {
        return ask(own);
    }
    let mut small = [0u8; SETS_ON_STACK];
    let (copy, mapped) = if 3 * bytes <= SETS_ON_STACK {
        (small.as_mut_ptr(), 0)
    } else {
        (linux::map(3 * bytes).map_err(|_| Errno(libc::ENOMEM))?, 3 * bytes)
    };
    let wanted = [0, 1, 2].map(|index| copy.wrapping_add(index * bytes));
    for index in 0..3 {
        if !own[index].is_null() {
            // SAFETY: the copy has room for `count` bits, in words; a bad set gives EFAULT below.
            let copied =
                unsafe { crate::arch::copy_user(wanted[index].cast(), own[index].cast(), bytes) };
            if !copied {
                return ask(own);
            }
        }
    }
    let is_wanted = |fd: usize, index: usize| {
        // SAFETY: within the copy, which is zero where the caller gave no set.
        !own[index].is_null() && unsafe { *wanted[index].add(fd / 8) } & 1 << (fd % 8) != 0
    };
    let directions = |fd: usize| {
        let read = is_wanted(fd, 0) || is_wanted(fd, 2);
        u8::from(read) | u8::from(is_wanted(fd, 1)) << 1
    };
    let most = (0..count as usize).filter(|&fd| directions(fd) != 0).count();
    let result = Places::new(most).and_then(|mut places| {
        let note = |places: &mut Places| {
            for fd in 0..count as usize {
                let directions = directions(fd);
                if directions != 0 {
                    places.note(fd as c_int, directions);
                }
            }
        };
        let again = || {
            for index in 0..3 {
                if !own[index].is_null() {
                    // SAFETY: as above; the kernel has cleared what was not ready.
                    unsafe { core::ptr::copy_nonoverlapping(wanted[index], own[index], bytes) };
                }
            }
            ask(own)
        };
        let result = wait_for_any(coroutine, &mut places, deadline, note, again);
        places.release();
        result
    });
    if mapped != 0 {
        // SAFETY: our own mapping, no longer used.
        unsafe { linux::unmap(copy, mapped) };
    }
    result
}
