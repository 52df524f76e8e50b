//! Whether glibc's loader starts a program, and loads libpreloom.so into it.

use crate::failure::{Failure, NOT_EXECUTABLE, USAGE};
use object::elf::{EM_AARCH64, EM_X86_64, ET_DYN, FileHeader64, Machine};
use object::read::elf::{FileHeader, ProgramHeader};
use object::{Endianness, FileKind, ReadCache};
use std::ffi::OsStr;
use std::fs::File;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// The machine that the launcher, and so the library beside it, is built for.
const MACHINE: Machine = if cfg!(target_arch = "aarch64") { EM_AARCH64 } else { EM_X86_64 };

/// The loader of glibc on that machine.
const LOADER: &str =
    if cfg!(target_arch = "aarch64") { "ld-linux-aarch64.so.1" } else { "ld-linux-x86-64.so.2" };

/// Fails unless `file`, whose name is `program`, is dynamically linked against this machine's glibc.
pub fn check(program: &Path, file: &File) -> Result<(), Failure> {
    let cannot =
        |what: &str| Err(Failure::new(NOT_EXECUTABLE, format!("{}: {what}", program.display())));
    let data = ReadCache::new(file);
    match FileKind::parse(&data) {
        Ok(FileKind::Elf64) => {}
        Ok(FileKind::Elf32) => return cannot(OTHER_MACHINE),
        _ => return cannot(NO_PROGRAM),
    }
    let Ok(header) = FileHeader64::<Endianness>::parse(&data) else { return cannot(DAMAGED) };
    let Ok(endian) = header.endian() else { return cannot(DAMAGED) };
    if header.e_machine(endian) != MACHINE {
        return cannot(OTHER_MACHINE);
    }
    let Ok(segments) = header.program_headers(endian, &data) else { return cannot(DAMAGED) };
    let mut loader = None;
    for segment in segments {
        match segment.interpreter(endian, &data) {
            Ok(None) => {}
            Ok(Some(path)) => loader = Some(Path::new(OsStr::from_bytes(path))),
            Err(_) => return cannot(DAMAGED),
        }
    }
    let Some(loader) = loader else { return cannot(STATIC) };
    if loader.file_name() != Some(OsStr::new(LOADER)) {
        return cannot(&format!(
            "is built for another libc (its loader is {}); preloom needs a program built for glibc",
            loader.display()
        ));
    }
    if !loader.exists() {
        return cannot(&format!("its loader {} is not there; install glibc", loader.display()));
    }
    Ok(())
}

/// Fails unless the loader can load `library`. It would only warn of one that it cannot, and start the program
/// without it.
pub fn check_library(library: &Path) -> Result<(), Failure> {
    let cannot = |why: &dyn std::fmt::Display| {
        Err(Failure::new(
            USAGE,
            format!(
                "{} cannot be preloaded: {why}; install preloom again, or set PRELOOM_LIB to its libpreloom.so",
                library.display()
            ),
        ))
    };
    let file = match File::open(library) {
        Ok(file) => file,
        Err(error) => return cannot(&error),
    };
    let data = ReadCache::new(&file);
    let header = match FileKind::parse(&data) {
        Ok(FileKind::Elf64) => FileHeader64::<Endianness>::parse(&data),
        Ok(FileKind::Elf32) => return cannot(&"it is built for another word size"),
        _ => return cannot(&"it is no shared library"),
    };
    match header.map(|header| header.endian().map(|endian| (header, endian))) {
        Ok(Ok((header, endian))) if header.e_machine(endian) != MACHINE => {
            cannot(&"it is built for another machine")
        }
        Ok(Ok((header, endian))) if header.e_type(endian) == ET_DYN => Ok(()),
        _ => cannot(&"it is no shared library"),
    }
}

const STATIC: &str =
    "is statically linked, so nothing can be preloaded into it; build it without -static";
const OTHER_MACHINE: &str =
    "is built for another machine or word size; preloom needs a 64-bit program for this one";
const NO_PROGRAM: &str = "is neither an ELF program nor a script with a #! line; \
     name its interpreter first, such as `preloom sh FILE`";
const DAMAGED: &str = "is no valid ELF program; build or copy it again";
