//! The memory of coroutines, pooled: a head and a slot each.
//!
//! ```text
//! head:  static TLS │ TCB (struct pthread) │ Coroutine        about 5 KiB, packed
//! slot:  guard │ stack, growing down                          8 MiB of address space, as glibc's
//! ```
//!
//! Every switch touches the head, so heads lie close together, in huge pages where the kernel gives them: a
//! page of translation serves hundreds. Stacks lie far apart, and only their hot ends are ever touched.
//!
//! Slots of one size are cut from slabs. A guard page is installed without splitting the mapping
//! where the kernel can (`MADV_GUARD_INSTALL`), so the number of mappings does not grow with the number
//! of stacks. Slabs of large slots begin half a page table (1 MiB) off alignment, so that a slot's hot
//! end and the next slot's guard share a page of page tables.
//!
//! Neither is ever unmapped: a `pthread_t` of a dead coroutine can still be looked at, and the malloc
//! cache in its TLS cannot be given back from outside; both are used again. What a deep stack touched is
//! given back to the kernel when the slot returns to the pool.

use super::{Coroutine, life, wake::WakeWord};
use crate::config;
use crate::sched::timers::TimerNode;
use crate::sys::errno::{Errno, Result};
use crate::sys::glibc;
use crate::sys::linux::{self, syscall};
use crate::sys::spin::SpinLock;
use crate::sys::{current, tls_image};
use core::cell::{Cell, UnsafeCell};
use core::sync::atomic::{AtomicBool, AtomicI32, AtomicPtr, AtomicU32, Ordering};
use intrusive_collections::LinkedListLink;

const PAGE: usize = 4096;
/// Linux 6.13: makes pages that fault on access, without a mapping of their own.
const MADV_GUARD_INSTALL: i32 = 102;
/// The kernel's ids end below this (PID_MAX_LIMIT); ours begin there.
const FIRST_TID: i32 = 1 << 22;
/// Different (size, guard) pairs that have a pool of their own.
const CLASSES: usize = 256;
/// Slabs are about this large, or one slot if that is larger.
const SLAB: usize = 64 << 20;
const LARGE_SLAB_SLOTS: usize = 32;

/// Where a coroutine's memory came from.
#[derive(Clone, Copy)]
pub struct Slot {
    /// Lowest address, that of the guard.
    pub base: usize,
    /// Bytes of guard and stack.
    pub size: usize,
    /// Bytes of guard.
    pub guard: usize,
    /// The pool it belongs to.
    class: u32,
}

/// What is asked for.
#[derive(Clone, Copy)]
pub struct Request {
    /// Bytes of stack; `None`: the default size.
    pub size: Option<usize>,
    /// Bytes of guard below it.
    pub guard: usize,
    /// A stack of the program's own: lowest address and size.
    pub own_stack: Option<(usize, usize)>,
}

struct Class {
    size: usize,
    guard: usize,
    free: *mut Coroutine,
    /// The part of the last slab that was not cut yet.
    uncut: usize,
    uncut_end: usize,
}

// SAFETY: reached under the lock of POOL only.
unsafe impl Send for Class {}

const NO_CLASS: Class =
    Class { size: 0, guard: 0, free: core::ptr::null_mut(), uncut: 0, uncut_end: 0 };
static POOL: SpinLock<[Class; CLASSES]> = SpinLock::new([NO_CLASS; CLASSES]);
static NEXT_TID: AtomicI32 = AtomicI32::new(FIRST_TID + 1);
static NO_GUARD_REGIONS: AtomicBool = AtomicBool::new(false);

/// The coroutine of each thread id, in lazily touched memory: ids are given out in order, one per slot.
static BY_TID: AtomicPtr<AtomicPtr<Coroutine>> = AtomicPtr::new(core::ptr::null_mut());
/// Thread ids that there can be.
const TIDS: usize = 1 << 22;

fn by_tid() -> Result<&'static [AtomicPtr<Coroutine>]> {
    let mut table = BY_TID.load(Ordering::Acquire);
    if table.is_null() {
        let size = TIDS * size_of::<usize>();
        let fresh = linux::map(size).map_err(|_| Errno(libc::EAGAIN))?.cast();
        table = fresh;
        if let Err(other) = BY_TID.compare_exchange(
            core::ptr::null_mut(),
            fresh,
            Ordering::AcqRel,
            Ordering::Acquire,
        ) {
            // SAFETY: ours, and nobody has seen it.
            unsafe { linux::unmap(fresh.cast(), size) };
            table = other;
        }
    }
    // SAFETY: a mapping of that many pointers, zero until set, never removed.
    Ok(unsafe { core::slice::from_raw_parts(table, TIDS) })
}

