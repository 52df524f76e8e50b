//! Makes a pooled TLS block look new.
//!
//! A coroutine's TLS block is used again by a later one. Every module's image is initialised anew
//! (`.tdata` copied, `.tbss` zeroed), except those of libc and of this library: libc keeps its malloc
//! cache and per-thread buffers there, which belong to the block and not to the thread.

use super::glibc;
use super::spin::SpinLock;
use core::ffi::{CStr, c_int, c_void};
use core::sync::atomic::{AtomicBool, Ordering};

#[derive(Clone, Copy, PartialEq)]
struct Module {
    id: usize,
    image: *const u8,
    file_size: usize,
    memory_size: usize,
    /// Distance below the thread pointer; 0 for a module whose block is made on first use.
    below_tp: usize,
}

struct Modules {
    list: [Module; MAX_MODULES],
    count: usize,
}

/// Modules with TLS that we follow; processes have a handful.
const MAX_MODULES: usize = 256;

const NONE: Module =
    Module { id: 0, image: core::ptr::null(), file_size: 0, memory_size: 0, below_tp: 0 };
static MODULES: SpinLock<Modules> = SpinLock::new(Modules { list: [NONE; MAX_MODULES], count: 0 });
unsafe extern "C" fn visit(info: *mut libc::dl_phdr_info, _: usize, data: *mut c_void) -> c_int {
    // SAFETY: the loader passes a valid record and our own pointer.
    let (info, modules) = unsafe { (&*info, &mut *data.cast::<Modules>()) };
    if info.dlpi_tls_modid == 0 || modules.count == MAX_MODULES {
        return 0;
    }
    // SAFETY: a C string, empty for the main program.
    let name = unsafe { CStr::from_ptr(info.dlpi_name) }.to_bytes();
    let base = name.rsplit(|&byte| byte == b'/').next().unwrap_or(name);
    if base.starts_with(b"libc.so") || base.starts_with(b"ld-linux") || is_own(info) {
        return 0;
    }
    for index in 0..info.dlpi_phnum as usize {
        // SAFETY: the table has that many entries.
        let header = unsafe { &*info.dlpi_phdr.add(index) };
        if header.p_type != libc::PT_TLS {
            continue;
        }
        // SAFETY: the loader holds the lock on its list during the callback.
        let below_tp = unsafe { glibc::facts().static_tls_offset(info.dlpi_addr, info.dlpi_name) };
        modules.list[modules.count] = Module {
            id: info.dlpi_tls_modid,
            image: (info.dlpi_addr as usize + header.p_vaddr as usize) as *const u8,
            file_size: header.p_filesz as usize,
            memory_size: header.p_memsz as usize,
            below_tp,
        };
        modules.count += 1;
    }
    0
}

fn is_own(info: &libc::dl_phdr_info) -> bool {
    let probe = visit as *const () as usize;
    (0..info.dlpi_phnum as usize).any(|index| {
        // SAFETY: the table has that many entries.
        let header = unsafe { &*info.dlpi_phdr.add(index) };
        let start = info.dlpi_addr as usize + header.p_vaddr as usize;
        header.p_type == libc::PT_LOAD && (start..start + header.p_memsz as usize).contains(&probe)
    })
}

/// The list was read at least once.
static KNOWN: AtomicBool = AtomicBool::new(false);

/// Reads the list of modules if that was not done yet. Not to be called with a lock held.
pub fn refresh() {
    if !KNOWN.load(Ordering::Acquire) {
        read_list(|_| {});
    }
}

/// Reads the list anew and gives each module that was not in it to `visit_new`.
fn read_list(visit_new: impl Fn(&Module)) {
    let mut fresh = Modules { list: [NONE; MAX_MODULES], count: 0 };
    // SAFETY: `visit` matches the callback's type, and `fresh` outlives the call.
    unsafe { libc::dl_iterate_phdr(Some(visit), (&raw mut fresh).cast()) };
    let mut modules = MODULES.lock();
    for module in &fresh.list[..fresh.count] {
        if !modules.list[..modules.count].contains(module) {
            visit_new(module);
        }
    }
    modules.list = fresh.list;
    modules.count = fresh.count;
    KNOWN.store(true, Ordering::Release);
}

/// After `dlopen`: a new library may have TLS in the static block. The loader has initialised it in the
/// threads that it knows; coroutines are initialised here, before anybody can use the library.
pub extern "C-unwind" fn libraries_changed() {
    if !glibc::is_loaded() {
        return;
    }
    read_list(|module| {
        if module.below_tp != 0 {
            crate::coroutine::stack::for_each_tcb(|tcb| {
                // SAFETY: every TCB has a static block, which holds the module's at that distance.
                unsafe { initialise(module, tcb.wrapping_sub(module.below_tp)) };
            });
        }
    });
}

/// `dlclose`: a library that is loaded later may have the place of one that is gone, and must count as new.
///
/// # Safety
/// As the C function.
pub unsafe fn dlclose(library: *mut c_void) -> c_int {
    // SAFETY: the caller keeps the contract.
    let result = unsafe { real::dlclose(library) };
    if glibc::is_loaded() {
        read_list(|_| {});
    }
    result
}

mod real {
    use super::*;
    crate::sys::real::real_functions! {
        /// The real `dlclose`.
        fn dlclose(library: *mut c_void) -> c_int;
    }
}

/// # Safety
/// `block` has room for the module's TLS.
unsafe fn initialise(module: &Module, block: *mut u8) {
    // SAFETY: the caller's promise; the image has `file_size` bytes.
    unsafe {
        core::ptr::copy_nonoverlapping(module.image, block, module.file_size);
        core::ptr::write_bytes(
            block.add(module.file_size),
            0,
            module.memory_size - module.file_size,
        );
    }
}

/// Initialises anew the TLS of the thread whose control block is `tcb`.
///
/// # Safety
/// No thread runs on `tcb`; it was made by [`glibc::Facts::make_tcb`].
pub unsafe fn renew(tcb: *mut u8) {
    {
        let modules = MODULES.lock();
        for module in modules.list[..modules.count].iter().filter(|module| module.below_tp != 0) {
            // SAFETY: as in `libraries_changed`.
            unsafe { initialise(module, tcb.wrapping_sub(module.below_tp)) };
        }
    }
    // The vector of dynamic blocks: entry −1 its length, 0 a generation, n { address, to free }. A block
    // that was made on first use is given back, and made and initialised again on first use.
    const UNALLOCATED: usize = usize::MAX;
    // SAFETY: word 1 of a TCB is that vector; nobody runs on it.
    unsafe {
        let vector = tcb.cast::<*mut [usize; 2]>().add(1).read();
        for entry in 1..=(*vector.sub(1))[0] {
            let [_, to_free] = *vector.add(entry);
            if to_free != 0 {
                *vector.add(entry) = [UNALLOCATED, 0];
                libc::free(to_free as *mut c_void);
            }
        }
    }
}

/// In a forked child: the list may have been half written; it is read again.
///
/// # Safety
/// Only in the child, which has one thread.
pub unsafe fn reset_after_fork() {
    KNOWN.store(false, Ordering::Relaxed);
    // SAFETY: the child is alone.
    unsafe { MODULES.reset(Modules { list: [NONE; MAX_MODULES], count: 0 }) };
}
