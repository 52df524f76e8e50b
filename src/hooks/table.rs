//! The table of exported symbols.

use super::hooks;
use crate::coroutine::Start;
use crate::{posix, pthread};
use core::ffi::{c_char, c_int, c_uint, c_void};
use libc::{
    FILE, clockid_t, fd_set, iovec, mmsghdr, mode_t, msghdr, nfds_t, pollfd, pthread_attr_t,
    pthread_t, sigset_t, size_t, sockaddr, socklen_t, ssize_t, timespec, timeval,
};

hooks! {
    // pthread: life of a thread
    every fn pthread_create(thread: *mut pthread_t, attr: *const pthread_attr_t, start: Start, argument: *mut c_void) -> c_int = pthread::create::create;
    every fn pthread_join(thread: pthread_t, result: *mut *mut c_void) -> c_int = pthread::join::join;
    every fn pthread_tryjoin_np(thread: pthread_t, result: *mut *mut c_void) -> c_int = pthread::join::tryjoin;
    every fn pthread_timedjoin_np(thread: pthread_t, result: *mut *mut c_void, time: *const timespec) -> c_int = pthread::join::timedjoin;
    every fn pthread_clockjoin_np(thread: pthread_t, result: *mut *mut c_void, clock: clockid_t, time: *const timespec) -> c_int = pthread::join::clockjoin;
    every fn pthread_detach(thread: pthread_t) -> c_int = pthread::join::detach;
    every fn pthread_exit(value: *mut c_void) -> ! = pthread::exit::exit;
    every fn pthread_getattr_np(thread: pthread_t, attr: *mut pthread_attr_t) -> c_int = pthread::attr::getattr;
    every fn pthread_setname_np(thread: pthread_t, name: *const c_char) -> c_int = pthread::name::setname;
    every fn pthread_getname_np(thread: pthread_t, name: *mut c_char, length: size_t) -> c_int = pthread::name::getname;
    green fn gettid() -> libc::pid_t = pthread::name::gettid;
    every fn tgkill(process: libc::pid_t, thread: libc::pid_t, signal: c_int) -> c_int = pthread::signal::tgkill;
    every fn pthread_kill(thread: pthread_t, signal: c_int) -> c_int = pthread::signal::kill;

    // input and output
    green fn read(fd: c_int, buffer: *mut c_void, count: size_t) -> ssize_t = posix::io::read;
    green fn write(fd: c_int, buffer: *const c_void, count: size_t) -> ssize_t = posix::io::write;
    green fn readv(fd: c_int, vectors: *const iovec, count: c_int) -> ssize_t = posix::io::readv;
    green fn writev(fd: c_int, vectors: *const iovec, count: c_int) -> ssize_t = posix::io::writev;
    green fn recv(fd: c_int, buffer: *mut c_void, length: size_t, flags: c_int) -> ssize_t = posix::socket::recv;
    green fn recvfrom(fd: c_int, buffer: *mut c_void, length: size_t, flags: c_int, address: *mut sockaddr, address_length: *mut socklen_t) -> ssize_t = posix::socket::recvfrom;
    green fn recvmsg(fd: c_int, message: *mut msghdr, flags: c_int) -> ssize_t = posix::message::recvmsg;
    green fn recvmmsg(fd: c_int, messages: *mut mmsghdr, count: c_uint, flags: c_int, timeout: *mut timespec) -> c_int = posix::message::recvmmsg;
    green fn send(fd: c_int, buffer: *const c_void, length: size_t, flags: c_int) -> ssize_t = posix::socket::send;
    green fn sendto(fd: c_int, buffer: *const c_void, length: size_t, flags: c_int, address: *const sockaddr, address_length: socklen_t) -> ssize_t = posix::socket::sendto;
    green fn sendmsg(fd: c_int, message: *const msghdr, flags: c_int) -> ssize_t = posix::message::sendmsg;
    green fn sendmmsg(fd: c_int, messages: *mut mmsghdr, count: c_uint, flags: c_int) -> c_int = posix::message::sendmmsg;
    green fn connect(fd: c_int, address: *const sockaddr, length: socklen_t) -> c_int = posix::connect::connect;
    every fn accept(fd: c_int, address: *mut sockaddr, length: *mut socklen_t) -> c_int = posix::accept::accept;
    every fn accept4(fd: c_int, address: *mut sockaddr, length: *mut socklen_t, flags: c_int) -> c_int = posix::accept::accept4;
    green fn poll(fds: *mut pollfd, count: nfds_t, timeout: c_int) -> c_int = posix::poll::poll;
    green fn ppoll(fds: *mut pollfd, count: nfds_t, timeout: *const timespec, mask: *const sigset_t) -> c_int = posix::poll::ppoll;
    green fn select(count: c_int, read: *mut fd_set, write: *mut fd_set, except: *mut fd_set, timeout: *mut timeval) -> c_int = posix::poll::select;
    green fn pselect(count: c_int, read: *mut fd_set, write: *mut fd_set, except: *mut fd_set, timeout: *const timespec, mask: *const sigset_t) -> c_int = posix::poll::pselect;

    // fortified twins
    green fn __read_chk(fd: c_int, buffer: *mut c_void, count: size_t, room: size_t) -> ssize_t = super::chk::read;
    green fn __recv_chk(fd: c_int, buffer: *mut c_void, length: size_t, room: size_t, flags: c_int) -> ssize_t = super::chk::recv;
    green fn __recvfrom_chk(fd: c_int, buffer: *mut c_void, length: size_t, room: size_t, flags: c_int, address: *mut sockaddr, address_length: *mut socklen_t) -> ssize_t = super::chk::recvfrom;
    green fn __poll_chk(fds: *mut pollfd, count: nfds_t, timeout: c_int, room: size_t) -> c_int = super::chk::poll;
    green fn __ppoll_chk(fds: *mut pollfd, count: nfds_t, timeout: *const timespec, mask: *const sigset_t, room: size_t) -> c_int = super::chk::ppoll;

    // other names of the same
    green fn __read(fd: c_int, buffer: *mut c_void, count: size_t) -> ssize_t = posix::io::read;
    green fn __write(fd: c_int, buffer: *const c_void, count: size_t) -> ssize_t = posix::io::write;
    green fn __send(fd: c_int, buffer: *const c_void, length: size_t, flags: c_int) -> ssize_t = posix::socket::send;
    green fn __connect(fd: c_int, address: *const sockaddr, length: socklen_t) -> c_int = posix::connect::connect;
    green fn __poll(fds: *mut pollfd, count: nfds_t, timeout: c_int) -> c_int = posix::poll::poll;
    green fn __select(count: c_int, read: *mut fd_set, write: *mut fd_set, except: *mut fd_set, timeout: *mut timeval) -> c_int = posix::poll::select;
    every fn __close(fd: c_int) -> c_int = posix::fd::close;
    every fn __dup2(fd: c_int, new: c_int) -> c_int = posix::fd::dup2;
    every fn __fcntl(fd: c_int, command: c_int, argument: usize) -> c_int = posix::fd::fcntl;
    every fn __open(path: *const c_char, flags: c_int, mode: mode_t) -> c_int = posix::fd::open;
    every fn __open64(path: *const c_char, flags: c_int, mode: mode_t) -> c_int = posix::fd::open64;
    every fn __pipe(pair: *mut c_int) -> c_int = posix::fd::pipe;
    every fn __sigaction(number: c_int, new: *const libc::sigaction, old: *mut libc::sigaction) -> c_int = posix::signal::sigaction;
    green fn __nanosleep(time: *const timespec, rest: *mut timespec) -> c_int = posix::time::nanosleep;
    green fn __sched_yield() -> c_int = posix::time::sched_yield;

    // life of a descriptor
    every fn close(fd: c_int) -> c_int = posix::fd::close;
    every fn close_range(first: c_uint, last: c_uint, flags: c_int) -> c_int = posix::fd::close_range;
    every fn closefrom(first: c_int) = posix::fd::closefrom;
    every fn fclose(stream: *mut FILE) -> c_int = posix::fd::fclose;
    every fn closedir(directory: *mut libc::DIR) -> c_int = posix::fd::closedir;
    every fn pclose(stream: *mut FILE) -> c_int = posix::fd::pclose;
    every fn freopen(path: *const c_char, mode: *const c_char, stream: *mut FILE) -> *mut FILE = posix::fd::freopen;
    every fn freopen64(path: *const c_char, mode: *const c_char, stream: *mut FILE) -> *mut FILE = posix::fd::freopen64;
    every fn dup(fd: c_int) -> c_int = posix::fd::dup;
    every fn dup2(fd: c_int, new: c_int) -> c_int = posix::fd::dup2;
    every fn dup3(fd: c_int, new: c_int, flags: c_int) -> c_int = posix::fd::dup3;
    every fn fcntl(fd: c_int, command: c_int, argument: usize) -> c_int = posix::fd::fcntl;
    every fn fcntl64(fd: c_int, command: c_int, argument: usize) -> c_int = posix::fd::fcntl64;
    every fn ioctl(fd: c_int, request: u64, argument: usize) -> c_int = posix::fd::ioctl;
    every fn setsockopt(fd: c_int, level: c_int, option: c_int, value: *const c_void, length: socklen_t) -> c_int = posix::fd::setsockopt;
    every fn shutdown(fd: c_int, how: c_int) -> c_int = posix::fd::shutdown;
    every fn socket(domain: c_int, kind: c_int, protocol: c_int) -> c_int = posix::fd::socket;
    every fn socketpair(domain: c_int, kind: c_int, protocol: c_int, pair: *mut c_int) -> c_int = posix::fd::socketpair;
    every fn pipe(pair: *mut c_int) -> c_int = posix::fd::pipe;
    every fn pipe2(pair: *mut c_int, flags: c_int) -> c_int = posix::fd::pipe2;
    every fn open(path: *const c_char, flags: c_int, mode: mode_t) -> c_int = posix::fd::open;
    every fn open64(path: *const c_char, flags: c_int, mode: mode_t) -> c_int = posix::fd::open64;
    every fn openat(directory: c_int, path: *const c_char, flags: c_int, mode: mode_t) -> c_int = posix::fd::openat;
    every fn openat64(directory: c_int, path: *const c_char, flags: c_int, mode: mode_t) -> c_int = posix::fd::openat64;
    every fn __open_2(path: *const c_char, flags: c_int) -> c_int = posix::fd::__open_2;
    every fn __open64_2(path: *const c_char, flags: c_int) -> c_int = posix::fd::__open64_2;
    every fn __openat_2(directory: c_int, path: *const c_char, flags: c_int) -> c_int = posix::fd::__openat_2;
    every fn __openat64_2(directory: c_int, path: *const c_char, flags: c_int) -> c_int = posix::fd::__openat64_2;
    every fn creat(path: *const c_char, mode: mode_t) -> c_int = posix::fd::creat;
    every fn creat64(path: *const c_char, mode: mode_t) -> c_int = posix::fd::creat64;
    every fn eventfd(value: c_uint, flags: c_int) -> c_int = posix::fd::eventfd;
    every fn timerfd_create(clock: c_int, flags: c_int) -> c_int = posix::fd::timerfd_create;
    every fn signalfd(fd: c_int, mask: *const sigset_t, flags: c_int) -> c_int = posix::fd::signalfd;
    every fn inotify_init() -> c_int = posix::fd::inotify_init;
    every fn inotify_init1(flags: c_int) -> c_int = posix::fd::inotify_init1;
    every fn memfd_create(name: *const c_char, flags: c_uint) -> c_int = posix::fd::memfd_create;
    every fn epoll_create(size: c_int) -> c_int = posix::fd::epoll_create;
    every fn epoll_create1(flags: c_int) -> c_int = posix::fd::epoll_create1;
    every fn posix_openpt(flags: c_int) -> c_int = posix::fd::posix_openpt;

    // signals (`longjmp` and its kin are in `arch`)
    green fn pthread_sigmask(how: c_int, new: *const sigset_t, old: *mut sigset_t) -> c_int = pthread::sigmask::pthread_sigmask;
    green fn sigprocmask(how: c_int, new: *const sigset_t, old: *mut sigset_t) -> c_int = pthread::sigmask::sigprocmask;
    every fn sigaction(number: c_int, new: *const libc::sigaction, old: *mut libc::sigaction) -> c_int = posix::signal::sigaction;
    every fn signal(number: c_int, handler: libc::sighandler_t) -> libc::sighandler_t = posix::signal::signal;
    green fn sigaltstack(new: *const libc::stack_t, old: *mut libc::stack_t) -> c_int = posix::signal::sigaltstack;

    // the loader (`dlopen` is in `arch`)
    every fn dlclose(library: *mut c_void) -> c_int = crate::sys::tls_image::dlclose;

    // processes (`vfork` is in `arch`)
    every fn _Fork() -> c_int = crate::init::fork_without_handlers;

    // time
    green fn sleep(seconds: c_uint) -> c_uint = posix::time::sleep;
    green fn usleep(microseconds: c_uint) -> c_int = posix::time::usleep;
    green fn nanosleep(time: *const timespec, rest: *mut timespec) -> c_int = posix::time::nanosleep;
    green fn clock_nanosleep(clock: clockid_t, flags: c_int, time: *const timespec, rest: *mut timespec) -> c_int = posix::time::clock_nanosleep;
    green fn sched_yield() -> c_int = posix::time::sched_yield;
    green fn pthread_yield() -> c_int = posix::time::sched_yield;
    green fn thrd_yield() = posix::time::thrd_yield;
}
