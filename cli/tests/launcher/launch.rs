//! A program started by the launcher is the program: same arguments, status and inheritance, and the library loaded.

use crate::fixture::{Fixture, assert_refused, clean};
use std::os::unix::process::CommandExt;
use std::process::{Command, Output};

#[test]
fn the_library_is_loaded_and_options_are_conveyed() {
    let fixture = Fixture::new();
    let output = fixture
        .preloom()
        .args(["--workers", "3", "--stack=64K", "--threads", "native", "--stats", "--"])
        .arg(fixture.path("probe"))
        .env("PRELOOM_WORKERS", "7")
        .output()
        .unwrap();
    let lines = lines(&output);
    for expected in [
        "LOADED=yes",
        "PRELOOM_WORKERS=3",
        "PRELOOM_STACK=64K",
        "PRELOOM_THREADS=native",
        "PRELOOM_STATS=1",
        &format!("LD_PRELOAD={}", fixture.path("libpreloom.so").display()),
    ] {
        let count = lines.iter().filter(|line| **line == format!("variable {expected}")).count();
        assert_eq!(count, 1, "{expected} in {lines:?}");
    }
}

#[test]
fn variables_stay_and_nothing_else_is_set() {
    let fixture = Fixture::new();
    let output =
        fixture.preloom().arg(fixture.path("probe")).env("PRELOOM_WORKERS", "7").output().unwrap();
    let mut names: Vec<_> =
        lines(&output).into_iter().filter(|line| line.starts_with("variable PRELOOM")).collect();
    names.sort();
    let library = fixture.path("libpreloom.so");
    assert_eq!(
        names,
        [
            format!("variable PRELOOM_LIB={}", library.display()),
            "variable PRELOOM_WORKERS=7".into()
        ]
    );
}

#[test]
fn other_preloaded_libraries_are_kept_and_ours_is_there_once() {
    let fixture = Fixture::new();
    let library = fixture.path("libpreloom.so").display().to_string();
    let other = fixture.path("other.so");
    std::fs::copy(&library, &other).unwrap();
    let other = other.display();
    let output = fixture
        .preloom()
        .arg(env!("CARGO_BIN_EXE_preloom"))
        .arg(fixture.path("probe"))
        .env("LD_PRELOAD", format!("{other}:{library}"))
        .output()
        .unwrap();
    let lines = lines(&output);
    assert!(lines.contains(&format!("variable LD_PRELOAD={library}:{other}")), "{lines:?}");
}

#[test]
fn the_exit_status_is_the_programs() {
    let fixture = Fixture::new();
    for status in [0, 1, 42, 127] {
        let mut command = fixture.preloom();
        command.arg(fixture.path("probe")).arg(status.to_string());
        assert_eq!(command.output().unwrap().status.code(), Some(status));
    }
}

#[test]
fn arguments_are_the_programs() {
    let fixture = Fixture::new();
    let output = fixture
        .preloom()
        .arg("probe")
        .args(["0", "--workers", "--", "-h", "", "a b"])
        .env("PATH", fixture.path(""))
        .output()
        .unwrap();
    let arguments: Vec<_> =
        lines(&output).into_iter().filter(|line| line.starts_with("argument")).collect();
    assert_eq!(
        arguments,
        [
            "argument 0 probe",
            "argument 1 0",
            "argument 2 --workers",
            "argument 3 --",
            "argument 4 -h",
            "argument 5 ",
            "argument 6 a b"
        ]
    );
}

/// Signals blocked and ignored, and descriptors closed, are what the program gets.
#[test]
fn what_is_inherited_is_not_changed() {
    let fixture = Fixture::new();
    let report = |mut command: Command| {
        clean(&mut command);
        command.env("PRELOOM_LIB", fixture.path("libpreloom.so"));
        // SAFETY: only calls that may be made between fork and exec.
        unsafe {
            command.pre_exec(|| {
                let mut set = std::mem::zeroed();
                libc::sigemptyset(&mut set);
                libc::sigaddset(&mut set, libc::SIGUSR1);
                libc::sigprocmask(libc::SIG_SETMASK, &set, std::ptr::null_mut());
                libc::signal(libc::SIGPIPE, libc::SIG_IGN);
                libc::signal(libc::SIGHUP, libc::SIG_IGN);
                libc::close(0);
                Ok(())
            });
        }
        let mut lines = lines(&command.output().unwrap());
        lines.retain(|line| !line.starts_with("variable") && !line.starts_with("argument 0"));
        lines
    };
    let native = report(Command::new(fixture.path("probe")));
    let mut launched = Command::new(env!("CARGO_BIN_EXE_preloom"));
    launched.arg(fixture.path("probe"));
    assert_eq!(report(launched), native);
    for expected in [format!("blocked {}", libc::SIGUSR1), format!("ignored {}", libc::SIGPIPE)] {
        assert!(native.contains(&expected), "{native:?}");
    }
    assert!(!native.contains(&"descriptor 0".to_owned()), "{native:?}");
}

