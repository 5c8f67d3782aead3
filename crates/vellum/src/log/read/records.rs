//! Records as an iterator, and one by its position.

use std::sync::Arc;

use crate::log::read::reader::{Reader, beyond_the_end, not_a_start};
use crate::log::state::core::{Core, kept_files};
use crate::log::state::identity;
use crate::record::OwnedRecord;
use crate::segment::kept::KeptFiles;
use crate::shared::tail_word;
use crate::{Lsn, Result};

/// Records with bytes of their own, one after the other. Made of a [`Reader`] by `into_iter`.
///
/// It ends at the published end, or at the durable one for a [durable](Reader::durable) reader.
/// Later calls continue from there. After an error it is over.
#[derive(Debug)]
pub struct Records {
    reader: Reader,
    has_failed: bool,
}

impl Records {
    /// The reader, at the position that was reached.
    pub fn into_reader(self) -> Reader {
        self.reader
    }
}

impl Iterator for Records {
    type Item = Result<OwnedRecord>;

    fn next(&mut self) -> Option<Result<OwnedRecord>> {
        if self.has_failed {
            return None;
        }
        let found = self.reader.next();
        self.has_failed = found.is_err();
        found.map(|record| record.map(OwnedRecord::from)).transpose()
    }
}

impl IntoIterator for Reader {
    type Item = Result<OwnedRecord>;
    type IntoIter = Records;

    fn into_iter(self) -> Records {
        Records { reader: self, has_failed: false }
    }
}

/// The record at `lsn`.
pub(crate) fn read_at(core: &Arc<Core>, lsn: Lsn) -> Result<OwnedRecord> {
    // Without an identity nothing tells that a file was truncated and made anew.
    let files = kept_files(core).filter(|_| core.opened.identity.is_some());
    if let Some(record) = files.and_then(|files| read_kept(core, lsn, files)) {
        return Ok(record);
    }
    read_with(core, lsn, Reader::new(Arc::clone(core), lsn)?)
}

/// The same, of files that the log keeps open. `None` for everything else: they may not be what the
/// directory has by now.
fn read_kept(core: &Arc<Core>, lsn: Lsn, files: &KeptFiles) -> Option<OwnedRecord> {
    let epoch = identity::live_epoch(core);
    let reader = Reader::of_one(Arc::clone(core), lsn, files);
    let record = reader.and_then(|reader| read_with(core, lsn, reader).ok());
    let is_sure = identity::live_epoch(core) == epoch && core.check_region().is_ok();
    let record = record.filter(|_| is_sure);
    match &record {
        Some(record) => files.note_len(record.next_lsn.get() - lsn.get()),
        None => files.close(),
    }
    record
}

fn read_with(core: &Core, lsn: Lsn, mut reader: Reader) -> Result<OwnedRecord> {
    let Some(record) = reader.next()? else {
        return Err(beyond_the_end(core, lsn, tail_word::published(core.words())));
    };
    if record.lsn != lsn {
        return Err(not_a_start(core, lsn));
    }
    Ok(record.into_owned())
}
