//! The life of descriptors: what makes, copies, changes and closes them, by coroutines and native threads
//! alike.
//!
//! Each calls the real function and keeps the descriptor table true. Before the runtime has started the
//! table is empty, and they pass through.

use crate::reactor::table::{self, Direction, Kind, Made, Modes};
use crate::sched::is_started;
use crate::sys::errno::Errno;
use crate::sys::real::real_functions;
use core::ffi::{c_char, c_int, c_uint, c_void};
use libc::{FILE, mode_t, sigset_t, socklen_t};

mod real {
    use super::*;
    real_functions! {
        /// The real `close`.
        fn close(fd: c_int) -> c_int;
        /// The real `close_range`.
        fn close_range(first: c_uint, last: c_uint, flags: c_int) -> c_int;
        /// The real `closefrom`.
        fn closefrom(first: c_int) -> ();
        /// The real `fclose`.
        fn fclose(stream: *mut FILE) -> c_int;
        /// The real `closedir`.
        fn closedir(directory: *mut libc::DIR) -> c_int;
        /// The real `pclose`.
        fn pclose(stream: *mut FILE) -> c_int;
        /// The real `freopen`.
        fn freopen(path: *const c_char, mode: *const c_char, stream: *mut FILE) -> *mut FILE;
        /// The real `freopen64`.
        fn freopen64(path: *const c_char, mode: *const c_char, stream: *mut FILE) -> *mut FILE;
        /// The real `dup`.
        fn dup(fd: c_int) -> c_int;
        /// The real `dup2`.
        fn dup2(fd: c_int, new: c_int) -> c_int;
        /// The real `dup3`.
        fn dup3(fd: c_int, new: c_int, flags: c_int) -> c_int;
        /// The real `fcntl`.
        fn fcntl(fd: c_int, command: c_int, argument: usize) -> c_int;
        /// The real `fcntl64`.
        fn fcntl64(fd: c_int, command: c_int, argument: usize) -> c_int;
        /// The real `ioctl`.
        fn ioctl(fd: c_int, request: u64, argument: usize) -> c_int;
        /// The real `setsockopt`.
        fn setsockopt(fd: c_int, level: c_int, option: c_int, value: *const c_void, length: socklen_t) -> c_int;
        /// The real `shutdown`.
        fn shutdown(fd: c_int, how: c_int) -> c_int;
        /// The real `socket`.
        fn socket(domain: c_int, kind: c_int, protocol: c_int) -> c_int;
        /// The real `socketpair`.
        fn socketpair(domain: c_int, kind: c_int, protocol: c_int, pair: *mut c_int) -> c_int;
        /// The real `pipe`.
        fn pipe(pair: *mut c_int) -> c_int;
        /// The real `pipe2`.
        fn pipe2(pair: *mut c_int, flags: c_int) -> c_int;
        /// The real `open`.
        fn open(path: *const c_char, flags: c_int, mode: mode_t) -> c_int;
        /// The real `open64`.
        fn open64(path: *const c_char, flags: c_int, mode: mode_t) -> c_int;
        /// The real `openat`.
        fn openat(directory: c_int, path: *const c_char, flags: c_int, mode: mode_t) -> c_int;
        /// The real `openat64`.
        fn openat64(directory: c_int, path: *const c_char, flags: c_int, mode: mode_t) -> c_int;
        /// The real `creat`.
        fn creat(path: *const c_char, mode: mode_t) -> c_int;
        /// The real `creat64`.
        fn creat64(path: *const c_char, mode: mode_t) -> c_int;
        /// The real `__open_2`.
        fn __open_2(path: *const c_char, flags: c_int) -> c_int;
        /// The real `__open64_2`.
        fn __open64_2(path: *const c_char, flags: c_int) -> c_int;
        /// The real `__openat_2`.
        fn __openat_2(directory: c_int, path: *const c_char, flags: c_int) -> c_int;
        /// The real `__openat64_2`.
        fn __openat64_2(directory: c_int, path: *const c_char, flags: c_int) -> c_int;
        /// The real `eventfd`.
        fn eventfd(value: c_uint, flags: c_int) -> c_int;
        /// The real `timerfd_create`.
        fn timerfd_create(clock: c_int, flags: c_int) -> c_int;
        /// The real `signalfd`.
        fn signalfd(fd: c_int, mask: *const sigset_t, flags: c_int) -> c_int;
        /// The real `inotify_init`.
        fn inotify_init() -> c_int;
        /// The real `inotify_init1`.
        fn inotify_init1(flags: c_int) -> c_int;
        /// The real `memfd_create`.
        fn memfd_create(name: *const c_char, flags: c_uint) -> c_int;
        /// The real `epoll_create`.
        fn epoll_create(size: c_int) -> c_int;
        /// The real `epoll_create1`.
        fn epoll_create1(flags: c_int) -> c_int;
        /// The real `posix_openpt`.
        fn posix_openpt(flags: c_int) -> c_int;
    }
}

