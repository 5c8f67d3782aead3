//! The common part of all peers: an engine has to tell how it opens, commits and reads.

use std::error::Error as StdError;
use std::fs::{self, File};
use std::path::{Path, PathBuf};

use vellum_bench::commit::{Cell, Committer, Contender, Prepared, Session};
use vellum_bench::{Error, Result};

/// Whatever an engine says when it fails.
pub(crate) type Failure = Box<dyn StdError>;

/// An engine of another project.
pub(crate) trait Engine: Copy + 'static {
    /// Its open log.
    type Log: Sync;

    /// Its name as a case.
    fn name(self) -> &'static str;

    /// Does it make space ready in [`Engine::open`]?
    fn is_prepared(self) -> bool {
        false
    }

    /// May several processes commit at once?
    fn has_many_processes(self) -> bool {
        false
    }

    /// Opens the log in `dir`, or creates it. Runs in the process that commits, before the clock.
    fn open(self, dir: &Path, cell: &Cell) -> std::result::Result<Self::Log, Failure>;

    /// Makes a record durable. `sequence` counts the records of `writer`.
    fn commit(
        log: &Self::Log,
        writer: u32,
        sequence: u64,
        record: &[u8],
    ) -> std::result::Result<(), Failure>;

    /// Shows `visit` all records, from the log as another process left it.
    fn read_back(
        self,
        dir: &Path,
        cell: &Cell,
        visit: &mut dyn FnMut(&[u8]),
    ) -> std::result::Result<(), Failure>;
}

/// An engine as a case of the suite.
pub(crate) struct Peer<E> {
    engine: E,
}

impl<E: Engine> Peer<E> {
    pub(crate) fn new(engine: E) -> Peer<E> {
        Peer { engine }
    }
}

impl<E: Engine> Contender for Peer<E> {
    fn name(&self) -> &str {
        self.engine.name()
    }

    fn is_prepared(&self) -> bool {
        self.engine.is_prepared()
    }

    fn is_peer(&self) -> bool {
        true
    }

    fn probe(&self, _dir: &Path, cell: &Cell) -> std::result::Result<(), String> {
        if cell.processes > 1 && !self.engine.has_many_processes() {
            return Err("it is for one process at a time".into());
        }
        Ok(())
    }

    fn prepare(&self, dir: &Path, cell: &Cell) -> Result<Box<dyn Prepared>> {
        // Some engines take no path but the working directory, which must not lead elsewhere then.
        let dir = fs::canonicalize(dir).map_err(|error| Error::failed(error.to_string()))?;
        Ok(Box::new(Directory { engine: self.engine, dir, cell: *cell }))
    }
}

struct Directory<E> {
    engine: E,
    dir: PathBuf,
    cell: Cell,
}

impl<E: Engine> Prepared for Directory<E> {
    fn open(&self) -> Result<Box<dyn Committer>> {
        let log = self.engine.open(&self.dir, &self.cell).map_err(failed)?;
        // Prepared space must not be written back under the clock.
        sync_all(&self.dir).map_err(|error| Error::failed(error.to_string()))?;
        Ok(Box::new(OpenLog::<E> { log }))
    }

    fn read_back(&self, visit: &mut dyn FnMut(&[u8])) -> Result<()> {
        self.engine.read_back(&self.dir, &self.cell, visit).map_err(failed)
    }
}

fn failed(failure: Failure) -> Error {
    Error::failed(failure.to_string())
}

fn sync_all(dir: &Path) -> std::io::Result<()> {
    for entry in fs::read_dir(dir)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            sync_all(&entry.path())?;
        } else {
            File::open(entry.path())?.sync_all()?;
        }
    }
    File::open(dir)?.sync_all()
}

struct OpenLog<E: Engine> {
    log: E::Log,
}

impl<E: Engine> Committer for OpenLog<E> {
    fn session(&self, writer: u32) -> Result<Box<dyn Session + '_>> {
        Ok(Box::new(Thread::<E> { log: &self.log, writer, sequence: 0 }))
    }
}

struct Thread<'a, E: Engine> {
    log: &'a E::Log,
    writer: u32,
    sequence: u64,
}

impl<E: Engine> Session for Thread<'_, E> {
    fn commit(&mut self, record: &[u8]) -> Result<()> {
        E::commit(self.log, self.writer, self.sequence, record).map_err(failed)?;
        self.sequence += 1;
        Ok(())
    }
}
