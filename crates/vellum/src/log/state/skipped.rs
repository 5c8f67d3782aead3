//! The end of a segment that was skipped because the next record did not fit.
//!
//! Nothing but the header of its pad is ever read, so a commit leaves the rest alone. Of a stage it
//! would first have to make the pages: for records of 1 MiB that was a fifth of the time of all
//! commits. Another process than the one that skipped it writes all of it, which does no harm.

use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::Lsn;
use crate::format::frame::HEADER_LEN;

/// The newest one of this process.
#[derive(Default)]
pub(crate) struct Skipped {
    newest: Mutex<Option<Pad>>,
}

#[derive(Clone, Copy)]
struct Pad {
    /// In one epoch a position is given out once.
    epoch: u64,
    at: Lsn,
}

impl Skipped {
    /// Notes that a pad was written at `at` in `epoch`, up to the end of its segment.
    pub(crate) fn note(&self, epoch: u64, at: Lsn) {
        // A log without an identity has no epochs.
        *self.newest() = (epoch != 0).then_some(Pad { epoch, at });
    }

    /// Where what is read ends, of bytes from `begin` to the end of a segment at `end`, which were
    /// published in `epoch`.
    pub(crate) fn end_of_records(&self, epoch: u64, begin: Lsn, end: Lsn) -> Lsn {
        let is_it = |pad: &Pad| pad.epoch == epoch && begin <= pad.at && pad.at < end;
        self.newest().filter(is_it).map_or(end, |pad| Lsn::new(pad.at.get() + HEADER_LEN as u64))
    }

    fn newest(&self) -> MutexGuard<'_, Option<Pad>> {
        self.newest.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use std::sync::Arc;

    use vellum_testing::counts::moved_bytes;

    use crate::log::append::Append;
    use crate::log::commit::Commit;
    use crate::log::keep::truncate::truncate;
    use crate::log::open::enter;
    use crate::log::state::identity;
    use crate::{Options, Tuning};

    const CAPACITY: u64 = 64 << 10;
    static RECORD: [u8; 40_000] = [b'x'; 40_000];

    #[test]
    fn a_commit_leaves_alone_what_was_skipped() {
        let dir = tempfile::tempdir().unwrap();
        let options = Options::wal().tuning(Tuning::new().segment_capacity_bytes(CAPACITY));
        let log = Arc::new(enter::open(&dir.path().join("log"), &options).unwrap());
        let append = || Append::of(&log).append_record(&RECORD).unwrap();
        let first = append();
        let segment_end = log.files.segment_end(first);
        Commit::of(&log).commit(first).unwrap();
        let second = append();
        assert_eq!(second, segment_end, "the rest of the segment is skipped");
        let before = moved_bytes();
        Commit::of(&log).commit(second).unwrap();
        if let (Some((_, before)), Some((_, after))) = (before, moved_bytes()) {
            // The record, the header's block, and a commit record in a page that is made for it.
            let most = RECORD.len() as u64 + 4 * 4096;
            assert!((40_000..most).contains(&(after - before)), "{} bytes", after - before);
        }

        let skipped = &log.writer().unwrap().attachment.skipped;
        let read_end = || skipped.end_of_records(identity::live_epoch(&log), first, segment_end);
        assert!((40_000..41_000).contains(&(read_end().get() - first.get())), "{}", read_end());
        truncate(&log, second).unwrap();
        assert_eq!(
            read_end(),
            segment_end,
            "in the next epoch the same positions hold other records"
        );
    }
}
