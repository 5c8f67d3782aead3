//! raft-engine: a batch of one key for each record, a region for each writer.

use std::path::Path;

use raft_engine::{Config, Engine as RaftEngine, LogBatch, ReadableSize};
use vellum_bench::commit::Cell;

use crate::adapter::{Engine, Failure};

/// The size of a file; files that are made ready are used from the second on.
const FILE_BYTES: u64 = 16 << 20;
/// Around each record.
const BATCH_BYTES: u64 = 128;
/// The region that fills the first file; those of writers follow.
const FILLER_REGION: u64 = 1;
const FIRST_REGION: u64 = 2;

#[derive(Clone, Copy)]
pub(crate) struct Raft {
    pub(crate) is_prepared: bool,
}

impl Raft {
    fn engine(self, dir: &Path, cell: &Cell, prefills: bool) -> Result<RaftEngine, Failure> {
        let needed = cell.bytes_max(1) + cell.commits_max * BATCH_BYTES + 2 * FILE_BYTES;
        let config = Config {
            dir: dir.to_string_lossy().into_owned(),
            // Compressed, a record would be another one.
            batch_compression_threshold: ReadableSize(0),
            target_file_size: ReadableSize(FILE_BYTES),
            purge_threshold: ReadableSize(2 * needed),
            enable_log_recycle: true,
            prefill_for_recycle: prefills,
            prefill_limit: prefills.then_some(ReadableSize(needed)),
            ..Config::default()
        };
        Ok(RaftEngine::open(config)?)
    }
}

impl Engine for Raft {
    type Log = RaftEngine;

    fn name(self) -> &'static str {
        "raft-engine"
    }

    fn is_prepared(self) -> bool {
        self.is_prepared
    }

    fn open(self, dir: &Path, cell: &Cell) -> Result<RaftEngine, Failure> {
        let engine = self.engine(dir, cell, self.is_prepared)?;
        if self.is_prepared {
            // The first file was there before any was made ready.
            let mut batch = LogBatch::default();
            batch.put(FILLER_REGION, b"filler".to_vec(), vec![0; FILE_BYTES as usize])?;
            engine.write(&mut batch, true)?;
        }
        Ok(engine)
    }

    fn commit(log: &RaftEngine, writer: u32, sequence: u64, record: &[u8]) -> Result<(), Failure> {
        let mut batch = LogBatch::default();
        let region = FIRST_REGION + u64::from(writer);
        batch.put(region, sequence.to_be_bytes().to_vec(), record.to_vec())?;
        log.write(&mut batch, true)?;
        Ok(())
    }

    fn read_back(
        self,
        dir: &Path,
        cell: &Cell,
        visit: &mut dyn FnMut(&[u8]),
    ) -> Result<(), Failure> {
        let engine = self.engine(dir, cell, false)?;
        for writer in 0..cell.writers() {
            let region = FIRST_REGION + u64::from(writer);
            engine.scan_raw_messages(region, None, None, false, |_key, record| {
                visit(record);
                true
            })?;
        }
        Ok(())
    }
}
