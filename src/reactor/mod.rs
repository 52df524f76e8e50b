//! The reactor: epoll, what is known of each descriptor, and who waits on it.
//!
//! * [`epoll`] gives a scheduler's sleep its end and turns events into wake-ups.
//! * [`table`] holds one [`table::Entry`] per descriptor number.
//! * [`mod@wait`] parks a coroutine until a descriptor may be ready.
//!
//! A descriptor is registered once, edge-triggered for both directions, with the epoll instance of the
//! scheduler on which somebody first waits for it. Events are remembered in the entry: each direction
//! has a word that holds "may be ready" and a tick that every event increments. A coroutine reads the
//! word before it tries the call and passes it to [`wait::until_ready`], which refuses to park if the
//! word has changed: the event that makes the difference is never lost.

pub mod epoll;
pub mod table;
pub mod wait;
