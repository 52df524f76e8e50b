//! Why a program was not started, in words for the person who typed the command.

use std::fmt;

/// The command line or a variable is wrong, or the library is not there.
pub const USAGE: u8 = 2;
/// The program is there and cannot be run, as shells say it.
pub const NOT_EXECUTABLE: u8 = 126;
/// There is no such program, as shells say it.
pub const NOT_FOUND: u8 = 127;

/// What goes to standard error after `preloom: `, and the exit status.
#[derive(Debug, PartialEq, Eq)]
pub struct Failure {
    /// What is wrong, and what to do about it.
    pub message: String,
    /// The exit status of the launcher.
    pub status: u8,
}

impl Failure {
    /// A failure that ends the launcher with `status`.
    pub fn new(status: u8, message: impl Into<String>) -> Self {
        Self { message: message.into(), status }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "preloom: {}", self.message)
    }
}
