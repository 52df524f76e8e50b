//! The event loop: one thread, one edge-triggered epoll instance, one slot a connection.
//!
//! A run is a ramp (connect everything, one request each, so that the server is known to have accepted it; at most
//! [`IN_FLIGHT`] at a time, so that no accept queue overflows), a warm-up, the measured window, and a drain in which
//! nothing new is sent and every outstanding request must still be answered. A churn has no ramp.

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::time::Instant;

use rustix::event::epoll;
use rustix::io::Errno;
use rustix::time::Timespec;

use crate::args::Args;
use crate::conn::{Buffers, Conn, Fault, Phase};
use crate::report::{OwnTime, Report, Tally};
use crate::server;

/// Connections that are being made at the same time.
const IN_FLIGHT: usize = 200;
/// Without any progress for so long, the ramp and the drain give up.
const PATIENCE: u64 = 10 * SECOND;
const SECOND: u64 = 1_000_000_000;
/// Nearer than this, the next request of an open loop is waited for by polling: a sleep would oversleep it.
const SPIN: u64 = 60_000;

/// What became of a connection when an event was served.
enum Step {
    /// Nothing to act upon.
    Nothing,
    /// `connect` succeeded.
    Connected,
    /// A whole and correct reply to the request that was started (or due) then.
    Reply { since: u64 },
    /// The connection failed and was closed.
    Failed,
}

/// A run in progress.
pub struct Engine<'a> {
    args: &'a Args,
    epoll: OwnedFd,
    conns: Vec<Conn>,
    buffers: Buffers,
    tally: Tally,
    began: Instant,
    /// The measured window, in nanoseconds since `began`.
    window: std::ops::Range<u64>,
    /// Sources handed out so far.
    source: u8,
}

impl<'a> Engine<'a> {
    /// Prepares a run.
    pub fn new(args: &'a Args) -> io::Result<Self> {
        Ok(Self {
            args,
            epoll: epoll::create(epoll::CreateFlags::CLOEXEC)?,
            conns: (0..args.connections).map(|_| Conn::new()).collect(),
            buffers: Buffers::new(args.size),
            tally: Tally::new(),
            began: Instant::now(),
            window: 0..0,
            source: 0,
        })
    }

    /// Runs to the end and sums up.
    pub fn run(mut self) -> io::Result<Report> {
        if !self.args.churn {
            self.ramp()?;
        }
        let now = self.now();
        let warmup = if self.args.idle { 0 } else { self.args.warmup.as_nanos() as u64 };
        self.window = now + warmup..now + warmup + self.args.seconds.as_nanos() as u64;
        if !self.args.churn && self.conns.iter().all(|conn| conn.phase == Phase::Closed) {
            // Nobody is left to talk to; the errors say why.
            self.window = now..now;
        }
        let mut schedule =
            Schedule::new(self.args.rate, self.args.connections, now, self.window.end);
        self.kick_off(&schedule);

        let mut begin = None;
        loop {
            let now = self.now();
            if begin.is_none() && now >= self.window.start {
                begin = Some((now, self.server_cpu()?, OwnTime::now()?));
            }
            if now >= self.window.end {
                break;
            }
            let edge = if begin.is_none() { self.window.start } else { self.window.end };
            self.turn(&mut schedule, edge)?;
        }
        // A window of length zero is never entered by the loop.
        let (start, server_before, own_before) = match begin {
            Some(begin) => begin,
            None => (self.now(), self.server_cpu()?, OwnTime::now()?),
        };
        let seconds = ((self.now() - start) as f64 / 1e9).max(1e-9);
        let own = OwnTime::now()?.since(own_before, seconds);
        let server = match (self.args.server_pid, server_before) {
            (Some(pid), Some(before)) => {
                let used = server::sample(pid)?.cpu_us - before;
                Some((used, server::footprint(pid)?))
            }
            _ => None,
        };
        self.drain(&mut schedule)?;
        Ok(self.tally.report(seconds, own, server, self.args.cdf))
    }

