//! Facts about glibc's thread control block (TCB), taken from the running libc itself.
//!
//! The symbols are `GLIBC_PRIVATE`: the loader's TLS functions, and the descriptors that glibc
//! publishes for `libthread_db`. When one is missing, [`load`] names it and the program runs natively.

use core::ffi::{CStr, c_char, c_int, c_void};
use core::sync::atomic::{AtomicPtr, AtomicU32, AtomicUsize, Ordering};

/// What we know about the running glibc.
pub struct Facts {
    /// `sizeof(struct pthread)`: the TCB lies that far below the top of its block.
    pub sizeof_pthread: usize,
    /// Bytes of static TLS including the TCB, and its alignment.
    pub static_tls_size: usize,
    /// Alignment of the static TLS block.
    pub static_tls_align: usize,
    /// Offset of the thread id in the TCB.
    pub tid: usize,
    /// Offset of the list node that fork's child-side clean-up unlinks.
    pub list: usize,
    /// Offset of the cancellation state word.
    pub cancelhandling: usize,
    /// Offset of `__rseq_abi` from the TCB; 0 when this glibc has none.
    pub rseq: isize,
    /// `__pthread_keys`: 1,024 pairs of sequence number and destructor.
    keys: *const [usize; 2],
    allocate_tls: unsafe extern "C" fn(*mut u8) -> *mut u8,
    deallocate_tls: unsafe extern "C" fn(*mut u8, bool),
    call_tls_dtors: unsafe extern "C-unwind" fn(),
    ctype_init: unsafe extern "C" fn(),
    /// The loader's list of libraries (`struct r_debug`), and where a library's record has the place of its
    /// TLS in the static block.
    debug: *const LoaderDebug,
    link_map_tls_offset: usize,
    /// Number of kernel threads that glibc knows of.
    nthreads: *const u32,
}

/// The public start of `struct r_debug` (`link.h`).
#[repr(C)]
struct LoaderDebug {
    version: c_int,
    map: *const LinkMap,
}

/// The public start of `struct link_map` (`link.h`).
#[repr(C)]
struct LinkMap {
    address: u64,
    name: *const c_char,
    dynamic: *const c_void,
    next: *const LinkMap,
}

/// Number of pthread keys that glibc has.
pub const KEYS: usize = 1024;

static FACTS: AtomicPtr<Facts> = AtomicPtr::new(core::ptr::null_mut());

/// Offset of the thread id in the TCB; 0 as long as [`load`] has not succeeded.
static TID_OFFSET: AtomicUsize = AtomicUsize::new(0);

/// The id of the caller, kernel thread or coroutine, as glibc's locks note it in their owner fields;
/// `None` before [`load`] has succeeded, which means for ever in a process with native threads.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
pub fn tid_if_loaded() -> Option<u32> {
    let offset = TID_OFFSET.load(Ordering::Relaxed);
    if offset == 0 {
        return None;
    }
    let tid: u32;
    // SAFETY: a field of our own TCB, which the FS base points at.
    unsafe {
        core::arch::asm!("mov {0:e}, dword ptr fs:[{1}]", out(reg) tid, in(reg) offset,
            options(nostack, readonly, preserves_flags));
    }
    Some(tid)
}

/// The facts; only after [`load`] succeeded.
#[inline]
pub fn facts() -> &'static Facts {
    // SAFETY: set by `load`, before the first coroutine exists, and never changed.
    unsafe { &*FACTS.load(Ordering::Relaxed) }
}

/// Whether [`load`] has succeeded.
#[inline]
pub fn is_loaded() -> bool {
    !FACTS.load(Ordering::Acquire).is_null()
}

fn symbol(name: &'static CStr) -> Result<*mut c_void, &'static CStr> {
    // SAFETY: a valid C string.
    let address = unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) };
    if address.is_null() { Err(name) } else { Ok(address) }
}

