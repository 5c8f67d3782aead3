//! Is a disk good enough for a program, why not, and what is to be changed?
//!
//! ```text
//! program    how etcd, PostgreSQL, … write, and what they ask: pages of data
//! schedule   who writes when ──► slice ──► target       a file, written as the program does
//! trials     experiments: the same write with a suspected cause and without it
//! series     the figures of each second
//! disk       the same of all programs together
//! causes     around, shape, calls, tester: pure functions of what was found
//! sureness   how sure a percentile is
//! judging    causes and verdicts of all programs
//! verdict    good, marginal, not good enough; one sentence; one line to paste
//! lies       does durable mean durable
//! iocost     limits for a neighbour, as lines for the kernel
//! diagnosis  all of it: for a terminal, as JSON, HTML, JUnit; compare: two of them
//! ```

use std::path::PathBuf;
use std::time::Duration;

use crate::cause::Cause;

mod causes;
mod compare;
mod diagnosis;
mod disk;
mod evidence;
pub mod iocost;
mod judging;
mod junit;
pub mod lies;
mod machine;
mod program;
mod run;
mod schedule;
mod series;
mod slice;
mod spark;
mod sureness;
mod target;
mod text;
mod trials;
mod verdict;

pub use compare::{Compared, compare};
pub use diagnosis::Diagnosis;
pub use evidence::{Finding, Weight};
pub use machine::{OtherIo, Processors};
pub use program::{CUSTOM, Figure, FileState, Limit, Pattern, Program, SyncCall};
pub use run::run;
pub use schedule::time_needed;
pub use series::{Failure, Series, Tick};
pub use sureness::Sureness;
pub use trials::Probe;
pub use verdict::{Judged, Measured, Verdict};

/// What is to be found out.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Config {
    /// Where: a directory that exists. Files are made in a new directory inside it, which is
    /// removed in the end.
    pub directory: PathBuf,
    /// What it is called in lines to paste.
    pub shown: PathBuf,
    /// About how long it may take, in all; the default is [`time_needed`].
    pub time: Duration,
    /// For which programs.
    pub programs: Vec<Program>,
    /// Causes that are known here: they are told, and do not count for a verdict.
    pub accepted: Vec<Cause>,
}

impl Config {
    /// As long as a judgement on `programs` takes, in `directory`.
    pub fn new(directory: impl Into<PathBuf>, programs: Vec<Program>) -> Config {
        let directory = directory.into();
        let (shown, time) = (directory.clone(), time_needed(&programs));
        Config { directory, shown, time, programs, accepted: Vec::new() }
    }
}

#[cfg(test)]
mod tests;
