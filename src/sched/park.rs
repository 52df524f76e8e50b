//! What a coroutine can do with its scheduler: wait, sleep, give way.

use super::{Post, leave, timers::Timers};
use crate::coroutine::Coroutine;
use crate::coroutine::wake::Reason;
use crate::sys::critical;

/// The calling coroutine is about to put itself into containers. Until its wait has ended, or it takes this
/// back, no signal handler runs on it: the handler could park too.
#[inline]
pub fn arm(coroutine: &Coroutine) {
    critical::enter();
    coroutine.wake.arm();
}

/// Takes [`arm`] back: it is in no container.
#[inline]
pub fn disarm(coroutine: &Coroutine) {
    coroutine.wake.disarm();
    critical::leave();
}

/// Waits until the coroutine is woken or the deadline has passed.
///
/// The caller has armed the coroutine and put it into its containers, and afterwards takes it out of
/// each of them. `coroutine` is the calling one.
#[inline]
pub fn park(coroutine: &Coroutine, deadline: Option<u64>) -> Reason {
    if let Some(deadline) = deadline {
        super::bound(coroutine, deadline);
    }
    coroutine.has_parked.set(true);
    if !coroutine.wake.is_woken() {
        leave(coroutine, Post::Park);
    }
    let reason = coroutine.wake.take_reason();
    if deadline.is_some() {
        Timers::remove(coroutine);
    }
    critical::leave();
    reason
}

/// Sleeps until the deadline. `coroutine` is the calling one.
pub fn sleep_until(coroutine: &Coroutine, deadline: u64) {
    arm(coroutine);
    park(coroutine, Some(deadline));
}

/// Gives way to every coroutine that is ready. `coroutine` is the calling one.
pub fn yield_now(coroutine: &Coroutine) {
    leave(coroutine, Post::Yield);
}
