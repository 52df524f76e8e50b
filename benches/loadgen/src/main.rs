//! `loadgen`: a single-threaded load generator for echo servers.
//!
//! * [`args`]: the command line
//! * [`engine`]: the event loop, and the ways to offer load (closed loop, open loop, churn, idle)
//! * [`conn`]: one connection
//! * [`payload`]: what requests carry and how replies are checked
//! * [`report`]: counters, latencies, output
//! * [`server`]: what the server process costs

mod args;
mod conn;
mod engine;
mod payload;
mod report;
mod server;

use std::io;
use std::process::ExitCode;

use clap::Parser;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use args::Args;
use engine::Engine;

fn main() -> ExitCode {
    let args = Args::parse();
    match run(&args) {
        Ok(0) => ExitCode::SUCCESS,
        Ok(_) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("loadgen: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Runs the load and returns how many errors there were.
fn run(args: &Args) -> io::Result<u64> {
    raise_descriptor_limit(u64::from(args.connections))?;
    // The default slack of 50 µs would show in every latency of an open loop.
    rustix::thread::set_current_timer_slack(std::num::NonZeroU64::new(1))?;
    let report = Engine::new(args)?.run()?;
    report.print(args.json);
    Ok(report.errors)
}

/// Raises the limit of open files to the most that is allowed, and checks that it suffices.
fn raise_descriptor_limit(connections: u64) -> io::Result<()> {
    let limit = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit })?;
    match limit.maximum {
        // Standard streams, epoll, and what the parent left open.
        Some(maximum) if connections + 16 > maximum => Err(io::Error::other(format!(
            "{connections} connections, but only {maximum} open files are allowed"
        ))),
        _ => Ok(()),
    }
}
