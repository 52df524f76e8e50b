//! Finding the program as a shell does, and making sure that preloading has an effect on it.
//!
//! The loader says nothing when it ignores `LD_PRELOAD`; here is where the user is told. What is checked is the
//! file that the kernel starts in the end: of a script, its interpreter.

use crate::elf;
use crate::failure::{Failure, NOT_EXECUTABLE, NOT_FOUND};
use crate::privilege;
use crate::script::{self, Interpreter};
use rustix::fs::{Access, AtFlags, CWD, accessat};
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// What is searched if `PATH` is not set, as glibc's `execvp` does.
const DEFAULT_PATH: &str = "/bin:/usr/bin";

/// How many interpreters of interpreters the kernel follows.
const DEPTH: u32 = 5;

/// Looks programs up in a `PATH`.
pub struct Lookup {
    path: OsString,
}

impl Lookup {
    /// Looks up in `path`, the value of `PATH` if it is set.
    pub fn new(path: Option<OsString>) -> Self {
        Self { path: path.unwrap_or_else(|| DEFAULT_PATH.into()) }
    }

    /// The file that a shell would run for the command `name`.
    pub fn find(&self, name: &OsStr) -> Result<PathBuf, Failure> {
        if name.as_bytes().contains(&b'/') {
            let path = PathBuf::from(name);
            return executable(&path).map(|()| path);
        }
        // Like a shell, go on after a file that may not be executed, and complain of it if there is no other.
        let mut refused = None;
        if !name.is_empty() {
            for directory in std::env::split_paths(&self.path) {
                let path = Path::new(".").join(directory).join(name);
                match executable(&path) {
                    Ok(()) => return Ok(path),
                    Err(failure) if path.is_file() => {
                        refused.get_or_insert(failure);
                    }
                    Err(_) => {} // nothing, a directory, or below one that may not be searched
                }
            }
        }
        Err(refused.unwrap_or_else(|| {
            let name = name.display();
            Failure::new(
                NOT_FOUND,
                format!("{name}: not found in PATH; a program elsewhere needs its path, such as ./{name}"),
            )
        }))
    }

    /// Fails, and says why, if `program` would not run on the preloaded library.
    pub fn check(&self, program: &Path) -> Result<(), Failure> {
        self.check_file(program, DEPTH)
    }

    fn check_file(&self, program: &Path, depth: u32) -> Result<(), Failure> {
        let file = File::open(program).map_err(|error| {
            let program = program.display();
            Failure::new(
                NOT_EXECUTABLE,
                format!("{program}: cannot be read, so it cannot be checked: {error}"),
            )
        })?;
        match script::interpreter(program, &file)? {
            Some(interpreter) if depth > 0 => self
                .check_interpreter(&interpreter, depth - 1)
                .map_err(|failure| named_in(program, failure)),
            Some(_) => Err(Failure::new(
                NOT_EXECUTABLE,
                format!("{}: its #! line leads to too many interpreters", program.display()),
            )),
            None => {
                elf::check(program, &file)?;
                privilege::check(program, &file)
            }
        }
    }

    fn check_interpreter(&self, interpreter: &Interpreter, depth: u32) -> Result<(), Failure> {
        executable(&interpreter.path)?;
        self.check_file(&interpreter.path, depth)?;
        match &interpreter.env_program {
            Some(name) => self.check_file(&self.find(name)?, depth),
            None => Ok(()),
        }
    }
}

/// Says which script asked for an interpreter that will not do. The script itself is there and may be executed, but
/// shells call this "not found", too.
fn named_in(script: &Path, failure: Failure) -> Failure {
    let message = format!("{}: its interpreter is {}", script.display(), failure.message);
    Failure::new(failure.status, message)
}

/// Fails unless `path` is a file that may be executed.
fn executable(path: &Path) -> Result<(), Failure> {
    let name = path.display();
    let metadata = match path.metadata() {
        Ok(metadata) => metadata,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            return Err(Failure::new(NOT_FOUND, format!("{name}: not found; check the path")));
        }
        Err(error) => {
            return Err(Failure::new(
                NOT_EXECUTABLE,
                format!("{name}: cannot be looked at: {error}"),
            ));
        }
    };
    if metadata.is_dir() {
        return Err(Failure::new(
            NOT_EXECUTABLE,
            format!("{name}: is a directory; name a program in it"),
        ));
    }
    if !metadata.is_file() || accessat(CWD, path, Access::EXEC_OK, AtFlags::EACCESS).is_err() {
        return Err(Failure::new(
            NOT_EXECUTABLE,
            format!("{name}: may not be executed; if it is a program, run `chmod +x {name}`"),
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::{Permissions, create_dir, set_permissions, write};
    use std::os::unix::fs::PermissionsExt;
    use temp_dir::TempDir;

    /// Directories a and b, each with a file `prog` of the given modes.
    fn directories(modes: [u32; 2]) -> (TempDir, Lookup) {
        let root = TempDir::new().unwrap();
        for (name, mode) in ["a", "b"].into_iter().zip(modes) {
            create_dir(root.path().join(name)).unwrap();
            let program = root.path().join(name).join("prog");
            write(&program, "").unwrap();
            set_permissions(&program, Permissions::from_mode(mode)).unwrap();
        }
        let path = format!("/nowhere:{0}/a:{0}/b", root.path().display());
        (root, Lookup::new(Some(path.into())))
    }

    #[test]
    fn the_first_executable_file_in_path_is_found() {
        let (root, lookup) = directories([0o755, 0o755]);
        assert_eq!(lookup.find(OsStr::new("prog")), Ok(root.path().join("a/prog")));
        let (root, lookup) = directories([0o644, 0o755]);
        assert_eq!(lookup.find(OsStr::new("prog")), Ok(root.path().join("b/prog")));
    }

    #[test]
    fn files_that_may_not_be_executed_are_told_from_none() {
        let (_root, lookup) = directories([0o644, 0o644]);
        assert_eq!(lookup.find(OsStr::new("prog")).unwrap_err().status, NOT_EXECUTABLE);
        assert_eq!(lookup.find(OsStr::new("gorp")).unwrap_err().status, NOT_FOUND);
        assert_eq!(lookup.find(OsStr::new("")).unwrap_err().status, NOT_FOUND);
    }

    #[test]
    fn directories_in_path_are_no_programs() {
        let (root, _) = directories([0o755, 0o755]);
        let lookup = Lookup::new(Some(root.path().into()));
        assert_eq!(lookup.find(OsStr::new("a")).unwrap_err().status, NOT_FOUND);
    }

    #[test]
    fn a_name_with_a_slash_is_not_looked_up() {
        let (root, lookup) = directories([0o755, 0o644]);
        let find = |name: &str| lookup.find(root.path().join(name).as_os_str());
        assert_eq!(find("a/prog"), Ok(root.path().join("a/prog")));
        assert_eq!(find("b/prog").unwrap_err().status, NOT_EXECUTABLE);
        assert_eq!(find("c/prog").unwrap_err().status, NOT_FOUND);
        assert_eq!(find("a").unwrap_err().status, NOT_EXECUTABLE);
        assert_eq!(lookup.find(OsStr::new("./prog")).unwrap_err().status, NOT_FOUND);
    }

    #[test]
    fn an_empty_directory_in_path_is_the_current_one() {
        let lookup = Lookup::new(Some("".into()));
        // Tests run in the folder of the crate, which has no program; but a file there is seen.
        assert_eq!(lookup.find(OsStr::new("Cargo.toml")).unwrap_err().status, NOT_EXECUTABLE);
    }
}
