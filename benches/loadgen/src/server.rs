//! What the server process costs, read from `/proc`.

use std::fs;
use std::io;

use rustix::process::Pid;
use rustix::thread::{CpuSet, sched_getaffinity};

/// One look at the server.
#[derive(Clone, Copy, Debug)]
pub struct Sample {
    /// User and system time of all its threads, also of those that ended.
    pub cpu_us: u64,
    /// Time that any program had the CPU to which the server is pinned; none if it is not pinned. Interrupts are left
    /// out, for kernels differ in whether they count as time of the program they hit: what others took of that CPU is
    /// therefore more than this minus `cpu_us`, never less.
    pub pinned_us: Option<u64>,
}

impl Sample {
    /// Share of the last `seconds`, which began at `before`, in which others certainly had the server's CPU.
    pub fn disturbed(self, before: Self, seconds: f64) -> Option<f64> {
        let busy = self.pinned_us?.saturating_sub(before.pinned_us?);
        Some(busy.saturating_sub(self.cpu_us - before.cpu_us) as f64 / 1e6 / seconds)
    }
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
    let microseconds = |ticks: u64| ticks * 1_000_000 / rustix::param::clock_ticks_per_second();
    let pinned = pinned_to(pid)?.map(cpu_ticks).transpose()?;
    Ok(Sample { cpu_us: microseconds(ticks), pinned_us: pinned.map(microseconds) })
}

/// The only CPU on which the process may run, if there is only one.
fn pinned_to(pid: u32) -> io::Result<Option<usize>> {
    let allowed = sched_getaffinity(Pid::from_raw(pid as i32))?;
    let only = allowed.count() == 1;
    Ok((0..CpuSet::MAX_CPU).find(|cpu| only && allowed.is_set(*cpu)))
}

/// Ticks that a CPU spent on programs: user, nice and system.
fn cpu_ticks(cpu: usize) -> io::Result<u64> {
    let stat = fs::read_to_string("/proc/stat")?;
    let name = format!("cpu{cpu} ");
    let ticks = stat.lines().find_map(|line| {
        let fields = line.strip_prefix(&name)?.split_whitespace().take(3);
        fields.map(|field| field.parse::<u64>().ok()).sum()
    });
    ticks.ok_or_else(|| io::Error::other("unexpected format of /proc/stat"))
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