#[test]
fn scripts_run_on_their_interpreter() {
    let fixture = Fixture::new();
    for (name, line) in
        [("sh", "#!/bin/sh"), ("env", "#!/usr/bin/env sh"), ("split", "#!/usr/bin/env -S sh -e")]
    {
        let script =
            fixture.file(name, format!("{line}\necho $LOADED $1; exit 5\n").as_bytes(), 0o755);
        let output = fixture.preloom().arg(script).arg("word").output().unwrap();
        assert_eq!(lines(&output), ["yes word"], "{line}");
        assert_eq!(output.status.code(), Some(5), "{line}");
    }
}

#[test]
fn the_library_is_found_beside_the_launcher() {
    let fixture = Fixture::new();
    std::fs::create_dir(fixture.path("bin")).unwrap();
    std::fs::create_dir(fixture.path("lib")).unwrap();
    let launcher = fixture.path("bin/preloom");
    std::fs::copy(env!("CARGO_BIN_EXE_preloom"), &launcher).unwrap();
    for place in ["bin/libpreloom.so", "lib/libpreloom.so"] {
        let library = fixture.path(place);
        std::fs::copy(fixture.path("libpreloom.so"), &library).unwrap();
        let mut command = Command::new(&launcher);
        let output = clean(&mut command).arg(fixture.path("probe")).output().unwrap();
        let expected = format!("variable LD_PRELOAD={}", library.display());
        assert!(lines(&output).contains(&expected), "{expected}");
    }
}

#[test]
fn help_and_version_are_printed() {
    let fixture = Fixture::new();
    for (option, text) in [("--help", "PRELOOM_WORKERS"), ("--version", env!("CARGO_PKG_VERSION"))]
    {
        let output = fixture.preloom().arg(option).output().unwrap();
        assert!(output.status.success());
        assert!(String::from_utf8_lossy(&output.stdout).contains(text), "{option}");
    }
}

#[test]
fn bad_values_are_refused_by_name() {
    let fixture = Fixture::new();
    let refused = |option: &[&str], variable: (&str, &str), texts: &[&str]| {
        let mut command = fixture.preloom();
        command.args(option).arg(fixture.path("probe")).env(variable.0, variable.1);
        assert_refused(&command.output().unwrap(), 2, texts);
    };
    let none = ("UNUSED", "");
    refused(&["--workers", "0"], none, &["--workers 0 ", "1 to 1024"]);
    refused(&["--workers", "-1"], none, &["--workers -1 ", "1 to 1024"]);
    refused(&["--stack", "8K"], none, &["--stack 8K ", "16K to 1G"]);
    refused(&["--threads", "blue"], none, &["--threads blue ", "green or native"]);
    refused(&[], ("PRELOOM_WORKERS", "many"), &["PRELOOM_WORKERS=many ", "1 to 1024"]);
    refused(&[], ("PRELOOM_STACK", "2G"), &["PRELOOM_STACK=2G ", "16K to 1G"]);
    refused(&[], ("PRELOOM_THREADS", ""), &["PRELOOM_THREADS= ", "green or native"]);
    refused(&[], ("PRELOOM_STATS", "yes"), &["PRELOOM_STATS=yes ", "0 or 1"]);
    refused(&["--wrokers", "1"], none, &["--wrokers", "--workers"]);
}

#[test]
fn a_missing_library_is_named() {
    let fixture = Fixture::new();
    let mut command = fixture.preloom();
    command.arg(fixture.path("probe")).env("PRELOOM_LIB", "/nowhere/libpreloom.so");
    assert_refused(&command.output().unwrap(), 2, &["PRELOOM_LIB=/nowhere/libpreloom.so"]);
}

/// Standard output as lines.
fn lines(output: &Output) -> Vec<String> {
    String::from_utf8_lossy(&output.stdout).lines().map(str::to_owned).collect()
}