/// A new descriptor of which nothing else is known.
const ANY: Made = Made { kind: Kind::Unknown, modes: None, shared: false };

/// Notes a descriptor that a call has just made, and passes it on.
fn made(fd: c_int, what: Made) -> c_int {
    if fd >= 0 && is_started() {
        table::forget(fd, Some(what));
    }
    fd
}

/// A new socket or pipe that is blocking unless `nonblocking`, without timeouts.
fn fresh(kind: Kind, nonblocking: bool) -> Made {
    Made { kind, modes: Some(Modes { nonblocking, timeouts: [0, 0] }), shared: false }
}

/// `close`. The library's own descriptors cannot be closed: EBADF, as if they were not there.
///
/// # Safety
/// As the C function.
pub unsafe fn close(fd: c_int) -> c_int {
    if is_started() {
        if table::is_own(fd) {
            Errno(libc::EBADF).set();
            return -1;
        }
        // Before the real call: afterwards the number may be somebody else's.
        table::forget(fd, None);
    }
    // SAFETY: the caller keeps the contract.
    unsafe { real::close(fd) }
}

/// `close_range`.
///
/// # Safety
/// As the C function.
pub unsafe fn close_range(first: c_uint, last: c_uint, flags: c_int) -> c_int {
    /// CLOSE_RANGE_CLOEXEC of the kernel: closes nothing now.
    const CLOSE_ON_EXEC: c_int = 1 << 2;
    if !is_started() || flags & CLOSE_ON_EXEC != 0 || first > last {
        // SAFETY: the caller keeps the contract.
        return unsafe { real::close_range(first, last, flags) };
    }
    table::forget_range(first, last);
    // Around the library's own descriptors.
    let mut from = first;
    let mut result = 0;
    table::for_each_own(first, last, |own| {
        if own > from {
            // SAFETY: as above.
            result |= unsafe { real::close_range(from, own - 1, flags) };
        }
        from = own + 1;
    });
    if from <= last {
        // SAFETY: as above.
        result |= unsafe { real::close_range(from, last, flags) };
    }
    result
}

/// `closefrom`.
///
/// # Safety
/// As the C function.
pub unsafe fn closefrom(first: c_int) {
    // SAFETY: the caller keeps the contract.
    unsafe {
        if is_started() {
            close_range(first.max(0) as c_uint, c_uint::MAX, 0);
        } else {
            real::closefrom(first);
        }
    }
}

/// What a stream's descriptor was: libc closes it without calling our `close`.
unsafe fn forget_stream(stream: *mut FILE) {
    unsafe extern "C" {
        fn fileno_unlocked(stream: *mut FILE) -> c_int;
    }
    if is_started() && !stream.is_null() {
        // SAFETY: the caller's stream.
        let fd = unsafe { fileno_unlocked(stream) };
        if fd >= 0 {
            table::forget(fd, None);
        }
    }
}

/// `fclose`.
///
/// # Safety
/// As the C function.
pub unsafe fn fclose(stream: *mut FILE) -> c_int {
    // SAFETY: the caller keeps the contract.
    unsafe {
        forget_stream(stream);
        real::fclose(stream)
    }
}

/// `closedir`.
///
/// # Safety
/// As the C function.
pub unsafe fn closedir(directory: *mut libc::DIR) -> c_int {
    // SAFETY: the caller keeps the contract.
    unsafe {
        if is_started() && !directory.is_null() {
            table::forget(libc::dirfd(directory), None);
        }
        real::closedir(directory)
    }
}

/// `pclose`.
///
/// # Safety
/// As the C function.
pub unsafe fn pclose(stream: *mut FILE) -> c_int {
    // SAFETY: the caller keeps the contract.
    unsafe {
        forget_stream(stream);
        real::pclose(stream)
    }
}

/// `freopen`.
///
/// # Safety
/// As the C function.
pub unsafe fn freopen(path: *const c_char, mode: *const c_char, stream: *mut FILE) -> *mut FILE {
    // SAFETY: the caller keeps the contract.
    unsafe {
        forget_stream(stream);
        real::freopen(path, mode, stream)
    }
}