/// A field's offset from a `libthread_db` descriptor: { size in bits, count, offset }.
fn field(name: &'static CStr) -> Result<usize, &'static CStr> {
    // SAFETY: the descriptors are arrays of three words.
    Ok(unsafe { (*symbol(name)?.cast::<[u32; 3]>())[2] } as usize)
}

/// Reads the facts.
///
/// # Errors
/// The name of what this libc lacks.
pub fn load() -> Result<(), &'static CStr> {
    struct Storage(core::cell::UnsafeCell<core::mem::MaybeUninit<Facts>>);
    // SAFETY: written once below, before any thread that reads it exists.
    unsafe impl Sync for Storage {}
    static STORAGE: Storage =
        Storage(core::cell::UnsafeCell::new(core::mem::MaybeUninit::uninit()));

    if !FACTS.load(Ordering::Acquire).is_null() {
        return Ok(());
    }
    let get_info = symbol(c"_dl_get_tls_static_info")?;
    let (mut size, mut align) = (0usize, 0usize);
    // SAFETY: signature of glibc 2.x: two out parameters.
    unsafe {
        core::mem::transmute::<*mut c_void, unsafe extern "C" fn(*mut usize, *mut usize)>(get_info)(
            &mut size, &mut align,
        );
    }
    // SAFETY: each symbol is the function or object that its name says, in every glibc that has it.
    let facts = unsafe {
        Facts {
            sizeof_pthread: *symbol(c"_thread_db_sizeof_pthread")?.cast::<u32>() as usize,
            static_tls_size: size,
            static_tls_align: align.max(64),
            tid: field(c"_thread_db_pthread_tid")?,
            list: field(c"_thread_db_pthread_list")?,
            cancelhandling: field(c"_thread_db_pthread_cancelhandling")?,
            rseq: symbol(c"__rseq_offset").map_or(0, |offset| *offset.cast::<isize>()),
            keys: symbol(c"__pthread_keys")?.cast(),
            allocate_tls: core::mem::transmute::<
                *mut c_void,
                unsafe extern "C" fn(*mut u8) -> *mut u8,
            >(symbol(c"_dl_allocate_tls")?),
            deallocate_tls: core::mem::transmute::<*mut c_void, unsafe extern "C" fn(*mut u8, bool)>(
                symbol(c"_dl_deallocate_tls")?,
            ),
            call_tls_dtors: core::mem::transmute::<*mut c_void, unsafe extern "C-unwind" fn()>(
                symbol(c"__call_tls_dtors")?,
            ),
            ctype_init: core::mem::transmute::<*mut c_void, unsafe extern "C" fn()>(symbol(
                c"__ctype_init",
            )?),
            debug: symbol(c"_r_debug")?.cast(),
            link_map_tls_offset: field(c"_thread_db_link_map_l_tls_offset")?,
            nthreads: symbol(c"__nptl_nthreads")?.cast(),
        }
    };
    // The offset is right only if it shows the kernel's id of this very thread.
    // SAFETY: the field lies inside our own TCB.
    let tid = unsafe { *thread_pointer().add(facts.tid).cast::<i32>() };
    if tid != super::linux::gettid() {
        return Err(c"a thread id where the TCB should have one");
    }
    let tid_offset = facts.tid;
    // SAFETY: we are the only writer: `load` runs once, in the constructor or under the start lock.
    unsafe { STORAGE.0.get().write(core::mem::MaybeUninit::new(facts)) };
    FACTS.store(STORAGE.0.get().cast(), Ordering::Release);
    TID_OFFSET.store(tid_offset, Ordering::Release);
    Ok(())
}

/// The running thread's TCB address, which is also its `pthread_t`.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
pub fn thread_pointer() -> *mut u8 {
    let tcb: *mut u8;
    // SAFETY: the x86-64 ABI keeps the TCB's own address in its first word.
    unsafe {
        core::arch::asm!("mov {}, qword ptr fs:[0]", out(reg) tcb,
            options(nostack, readonly, preserves_flags));
    }
    tcb
}

