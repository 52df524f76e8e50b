//! One connection: non-blocking connect, send, receive, compare.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::os::fd::OwnedFd;

use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, bind, connect, recv, send,
    socket_with, sockopt,
};

use crate::payload;

/// Why a connection was given up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Nobody listens.
    Refused,
    /// The peer reset the connection.
    Reset,
    /// End of stream in place of a (complete) reply.
    Closed,
    /// The reply is not what was sent, or more than that.
    Content,
    /// No reply came although there was time.
    Unanswered,
    /// The connection could not be made in time.
    ConnectTimeout,
    /// Any other error of a system call.
    Other,
}

impl From<Errno> for Fault {
    fn from(errno: Errno) -> Self {
        match errno {
            Errno::CONNREFUSED => Self::Refused,
            Errno::CONNRESET | Errno::PIPE => Self::Reset,
            Errno::TIMEDOUT => Self::ConnectTimeout,
            _ => Self::Other,
        }
    }
}

/// Where a connection is in its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// No socket: not opened yet, closed, or given up.
    Closed,
    /// `connect` is under way.
    Connecting,
    /// Connected, no request outstanding.
    Idle,
    /// A request was (partly) sent and its reply is awaited.
    Busy,
}

/// One slot of the load generator.
pub struct Conn {
    socket: Option<OwnedFd>,
    /// Where the connection is in its life.
    pub phase: Phase,
    sent: u32,
    received: u32,
    tag: u64,
    /// Counts requests, so that no two of a connection look alike.
    sequence: u64,
    /// When the outstanding request was sent or, in an open loop, was due.
    pub since: u64,
    /// In an open loop: the number of the next request in the schedule that falls to this connection.
    pub next_due: u64,
}

/// Buffers shared by all connections: only one is served at a time.
pub struct Buffers {
    output: Vec<u8>,
    input: Vec<u8>,
}

/// Bytes moved by one system call at most.
const CHUNK: usize = 64 << 10;

impl Buffers {
    /// Buffers for requests of `size` bytes.
    pub fn new(size: u32) -> Self {
        // One byte more than a reply has: a surplus byte is seen in the same call.
        let length = (size as usize).min(CHUNK) + 1;
        Self { output: vec![0; length], input: vec![0; length] }
    }
}

impl Conn {
    /// A slot without a socket.
    pub fn new() -> Self {
        Self {
            socket: None,
            phase: Phase::Closed,
            sent: 0,
            received: 0,
            tag: 0,
            sequence: 0,
            since: 0,
            next_due: 0,
        }
    }

    /// Starts to connect. `source` picks one of 64 loopback source addresses, so that a churn of short connections
    /// does not run out of ports that wait in TIME_WAIT.
    pub fn open(&mut self, to: SocketAddr, source: Option<u8>) -> Result<&OwnedFd, Fault> {
        let family = if to.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
        let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
        let socket = socket_with(family, SocketType::STREAM, flags, None)?;
        sockopt::set_tcp_nodelay(&socket, true)?;
        if let Some(source) = source
            && to.ip() == IpAddr::V4(Ipv4Addr::LOCALHOST)
        {
            bind(&socket, &SocketAddr::from((Ipv4Addr::new(127, 0, 0, 1 + source % 64), 0)))?;
        }
        match connect(&socket, &to) {
            Ok(()) | Err(Errno::INPROGRESS) => {}
            Err(errno) => return Err(errno.into()),
        }
        self.phase = Phase::Connecting;
        Ok(self.socket.insert(socket))
    }

    /// After the first event: did the connect succeed?
    pub fn connected(&mut self) -> Result<(), Fault> {
        sockopt::socket_error(self.socket()?)??;
        self.phase = Phase::Idle;
        Ok(())
    }

    /// Starts a request.
    pub fn start(
        &mut self,
        index: usize,
        since: u64,
        size: u32,
        buffers: &mut Buffers,
    ) -> Result<(), Fault> {
        debug_assert_eq!(self.phase, Phase::Idle);
        self.phase = Phase::Busy;
        self.since = since;
        self.sequence += 1;
        self.tag = payload::tag(index, self.sequence);
        self.sent = 0;
        self.received = 0;
        self.push(size, buffers)
    }

    /// Sends what the socket takes of the outstanding request.
    pub fn push(&mut self, size: u32, buffers: &mut Buffers) -> Result<(), Fault> {
        while self.phase == Phase::Busy && self.sent < size {
            let length = ((size - self.sent) as usize).min(CHUNK);
            let chunk = &mut buffers.output[..length];
            payload::fill(chunk, self.tag, self.sent as usize);
            match send(self.socket()?, chunk, SendFlags::NOSIGNAL) {
                Ok(count) => self.sent += count as u32,
                Err(Errno::AGAIN) => return Ok(()),
                Err(Errno::INTR) => {}
                Err(errno) => return Err(errno.into()),
            }
        }
        Ok(())
    }

    /// Receives what is there; true when the reply is complete. `ending`: the event announced the end of the stream.
    pub fn pull(&mut self, size: u32, ending: bool, buffers: &mut Buffers) -> Result<bool, Fault> {
        loop {
            let missing = (size - self.received) as usize;
            let wanted = if self.phase == Phase::Busy { missing.min(CHUNK) + 1 } else { 1 };
            let count = match recv(self.socket()?, &mut buffers.input[..wanted], RecvFlags::empty())
            {
                Ok((0, _)) => return Err(Fault::Closed),
                Ok((count, _)) => count,
                Err(Errno::AGAIN) => return Ok(false),
                Err(Errno::INTR) => continue,
                Err(errno) => return Err(errno.into()),
            };
            let received = &buffers.input[..count];
            let early =
                self.phase != Phase::Busy || self.received as usize + count > self.sent as usize;
            if early
                || !payload::matches(
                    received,
                    self.tag,
                    self.received as usize,
                    &mut buffers.output,
                )
            {
                return Err(Fault::Content);
            }
            self.received += count as u32;
            if self.received == size {
                self.phase = Phase::Idle;
                return Ok(true);
            }
            if count < wanted && !ending {
                // A short read means that the socket is drained, and what comes next raises a new event. An end that
                // was announced already raises none.
                return Ok(false);
            }
        }
    }

    /// Closes the socket, which also takes it out of the epoll set.
    pub fn close(&mut self) {
        self.socket = None;
        self.phase = Phase::Closed;
    }

    fn socket(&self) -> Result<&OwnedFd, Fault> {
        self.socket.as_ref().ok_or(Fault::Other)
    }
}
