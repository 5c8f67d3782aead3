//! Records of a writer that stays between reserving and publishing while the others sync.
//!
//! A `sync` that does not wait for it would acknowledge the records behind it, and a power cut
//! would take them.

use std::io::Write;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Result;
use vellum::{Log, Lsn};

/// For how long the others may take until they sync: one of them may wait for the held record
/// elsewhere, where the stage is full.
const PATIENCE: Duration = Duration::from_millis(20);
/// For how long the record is held once they do. A `sync` that is wrong returns meanwhile.
const HOLD: Duration = Duration::from_millis(2);

/// How often the writers of this process have begun to sync.
#[derive(Debug, Default)]
pub(super) struct Syncs(AtomicU64);

impl Syncs {
    /// Makes every record durable whose append has returned.
    pub(super) fn sync(&self, log: &Log) -> vellum::Result<Lsn> {
        self.0.fetch_add(1, Ordering::SeqCst);
        log.sync()
    }

    /// Appends a record, and publishes it when `others` have begun to sync behind it.
    pub(super) fn append_held(&self, log: &Log, record: &[u8], others: u64) -> Result<Lsn> {
        let mut reserved = log.reserve(record.len())?;
        reserved.write_all(record)?;
        let (start, enough) = (Instant::now(), self.0.load(Ordering::SeqCst) + others);
        while self.0.load(Ordering::SeqCst) < enough && start.elapsed() < PATIENCE {
            thread::yield_now();
        }
        thread::sleep(HOLD);
        Ok(reserved.publish()?)
    }
}