/// The coroutine with this thread id, alive or not; `None` if there never was one.
pub fn with_tid(tid: i32) -> Option<&'static Coroutine> {
    let index = usize::try_from(tid.checked_sub(FIRST_TID)?).ok()?;
    // SAFETY: slots are never unmapped.
    unsafe { by_tid().ok()?.get(index)?.load(Ordering::Acquire).as_ref() }
}

/// Calls `visit` with the TCB of every slot, in use or in the pool.
pub fn for_each_tcb(visit: impl Fn(*mut u8)) {
    let count = (NEXT_TID.load(Ordering::Acquire) - FIRST_TID) as usize;
    let Ok(table) = by_tid() else { return };
    for slot in &table[..count.min(TIDS)] {
        // SAFETY: slots are never unmapped.
        if let Some(coroutine) = unsafe { slot.load(Ordering::Acquire).as_ref() } {
            visit(coroutine.tcb);
        }
    }
}

fn round_up(value: usize, unit: usize) -> usize {
    value.div_ceil(unit) * unit
}

/// Where heads are cut from.
struct Heads {
    uncut: usize,
    uncut_end: usize,
    /// Chunks made so far.
    chunks: usize,
}

static HEADS: SpinLock<Heads> = SpinLock::new(Heads { uncut: 0, uncut_end: 0, chunks: 0 });

/// Memory for a head, zeroed and aligned to 64.
fn take_head() -> Result<usize> {
    const HUGE: usize = 2 << 20;
    /// The first chunk has small pages: a process with few threads does not pay for a huge one.
    const FIRST: usize = 64 << 10;
    let facts = glibc::facts();
    let size = round_up(facts.static_tls_size + 2 * facts.static_tls_align + OBJECT, 64);
    let mut heads = HEADS.lock();
    if heads.uncut_end - heads.uncut < size {
        let again = |_| Errno(libc::EAGAIN);
        if heads.chunks == 0 || size > HUGE / 8 {
            let chunk = round_up(size.max(FIRST), PAGE);
            heads.uncut = linux::map(chunk).map_err(again)? as usize;
            heads.uncut_end = heads.uncut + chunk;
        } else {
            // Twice as much address space, to find an aligned half; the rest stays untouched.
            let start = round_up(linux::map(2 * HUGE).map_err(again)? as usize, HUGE);
            // SAFETY: our own fresh mapping. Where huge pages are off, small ones serve.
            let _ = unsafe { syscall!(madvise, start, HUGE, libc::MADV_HUGEPAGE) };
            heads.uncut = start;
            heads.uncut_end = start + HUGE;
        }
        heads.chunks += 1;
    }
    let head = heads.uncut;
    heads.uncut += size;
    Ok(head + size)
}

/// Bytes of the object at a head's top.
const OBJECT: usize = size_of::<Coroutine>().next_multiple_of(64);

/// Takes a slot from the pool or makes one, and makes the coroutine in it look new.
///
/// # Errors
/// EAGAIN: no memory, as `pthread_create` says it.
pub fn allocate(request: &Request) -> Result<&'static Coroutine> {
    let guard = round_up(request.guard, PAGE);
    let (size, guard) = match (request.own_stack, request.size) {
        // Its slot is a page that nobody touches.
        (Some(_), _) => (PAGE, 0),
        (None, Some(size)) => (class_size(size) + guard, guard),
        (None, None) => (round_up(config::get().stack_size, PAGE) + guard, guard),
    };
    tls_image::refresh();
    let coroutine = take(size, guard)?;
    let slot = coroutine.slot;
    let (stack, top) = match request.own_stack {
        Some((low, size)) => ((low, size), low + size),
        None => ((slot.base + slot.guard, slot.size - slot.guard), slot.base + slot.size),
    };
    coroutine.stack.set(stack);
    coroutine.stack_top.set(top);
    coroutine.guard_size.set(slot.guard);
    Ok(coroutine)
}

/// The next of four sizes between a power of two and the next, so that programs with many sizes share pools.
/// What a stack does not touch costs address space only.
fn class_size(size: usize) -> usize {
    round_up(size, (size.next_power_of_two() / 8).max(PAGE))
}

