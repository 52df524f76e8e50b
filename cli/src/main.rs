//! `preloom PROGRAM [ARGS…]`: starts a program with libpreloom.so preloaded.
//!
//! The launcher checks what can be checked beforehand, so that a program either runs on preloom or the user is told
//! why not, and then becomes the program: same process, same exit status, and everything inherited as it was. That
//! is why `main` here is C's: Rust's start-up would ignore SIGPIPE, open closed standard descriptors and set a
//! signal stack, and the program would see the first two.
//!
//! * [`options`]: the command line, its variables, their limits
//! * [`program`]: finding PROGRAM and checking it, by way of [`script`], [`elf`] and [`privilege`]
//! * [`library`]: finding libpreloom.so, and `LD_PRELOAD`
//! * [`exec`]: becoming the program

#![cfg_attr(not(test), no_main)]

mod elf;
mod exec;
mod failure;
mod library;
mod options;
mod privilege;
mod program;
mod script;

use clap::Parser;
use failure::Failure;
use options::Options;
use std::ffi::OsString;
use std::io::Write;

/// Where the C library starts the launcher. glibc has given the arguments to `std::env` before.
#[cfg(not(test))]
#[unsafe(no_mangle)]
pub extern "C" fn main() -> libc::c_int {
    run()
}

/// Does not return if all is well.
#[cfg_attr(test, allow(dead_code))]
fn run() -> libc::c_int {
    let options = match Options::try_parse() {
        Ok(options) => options,
        Err(error) => return explain(&error),
    };
    let failure = launch(&options);
    // Nobody can be told if standard error is closed.
    let _ = writeln!(std::io::stderr(), "{failure}");
    failure.status.into()
}

/// Becomes the program, or says why not.
fn launch(options: &Options) -> Failure {
    let prepare = || -> Result<_, Failure> {
        let settings = options.environment(|name| std::env::var_os(name))?;
        let lookup = program::Lookup::new(std::env::var_os("PATH"));
        let program = lookup.find(&options.command[0])?;
        lookup.check(&program)?;
        let library = library::find(
            std::env::var_os("PRELOOM_LIB").as_deref(),
            std::env::current_exe().ok().as_deref(),
        )?;
        elf::check_library(&library)?;
        let preload = library::preload(&library, std::env::var_os("LD_PRELOAD").as_deref());
        Ok((program, environment(settings, preload)))
    };
    match prepare() {
        Ok((program, environment)) => exec::exec(&program, &options.command, environment),
        Err(failure) => failure,
    }
}

/// The launcher's environment with the library and the options in it.
fn environment(settings: Vec<(&str, OsString)>, preload: OsString) -> Vec<(OsString, OsString)> {
    let added: Vec<_> = settings.into_iter().chain([("LD_PRELOAD", preload)]).collect();
    std::env::vars_os()
        .filter(|(name, _)| added.iter().all(|(added, _)| name != added))
        .chain(added.iter().map(|(name, value)| (OsString::from(name), value.clone())))
        .collect()
}

/// Prints the help or version that was asked for, or what is wrong with the command line; the exit status.
fn explain(error: &clap::Error) -> libc::c_int {
    if error.use_stderr() {
        let text = error.render().to_string();
        let text = text.strip_prefix("error: ").unwrap_or(&text);
        let _ = write!(std::io::stderr(), "preloom: {text}");
    } else {
        let _ = error.print();
    }
    error.exit_code()
}
