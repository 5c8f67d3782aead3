//! OkayWAL. It gives a segment up when it is checkpointed, so there is a single one, as large as a
//! round needs: it does not pay for checkpoints here.

use std::fmt;
use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex};

use okaywal::{
    Configuration, Entry, EntryId, LogManager, LogVoid, RecoveredSegment, Recovery, SegmentReader,
    WriteAheadLog,
};
use vellum_bench::commit::Cell;

use crate::adapter::{Engine, Failure};

/// Around each record, and for the header of the file.
const ENTRY_BYTES: u64 = 64;
const FILE_BYTES: u64 = 1 << 20;

#[derive(Clone, Copy)]
pub(crate) struct Okay {
    pub(crate) is_prepared: bool,
}

impl Okay {
    fn configuration(self, dir: &Path, cell: &Cell) -> Configuration {
        let needed = cell.bytes_max(1) + cell.commits_max * ENTRY_BYTES + FILE_BYTES;
        // Zero would be divided by.
        let ahead = if self.is_prepared { u32::try_from(needed).unwrap_or(u32::MAX) } else { 1 };
        Configuration::default_for(dir).preallocate_bytes(ahead).checkpoint_after_bytes(u64::MAX)
    }
}

impl Engine for Okay {
    type Log = WriteAheadLog;

    fn name(self) -> &'static str {
        "okaywal"
    }

    fn is_prepared(self) -> bool {
        self.is_prepared
    }

    fn open(self, dir: &Path, cell: &Cell) -> Result<WriteAheadLog, Failure> {
        Ok(self.configuration(dir, cell).open(LogVoid)?)
    }

    fn commit(log: &WriteAheadLog, _: u32, _: u64, record: &[u8]) -> Result<(), Failure> {
        let mut entry = log.begin_entry()?;
        entry.write_chunk(record)?;
        entry.commit()?;
        Ok(())
    }

    fn read_back(
        self,
        dir: &Path,
        cell: &Cell,
        visit: &mut dyn FnMut(&[u8]),
    ) -> Result<(), Failure> {
        let found = Arc::new(Mutex::new(Vec::new()));
        let collector = Collector { found: Arc::clone(&found) };
        let _log = self.configuration(dir, cell).open(collector)?;
        let found = found.lock().map_err(|_| "the recovery panicked")?;
        found.iter().for_each(|record: &Vec<u8>| visit(record));
        Ok(())
    }
}

/// Keeps what the recovery finds. An entry without an end was never acknowledged.
struct Collector {
    found: Arc<Mutex<Vec<Vec<u8>>>>,
}

impl fmt::Debug for Collector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Collector")
    }
}

impl LogManager for Collector {
    fn should_recover_segment(&mut self, _segment: &RecoveredSegment) -> io::Result<Recovery> {
        Ok(Recovery::Recover)
    }

    fn recover(&mut self, entry: &mut Entry<'_>) -> io::Result<()> {
        if let Some(chunks) = entry.read_all_chunks()?
            && let Ok(mut found) = self.found.lock()
        {
            found.extend(chunks);
        }
        Ok(())
    }

    fn checkpoint_to(
        &mut self,
        _last: EntryId,
        _entries: &mut SegmentReader,
        _log: &WriteAheadLog,
    ) -> io::Result<()> {
        Ok(())
    }
}
