//! Systems that take part by processes of their own, in whatever language: they append and read by
//! the schedule of the suite, check every record that they read, and hand back what they timed.
//!
//! | who, when | what |
//! |---|---|
//! | parent, once | [`Foreign::missing`]: can it run here? |
//! | parent, before each round | [`Foreign::prepare`]: files, servers |
//! | each process, before the clock | [`Prepared::start`]: starts the program, which warms up |
//! | each process, under the clock | [`Program::run`] |
//! | each process, after the clock | [`Program::latencies`] |
//! | parent, after the clock, in `append` | [`Prepared::start`] of [`Part::Checker`] |
//!
//! Their clock is ours: the monotonic clock of the machine.

use std::fmt;
use std::path::{Path, PathBuf};

use crate::error::Result;
use crate::record::Records;

/// A system that is compared.
pub trait Foreign: fmt::Debug {
    /// The name as it is written on a command line and in a report.
    fn name(&self) -> &str;

    /// The library that does the work, with its version.
    fn software(&self) -> Option<String> {
        None
    }

    /// Why it can't run here, in one sentence.
    fn missing(&self) -> Option<String> {
        None
    }

    /// A remark that a reader of the figures has to know, in one sentence.
    fn remark(&self) -> Option<String> {
        None
    }

    /// Gets a round ready; the result ends the round when it is dropped.
    ///
    /// # Errors
    ///
    /// Whatever the system says.
    fn prepare(&self, job: &Job) -> Result<Box<dyn Prepared>>;
}

/// A round of a system, ready to be started.
pub trait Prepared {
    /// Starts one program, and returns when it is warm and ready.
    ///
    /// # Errors
    ///
    /// Whatever the program says.
    fn start(&self, part: Part) -> Result<Box<dyn Program>>;
}

/// A program that is ready.
pub trait Program {
    /// Has it do its part; the first record is due at `start_ns` of the monotonic clock. Returns
    /// when it is done.
    ///
    /// # Errors
    ///
    /// The error of the program, above all that a record was wrong.
    fn run(&mut self, start_ns: u64) -> Result<()>;

    /// How long each record took from when it was due, in nanoseconds; empty without a rate.
    ///
    /// # Errors
    ///
    /// The program did not hand them over.
    fn latencies(self: Box<Self>) -> Result<Vec<u64>>;
}

/// The part of a program in a round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// Appends the records of this writer.
    Writer(u32),
    /// Reads along, and checks.
    Reader,
    /// Reads and checks when everything was appended.
    Checker,
}

/// A round.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Job {
    /// An empty directory on the filesystem of interest.
    pub dir: PathBuf,
    /// How many processes append.
    pub writers: u32,
    /// How many records each of them appends.
    pub records: u64,
    /// How long a record is.
    pub bytes: usize,
    /// Records that are due in a second, of all writers; `None` for as fast as it goes.
    pub rate: Option<u64>,
    /// Whether writers spin until a record is due.
    pub writers_spin: bool,
    /// Whether the reader spins; otherwise it waits as the system recommends.
    pub reader_spins: bool,
}

impl Job {
    /// The records that a writer takes in turn, one behind the other. From 16 bytes on, the bytes 4
    /// to 15 of each are its number, in decimal digits.
    pub fn templates(&self, writer: u32) -> Vec<u8> {
        Records::new(writer, self.bytes).templates().to_vec()
    }

    /// How many templates a writer has.
    pub fn turns(&self) -> usize {
        self.templates(0).len() / self.bytes
    }

    pub(crate) fn new(dir: &Path, writers: u32, records: u64, bytes: usize) -> Job {
        Job {
            dir: dir.to_owned(),
            writers,
            records,
            bytes,
            rate: None,
            writers_spin: true,
            reader_spins: true,
        }
    }
}
