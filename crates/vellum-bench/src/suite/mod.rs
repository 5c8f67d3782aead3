//! The suites: what is compared, and how a run goes.
//!
//! A suite has a module with `Config`, `Case` and `run`, and builds on the same ground as the
//! others: [`crate::ways`], [`crate::process::race`], [`crate::verify`] and [`crate::report`].

pub mod append;
