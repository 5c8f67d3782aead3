//! Contestants of the suite: the traits that a logger implements.
//!
//! | who, when | what |
//! |---|---|
//! | parent, once for each cell | [`Contender::missing`]: can it run here? |
//! | the process, before the clock | [`Contender::open`] |
//! | each thread, before the clock | [`Logger::session`] |
//! | each thread, under the clock | [`Session::log`] |
//! | the process, under the clock, after the last thread | [`Logger::finish`] |
//! | parent, after the clock | [`Contender::kept`]: how to read what is there |

use std::path::Path;

use crate::error::Result;

/// A logger that the threads of one process share.
pub trait Contender {
    /// The name as it is written on a command line and in a report.
    fn name(&self) -> &str;

    /// The library that does the work, with its version, if it is not Vellum or the system.
    fn software(&self) -> Option<String> {
        None
    }

    /// Why it can't run here, in a few words.
    fn missing(&self) -> Option<String> {
        None
    }

    /// The files that it leaves in its directory.
    fn kept(&self) -> Kept {
        Kept::Files
    }

    /// Opens it in the directory `dir`, which exists and is empty; records are `bytes` long.
    ///
    /// # Errors
    ///
    /// Whatever the logger says.
    fn open(&self, dir: &Path, bytes: usize) -> Result<Box<dyn Logger>>;
}

/// Where the records are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kept {
    /// In all files of the directory, in order of their names.
    Files,
    /// In a Vellum text log named [`VELLUM_DIR`].
    VellumLog,
}

/// The name of a Vellum log inside the directory of a round.
pub const VELLUM_DIR: &str = "log";

/// An open logger.
pub trait Logger: Sync {
    /// The handle by which one thread logs.
    ///
    /// # Errors
    ///
    /// Whatever the logger says.
    fn session(&self) -> Result<Box<dyn Session + '_>>;

    /// All threads have logged everything: waits until all of it is in the file, and tells how many
    /// records the logger has dropped, as far as it counts them.
    ///
    /// # Errors
    ///
    /// Whatever the logger says.
    fn finish(self: Box<Self>) -> Result<u64>;
}

/// One thread's way into a logger.
pub trait Session {
    /// Logs `record`, which is text and ends with its only newline.
    ///
    /// # Errors
    ///
    /// Whatever the logger says.
    fn log(&mut self, record: &[u8]) -> Result<()>;
}