    /// Connects every slot and lets each make one request.
    fn ramp(&mut self) -> io::Result<()> {
        let total = self.conns.len();
        let (mut opened, mut done) = (0, 0);
        let mut progress = self.now();
        while done < total {
            // A connection that fails after its first reply is counted twice, hence saturating.
            while opened < total && opened.saturating_sub(done) < IN_FLIGHT {
                done += usize::from(!self.open(opened));
                opened += 1;
            }
            let before = done;
            self.serve(SECOND / 10, |engine, index, step| match step {
                Step::Connected => {
                    engine.tally.connected += 1;
                    let now = engine.now();
                    done += usize::from(!engine.start(index, now));
                }
                Step::Reply { .. } | Step::Failed => done += 1,
                Step::Nothing => {}
            })?;
            let now = self.now();
            if done > before {
                progress = now;
            } else if now - progress > PATIENCE {
                for index in 0..opened {
                    match self.conns[index].phase {
                        Phase::Connecting => self.fail(index, Fault::ConnectTimeout),
                        Phase::Busy => self.fail(index, Fault::Unanswered),
                        Phase::Idle | Phase::Closed => {}
                    }
                }
                (opened..total).for_each(|_| self.tally.fault(Fault::ConnectTimeout));
                break;
            }
        }
        Ok(())
    }

    /// The first requests of a closed loop, the first connects of a churn.
    fn kick_off(&mut self, schedule: &Schedule) {
        if self.args.idle || schedule.rate.is_some() {
            return;
        }
        for index in 0..self.conns.len() {
            let now = self.now();
            if self.args.churn {
                self.open(index);
            } else if self.conns[index].phase == Phase::Idle {
                self.start(index, now);
            }
        }
    }

    /// One turn of the loop in the warm-up and the window; returns at `edge` at the latest.
    fn turn(&mut self, schedule: &mut Schedule, edge: u64) -> io::Result<()> {
        let now = self.now();
        let mut wait = edge.saturating_sub(now);
        if let Some(due) = schedule.next() {
            let until = due.saturating_sub(now);
            wait = wait.min(until.saturating_sub(SPIN));
        }
        self.serve(wait, |engine, index, step| engine.react(schedule, index, step))?;
        self.offer(schedule);
        Ok(())
    }

    /// Open loop: starts the requests that are due on connections that are free.
    fn offer(&mut self, schedule: &mut Schedule) {
        let now = self.now();
        while let Some((index, number, due)) = schedule.take(now) {
            if self.conns[index].phase == Phase::Idle
                && self.conns[index].next_due == number / schedule.width
            {
                self.start_due(schedule, index, due);
            }
        }
    }

    /// Open loop: starts the next request of a connection, which was due at `due`.
    fn start_due(&mut self, schedule: &Schedule, index: usize, due: u64) {
        debug_assert_eq!(
            due,
            schedule.due(self.conns[index].next_due * schedule.width + index as u64)
        );
        self.conns[index].next_due += 1;
        self.start(index, due);
    }

    /// Goes on after an event.
    fn react(&mut self, schedule: &Schedule, index: usize, step: Step) {
        let now = self.now();
        let over = now >= self.window.end;
        match step {
            Step::Nothing => {}
            Step::Connected => {
                self.tally.connected += u64::from(self.window.contains(&now));
                let since = self.conns[index].since;
                self.start(index, since);
            }
            Step::Reply { since } => {
                self.tally.requests += u64::from(self.window.contains(&now));
                let counted = if schedule.rate.is_some() { since } else { now };
                if counted >= self.window.start {
                    self.tally.latency(now - since);
                }
                if schedule.rate.is_some() {
                    // What fell due while the reply was awaited goes out now, and counts from when it was due.
                    let number = self.conns[index].next_due * schedule.width + index as u64;
                    if number < schedule.cursor {
                        self.start_due(schedule, index, schedule.due(number));
                    }
                } else if self.args.churn {
                    self.conns[index].close();
                    if !over {
                        self.open(index);
                    }
                } else if !over {
                    self.start(index, now);
                }
            }
            Step::Failed => {
                if self.args.churn && !over {
                    self.open(index);
                }
            }
        }
    }

    /// After the window: nothing new, but what was sent (in an open loop: what was due) must be answered.
    fn drain(&mut self, schedule: &mut Schedule) -> io::Result<()> {
        self.offer(schedule);
        let outstanding = |conn: &Conn| matches!(conn.phase, Phase::Busy | Phase::Connecting);
        let mut progress = self.now();
        while self.conns.iter().any(outstanding) {
            let mut moved = false;
            self.serve(SECOND / 10, |engine, index, step| {
                moved |= !matches!(step, Step::Nothing);
                engine.react(schedule, index, step);
            })?;
            let now = self.now();
            if moved {
                progress = now;
            }
            // An open loop far above what the server can do would drain forever.
            if now - progress > PATIENCE || now - self.window.end > 2 * PATIENCE {
                break;
            }
        }
        let now = self.now();
        for index in 0..self.conns.len() {
            if outstanding(&self.conns[index]) {
                self.tally.latency(now - self.conns[index].since);
                self.fail(index, Fault::Unanswered);
            }
            let mut number = self.conns[index].next_due * schedule.width + index as u64;
            while number < schedule.cursor {
                self.tally.unsent += 1;
                self.tally.latency(now - schedule.due(number));
                number += schedule.width;
            }
        }
        Ok(())
    }

