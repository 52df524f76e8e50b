//! Stack overflow: told from other faults, and reported.

/// Installs the handler that reports a stack overflow.
pub fn install_overflow_handler() {}

/// Gives the calling carrier what the handler needs.
pub fn prepare_carrier() {}
