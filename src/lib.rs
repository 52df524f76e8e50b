//! preloom.