fn take(size: usize, guard: usize) -> Result<&'static Coroutine> {
    let mut pool = POOL.lock();
    let index = pool
        .iter()
        .position(|class| class.size == size && class.guard == guard)
        .or_else(|| pool.iter().position(|class| class.size == 0))
        // More sizes than pools: the last pool that is large enough serves.
        .or_else(|| pool.iter().position(|class| class.size >= size && class.guard >= guard))
        .ok_or(Errno(libc::EAGAIN))?;
    let class = &mut pool[index];
    if class.size == 0 {
        class.size = size;
        class.guard = guard;
    }
    // SAFETY: coroutines in the free list are whole and nobody else's.
    if let Some(coroutine) = unsafe { class.free.as_ref() } {
        class.free = coroutine.next.load(Ordering::Relaxed);
        drop(pool);
        renew(coroutine);
        return Ok(coroutine);
    }
    if class.uncut == class.uncut_end {
        new_slab(class)?;
    }
    let base = class.uncut;
    class.uncut += class.size;
    let slot = Slot { base, size: class.size, guard: class.guard, class: index as u32 };
    drop(pool);
    build(slot)
}

fn new_slab(class: &mut Class) -> Result<()> {
    let large = class.size >= 2 << 20;
    let slots = if large { LARGE_SLAB_SLOTS } else { (SLAB / class.size).max(1) };
    let table = 2 << 20;
    for slots in [slots, 1] {
        let size = slots * class.size;
        let Ok(address) = linux::map(size + if large { 2 * table } else { 0 }) else {
            continue;
        };
        let start =
            if large { round_up(address as usize, table) + table / 2 } else { address as usize };
        // A huge page would commit 2 MiB for a stack that uses two pages.
        // SAFETY: our own fresh mapping.
        let _ = unsafe { syscall!(madvise, start, size, libc::MADV_NOHUGEPAGE) };
        class.uncut = start;
        class.uncut_end = start + size;
        return Ok(());
    }
    Err(Errno(libc::EAGAIN))
}

fn install_guard(slot: &Slot) -> Result<()> {
    if slot.guard == 0 {
        return Ok(());
    }
    if !NO_GUARD_REGIONS.load(Ordering::Relaxed) {
        // SAFETY: the low end of a slot that nobody uses yet.
        if unsafe { syscall!(madvise, slot.base, slot.guard, MADV_GUARD_INSTALL) }.is_ok() {
            return Ok(());
        }
        NO_GUARD_REGIONS.store(true, Ordering::Relaxed);
    }
    // SAFETY: as above. ENOMEM: vm.max_map_count is reached.
    unsafe { syscall!(mprotect, slot.base, slot.guard, libc::PROT_NONE) }
        .map(|_| ())
        .map_err(|_| Errno(libc::EAGAIN))
}

fn build(slot: Slot) -> Result<&'static Coroutine> {
    let facts = glibc::facts();
    let table = by_tid()?;
    if install_guard(&slot).is_err() {
        return Err(give_back_uncut(slot));
    }
    let object = match take_head() {
        Ok(end) => end - OBJECT,
        Err(_) => return Err(give_back_uncut(slot)),
    };
    let tcb = ((object - facts.sizeof_pthread) & !(facts.static_tls_align - 1)) as *mut u8;
    // SAFETY: fresh zeroed memory of this head, which holds TLS and TCB.
    if unsafe { facts.make_tcb(tcb) }.is_none() {
        return Err(give_back_uncut(slot));
    }
    let coroutine = object as *mut Coroutine;
    // SAFETY: at the top of the head, aligned to 64; nobody knows of it yet.
    unsafe {
        coroutine.write(Coroutine {
            context: UnsafeCell::new(0),
            tcb,
            carrier: Cell::new(core::ptr::null_mut()),
            wake: WakeWord::new(),
            life: AtomicU32::new(0),
            home: AtomicPtr::new(core::ptr::null_mut()),
            born_on: Cell::new(core::ptr::null()),
            ready_link: LinkedListLink::new(),
            next: AtomicPtr::new(core::ptr::null_mut()),
            timer: TimerNode::new(),
            slot,
            stack: Cell::new((0, 0)),
            stack_top: Cell::new(0),
            guard_size: Cell::new(0),
            has_parked: Cell::new(false),
            mask: Cell::new(0),
            alternate_stack: Cell::new(None),
            start: Cell::new((None, core::ptr::null_mut())),
            result: Cell::new(core::ptr::null_mut()),
            has_result: Cell::new(false),
            id: Cell::new(0),
            name: UnsafeCell::new([0; 16]),
        });
        *current::slot_of(tcb) = coroutine.cast();
        let tid = NEXT_TID.fetch_add(1, Ordering::AcqRel);
        *facts.tid_of(tcb) = tid;
        if let Some(entry) = table.get((tid - FIRST_TID) as usize) {
            entry.store(coroutine, Ordering::Release);
        }
        Ok(&*coroutine)
    }
}

