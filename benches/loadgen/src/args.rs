//! The command line, and the checks on it.

use std::net::SocketAddr;
use std::time::Duration;

use clap::Parser;

/// Drives a TCP echo server and measures how it answers.
///
/// Each connection sends SIZE bytes, waits until SIZE bytes came back, compares them with what was sent, and starts
/// again. Exit status 0: every request was answered rightly; 1: some were not; 2: the command line is wrong.
#[derive(Debug, Parser)]
#[command(name = "loadgen", version)]
pub struct Args {
    /// Address of the echo server
    #[arg(long, value_name = "IP:PORT")]
    pub connect: SocketAddr,

    /// Connections held open at the same time
    #[arg(long, value_name = "N", default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub connections: u32,

    /// Length of the measured window
    #[arg(long, value_name = "S", default_value = "3", value_parser = seconds)]
    pub seconds: Duration,

    /// Load before the measured window, not counted
    #[arg(long, value_name = "S", default_value = "0.5", value_parser = seconds)]
    pub warmup: Duration,

    /// Bytes a request
    #[arg(long, value_name = "BYTES", default_value_t = 64, value_parser = clap::value_parser!(u32).range(1..=64 << 20))]
    pub size: u32,

    /// Connect, make one request, close, and again, N at a time
    #[arg(long, conflicts_with_all = ["rate", "idle"])]
    pub churn: bool,

    /// Offer R requests a second whatever the answers do; latency counts from the moment a request was due
    #[arg(long, value_name = "R", conflicts_with = "idle", value_parser = clap::value_parser!(u64).range(1..=100_000_000))]
    pub rate: Option<u64>,

    /// One request a connection, then hold all of them open without traffic for the measured window
    #[arg(long)]
    pub idle: bool,

    /// Also report CPU time, threads and memory of this process over the measured window
    #[arg(long, value_name = "PID")]
    pub server_pid: Option<u32>,

    /// Print one JSON object instead of text
    #[arg(long)]
    pub json: bool,

    /// With --json, add the latency distribution as [quantile, microseconds] pairs
    #[arg(long, requires = "json")]
    pub cdf: bool,
}

/// Parses a duration in seconds, fractions allowed.
fn seconds(text: &str) -> Result<Duration, String> {
    let value: f64 = text.parse().map_err(|_| "expected a number of seconds".to_owned())?;
    if !(0.0..=86_400.0).contains(&value) {
        return Err("expected 0 to 86400 seconds".to_owned());
    }
    Ok(Duration::from_secs_f64(value))
}