/// `freopen64`.
///
/// # Safety
/// As the C function.
pub unsafe fn freopen64(path: *const c_char, mode: *const c_char, stream: *mut FILE) -> *mut FILE {
    // SAFETY: the caller keeps the contract.
    unsafe {
        forget_stream(stream);
        real::freopen64(path, mode, stream)
    }
}

/// Notes that `new` is another number of `fd`'s description.
fn copied(fd: c_int, new: c_int) -> c_int {
    if new >= 0 && is_started() {
        table::share(fd);
        table::forget(new, Some(Made { shared: true, ..ANY }));
    }
    new
}

/// `dup`.
///
/// # Safety
/// As the C function.
pub unsafe fn dup(fd: c_int) -> c_int {
    // SAFETY: the caller keeps the contract.
    copied(fd, unsafe { real::dup(fd) })
}

/// Replaces `new` by a copy of `fd`.
fn replace(fd: c_int, new: c_int, call: impl FnOnce() -> c_int) -> c_int {
    if !is_started() || fd == new {
        return call();
    }
    if table::is_own(new) {
        Errno(libc::EBUSY).set();
        return -1;
    }
    // What was open under `new` is closed by the kernel, without an error to be seen.
    table::forget(new, None);
    copied(fd, call())
}

/// `dup2`. EBUSY: the number is one of the library's own.
///
/// # Safety
/// As the C function.
pub unsafe fn dup2(fd: c_int, new: c_int) -> c_int {
    // SAFETY: the caller keeps the contract.
    replace(fd, new, || unsafe { real::dup2(fd, new) })
}

/// `dup3`. EBUSY: the number is one of the library's own.
///
/// # Safety
/// As the C function.
pub unsafe fn dup3(fd: c_int, new: c_int, flags: c_int) -> c_int {
    // SAFETY: the caller keeps the contract.
    replace(fd, new, || unsafe { real::dup3(fd, new, flags) })
}

/// `fcntl`.
///
/// # Safety
/// As the C function.
pub unsafe fn fcntl(fd: c_int, command: c_int, argument: usize) -> c_int {
    // SAFETY: the caller keeps the contract.
    let result = unsafe { real::fcntl(fd, command, argument) };
    after_fcntl(fd, command, result)
}

/// `fcntl64`.
///
/// # Safety
/// As the C function.
pub unsafe fn fcntl64(fd: c_int, command: c_int, argument: usize) -> c_int {
    // SAFETY: the caller keeps the contract.
    let result = unsafe { real::fcntl64(fd, command, argument) };
    after_fcntl(fd, command, result)
}

fn after_fcntl(fd: c_int, command: c_int, result: c_int) -> c_int {
    if result >= 0 && is_started() {
        match command {
            libc::F_DUPFD | libc::F_DUPFD_CLOEXEC => return copied(fd, result),
            libc::F_SETFL => table::modes_changed_of(fd),
            _ => {}
        }
    }
    result
}

/// `ioctl`.
///
/// # Safety
/// As the C function.
pub unsafe fn ioctl(fd: c_int, request: u64, argument: usize) -> c_int {
    // SAFETY: the caller keeps the contract.
    let result = unsafe { real::ioctl(fd, request, argument) };
    if request == libc::FIONBIO && result >= 0 && is_started() {
        table::modes_changed_of(fd);
    }
    result
}

/// `setsockopt`.
///
/// # Safety
/// As the C function.
pub unsafe fn setsockopt(
    fd: c_int,
    level: c_int,
    option: c_int,
    value: *const c_void,
    length: socklen_t,
) -> c_int {
    /// SO_RCVTIMEO and SO_SNDTIMEO of the 64-bit time ABI.
    const RCVTIMEO_NEW: c_int = 66;
    const SNDTIMEO_NEW: c_int = 67;
    // SAFETY: the caller keeps the contract.
    let result = unsafe { real::setsockopt(fd, level, option, value, length) };
    if result != 0 {
        return result;
    }
    let timeout = match option {
        libc::SO_RCVTIMEO | RCVTIMEO_NEW => Some(Direction::Read),
        libc::SO_SNDTIMEO | SNDTIMEO_NEW => Some(Direction::Write),
        _ => None,
    };
    if let (libc::SOL_SOCKET, Some(direction)) = (level, timeout) {
        // Also before the start: connections inherit it.
        table::timeouts_are_used();
        if is_started() {
            // SAFETY: the kernel has just read a time from there; its seconds come first.
            let negative = unsafe { *value.cast::<i64>() } < 0;
            table::timeout_set(fd, direction, negative);
        }
    }
    if level == libc::IPPROTO_TCP
        && option == libc::TCP_ULP
        && let Some(entry) = table::entry(fd)
    {
        // Records, not bytes: a short receive does not mean that there is no more.
        drop(entry.lock());
        entry.make_sticky();
    }
    result
}

