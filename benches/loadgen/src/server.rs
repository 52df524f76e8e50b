//! What the server process costs, read from `/proc`.

use std::fs;
use std::io;

/// One look at the server.
#[derive(Clone, Copy, Debug)]
pub struct Sample {
    /// User and system time of all its threads, also of those that ended.
    pub cpu_us: u64,
}

/// Threads and memory of the server.
#[derive(Clone, Copy, Debug)]
pub struct Footprint {
    /// Kernel threads.
    pub threads: u64,
    /// Resident memory in KiB.
    pub rss_kib: u64,
    /// Page tables in KiB.
    pub page_tables_kib: u64,
    /// What the kernel holds for the whole system in KiB: kernel stacks and objects it cannot reclaim. Page tables are
    /// left out, for those of the process are known. Only the difference between two moments tells something.
    pub kernel_kib: u64,
}

/// Reads the CPU time used so far.
pub fn sample(pid: u32) -> io::Result<Sample> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat"))?;
    // The name in parentheses may hold anything; the numbers start after the last parenthesis, with field 3.
    let fields = stat.rsplit_once(')').map_or("", |(_, rest)| rest);
    let ticks: Option<u64> =
        fields.split_whitespace().skip(14 - 3).take(2).map(|field| field.parse::<u64>().ok()).sum();
    let ticks = ticks.ok_or_else(|| io::Error::other("unexpected format of /proc/PID/stat"))?;
    Ok(Sample { cpu_us: ticks * 1_000_000 / rustix::param::clock_ticks_per_second() })
}

/// Reads threads and memory.
pub fn footprint(pid: u32) -> io::Result<Footprint> {
    let status = fs::read_to_string(format!("/proc/{pid}/status"))?;
    let system = fs::read_to_string("/proc/meminfo")?;
    Ok(Footprint {
        threads: field(&status, "Threads:")?,
        rss_kib: field(&status, "VmRSS:")?,
        page_tables_kib: field(&status, "VmPTE:")?,
        kernel_kib: field(&system, "KernelStack:")? + field(&system, "SUnreclaim:")?,
    })
}

/// The number after `name` at the start of a line.
fn field(text: &str, name: &str) -> io::Result<u64> {
    text.lines()
        .find_map(|line| line.strip_prefix(name)?.split_whitespace().next()?.parse().ok())
        .ok_or_else(|| io::Error::other(format!("no {name} in /proc")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_itself() {
        let pid = std::process::id();
        sample(pid).unwrap();
        let footprint = footprint(pid).unwrap();
        assert!(footprint.threads >= 1 && footprint.rss_kib > 0 && footprint.page_tables_kib > 0);
    }
}
