//! Contestants of the suite: the traits that a case implements.
//!
//! | who, when | what |
//! |---|---|
//! | parent, once for each cell | [`Contender::probe`]: can it run here? |
//! | parent, before the first round | [`Contender::prepare`]: make the empty log |
//! | parent, before each further round | [`Prepared::renew`]: use it again, or make a new one |
//! | each process, before the clock | [`Prepared::open`] |
//! | each thread, before the clock | [`Committer::session`] |
//! | each thread, under the clock | [`Session::commit`] |
//! | a new process, after the clock | [`Prepared::read_back`]: every record, as it stands in the log |

use std::path::Path;

use serde::Serialize;

use crate::error::Result;

/// The commits of one cell of the matrix: all contenders meet the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Cell {
    /// The length of each record.
    pub bytes: usize,
    /// How many threads of each process commit.
    pub threads: u32,
    /// How many processes.
    pub processes: u32,
    /// All of them together commit no more than this in a round.
    pub commits_max: u64,
}

impl Cell {
    /// The threads of all processes.
    pub fn writers(&self) -> u32 {
        self.processes * self.threads
    }

    /// The bytes of the most records there can be, each rounded up to a multiple of `unit`.
    pub fn bytes_max(&self, unit: usize) -> u64 {
        self.commits_max * self.bytes.next_multiple_of(unit) as u64
    }
}

/// A way to make records durable.
pub trait Contender {
    /// The name as it is written on a command line and in a report.
    fn name(&self) -> &str;

    /// Is the space that it writes to made ready before the clock starts? A way that can do both
    /// takes part twice, under the same name.
    fn is_prepared(&self) -> bool;

    /// Is it another engine, of which the best is compared with?
    fn is_peer(&self) -> bool {
        false
    }

    /// `Err` with the reason if it can't run in `dir`, which is empty, or not so many processes.
    ///
    /// # Errors
    ///
    /// The reason, in a few words.
    fn probe(&self, _dir: &Path, _cell: &Cell) -> std::result::Result<(), String> {
        Ok(())
    }

    /// Makes an empty log in the directory `dir`, which exists and is empty.
    ///
    /// # Errors
    ///
    /// Whatever the system says.
    fn prepare(&self, dir: &Path, cell: &Cell) -> Result<Box<dyn Prepared>>;
}

/// A log that processes may commit to. Made in the parent; its processes get it by fork.
pub trait Prepared {
    /// One process's way into the log; called in that process.
    ///
    /// # Errors
    ///
    /// Whatever the log says.
    fn open(&self) -> Result<Box<dyn Committer>>;

    /// Makes the log ready for another round: `false` if it has to be deleted and prepared anew.
    ///
    /// # Errors
    ///
    /// Whatever the log says.
    fn renew(&mut self) -> Result<bool> {
        Ok(false)
    }

    /// Syncs, or synchronous writes, since the log was made; `None` if they can't be counted.
    ///
    /// # Errors
    ///
    /// Whatever the log says.
    fn syncs(&self) -> Result<Option<u64>> {
        Ok(None)
    }

    /// How many of its newest records of each thread the log keeps, at least. Older ones may be
    /// overwritten, and then can't be verified.
    fn kept_per_writer(&self) -> u64 {
        u64::MAX
    }

    /// Shows `visit` every record of this round, in any order.
    ///
    /// # Errors
    ///
    /// A file that can't be read as a log fails the contender, as a lost record does.
    fn read_back(&self, visit: &mut dyn FnMut(&[u8])) -> Result<()>;
}

/// One process's way into the log, for all of its threads.
pub trait Committer: Sync {
    /// The handle by which one thread commits; `writer` counts the threads of all processes.
    ///
    /// # Errors
    ///
    /// Whatever the log says.
    fn session(&self, writer: u32) -> Result<Box<dyn Session + '_>>;
}

/// One thread's way into the log.
pub trait Session {
    /// Appends `record` and returns when a power cut can't take it away.
    ///
    /// # Errors
    ///
    /// Whatever the log or the system says; the round has failed then.
    fn commit(&mut self, record: &[u8]) -> Result<()>;
}
