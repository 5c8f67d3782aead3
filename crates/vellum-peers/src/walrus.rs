//! walrus: one topic for all threads, each append synced.
//!
//! It takes its directory from the environment or from the working directory. The latter it is: it
//! is opened in a process of its own, which ends with the round.

use std::path::Path;

use vellum_bench::commit::Cell;
use walrus_rust::{FsyncSchedule, ReadConsistency, Walrus};

use crate::adapter::{Engine, Failure};

const TOPIC: &str = "log";

#[derive(Clone, Copy)]
pub(crate) struct WalrusTopic;

fn open_in(dir: &Path) -> Result<Walrus, Failure> {
    std::env::set_current_dir(dir)?;
    // Reading must not sync its own place for each record.
    let consistency = ReadConsistency::AtLeastOnce { persist_every: u32::MAX };
    Ok(Walrus::with_consistency_and_schedule(consistency, FsyncSchedule::SyncEach)?)
}

impl Engine for WalrusTopic {
    type Log = Walrus;

    fn name(self) -> &'static str {
        "walrus"
    }

    fn open(self, dir: &Path, _cell: &Cell) -> Result<Walrus, Failure> {
        open_in(dir)
    }

    fn commit(log: &Walrus, _: u32, _: u64, record: &[u8]) -> Result<(), Failure> {
        Ok(log.append_for_topic(TOPIC, record)?)
    }

    fn read_back(self, dir: &Path, _: &Cell, visit: &mut dyn FnMut(&[u8])) -> Result<(), Failure> {
        let log = open_in(dir)?;
        while let Some(entry) = log.read_next(TOPIC, true)? {
            visit(&entry.data);
        }
        Ok(())
    }
}