/// A slot could not be completed; it is the newest cut of its class unless another came meanwhile, in
/// which case it is left unused.
fn give_back_uncut(slot: Slot) -> Errno {
    let mut pool = POOL.lock();
    let class = &mut pool[slot.class as usize];
    if class.uncut == slot.base + slot.size {
        class.uncut = slot.base;
    }
    Errno(libc::EAGAIN)
}

/// Makes a coroutine from the free list look new.
fn renew(coroutine: &Coroutine) {
    let facts = glibc::facts();
    // SAFETY: nobody runs on it: it came from the free list.
    unsafe {
        tls_image::renew(coroutine.tcb);
        *coroutine.tcb.add(facts.cancelhandling).cast::<u32>() = 0;
        // The id was negated when the slot was freed.
        let tid = facts.tid_of(coroutine.tcb);
        *tid = (*tid).abs();
        *current::slot_of(coroutine.tcb) = (&raw const *coroutine).cast_mut().cast();
    }
    coroutine.life.store(0, Ordering::Relaxed);
    coroutine.has_result.set(false);
    coroutine.has_parked.set(false);
    coroutine.alternate_stack.set(None);
    coroutine.result.set(core::ptr::null_mut());
}

/// Puts an ended coroutine's slot back into the pool.
pub fn free(coroutine: &Coroutine) {
    let facts = glibc::facts();
    // SAFETY: it has ended and left its stack. A negative id makes glibc answer ESRCH to a dead
    // pthread_t; the null word makes us hand it to glibc.
    unsafe {
        let tid = facts.tid_of(coroutine.tcb);
        *tid = -(*tid).abs();
        *current::slot_of(coroutine.tcb) = core::ptr::null_mut();
    }
    coroutine.life.store(life::EXITED | life::DETACHED, Ordering::Relaxed);
    give_back_depth(coroutine);
    let mut pool = POOL.lock();
    let class = &mut pool[coroutine.slot.class as usize];
    coroutine.next.store(class.free, Ordering::Relaxed);
    class.free = (&raw const *coroutine).cast_mut();
}

/// Gives what a deep stack touched back to the kernel; the hot end stays. One page below it tells, without
/// being touched, whether the stack was ever that deep. Short lives, which never waited, are looked at now
/// and then only: the question costs more than they do.
fn give_back_depth(coroutine: &Coroutine) {
    const SHORT_LIVES: u64 = 16;
    if !coroutine.has_parked.get() && !coroutine.id.get().is_multiple_of(SHORT_LIVES) {
        return;
    }
    const HOT: usize = 64 << 10;
    let slot = &coroutine.slot;
    let low = slot.base + slot.guard;
    let page = (slot.base + slot.size).saturating_sub(HOT) & !(PAGE - 1);
    if page <= low + HOT {
        return;
    }
    let mut resident = 0u8;
    // SAFETY: asks about, and drops, pages of a stack that nobody uses.
    unsafe {
        let known = syscall!(mincore, page - PAGE, PAGE, &raw mut resident);
        if known.is_ok() && resident & 1 != 0 {
            let _ = syscall!(madvise, low, page - low, libc::MADV_DONTNEED);
        }
    }
}

/// If `address` lies in the guard of the running coroutine's stack, that coroutine.
pub fn guard_hit(address: usize) -> Option<&'static Coroutine> {
    let coroutine = Coroutine::current()?;
    let slot = &coroutine.slot;
    (slot.guard != 0 && (slot.base..slot.base + slot.guard).contains(&address)).then_some(coroutine)
}

/// In a forked child: the lock may have been held by a thread that no longer exists. The parent's
/// stacks stay mapped, as they do with native threads; the pool starts empty.
///
/// # Safety
/// Only in the child, which has one thread.
pub unsafe fn reset_after_fork() {
    // SAFETY: the child is alone.
    unsafe {
        POOL.reset([NO_CLASS; CLASSES]);
        HEADS.reset(Heads { uncut: 0, uncut_end: 0, chunks: 0 });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_share_classes() {
        assert_eq!(class_size(1), PAGE);
        assert_eq!(class_size(16 << 10), 16 << 10);
        assert_eq!(class_size((64 << 10) + 1), 80 << 10);
        assert_eq!(class_size((1 << 20) + 1), (1 << 20) + (256 << 10));
        let classes: std::collections::BTreeSet<_> =
            (16 << 10..64 << 20).step_by(4096).map(class_size).collect();
        assert!(classes.len() < 64, "{}", classes.len());
    }
}
