//! Honest measurements of the ways to write a file, Vellum's among them, and advice from them.
//!
//! A number is printed only together with the conditions it was taken under, and only after every
//! byte behind it was read back and found whole. Nothing here touches a terminal: a caller hands in
//! a [`Progress`] and gets a [`Report`] that it may print as a table or as JSON.
//!
//! Each measurement is a [`Suite`]: `bench all`, the reports and the command know the suites only
//! through it. Its result is always a list of [`Case`]s.
//!
//! The house, from the ground up; a module should use only those above it in this list, and CIRCLES
//! of `tidy` counts the exceptions:
//!
//! | module | what it does |
//! |---|---|
//! | `error`, `names` | the one error type; values that have a name |
//! | `interrupt` | ending runs early |
//! | `cause` | what makes writing slow, unsafe or hard to measure, by name |
//! | `shared` | words that processes share: an anonymous shared mapping |
//! | `process` | fork, the start gate, the clock, reports of the children |
//! | `trace` | counts the syscalls of a process |
//! | `setting`, `record`, `verify` | how much is appended, what it looks like, is it all there |
//! | `bytes` | numbers of bytes, written and read |
//! | `stats`, `latency` | minimum, median, maximum; what single calls took |
//! | `faster` | when one way counts as faster than another |
//! | `sys` | extents of files, loop devices, mount namespaces |
//! | `ways` | one file for each way to append |
//! | `queue` | many direct writes in flight at once |
//! | `conditions` | machine, kernel, filesystem, device |
//! | `footprint` | the files that a log leaves: extents, cold reading |
//! | `scratch`, `place` | filesystems made for a run; where a suite is run |
//! | `report` | the result as data, JSON and table |
//! | `suite` | what is compared: [`append`], [`commit`], [`sync`], [`write`](mod@write), [`image`], [`latency`](mod@latency), [`read`](mod@read), [`saturate`], [`scale`], [`loggers`] |
//! | `compare` | two runs against each other |
//! | `advise` | from a short run to a recommendation |
//! | `doctor` | is a disk good enough for a program, and why not |
//!
//! The crate is for Linux: it forks, waits on futexes and pidfds, traces with ptrace, and two of
//! the ways are Linux interfaces.
//!
//! ```no_run
//! use vellum_bench::{Silent, Suite, append};
//!
//! let report = append::Config::new("/var/tmp").run(&mut Silent)?;
//! println!("{}", report.table());
//! # Ok::<(), vellum_bench::Error>(())
//! ```
#![deny(unsafe_code)]

pub mod advise;
mod bytes;
mod call_times;
mod cause;
mod compare;
mod conditions;
pub mod doctor;
mod error;
mod faster;
mod footprint;
mod histogram;
mod interrupt;
mod names;
mod place;
mod process;
mod progress;
mod queue;
mod record;
mod report;
mod scratch;
mod setting;
mod shared;
mod stats;
mod suite;
mod sys;
mod trace;
mod verify;
mod walk;
mod ways;

pub use cause::Cause;
pub use compare::{Change, Compared, Comparison, Difference, Verdict};
pub use conditions::{Conditions, Device, Filesystem, Machine, Writeback};
pub use error::{Error, ErrorKind, Result};
pub use interrupt::end_runs_when_readable;
pub use place::Scope;
pub use progress::{Event, Progress, Silent};
pub use report::{
    Better, Case, Key, Metric, Report, Series, findings_text, html, html_with_recommendation,
    number,
};
pub use scratch::{Making, MkfsOptions, ScratchKind, give_back};
pub use setting::Setting;
pub use stats::Spread;
pub use suite::{KINDS, Kind, Plan, Suite, suites};
pub use suite::{
    append, commit, foreign, image, latency, loggers, read, saturate, scale, sync, write,
};
pub use ways::WayName;