impl Facts {
    /// Makes a TCB with its TLS block at `tcb`, as glibc makes one for a new thread.
    ///
    /// # Safety
    /// `tcb` is 64-aligned, with `static_tls_size - sizeof_pthread` zeroed bytes below it and
    /// `sizeof_pthread` zeroed bytes from it on.
    ///
    /// # Errors
    /// `None`: no memory for the vector of dynamic TLS blocks.
    pub unsafe fn make_tcb(&self, tcb: *mut u8) -> Option<()> {
        // SAFETY: the caller gives the memory that `_dl_allocate_tls` wants.
        if unsafe { (self.allocate_tls)(tcb) }.is_null() {
            return None;
        }
        let own = thread_pointer();
        // SAFETY: all offsets lie inside the control block.
        unsafe {
            tcb.cast::<*mut u8>().write(tcb);
            tcb.add(0x10).cast::<*mut u8>().write(tcb);
            // "Multiple threads": glibc's calls are cancellation points and lock for real.
            tcb.add(0x18).cast::<i32>().write(1);
            // Stack guard and pointer guard are the process's, not the thread's.
            core::ptr::copy_nonoverlapping(own.add(0x28), tcb.add(0x28), 16);
            let list = tcb.add(self.list);
            list.cast::<*mut u8>().write(list);
            list.add(8).cast::<*mut u8>().write(list);
            if self.rseq != 0 {
                // cpu_id of the rseq area: RSEQ_CPU_ID_REGISTRATION_FAILED, "do not use".
                tcb.offset(self.rseq + 4).cast::<i32>().write(-2);
            }
            // glibc's robust list head points at itself; it follows the tid by 0x10 in struct pthread.
            let robust = tcb.add(self.tid + 0x10);
            robust.cast::<*mut u8>().write(robust);
            tcb.add(self.tid + 0x08).cast::<*mut u8>().write(robust);
            // Where the futex word lies, seen from a node in a mutex: the same in every thread.
            let offset = own.add(self.tid + 0x18).cast::<usize>().read();
            robust.cast::<usize>().add(1).write(offset);
        }
        Some(())
    }

    /// Gives back what [`Self::make_tcb`] allocated.
    ///
    /// # Safety
    /// No thread runs on `tcb` or ever will.
    pub unsafe fn free_tcb(&self, tcb: *mut u8) {
        // SAFETY: `false`: the block itself is ours.
        unsafe { (self.deallocate_tls)(tcb, false) }
    }

    /// Runs the destructors of C++ `thread_local` objects of the caller.
    pub fn call_tls_dtors(&self) {
        // SAFETY: glibc calls it at the same place in a thread's life.
        unsafe { (self.call_tls_dtors)() }
    }

    /// Points the caller's `<ctype.h>` tables at its locale's.
    pub fn ctype_init(&self) {
        // SAFETY: writes three words of the caller's TLS.
        unsafe { (self.ctype_init)() }
    }

    /// Runs the destructors of the caller's pthread keys: up to PTHREAD_DESTRUCTOR_ITERATIONS rounds,
    /// as long as a round left values behind.
    pub fn call_key_destructors(&self) {
        for _ in 0..4 {
            let mut again = false;
            for key in 0..KEYS {
                // SAFETY: the table has KEYS entries; the words change only by `pthread_key_*`, and
                // glibc reads them without a lock at the same place.
                let [sequence, destructor] =
                    unsafe { core::ptr::read_volatile(self.keys.add(key)) };
                if sequence % 2 == 0 {
                    continue;
                }
                // SAFETY: a key in use. Second-level tables that do not exist read as null.
                let value = unsafe { libc::pthread_getspecific(key as libc::pthread_key_t) };
                if value.is_null() {
                    continue;
                }
                // SAFETY: as above; storing null never allocates for a key that had a value.
                unsafe { libc::pthread_setspecific(key as libc::pthread_key_t, core::ptr::null()) };
                if destructor != 0 {
                    again = true;
                    // SAFETY: the program registered this function for values of the key.
                    unsafe {
                        core::mem::transmute::<usize, unsafe extern "C-unwind" fn(*mut c_void)>(
                            destructor,
                        )(value)
                    }
                }
            }
            if !again {
                break;
            }
        }
    }

    /// The id field of a thread control block.
    ///
    /// # Safety
    /// `tcb` is a mapped TCB.
    pub unsafe fn tid_of(&self, tcb: *mut u8) -> *mut i32 {
        // SAFETY: the offset was checked against a real thread.
        unsafe { tcb.add(self.tid).cast() }
    }