    /// Waits at most `wait` nanoseconds for events and serves one batch.
    fn serve(&mut self, wait: u64, mut then: impl FnMut(&mut Self, usize, Step)) -> io::Result<()> {
        let mut space = [const { MaybeUninit::uninit() }; 256];
        let timeout = Timespec { tv_sec: (wait / SECOND) as i64, tv_nsec: (wait % SECOND) as i64 };
        let events = match epoll::wait(&self.epoll, &mut space, Some(&timeout)) {
            Ok((events, _)) => events,
            Err(Errno::INTR) => return Ok(()),
            Err(errno) => return Err(errno.into()),
        };
        for event in events {
            let index = event.data.u64() as usize;
            let flags = event.flags;
            let step = self.step(index, flags).unwrap_or_else(|fault| {
                self.fail(index, fault);
                Step::Failed
            });
            then(self, index, step);
        }
        Ok(())
    }

    /// Serves one event.
    fn step(&mut self, index: usize, flags: epoll::EventFlags) -> Result<Step, Fault> {
        use epoll::EventFlags as On;
        let conn = &mut self.conns[index];
        match conn.phase {
            Phase::Closed => return Ok(Step::Nothing),
            Phase::Connecting => return conn.connected().map(|()| Step::Connected),
            Phase::Idle | Phase::Busy => {}
        }
        if flags.intersects(On::OUT) {
            conn.push(self.args.size, &mut self.buffers)?;
        }
        let ending = flags.intersects(On::RDHUP | On::HUP | On::ERR);
        let readable = ending || flags.intersects(On::IN);
        if readable && conn.pull(self.args.size, ending, &mut self.buffers)? {
            return Ok(Step::Reply { since: conn.since });
        }
        Ok(Step::Nothing)
    }

    /// Starts to connect; false if that failed at once.
    fn open(&mut self, index: usize) -> bool {
        use epoll::EventFlags as On;
        self.source = self.source.wrapping_add(1);
        let source = self.args.churn.then_some(self.source);
        let now = self.now();
        let conn = &mut self.conns[index];
        conn.since = now;
        let opened = conn.open(self.args.connect, source).and_then(|socket| {
            let data = epoll::EventData::new_u64(index as u64);
            Ok(epoll::add(&self.epoll, socket, data, On::IN | On::OUT | On::RDHUP | On::ET)?)
        });
        opened.map_err(|fault| self.fail(index, fault)).is_ok()
    }

    /// Starts a request; false if the connection failed at once.
    fn start(&mut self, index: usize, since: u64) -> bool {
        let started = self.conns[index].start(index, since, self.args.size, &mut self.buffers);
        started.map_err(|fault| self.fail(index, fault)).is_ok()
    }

    fn fail(&mut self, index: usize, fault: Fault) {
        self.conns[index].close();
        self.tally.fault(fault);
    }

    fn now(&self) -> u64 {
        self.began.elapsed().as_nanos() as u64
    }

    fn server_cpu(&self) -> io::Result<Option<u64>> {
        self.args.server_pid.map(|pid| server::sample(pid).map(|sample| sample.cpu_us)).transpose()
    }
}

/// When the requests of an open loop are due: number `j` at `start + j / rate`, on connection `j mod width`.
struct Schedule {
    rate: Option<u64>,
    width: u64,
    start: u64,
    end: u64,
    /// Requests before this number fell due.
    cursor: u64,
}

impl Schedule {
    fn new(rate: Option<u64>, connections: u32, start: u64, end: u64) -> Self {
        Self { rate, width: u64::from(connections), start, end, cursor: 0 }
    }

    fn due(&self, number: u64) -> u64 {
        let rate = self.rate.unwrap_or(1);
        self.start + (u128::from(number) * u128::from(SECOND) / u128::from(rate)) as u64
    }

    /// When the next request falls due.
    fn next(&self) -> Option<u64> {
        self.rate?;
        Some(self.due(self.cursor)).filter(|due| *due < self.end)
    }

    /// Takes the next request that is due by `now`: its connection, number and time.
    fn take(&mut self, now: u64) -> Option<(usize, u64, u64)> {
        let due = self.next().filter(|due| *due <= now)?;
        let number = self.cursor;
        self.cursor += 1;
        Some(((number % self.width) as usize, number, due))
    }
}
