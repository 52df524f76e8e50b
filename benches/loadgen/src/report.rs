//! What is counted while the load runs, and how it is printed.

use std::collections::BTreeMap;
use std::{fs, io};

use hdrhistogram::Histogram;
use rustix::time::{ClockId, clock_gettime};
use serde::Serialize;

use crate::conn::Fault;
use crate::server::Footprint;

/// How this program spent its time, in seconds so far or as shares of a window.
#[derive(Clone, Copy, Debug)]
pub struct OwnTime {
    /// On a CPU.
    pub cpu: f64,
    /// Ready to run, but other programs had the CPU.
    pub delay: f64,
}

impl OwnTime {
    /// So far.
    pub fn now() -> io::Result<Self> {
        let time = clock_gettime(ClockId::ProcessCPUTime);
        // Time on the CPU, time in the run queue, number of slices; of the main thread, which is the only one.
        let scheduled = fs::read_to_string("/proc/self/schedstat")?;
        let delay = scheduled.split_whitespace().nth(1).and_then(|field| field.parse::<u64>().ok());
        let delay =
            delay.ok_or_else(|| io::Error::other("unexpected format of /proc/self/schedstat"))?;
        Ok(Self { cpu: time.tv_sec as f64 + time.tv_nsec as f64 / 1e9, delay: delay as f64 / 1e9 })
    }

    /// Shares of the last `seconds`, which began at `before`.
    pub fn since(self, before: Self, seconds: f64) -> Self {
        Self {
            cpu: (self.cpu - before.cpu) / seconds,
            delay: (self.delay - before.delay) / seconds,
        }
    }
}

/// Counters of one run.
pub struct Tally {
    /// Connections that were made (in churn: within the measured window).
    pub connected: u64,
    /// Replies within the measured window.
    pub requests: u64,
    /// Open loop: requests that were due but could not be sent because the reply before them was late.
    pub unsent: u64,
    faults: BTreeMap<&'static str, u64>,
    latency: Histogram<u64>,
}

impl Tally {
    /// All zero. Latencies are kept from 100 ns to 10 minutes with three digits.
    pub fn new() -> Self {
        let latency =
            Histogram::new_with_bounds(100, 600_000_000_000, 3).expect("the bounds are valid");
        Self { connected: 0, requests: 0, unsent: 0, faults: BTreeMap::new(), latency }
    }

    /// Notes a failed connection.
    pub fn fault(&mut self, fault: Fault) {
        let name = match fault {
            Fault::Refused => "refused",
            Fault::Reset => "reset",
            Fault::Closed => "closed",
            Fault::Content => "content",
            Fault::Unanswered => "unanswered",
            Fault::ConnectTimeout => "connect_timeout",
            Fault::Other => "other",
        };
        *self.faults.entry(name).or_default() += 1;
    }

    /// Notes how long a reply took.
    pub fn latency(&mut self, nanoseconds: u64) {
        self.latency.saturating_record(nanoseconds);
    }

    /// Sums up.
    pub fn report(
        &self,
        seconds: f64,
        own: OwnTime,
        server: Option<(u64, Footprint)>,
        cdf: bool,
    ) -> Report {
        let quantile = |q: f64| microseconds(self.latency.value_at_quantile(q));
        let distribution = || {
            let points = self
                .latency
                .iter_quantiles(4)
                .map(|step| (step.quantile(), microseconds(step.value_iterated_to())));
            points.collect()
        };
        Report {
            connected: self.connected,
            requests: self.requests,
            seconds,
            requests_per_second: self.requests as f64 / seconds,
            errors: self.faults.values().sum(),
            error_kinds: self.faults.clone(),
            unsent: self.unsent,
            p50_us: quantile(0.5),
            p99_us: quantile(0.99),
            p999_us: quantile(0.999),
            max_us: microseconds(self.latency.max()),
            load_cpu: own.cpu,
            load_delay: own.delay,
            server: server.map(|(cpu_us, footprint)| ServerCost {
                server_cpu_us: cpu_us,
                server_cpu_us_per_request: cpu_us as f64 / (self.requests.max(1)) as f64,
                server_threads: footprint.threads,
                server_rss_kib: footprint.rss_kib,
                server_page_tables_kib: footprint.page_tables_kib,
                system_kernel_kib: footprint.kernel_kib,
            }),
            cdf: cdf.then(distribution),
        }
    }
}

fn microseconds(nanoseconds: u64) -> f64 {
    nanoseconds as f64 / 1_000.0
}

/// The result of one run; its fields are the keys of the JSON object.
#[derive(Debug, Serialize)]
pub struct Report {
    /// Connections that were made.
    pub connected: u64,
    /// Replies within the measured window.
    pub requests: u64,
    /// Length of the window.
    pub seconds: f64,
    /// Replies a second.
    pub requests_per_second: f64,
    /// Failed connections and unanswered requests.
    pub errors: u64,
    /// The same by kind.
    pub error_kinds: BTreeMap<&'static str, u64>,
    /// Open loop: requests that were due but never sent.
    pub unsent: u64,
    /// Median latency in microseconds.
    pub p50_us: f64,
    /// 99th percentile.
    pub p99_us: f64,
    /// 99.9th percentile.
    pub p999_us: f64,
    /// Slowest reply.
    pub max_us: f64,
    /// Share of one CPU that this program used in the window: near 1, it may be what limits the result.
    pub load_cpu: f64,
    /// Share of the window in which this program was ready to run but others had its CPU: far above 0, the machine was
    /// too busy with other things for the result to mean much.
    pub load_delay: f64,
    /// The server's side, if asked for.
    #[serde(flatten)]
    pub server: Option<ServerCost>,
    /// Latency distribution, if asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cdf: Option<Vec<(f64, f64)>>,
}

/// What the server spent in the window, and what it holds at the end of it.
#[derive(Debug, Serialize)]
pub struct ServerCost {
    /// User and system time.
    pub server_cpu_us: u64,
    /// The same divided by the replies.
    pub server_cpu_us_per_request: f64,
    /// Kernel threads.
    pub server_threads: u64,
    /// Resident memory.
    pub server_rss_kib: u64,
    /// Page tables.
    pub server_page_tables_kib: u64,
    /// Kernel memory of the whole system (see [`Footprint::kernel_kib`]).
    pub system_kernel_kib: u64,
}

impl Report {
    /// Prints the result, as JSON or for people.
    pub fn print(&self, json: bool) {
        if json {
            println!("{}", serde_json::to_string(self).expect("plain numbers and strings"));
            return;
        }
        println!("connected     {}", self.connected);
        println!(
            "requests      {} in {:.3} s, {:.0}/s",
            self.requests, self.seconds, self.requests_per_second
        );
        println!(
            "latency       p50 {:.1} µs, p99 {:.1} µs, p99.9 {:.1} µs, max {:.1} µs",
            self.p50_us, self.p99_us, self.p999_us, self.max_us
        );
        println!(
            "load CPU      {:.0}%, and {:.0}% waiting for other programs",
            self.load_cpu * 100.0,
            self.load_delay * 100.0
        );
        if let Some(server) = &self.server {
            println!(
                "server        {:.2} µs CPU a request, {} threads, {} KiB resident, {} KiB page tables",
                server.server_cpu_us_per_request,
                server.server_threads,
                server.server_rss_kib,
                server.server_page_tables_kib
            );
        }
        if self.unsent > 0 {
            println!("unsent        {}", self.unsent);
        }
        println!(
            "errors        {} {}",
            self.errors,
            if self.errors > 0 { format!("{:?}", self.error_kinds) } else { String::new() }
        );
    }
}
