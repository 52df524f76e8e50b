//! Programs that would not run on preloom are refused before they start, and the user is told why.

use crate::fixture::{Fixture, assert_refused, clean};
use std::fs::{Permissions, set_permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// Where an ELF file says which machine it is for, and which word size.
const WORD_SIZE: usize = 4;
const MACHINE: usize = 18;

#[test]
fn missing_programs() {
    let fixture = Fixture::new();
    assert_refused(
        &fixture.launch(Path::new("no-such-program")),
        127,
        &["no-such-program", "PATH"],
    );
    assert_refused(&fixture.launch(&fixture.path("missing")), 127, &["missing", "not found"]);
}

#[test]
fn files_that_may_not_be_executed() {
    let fixture = Fixture::new();
    let file = fixture.file("plain", b"#!/bin/sh\n", 0o644);
    assert_refused(&fixture.launch(&file), 126, &["plain", "chmod +x"]);
    assert_refused(&fixture.launch(&fixture.path("")), 126, &["directory"]);
    let file = fixture.file("text", b"echo hello\n", 0o755);
    assert_refused(&fixture.launch(&file), 126, &["text", "neither"]);
    let file = fixture.file("empty", b"", 0o755);
    assert_refused(&fixture.launch(&file), 126, &["empty", "neither"]);
}

#[test]
fn static_programs() {
    let fixture = Fixture::new();
    assert_refused(
        &fixture.launch(&fixture.probe("fixed", &["-static"])),
        126,
        &["fixed", "static"],
    );
    let program = fixture.probe("fixed-pie", &["-static-pie"]);
    assert_refused(&fixture.launch(&program), 126, &["fixed-pie", "static"]);
}

#[test]
fn programs_of_another_libc() {
    let fixture = Fixture::new();
    let program = fixture.probe("musl", &["-Wl,--dynamic-linker=/lib/ld-musl-x86_64.so.1"]);
    assert_refused(&fixture.launch(&program), 126, &["musl", "another libc", "glibc"]);
}

#[test]
fn programs_whose_loader_is_missing() {
    let fixture = Fixture::new();
    let program = fixture.probe("lost", &["-Wl,--dynamic-linker=/nowhere/ld-linux-x86-64.so.2"]);
    assert_refused(&fixture.launch(&program), 126, &["/nowhere/ld-linux-x86-64.so.2", "not there"]);
}

#[test]
fn programs_of_another_machine() {
    let fixture = Fixture::new();
    let program = fixture.patched_probe("narrow", WORD_SIZE, &[1]);
    assert_refused(&fixture.launch(&program), 126, &["narrow", "word size"]);
    let program = fixture.patched_probe("foreign", MACHINE, &other_machine());
    assert_refused(&fixture.launch(&program), 126, &["foreign", "another machine"]);
}

#[test]
fn damaged_programs() {
    let fixture = Fixture::new();
    let start = &std::fs::read(fixture.path("probe")).unwrap()[..40];
    assert_refused(&fixture.launch(&fixture.file("cut", start, 0o755)), 126, &["cut"]);
}

/// The loader would warn of these libraries and start the program without preloom.
#[test]
fn libraries_that_the_loader_would_ignore() {
    let fixture = Fixture::new();
    let library = std::fs::read(fixture.path("libpreloom.so")).unwrap();
    let patched = |name: &str, offset: usize, bytes: &[u8]| {
        let mut library = library.clone();
        library[offset..offset + bytes.len()].copy_from_slice(bytes);
        fixture.file(name, &library, 0o644)
    };
    for (file, text) in [
        (fixture.file("empty.so", b"", 0o644), "no shared library"),
        (fixture.file("text.so", b"INPUT(libpreloom.so)\n", 0o644), "no shared library"),
        (fixture.file("cut.so", &library[..20], 0o644), "no shared library"),
        (patched("narrow.so", WORD_SIZE, &[1]), "word size"),
        (patched("foreign.so", MACHINE, &other_machine()), "another machine"),
        (fixture.probe("fixed.so", &["-static"]), "no shared library"),
    ] {
        let mut command = fixture.preloom();
        command.arg(fixture.path("probe")).env("PRELOOM_LIB", &file);
        let name = file.display().to_string();
        assert_refused(&command.output().unwrap(), 2, &[&name, text, "PRELOOM_LIB"]);
    }
}

#[test]
fn scripts_whose_interpreter_will_not_do() {
    let fixture = Fixture::new();
    let fixed = fixture.probe("fixed", &["-static"]);
    let script = |name: &str, line: String| fixture.file(name, line.as_bytes(), 0o755);
    for (file, status, text) in [
        (script("a", format!("#!{}\n", fixed.display())), 126, "static"),
        (script("b", format!("#!/usr/bin/env {}\n", fixed.display())), 126, "static"),
        (script("c", "#!/nowhere/interpreter\n".into()), 127, "/nowhere/interpreter"),
        (script("d", "#!/usr/bin/env no-such-program\n".into()), 127, "no-such-program"),
        (script("e", format!("#!{}\n", fixture.path("e").display())), 126, "too many"),
    ] {
        let name = file.display().to_string();
        assert_refused(&fixture.launch(&file), status, &[text, &name]);
    }
}

/// A script's own setuid bit means nothing to the kernel, nor does a bit that changes nothing for the user.
#[test]
fn setuid_bits_that_give_nothing_are_no_reason() {
    let fixture = Fixture::new();
    set_permissions(fixture.path("probe"), Permissions::from_mode(0o4755)).unwrap();
    let output = fixture.launch(&fixture.path("probe"));
    assert!(String::from_utf8_lossy(&output.stdout).contains("LOADED=yes"));
}

#[test]
fn setuid_programs() {
    let fixture = Fixture::new();
    let (output, name) = if is_root() {
        set_permissions(fixture.path("probe"), Permissions::from_mode(0o4755)).unwrap();
        (launch_as_nobody(&fixture), "probe".to_owned())
    } else {
        let program = setuid_program_of_the_system();
        (fixture.launch(&program), program.display().to_string())
    };
    assert_refused(&output, 126, &[&name, "setuid", "LD_PRELOAD"]);
}

#[test]
fn setgid_programs() {
    if !is_root() {
        return; // The rule itself has a unit test that needs no rights.
    }
    let fixture = Fixture::new();
    set_permissions(fixture.path("probe"), Permissions::from_mode(0o2755)).unwrap();
    assert_refused(&launch_as_nobody(&fixture), 126, &["probe", "setgid", "LD_PRELOAD"]);
}

#[test]
fn programs_with_capabilities() {
    let fixture = Fixture::new();
    let setcap =
        || Command::new("setcap").arg("cap_net_raw+ep").arg(fixture.path("probe")).status();
    if !is_root() || !setcap().is_ok_and(|status| status.success()) {
        return; // The rule itself has a unit test that needs no rights.
    }
    assert_refused(&launch_as_nobody(&fixture), 126, &["probe", "capabilities", "LD_PRELOAD"]);
}

/// The ELF number of a machine that this one is not.
fn other_machine() -> [u8; 2] {
    let machine = if cfg!(target_arch = "aarch64") { 62_u16 } else { 183 };
    machine.to_le_bytes()
}

fn is_root() -> bool {
    Path::new("/proc/self").metadata().unwrap().uid() == 0
}

/// The launcher on the probe, as a user who owns neither. It is copied, since that user may not reach the original.
fn launch_as_nobody(fixture: &Fixture) -> Output {
    const NOBODY: u32 = 65534;
    let launcher = fixture.path("preloom");
    std::fs::copy(env!("CARGO_BIN_EXE_preloom"), &launcher).unwrap();
    set_permissions(&launcher, Permissions::from_mode(0o755)).unwrap();
    let mut command = Command::new(launcher);
    clean(&mut command).arg(fixture.path("probe")).uid(NOBODY).gid(NOBODY).current_dir("/");
    command.output().unwrap()
}

fn setuid_program_of_the_system() -> PathBuf {
    ["/usr/bin/su", "/usr/bin/passwd", "/usr/bin/mount", "/usr/bin/chsh"]
        .map(PathBuf::from)
        .into_iter()
        .find(|path| path.metadata().is_ok_and(|data| data.mode() & 0o4000 != 0 && data.uid() == 0))
        .expect("su, passwd, mount or chsh is setuid root")
}