/// `shutdown`.
///
/// # Safety
/// As the C function.
pub unsafe fn shutdown(fd: c_int, how: c_int) -> c_int {
    // SAFETY: the caller keeps the contract.
    let result = unsafe { real::shutdown(fd, how) };
    if result == 0 && how != libc::SHUT_WR && is_started() {
        table::peer_may_be_gone();
    }
    result
}

/// `socket`.
///
/// # Safety
/// As the C function.
pub unsafe fn socket(domain: c_int, kind: c_int, protocol: c_int) -> c_int {
    // SAFETY: the caller keeps the contract.
    let fd = unsafe { real::socket(domain, kind, protocol) };
    let base = kind & !(libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC);
    let is_tcp = matches!(domain, libc::AF_INET | libc::AF_INET6)
        && base == libc::SOCK_STREAM
        && matches!(protocol, 0 | libc::IPPROTO_TCP);
    let what = if is_tcp { Kind::Tcp } else { Kind::Socket };
    made(fd, fresh(what, kind & libc::SOCK_NONBLOCK != 0))
}

/// Notes both descriptors of a pair.
unsafe fn made_pair(result: c_int, pair: *mut c_int, what: Made) -> c_int {
    if result == 0 {
        // SAFETY: the call has filled the caller's array.
        unsafe {
            made(*pair, what);
            made(*pair.add(1), what);
        }
    }
    result
}

/// `socketpair`.
///
/// # Safety
/// As the C function.
pub unsafe fn socketpair(domain: c_int, kind: c_int, protocol: c_int, pair: *mut c_int) -> c_int {
    // SAFETY: the caller keeps the contract.
    unsafe {
        let result = real::socketpair(domain, kind, protocol, pair);
        made_pair(result, pair, fresh(Kind::Socket, kind & libc::SOCK_NONBLOCK != 0))
    }
}

/// `pipe`.
///
/// # Safety
/// As the C function.
pub unsafe fn pipe(pair: *mut c_int) -> c_int {
    // SAFETY: the caller keeps the contract.
    unsafe { made_pair(real::pipe(pair), pair, fresh(Kind::Stream, false)) }
}

/// `pipe2`.
///
/// # Safety
/// As the C function.
pub unsafe fn pipe2(pair: *mut c_int, flags: c_int) -> c_int {
    let what = fresh(Kind::Stream, flags & libc::O_NONBLOCK != 0);
    // SAFETY: the caller keeps the contract.
    unsafe { made_pair(real::pipe2(pair, flags), pair, what) }
}

/// Defines calls that make one descriptor of which nothing else is known.
macro_rules! makers {
    ($($name:ident($($arg:ident: $ty:ty),*);)*) => {$(
        #[doc = concat!("`", stringify!($name), "`.")]
        ///
        /// # Safety
        /// As the C function.
        pub unsafe fn $name($($arg: $ty),*) -> c_int {
            // SAFETY: the caller keeps the contract.
            made(unsafe { real::$name($($arg),*) }, ANY)
        }
    )*};
}

makers! {
    open(path: *const c_char, flags: c_int, mode: mode_t);
    open64(path: *const c_char, flags: c_int, mode: mode_t);
    openat(directory: c_int, path: *const c_char, flags: c_int, mode: mode_t);
    openat64(directory: c_int, path: *const c_char, flags: c_int, mode: mode_t);
    creat(path: *const c_char, mode: mode_t);
    creat64(path: *const c_char, mode: mode_t);
    __open_2(path: *const c_char, flags: c_int);
    __open64_2(path: *const c_char, flags: c_int);
    __openat_2(directory: c_int, path: *const c_char, flags: c_int);
    __openat64_2(directory: c_int, path: *const c_char, flags: c_int);
    eventfd(value: c_uint, flags: c_int);
    timerfd_create(clock: c_int, flags: c_int);
    inotify_init();
    inotify_init1(flags: c_int);
    memfd_create(name: *const c_char, flags: c_uint);
    epoll_create(size: c_int);
    epoll_create1(flags: c_int);
    posix_openpt(flags: c_int);
}

/// `signalfd`: with a descriptor, it changes that one's mask.
///
/// # Safety
/// As the C function.
pub unsafe fn signalfd(fd: c_int, mask: *const sigset_t, flags: c_int) -> c_int {
    // SAFETY: the caller keeps the contract.
    let result = unsafe { real::signalfd(fd, mask, flags) };
    if fd == -1 { made(result, ANY) } else { result }
}
