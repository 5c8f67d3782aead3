//! `vellum`: a write-ahead log, `append_durable` for each commit.
//!
//! Prepared, the log is used in all rounds: before each, the records of the round before are
//! trimmed and segments enough for a round are made ready. Not prepared, each round begins with a
//! new log, and all further segments are made under the clock.

use std::path::{Path, PathBuf};

use vellum::{Create, Log, Lsn, Options};

use super::contender::{Cell, Committer, Contender, Prepared, Session};
use crate::error::Result;
use crate::ways::vellum_log::failed;

/// A commit ends on a block of its own where no other record shares it.
const BLOCK_BYTES: usize = 4096;
/// The header of a record, and of a batch.
const FRAME_BYTES: usize = 64;

pub(crate) struct Vellum {
    pub(crate) options: Options,
    pub(crate) is_prepared: bool,
}

impl Contender for Vellum {
    fn name(&self) -> &str {
        "vellum"
    }

    fn is_prepared(&self) -> bool {
        self.is_prepared
    }

    fn prepare(&self, dir: &Path, cell: &Cell) -> Result<Box<dyn Prepared>> {
        let dir = dir.join("log");
        let log =
            self.options.clone().create(Create::New).open(&dir).map_err(|error| failed(&error))?;
        let ahead_bytes = self.is_prepared.then(|| {
            let framed = Cell { bytes: cell.bytes + FRAME_BYTES, ..*cell };
            framed.bytes_max(BLOCK_BYTES)
        });
        let round = VellumLog { options: self.options.clone(), dir, ahead_bytes };
        round.make_ready(&log)?;
        Ok(Box::new(round))
    }
}

struct VellumLog {
    options: Options,
    dir: PathBuf,
    /// The bytes of a round at most, if they are made ready before it.
    ahead_bytes: Option<u64>,
}

impl VellumLog {
    fn open_log(&self) -> Result<Log> {
        self.options
            .clone()
            .create(vellum::Create::Never)
            .open(&self.dir)
            .map_err(|error| failed(&error))
    }

    fn make_ready(&self, log: &Log) -> Result<()> {
        let Some(bytes) = self.ahead_bytes else { return Ok(()) };
        let capacity = log.stat().map_err(|error| failed(&error))?.segment_capacity_bytes;
        log.prepare(bytes.div_ceil(capacity)).map(drop).map_err(|error| failed(&error))
    }
}

impl Prepared for VellumLog {
    fn open(&self) -> Result<Box<dyn Committer>> {
        Ok(Box::new(VellumWriter { log: self.open_log()? }))
    }

    fn renew(&mut self) -> Result<bool> {
        if self.ahead_bytes.is_none() {
            return Ok(false);
        }
        let log = self.open_log()?;
        log.trim(log.published()).map_err(|error| failed(&error))?;
        self.make_ready(&log)?;
        Ok(true)
    }

    fn syncs(&self) -> Result<Option<u64>> {
        let stat = self.open_log()?.stat().map_err(|error| failed(&error))?;
        Ok(Some(stat.commits.syncs))
    }

    fn read_back(&self, visit: &mut dyn FnMut(&[u8])) -> Result<()> {
        let log = self.open_log()?;
        let mut reader = log.reader(Lsn::ZERO).map_err(|error| failed(&error))?;
        while let Some(record) = reader.next().map_err(|error| failed(&error))? {
            visit(record.payload);
        }
        Ok(())
    }
}

struct VellumWriter {
    log: Log,
}

impl Committer for VellumWriter {
    fn session(&self, _writer: u32) -> Result<Box<dyn Session + '_>> {
        Ok(Box::new(VellumSession { log: &self.log }))
    }
}

struct VellumSession<'a> {
    log: &'a Log,
}

impl Session for VellumSession<'_> {
    fn commit(&mut self, record: &[u8]) -> Result<()> {
        self.log.append_durable(record).map(drop).map_err(|error| failed(&error))
    }
}