    /// Gives up the robust mutexes that the caller still holds, as the kernel does for a kernel thread that
    /// ends: marks each as "owner died" and wakes a waiter, in the kernel and by `wake` with the word's
    /// address. The caller is a coroutine at its end.
    pub fn release_robust_mutexes(&self, wake: impl Fn(usize)) {
        const OWNER_DIED: u32 = 0x4000_0000;
        const WAITERS: u32 = 0x8000_0000;
        const ID: u32 = 0x3fff_ffff;
        /// ROBUST_LIST_LIMIT of the kernel, against lists that end nowhere.
        const MOST: usize = 2048;
        let head = thread_pointer().wrapping_add(self.tid + 0x10).cast::<usize>();
        // SAFETY: struct robust_list_head: { next, offset from a node to its futex word, pending }. Nodes
        // lie in the program's mutexes; bit 0 marks priority inheritance.
        unsafe {
            let offset = *head.add(1) as isize;
            let mut node = *head;
            for _ in 0..MOST {
                let entry = (node & !1) as *mut usize;
                if entry == head {
                    break;
                }
                node = *entry;
                let word = AtomicU32::from_ptr(entry.byte_offset(offset).cast());
                let mut seen = word.load(Ordering::Relaxed);
                while seen & ID == self.own_tid() {
                    let died = seen & WAITERS | OWNER_DIED;
                    match word.compare_exchange(seen, died, Ordering::AcqRel, Ordering::Relaxed) {
                        Ok(_) => {
                            if seen & WAITERS != 0 {
                                // Perhaps shared with other processes: not the private kind.
                                let _ = super::linux::syscall!(
                                    futex,
                                    word.as_ptr(),
                                    libc::FUTEX_WAKE,
                                    1
                                );
                            }
                            wake(word.as_ptr() as usize);
                            break;
                        }
                        Err(now) => seen = now,
                    }
                }
            }
            *head = head as usize;
        }
    }

    /// The id of the caller: the kernel's for native threads, the coroutine's own otherwise.
    #[inline]
    pub fn own_tid(&self) -> u32 {
        // SAFETY: the field of our own TCB.
        unsafe { *thread_pointer().add(self.tid).cast::<u32>() }
    }

    /// How far below the thread pointer the TLS of a library lies in every thread; 0 if it is not in the
    /// static block.
    ///
    /// # Safety
    /// The loader's list cannot change meanwhile; `name` is the pointer that it shows for the library.
    pub unsafe fn static_tls_offset(&self, address: u64, name: *const c_char) -> usize {
        // FORCED_DYNAMIC_TLS_OFFSET of glibc is −1, NO_TLS_OFFSET is 0.
        const FORCED_DYNAMIC: usize = usize::MAX;
        // SAFETY: a list of records that starts in the loader's public structure.
        unsafe {
            let mut map = (*self.debug).map;
            while !map.is_null() {
                if (*map).address == address && core::ptr::eq((*map).name, name) {
                    let offset = *map.byte_add(self.link_map_tls_offset).cast::<usize>();
                    return if offset == FORCED_DYNAMIC { 0 } else { offset };
                }
                map = (*map).next;
            }
        }
        0
    }

    /// How many kernel threads glibc counts.
    pub fn kernel_threads(&self) -> u32 {
        // SAFETY: a counter inside libc; glibc changes it atomically.
        unsafe { core::ptr::read_volatile(self.nthreads) }
    }
}

// SAFETY: addresses inside libc, constant after `load`.
unsafe impl Sync for Facts {}

/// The C library's version, such as `2.36`.
pub fn version() -> &'static CStr {
    unsafe extern "C" {
        safe fn gnu_get_libc_version() -> *const c_char;
    }
    // SAFETY: a static string of libc.
    unsafe { CStr::from_ptr(gnu_get_libc_version()) }
}

/// Whether kernel and CPU let user space change the FS base (`AT_HWCAP2`, bit 1).
#[cfg(target_arch = "x86_64")]
pub fn has_fsgsbase() -> bool {
    // SAFETY: reads the auxiliary vector.
    unsafe { libc::getauxval(libc::AT_HWCAP2) & 2 != 0 }
}

/// Number of the CPUs in the affinity mask of the caller, at least 1.
pub fn cpus() -> usize {
    let mut mask = [0u64; 128];
    // SAFETY: the buffer is as long as we say.
    let bytes = unsafe {
        super::linux::syscall!(sched_getaffinity, 0, size_of_val(&mask), mask.as_mut_ptr())
    }
    .unwrap_or(0);
    let count: u32 = mask[..bytes / 8].iter().map(|word| word.count_ones()).sum();
    (count as c_int).max(1) as usize
}
