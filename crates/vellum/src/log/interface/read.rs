//! `Log`: functions that read, and the positions to read between.

use std::sync::Arc;
use std::time::Duration;

use crate::log::read::{follow, records};
use crate::log::repair::read_limit;
use crate::log::{Backwards, Log, Reader};
use crate::record::OwnedRecord;
use crate::shared::tail_word;
use crate::{Lsn, Result};

impl Log {
    /// A reader that starts at `from`, or at the oldest record for [`Lsn::ZERO`].
    ///
    /// # Errors
    ///
    /// [`Trimmed`](crate::ErrorKind::Trimmed) for a position that is no longer kept,
    /// [`OutOfRange`](crate::ErrorKind::OutOfRange) for one beyond the end, or where no whole
    /// record starts: in a text log in the middle of a line.
    pub fn reader(&self, from: Lsn) -> Result<Reader> {
        Reader::new(Arc::clone(&self.core), from)
    }

    /// The records that start before `before`, the newest first:
    /// `log.backwards(log.published())` has all, `log.backwards(log.durable())` those that were
    /// committed. The newest record is the first: `log.backwards(Lsn::MAX)?.next()`.
    ///
    /// # Errors
    ///
    /// [`Corrupt`](crate::ErrorKind::Corrupt) where the words of the control file make no sense. A
    /// failure to read is an item of the iterator.
    ///
    /// # Cost
    ///
    /// Records have no pointers back. So the first record takes a walk from a start that is known:
    /// in a framed log that is committed, from one in the last 64 KiB or not far before; in one
    /// that is not, from the start of the last segment; in a text log, from 64 KiB before the end.
    /// The length of the log makes no difference. Every byte is read three times at most. Memory:
    /// 8 bytes for each 64 KiB of a segment, and the positions of the records in 64 KiB.
    pub fn backwards(&self, before: Lsn) -> Result<Backwards> {
        Backwards::new(&self.core, before)
    }

    /// The record at `lsn`, which was returned by an append or a reader.
    ///
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let log = vellum::Options::events().open(dir.path().join("app.log")).unwrap();
    /// let lsn = log.append(b"a record")?;
    /// assert_eq!(log.read_at(lsn)?.payload, b"a record");
    /// # Ok::<(), vellum::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Trimmed`](crate::ErrorKind::Trimmed) for a position that is no longer kept;
    /// [`OutOfRange`](crate::ErrorKind::OutOfRange) for one that is not published, or where no
    /// whole record starts: in a text log in the middle of a line. In a framed log that is also
    /// how damage shows, because the checksum covers the position.
    ///
    /// # Cost
    ///
    /// One `pread` of little more than the last record took, and another one for a longer record;
    /// its checksum, and an allocation for its bytes. Any number of threads do not wait for each
    /// other.
    ///
    /// The log keeps up to four files open, and opens them anew in another second. The first append
    /// in another second closes them, and so does a trim by this process. So a file that another
    /// process has trimmed takes space until then. A compressed file is unpacked for each record: a
    /// [`reader`](Log::reader) with [`seek`](Reader::seek) does that once.
    pub fn read_at(&self, lsn: Lsn) -> Result<OwnedRecord> {
        records::read_at(&self.core, lsn)
    }

    /// Oldest position still kept.
    pub fn begin(&self) -> Lsn {
        self.core.begin()
    }

    /// End of the records that readers can see: everything before it is filled. Where the log was
    /// opened for reading only, unfilled ranges of the dead hold it back no more, because readers
    /// skip them.
    pub fn published(&self) -> Lsn {
        read_limit::ReadLimit::of(&self.core).end
    }

    /// Waits until every reader sees the record at `lsn`, and everything before it; for `timeout`
    /// at most, or for ever for `None`.
    ///
    /// An `append` that has returned is seen once each append in front of it is done, in any
    /// process: so a record may not be seen yet, not even by the thread that appended it. Call this
    /// before a read that must find it. It makes nothing durable.
    ///
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let log = vellum::Options::events().open(dir.path().join("app.log"))?;
    /// let lsn = log.append(b"a record")?;
    /// log.wait_published(lsn, None)?;
    /// assert_eq!(log.read_at(lsn)?.payload, b"a record");
    /// # Ok::<(), vellum::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`TimedOut`](crate::ErrorKind::TimedOut), with the process whose append is in front;
    /// [`OutOfRange`](crate::ErrorKind::OutOfRange) for a position beyond the end, also when it was
    /// truncated away meanwhile; [`Busy`](crate::ErrorKind::Busy) while the calling thread holds a
    /// [reservation](Log::reserve) in front of it.
    ///
    /// # Cost
    ///
    /// A look at each slot that was ever used where it is published already; otherwise the caller
    /// sleeps until it is. A handle for writing pads a dead writer's range meanwhile.
    pub fn wait_published(&self, lsn: Lsn, timeout: Option<Duration>) -> Result<()> {
        follow::wait_published(&self.core, lsn, timeout)
    }

    /// End of the reserved space.
    pub fn tail(&self) -> Lsn {
        tail_word::tail(self.core.words())
    }
}
