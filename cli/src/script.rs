//! The first line of scripts: which program the kernel starts for them.

use crate::failure::{Failure, NOT_EXECUTABLE};
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// How much of a file the kernel looks at to find the line.
const LOOKED_AT: usize = 256;

/// What a `#!` line asks for.
#[derive(Debug, PartialEq, Eq)]
pub struct Interpreter {
    /// The program that the kernel starts.
    pub path: PathBuf,
    /// The program that this one starts in turn if it is `env`, still to be looked up in `PATH`.
    pub env_program: Option<OsString>,
}

/// The interpreter that `file`, whose name is `program`, asks for; none if it is no script.
pub fn interpreter(program: &Path, file: &File) -> Result<Option<Interpreter>, Failure> {
    let cannot =
        |what: &str| Failure::new(NOT_EXECUTABLE, format!("{}: {what}", program.display()));
    let mut start = [0; LOOKED_AT];
    let size = file
        .read_at(&mut start, 0)
        .map_err(|error| cannot(&format!("cannot be read, so it cannot be checked: {error}")))?;
    let Some(line) = start[..size].strip_prefix(b"#!") else { return Ok(None) };
    let line = line.split(|byte| *byte == b'\n').next().unwrap_or_default().trim_ascii();
    let (path, argument) = split_word(line);
    if path.is_empty() {
        return Err(cannot("its #! line names no interpreter; write one, such as #!/bin/sh"));
    }
    let path = PathBuf::from(OsStr::from_bytes(path));
    let env_program = match path.file_name() {
        Some(name) if name == "env" => {
            env_program(argument).map_err(|ClearsEnvironment| {
                cannot("its #! line makes env clear the environment, which ends preloading; take the -i out")
            })?
        }
        _ => None,
    };
    Ok(Some(Interpreter { path, env_program }))
}

/// `env -i` would drop `LD_PRELOAD`.
#[derive(Debug, PartialEq, Eq)]
struct ClearsEnvironment;

/// The program that `env` starts when the kernel gives it this one argument. None where that cannot be told.
fn env_program(argument: &[u8]) -> Result<Option<OsString>, ClearsEnvironment> {
    let split = argument
        .strip_prefix(b"-S")
        .or_else(|| argument.strip_prefix(b"--split-string="))
        .or_else(|| argument.strip_prefix(b"-vS"));
    let Some(mut words) = split.map(<[u8]>::trim_ascii) else {
        return match argument {
            b"-i" | b"-" | b"--ignore-environment" => Err(ClearsEnvironment),
            _ if argument.is_empty() || argument[0] == b'-' || argument.contains(&b'=') => Ok(None),
            name => Ok(Some(OsStr::from_bytes(name).to_owned())),
        };
    };
    while !words.is_empty() {
        let (word, rest) = split_word(words);
        match word {
            b"-i" | b"-" | b"--ignore-environment" => return Err(ClearsEnvironment),
            _ if word[0] == b'-' || word.contains(&b'"') || word.contains(&b'\'') => break,
            _ if word.contains(&b'=') => words = rest,
            name => return Ok(Some(OsStr::from_bytes(name).to_owned())),
        }
    }
    Ok(None)
}

/// The text up to the first blank, and what follows the blanks.
fn split_word(text: &[u8]) -> (&[u8], &[u8]) {
    let end = text.iter().position(|byte| matches!(byte, b' ' | b'\t')).unwrap_or(text.len());
    (&text[..end], text[end..].trim_ascii_start())
}

#[cfg(test)]
mod tests {
    use super::*;
    use temp_dir::TempDir;

    fn read(text: &str) -> Result<Option<(String, Option<String>)>, Failure> {
        let directory = TempDir::new().unwrap();
        let script = directory.child("script");
        std::fs::write(&script, text).unwrap();
        let found = interpreter(&script, &File::open(&script).unwrap())?;
        Ok(found.map(|interpreter| {
            let name = |text: OsString| text.into_string().unwrap();
            (name(interpreter.path.into()), interpreter.env_program.map(name))
        }))
    }

    #[test]
    fn a_line_names_an_interpreter() {
        for text in ["#!/bin/sh\necho", "#! /bin/sh -e\n", "#!\t/bin/sh", "#!/bin/sh  \n\n"] {
            assert_eq!(read(text), Ok(Some(("/bin/sh".into(), None))), "{text:?}");
        }
    }

    #[test]
    fn env_names_another() {
        for text in [
            "#!/usr/bin/env python3\n",
            "#!/usr/bin/env  python3 \n",
            "#!/usr/bin/env -S python3 -u\n",
            "#!/usr/bin/env -S A=1 B=2 python3 -u\n",
            "#!/usr/bin/env -Spython3\n",
        ] {
            let expected = ("/usr/bin/env".into(), Some("python3".into()));
            assert_eq!(read(text), Ok(Some(expected)), "{text:?}");
        }
    }

    #[test]
    fn env_lines_that_cannot_be_told_are_left_to_env() {
        for text in [
            "#!/usr/bin/env",
            "#!/usr/bin/env -S",
            "#!/usr/bin/env -S -u A prog",
            "#!/usr/bin/env A=1",
        ] {
            assert_eq!(read(text), Ok(Some(("/usr/bin/env".into(), None))), "{text:?}");
        }
    }

    #[test]
    fn env_that_drops_the_environment_is_refused() {
        for text in ["#!/usr/bin/env -i\n", "#!/usr/bin/env -S -i prog\n"] {
            assert!(read(text).unwrap_err().message.contains("-i"), "{text:?}");
        }
    }

    #[test]
    fn other_files_are_no_scripts() {
        for text in ["", "#", "# !/bin/sh", "\x7fELF", "echo"] {
            assert_eq!(read(text), Ok(None), "{text:?}");
        }
    }

    #[test]
    fn an_empty_line_is_refused() {
        assert_eq!(read("#! \n").unwrap_err().status, NOT_EXECUTABLE);
    }
}
