//! Becoming the program.

use crate::failure::{Failure, NOT_EXECUTABLE};
use std::ffi::{CString, OsString};
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;

/// Replaces the launcher by `program`, whose first argument is its own name. Returns only if that fails.
pub fn exec(
    program: &Path,
    arguments: &[OsString],
    environment: Vec<(OsString, OsString)>,
) -> Failure {
    let strings = || -> Result<_, std::ffi::NulError> {
        let path = CString::new(program.as_os_str().as_bytes())?;
        let arguments: Vec<_> =
            arguments.iter().map(|word| CString::new(word.as_bytes())).collect::<Result<_, _>>()?;
        let environment: Vec<_> = environment
            .into_iter()
            .map(|(name, value)| CString::new([name.into_vec(), value.into_vec()].join(&b'=')))
            .collect::<Result<_, _>>()?;
        Ok((path, arguments, environment))
    };
    let error = match strings() {
        Ok((path, arguments, environment)) => execve(&path, &arguments, &environment),
        Err(error) => error.into(),
    };
    Failure::new(NOT_EXECUTABLE, format!("{}: cannot be started: {error}", program.display()))
}

fn execve(path: &CString, arguments: &[CString], environment: &[CString]) -> io::Error {
    let pointers = |strings: &[CString]| -> Vec<*const libc::c_char> {
        strings.iter().map(|string| string.as_ptr()).chain([std::ptr::null()]).collect()
    };
    let (arguments, environment) = (pointers(arguments), pointers(environment));
    // SAFETY: a C string and two null-terminated arrays of them, which live until the call returns.
    unsafe { libc::execve(path.as_ptr(), arguments.as_ptr(), environment.as_ptr()) };
    io::Error::last_os_error()
}
