//! The launcher as its user sees it.

mod fixture;
mod launch;
mod refuse;
