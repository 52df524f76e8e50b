//! The epoll instance of a scheduler.

use super::table;
use crate::coroutine::Coroutine;
use crate::sys::linux::syscall;
use crate::sys::time;
use core::mem::MaybeUninit;
use core::sync::atomic::{AtomicBool, Ordering};

/// The data of the wake-up descriptor's events; descriptors' data is below.
pub const WAKEUP: u64 = u64::MAX;

const EVENTS: usize = 512;

/// Where epoll_wait writes.
pub struct EventBuffer([MaybeUninit<libc::epoll_event>; EVENTS]);

impl EventBuffer {
    /// An empty buffer.
    pub fn new() -> Self {
        Self([const { MaybeUninit::uninit() }; EVENTS])
    }

    /// Sleeps until an event or for `timeout` nanoseconds (`None`: for ever); returns the number of
    /// events. An interruption by a signal is no event.
    pub fn wait(&mut self, epoll: i32, timeout: Option<u64>) -> usize {
        /// Linux before 5.11 has no epoll_pwait2.
        static MILLISECONDS_ONLY: AtomicBool = AtomicBool::new(false);
        let buffer = self.0.as_mut_ptr();
        if let Some(span) = timeout
            && span != 0
            && !MILLISECONDS_ONLY.load(Ordering::Relaxed)
        {
            let time = time::to_timespec(span);
            // SAFETY: the buffer holds EVENTS events and `time` lives through the call.
            let result =
                unsafe { syscall!(epoll_pwait2, epoll, buffer, EVENTS, &raw const time, 0, 0) };
            match result {
                Err(error) if error.0 == libc::ENOSYS || error.0 == libc::EPERM => {
                    MILLISECONDS_ONLY.store(true, Ordering::Relaxed);
                }
                result => return result.unwrap_or(0),
            }
        }
        let milliseconds: i32 = match timeout {
            None => -1,
            // Rounded up: rounding down would spin until the deadline.
            Some(span) => span.div_ceil(1_000_000).min(i32::MAX as u64) as i32,
        };
        // SAFETY: as above.
        unsafe { syscall!(epoll_pwait, epoll, buffer, EVENTS, milliseconds, 0, 0) }.unwrap_or(0)
    }

    /// Turns the first `count` events into wake-ups; coroutines to be made ready go to `schedule`.
    pub fn dispatch(&self, count: usize, mut schedule: impl FnMut(&'static Coroutine)) {
        for event in &self.0[..count] {
            // SAFETY: the kernel wrote `count` events.
            let event = unsafe { event.assume_init() };
            let data = event.u64;
            if data == WAKEUP {
                continue;
            }
            table::event(data as u32 as i32, (data >> 32) as u32, event.events, &mut schedule);
        }
    }
}

impl Default for EventBuffer {
    fn default() -> Self {
        Self::new()
    }
}
