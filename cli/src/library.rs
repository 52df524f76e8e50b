//! Finding libpreloom.so, and the value of `LD_PRELOAD` that loads it.

use crate::failure::{Failure, USAGE};
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

/// The file that is preloaded.
const NAME: &str = "libpreloom.so";

/// Where it is when neither `$PRELOOM_LIB` nor the place of the launcher says so.
const SYSTEM: [&str; 2] = ["/usr/local/lib", "/usr/lib/x86_64-linux-gnu"];

/// The library's absolute path. `chosen` is `$PRELOOM_LIB`, `launcher` the launcher's own path.
pub fn find(chosen: Option<&OsStr>, launcher: Option<&Path>) -> Result<PathBuf, Failure> {
    let library = match chosen {
        Some(path) => absolute_file(Path::new(path)).ok_or_else(|| {
            let path = path.display();
            Failure::new(
                USAGE,
                format!("PRELOOM_LIB={path} is no file: set it to {NAME}, or unset it"),
            )
        })?,
        None => candidates(launcher).iter().find_map(|path| absolute_file(path)).ok_or_else(
            || {
                let looked: Vec<_> = candidates(launcher).iter().map(|p| p.display().to_string()).collect();
                Failure::new(
                    USAGE,
                    format!(
                        "{NAME} is not installed: run `make install`, or set PRELOOM_LIB to it (looked for {})",
                        looked.join(", ")
                    ),
                )
            },
        )?,
    };
    if library.as_os_str().as_bytes().iter().any(|byte| is_separator(*byte)) {
        return Err(Failure::new(
            USAGE,
            format!(
                "{} cannot be preloaded, for LD_PRELOAD ends a name at a space or colon: move it elsewhere",
                library.display()
            ),
        ));
    }
    Ok(library)
}

/// Where the library may be, in this order.
fn candidates(launcher: Option<&Path>) -> Vec<PathBuf> {
    let beside = launcher.and_then(Path::parent).into_iter();
    beside
        .flat_map(|bin| [bin.parent().unwrap_or(bin).join("lib").join(NAME), bin.join(NAME)])
        .chain(SYSTEM.map(|directory| Path::new(directory).join(NAME)))
        .collect()
}

/// The path that stays right when the program changes its directory.
fn absolute_file(path: &Path) -> Option<PathBuf> {
    path.canonicalize().ok().filter(|path| path.is_file())
}

/// `LD_PRELOAD` with the library first and each of the rest once, in the order they had.
///
/// Another libpreloom.so in it is left out: two runtimes in one process cannot work.
pub fn preload(library: &Path, existing: Option<&OsStr>) -> OsString {
    let mut entries = vec![library.as_os_str().as_bytes()];
    for entry in existing.unwrap_or_default().as_bytes().split(|byte| is_separator(*byte)) {
        let is_preloom = Path::new(OsStr::from_bytes(entry)).file_name() == Some(OsStr::new(NAME));
        if !entry.is_empty() && !is_preloom && !entries.contains(&entry) {
            entries.push(entry);
        }
    }
    OsString::from_vec(entries.join(&b':'))
}

/// What the loader takes to end a name in `LD_PRELOAD`.
fn is_separator(byte: u8) -> bool {
    matches!(byte, b':' | b' ')
}

#[cfg(test)]
mod tests {
    use super::*;
    use temp_dir::TempDir;

    fn preloaded(existing: &str) -> String {
        preload(Path::new("/lib/libpreloom.so"), Some(OsStr::new(existing))).into_string().unwrap()
    }

    #[test]
    fn the_library_is_first_and_the_rest_is_kept() {
        assert_eq!(preload(Path::new("/l.so"), None), "/l.so");
        assert_eq!(preloaded(""), "/lib/libpreloom.so");
        assert_eq!(preloaded("libjemalloc.so.2"), "/lib/libpreloom.so:libjemalloc.so.2");
        assert_eq!(preloaded("a.so:b.so c.so"), "/lib/libpreloom.so:a.so:b.so:c.so");
    }

    #[test]
    fn nothing_is_there_twice() {
        assert_eq!(preloaded("/lib/libpreloom.so"), "/lib/libpreloom.so");
        assert_eq!(preloaded("a.so:/lib/libpreloom.so:a.so"), "/lib/libpreloom.so:a.so");
        assert_eq!(preloaded("/opt/libpreloom.so::a.so"), "/lib/libpreloom.so:a.so");
    }

    #[test]
    fn places_are_searched_in_order() {
        assert_eq!(
            candidates(Some(Path::new("/opt/preloom/bin/preloom"))),
            [
                "/opt/preloom/lib/libpreloom.so",
                "/opt/preloom/bin/libpreloom.so",
                "/usr/local/lib/libpreloom.so",
                "/usr/lib/x86_64-linux-gnu/libpreloom.so"
            ]
            .map(PathBuf::from)
        );
    }

    #[test]
    fn a_chosen_library_must_be_a_file() {
        let failure = find(Some(OsStr::new("/nowhere/x.so")), None).unwrap_err();
        assert_eq!(failure.status, USAGE);
        assert!(failure.message.contains("PRELOOM_LIB=/nowhere/x.so"), "{}", failure.message);
    }

    #[test]
    fn a_chosen_library_is_made_absolute() {
        let directory = TempDir::new().unwrap();
        let library = directory.path().join("some.so");
        std::fs::write(&library, "").unwrap();
        let roundabout = directory.path().join("../").join(directory.path()).join("./some.so");
        assert_eq!(find(Some(roundabout.as_os_str()), None), Ok(library.canonicalize().unwrap()));
    }

    #[test]
    fn a_name_that_the_loader_would_split_is_refused() {
        let directory = TempDir::new().unwrap();
        let library = directory.path().join("some lib.so");
        std::fs::write(&library, "").unwrap();
        let failure = find(Some(library.as_os_str()), None).unwrap_err();
        assert!(failure.message.contains("space or colon"), "{}", failure.message);
    }
}
