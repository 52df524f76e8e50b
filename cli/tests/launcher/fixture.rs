//! A folder with a library to preload and programs to start, built by the C compiler of this machine.

use std::fs::{Permissions, set_permissions, write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use temp_dir::TempDir;

/// Stands in for libpreloom.so: says that it was loaded.
const LIBRARY: &str = r#"
#include <stdlib.h>
__attribute__((constructor)) static void loaded(void) { setenv("LOADED", "yes", 1); }
"#;

/// Tells what it was started with, and ends with the status that its first argument asks for.
const PROBE: &str = r#"
#define _GNU_SOURCE 1
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
extern char **environ;
int main(int argc, char **argv)
{
    for (int i = 0; i < argc; i++)
        printf("argument %d %s\n", i, argv[i]);
    for (char **variable = environ; *variable; variable++)
        if (!strncmp(*variable, "PRELOOM_", 8) || !strncmp(*variable, "LD_", 3) || !strncmp(*variable, "LOADED", 6))
            printf("variable %s\n", *variable);
    for (int fd = 0; fd < 10; fd++)
        if (fcntl(fd, F_GETFD) >= 0)
            printf("descriptor %d\n", fd);
    sigset_t blocked;
    sigprocmask(SIG_BLOCK, NULL, &blocked);
    for (int number = 1; number < NSIG; number++) {
        struct sigaction action;
        if (sigismember(&blocked, number) == 1)
            printf("blocked %d\n", number);
        if (sigaction(number, NULL, &action) == 0 && action.sa_handler == SIG_IGN)
            printf("ignored %d\n", number);
    }
    return argc > 1 ? atoi(argv[1]) : 0;
}
"#;

/// The folder.
pub struct Fixture {
    directory: TempDir,
}

impl Fixture {
    /// A folder with `libpreloom.so` and the dynamically linked program `probe` in it.
    pub fn new() -> Self {
        let fixture = Self { directory: TempDir::new().expect("a temporary directory") };
        set_permissions(fixture.directory.path(), Permissions::from_mode(0o755)).unwrap();
        fixture.compile(LIBRARY, "libpreloom.so", &["-shared", "-fPIC"]);
        fixture.compile(PROBE, "probe", &[]);
        fixture
    }

    /// A path in the folder.
    pub fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// Builds the probe once more, under another name and with more flags.
    pub fn probe(&self, name: &str, flags: &[&str]) -> PathBuf {
        self.compile(PROBE, name, flags)
    }

    /// A copy of the probe in which bytes have been changed.
    pub fn patched_probe(&self, name: &str, offset: usize, bytes: &[u8]) -> PathBuf {
        let mut program = std::fs::read(self.path("probe")).unwrap();
        program[offset..offset + bytes.len()].copy_from_slice(bytes);
        self.file(name, &program, 0o755)
    }

    /// A file with these contents and this mode.
    pub fn file(&self, name: &str, contents: &[u8], mode: u32) -> PathBuf {
        let path = self.path(name);
        write(&path, contents).unwrap();
        set_permissions(&path, Permissions::from_mode(mode)).unwrap();
        path
    }

    /// The launcher, in an environment that has nothing of preloom but the library of this folder.
    pub fn preloom(&self) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_preloom"));
        clean(&mut command).env("PRELOOM_LIB", self.path("libpreloom.so"));
        command
    }

    /// What `preloom PROGRAM` does.
    pub fn launch(&self, program: &Path) -> Output {
        self.preloom().arg(program).output().unwrap()
    }

    fn compile(&self, source: &str, name: &str, flags: &[&str]) -> PathBuf {
        let source = self.file(&format!("{name}.c"), source.as_bytes(), 0o644);
        let output = self.path(name);
        let compiler = std::env::var("CC").unwrap_or_else(|_| "cc".into());
        let status = Command::new(compiler).arg(source).arg("-o").arg(&output).args(flags).status();
        assert!(status.expect("a C compiler: run scripts/setup").success(), "cannot build {name}");
        output
    }
}

/// Takes what concerns preloom out of the environment.
pub fn clean(command: &mut Command) -> &mut Command {
    for name in ["WORKERS", "STACK", "THREADS", "STATS", "LIB"] {
        command.env_remove(format!("PRELOOM_{name}"));
    }
    command.env_remove("LD_PRELOAD")
}

/// That the launcher refused with this status, for a reason that contains each of these texts.
#[track_caller]
pub fn assert_refused(output: &Output, status: i32, texts: &[&str]) {
    let error = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(status), "{error}");
    assert!(error.starts_with("preloom: "), "{error}");
    for text in texts {
        assert!(error.contains(text), "{text:?} is not in: {error}");
    }
    assert!(output.stdout.is_empty(), "the program has run");
}
