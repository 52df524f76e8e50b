//! Every option: its variable, its default, its check. Read once, in the constructor.
//!
//! | variable | values | default |
//! | --- | --- | --- |
//! | `PRELOOM_WORKERS` | 1 to 1024 | CPUs in the affinity mask |
//! | `PRELOOM_STACK` | 16K to 1G, bytes or with K, M, G | RLIMIT_STACK, as glibc; 8 MiB if unlimited |
//! | `PRELOOM_THREADS` | `green`, `native` | `green` |
//! | `PRELOOM_STATS` | 0, 1 | 0 |

use crate::sys::errno::Errno;
use crate::sys::glibc;
use crate::sys::report::report;
use core::cell::UnsafeCell;
use core::ffi::{CStr, c_char};

/// The options in force.
pub struct Config {
    /// Schedulers, each with a carrier.
    pub workers: usize,
    /// Bytes of a coroutine's stack when its attributes do not say.
    pub stack_size: usize,
    /// `pthread_create` makes coroutines.
    pub green: bool,
    /// Print counters at exit.
    pub stats: bool,
}

struct Storage(UnsafeCell<Config>);
// SAFETY: written in the constructor, before the program can create a thread; read afterwards.
unsafe impl Sync for Storage {}

static CONFIG: Storage =
    Storage(UnsafeCell::new(Config { workers: 1, stack_size: 8 << 20, green: true, stats: false }));

/// The options.
#[inline]
pub fn get() -> &'static Config {
    // SAFETY: see `Storage`.
    unsafe { &*CONFIG.0.get() }
}

/// Reads the environment. A bad value is reported and ends the process with status 2, before the
/// program has started.
pub fn load() {
    let config = Config {
        workers: option(c"PRELOOM_WORKERS", "1 to 1024", |value| {
            number(value).filter(|count| (1..=1024).contains(count))
        })
        .unwrap_or_else(glibc::cpus),
        stack_size: option(c"PRELOOM_STACK", "16K to 1G, bytes or with K, M or G", |value| {
            size(value).filter(|size| (16 << 10..=1 << 30).contains(size))
        })
        .unwrap_or_else(default_stack),
        green: option(c"PRELOOM_THREADS", "green or native", |value| match value {
            "green" => Some(true),
            "native" => Some(false),
            _ => None,
        })
        .unwrap_or(true),
        stats: option(c"PRELOOM_STATS", "0 or 1", |value| match value {
            "0" => Some(false),
            "1" => Some(true),
            _ => None,
        })
        .unwrap_or(false),
    };
    // SAFETY: see `Storage`.
    unsafe { *CONFIG.0.get() = config };
}

/// The program cannot have coroutines; its threads are native.
pub fn fall_back_to_native() {
    // SAFETY: see `Storage`; called from the constructor, or by the first `pthread_create`.
    unsafe { (*CONFIG.0.get()).green = false };
}

fn option<T>(name: &CStr, allowed: &str, parse: impl Fn(&str) -> Option<T>) -> Option<T> {
    // SAFETY: a valid C string; nobody changes the environment during the constructor.
    let value: *const c_char = unsafe { libc::getenv(name.as_ptr()) };
    if value.is_null() {
        return None;
    }
    // SAFETY: `getenv` gives C strings.
    let value = unsafe { CStr::from_ptr(value) };
    let parsed = value.to_str().ok().and_then(parse);
    if parsed.is_none() {
        report!(
            "{}={} is not valid: allowed is {allowed}",
            name.to_str().unwrap_or(""),
            value.to_str().unwrap_or("(not UTF-8)")
        );
        // SAFETY: ends the process.
        let _ = unsafe { crate::sys::linux::syscall!(exit_group, 2) };
    }
    parsed
}

fn number(text: &str) -> Option<usize> {
    if text.starts_with('+') { None } else { text.parse().ok() }
}

fn size(text: &str) -> Option<usize> {
    let unit = match text.as_bytes().last()? {
        b'K' | b'k' => 1 << 10,
        b'M' | b'm' => 1 << 20,
        b'G' | b'g' => 1 << 30,
        _ => return number(text),
    };
    number(&text[..text.len() - 1])?.checked_mul(unit)
}

/// What glibc would use: RLIMIT_STACK, or 8 MiB where that is unlimited.
fn default_stack() -> usize {
    const UNLIMITED: usize = 8 << 20;
    let mut limit = libc::rlimit64 { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: `limit` is writable.
    let known: Result<usize, Errno> =
        unsafe { crate::sys::linux::syscall!(prlimit64, 0, libc::RLIMIT_STACK, 0, &raw mut limit) };
    if known.is_err() || limit.rlim_cur == libc::RLIM64_INFINITY {
        return UNLIMITED;
    }
    (limit.rlim_cur as usize).clamp(16 << 10, 1 << 30)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_take_a_unit() {
        assert_eq!(size("65536"), Some(65536));
        assert_eq!(size("64K"), Some(65536));
        assert_eq!(size("8m"), Some(8 << 20));
        assert_eq!(size("1G"), Some(1 << 30));
    }

    #[test]
    fn nonsense_is_no_size() {
        for text in ["", "K", "-1", "+1", "1T", "1 K", "99999999999G", "0x10"] {
            assert_eq!(size(text), None, "{text}");
        }
    }
}
