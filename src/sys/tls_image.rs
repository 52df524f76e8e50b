//! Makes a pooled TLS block look new.
//!
//! A coroutine's TLS block is used again by a later one. Every module's image is initialised anew
//! (`.tdata` copied, `.tbss` zeroed), except those of libc and of this library: libc keeps its malloc
//! cache and per-thread buffers there, which belong to the block and not to the thread.

use super::glibc;
use super::spin::SpinLock;
use core::ffi::{CStr, c_int, c_void};
use core::sync::atomic::{AtomicU64, Ordering};

#[derive(Clone, Copy)]
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
/// How often the loader had added and removed libraries when the list was read.
static SEEN_CHANGES: [AtomicU64; 2] = [const { AtomicU64::new(0) }; 2];

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
        let below_tp = if info.dlpi_tls_data.is_null() {
            0
        } else {
            let tp = glibc::thread_pointer() as usize;
            let distance = tp.wrapping_sub(info.dlpi_tls_data as usize);
            // Only blocks inside the static area lie at the same distance in every thread.
            if distance < glibc::facts().static_tls_size { distance } else { 0 }
        };
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

/// Stops at the first library; says whether the loader has changed anything since the list was read.
unsafe extern "C" fn changed(
    info: *mut libc::dl_phdr_info,
    _: usize,
    data: *mut c_void,
) -> c_int {
    // SAFETY: the loader passes a valid record and our own pointer.
    unsafe {
        let now = [(*info).dlpi_adds, (*info).dlpi_subs];
        let before = [0, 1].map(|index| SEEN_CHANGES[index].swap(now[index], Ordering::Relaxed));
        *data.cast::<bool>() = now != before;
    }
    1
}

/// Reads the list of modules if it was not read yet, or again if libraries were loaded or unloaded since.
/// Not to be called with a lock held.
pub fn refresh() {
    let known = SEEN_CHANGES[0].load(Ordering::Relaxed) != 0;
    if known && !crate::arch::was_dlopen_called() {
        return;
    }
    let mut has_changed = false;
    // SAFETY: the callback matches, and the variable outlives the call.
    unsafe { libc::dl_iterate_phdr(Some(changed), (&raw mut has_changed).cast()) };
    if !has_changed {
        return;
    }
    let mut fresh = Modules { list: [NONE; MAX_MODULES], count: 0 };
    // SAFETY: `visit` matches the callback's type, and `fresh` outlives the call.
    unsafe { libc::dl_iterate_phdr(Some(visit), (&raw mut fresh).cast()) };
    let mut modules = MODULES.lock();
    modules.list = fresh.list;
    modules.count = fresh.count;
}

/// Initialises anew the TLS of the thread whose control block is `tcb`.
///
/// # Safety
/// No thread runs on `tcb`; it was made by [`glibc::Facts::make_tcb`].
pub unsafe fn renew(tcb: *mut u8) {
    let modules = MODULES.lock();
    for module in &modules.list[..modules.count] {
        let block = if module.below_tp != 0 {
            tcb.wrapping_sub(module.below_tp)
        } else {
            // The vector of dynamic blocks: entry 0 is a generation, entry n { address, to free }.
            // SAFETY: word 1 of the TCB is that vector; entry −1 holds its length.
            unsafe {
                let vector = tcb.cast::<*mut [usize; 2]>().add(1).read();
                let length = (*vector.sub(1))[0];
                if module.id > length {
                    continue;
                }
                let [address, _] = *vector.add(module.id);
                if address == usize::MAX || address == 0 {
                    continue;
                }
                address as *mut u8
            }
        };
        // SAFETY: the block has `memory_size` bytes and the image `file_size`.
        unsafe {
            core::ptr::copy_nonoverlapping(module.image, block, module.file_size);
            core::ptr::write_bytes(
                block.add(module.file_size),
                0,
                module.memory_size - module.file_size,
            );
        }
    }
}
