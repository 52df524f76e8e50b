//! Deadlines: a red-black tree per scheduler, whose nodes lie inside the coroutines.
//!
//! A coroutine inserts its node into the tree of the scheduler that runs it. It may be woken by
//! something else and run on elsewhere, so it removes the node under that tree's lock. Expiry claims the
//! coroutine under the same lock (see [`crate::coroutine::wake`]).

use crate::coroutine::Coroutine;
use crate::coroutine::wake::{Claim, Reason};
use crate::sys::spin::SpinLock;
use core::cell::Cell;
use core::sync::atomic::{AtomicU64, Ordering};
use intrusive_collections::{KeyAdapter, RBTree, RBTreeLink, UnsafeRef, intrusive_adapter};

/// The node inside a coroutine.
pub struct TimerNode {
    link: RBTreeLink,
    /// Deadline and, among equals, the order of insertion.
    key: Cell<(u64, u64)>,
    tree: Cell<*const Timers>,
}

impl TimerNode {
    /// A node in no tree.
    pub const fn new() -> Self {
        Self { link: RBTreeLink::new(), key: Cell::new((0, 0)), tree: Cell::new(core::ptr::null()) }
    }
}

impl Default for TimerNode {
    fn default() -> Self {
        Self::new()
    }
}

intrusive_adapter!(TimerAdapter = UnsafeRef<TimerNode>: TimerNode { link => RBTreeLink });

impl KeyAdapter<'_> for TimerAdapter {
    type Key = (u64, u64);
    fn get_key(&self, node: &TimerNode) -> Self::Key {
        node.key.get()
    }
}

/// "No deadline."
pub const NEVER: u64 = u64::MAX;

struct Tree {
    nodes: RBTree<TimerAdapter>,
    sequence: u64,
}

/// A scheduler's deadlines.
pub struct Timers {
    tree: SpinLock<Tree>,
    /// The earliest deadline, to be read without the lock; [`NEVER`] when there is none.
    earliest: AtomicU64,
}

impl Timers {
    /// No deadlines.
    pub fn new() -> Self {
        Self {
            tree: SpinLock::new(Tree { nodes: RBTree::new(TimerAdapter::new()), sequence: 0 }),
            earliest: AtomicU64::new(NEVER),
        }
    }

    /// The earliest deadline, or [`NEVER`].
    #[inline]
    pub fn earliest(&self) -> u64 {
        self.earliest.load(Ordering::Relaxed)
    }

    /// Bounds the wait of the calling coroutine, which is armed. True if no deadline here is earlier.
    pub fn insert(&self, coroutine: &Coroutine, deadline: u64) -> bool {
        let node = &coroutine.timer;
        let mut tree = self.tree.lock();
        tree.sequence += 1;
        node.key.set((deadline, tree.sequence));
        node.tree.set(&raw const *self);
        // SAFETY: the node lives inside the coroutine, which takes it out before its wait ends.
        tree.nodes.insert(unsafe { UnsafeRef::from_raw(&raw const *node) });
        let is_earliest = deadline < self.earliest.load(Ordering::Relaxed);
        if is_earliest {
            self.earliest.store(deadline, Ordering::Relaxed);
        }
        is_earliest
    }

    /// Takes the calling coroutine out of the tree that it is in, if it still is.
    pub fn remove(coroutine: &Coroutine) {
        let node = &coroutine.timer;
        // SAFETY: set by `insert`; schedulers live as long as the process.
        let timers = unsafe { &*node.tree.get() };
        let mut tree = timers.tree.lock();
        if node.link.is_linked() {
            // SAFETY: a linked node is in the tree that it names, whose lock we hold.
            unsafe { tree.nodes.cursor_mut_from_ptr(&raw const *node) }.remove();
            timers.update_earliest(&tree);
        }
    }

    fn update_earliest(&self, tree: &Tree) {
        let earliest = tree.nodes.front().get().map_or(NEVER, |node| node.key.get().0);
        self.earliest.store(earliest, Ordering::Relaxed);
    }

    /// Claims every coroutine whose deadline is not after `now` and gives those to be made ready to
    /// `schedule`, which must not touch the tree.
    pub fn expire(&self, now: u64, mut schedule: impl FnMut(&'static Coroutine)) {
        let mut tree = self.tree.lock();
        loop {
            let mut first = tree.nodes.front_mut();
            if first.get().is_none_or(|node| node.key.get().0 > now) {
                break;
            }
            let Some(node) = first.remove() else { break };
            let offset = memoffset::offset_of!(Coroutine, timer);
            // SAFETY: every node lies inside a coroutine, at that offset, and the coroutine cannot
            // end before it has taken the lock that we hold.
            let coroutine: &'static Coroutine =
                unsafe { &*UnsafeRef::into_raw(node).byte_sub(offset).cast::<Coroutine>() };
            if coroutine.wake.claim(Reason::Timeout) == Claim::Schedule {
                schedule(coroutine);
            }
        }
        self.update_earliest(&tree);
    }
}

impl Default for Timers {
    fn default() -> Self {
        Self::new()
    }
}
