//! `Log`: where the records of a time are.

use std::ops::Range;
use std::time::SystemTime;

use crate::log::read::time_index;
use crate::log::{Log, Reader};
use crate::{ErrorKind, Lsn, Result};

impl Log {
    /// Positions that enclose all records that were appended from `since` on and before `until`;
    /// `None` is no bound. [`Lsn::MAX`] is its end where the log has not come that far.
    ///
    /// Records of other times are among them: up to a segment and a minute of them at each end in a
    /// framed log with [envelopes](crate::Options::envelope), whose records tell their
    /// [time](crate::Record::time). A text log knows the time of the first record of each file, to
    /// the second: the range is whole files. A framed log without envelopes knows the times that it
    /// notes in its segments if it removes records [by their age](crate::Options::retain_age): the
    /// range is whole segments.
    ///
    /// None is missing, as long as the clocks of the writers were not set back by more than a
    /// minute. Where one was, records from before that moment with a time behind it may be missing.
    ///
    /// # Errors
    ///
    /// [`Unsupported`](crate::ErrorKind::Unsupported) where nothing in the log tells a time;
    /// [`Io`](crate::ErrorKind::Io) where files cannot be read. A segment that is missing or
    /// damaged tells nothing, and is no error.
    ///
    /// # Cost
    ///
    /// With envelopes, opening a file and reading its first record for each doubling of the number
    /// of segments: fourteen for 16 384 of them. Without, the same for each segment. In a text log
    /// one listing of the directory.
    pub fn positions_of_time(
        &self,
        since: Option<SystemTime>,
        until: Option<SystemTime>,
    ) -> Result<Range<Lsn>> {
        time_index::positions(
            &self.core,
            since.map(time_index::nanos),
            until.map(time_index::nanos),
        )
    }

    /// A reader that starts at the first record that was appended at `time` or later, or at the end
    /// of the log.
    ///
    /// Behind it may come records with an earlier time, because clocks are set back and appends
    /// overlap: [`Record::time`](crate::Record::time) tells. In a log without
    /// [envelopes](crate::Options::envelope) it starts earlier, at the start of the file or segment
    /// that [`positions_of_time`](Log::positions_of_time) finds.
    ///
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let path = dir.path().join("app.log");
    /// let log = vellum::Options::events().envelope(true).open(&path)?;
    /// log.append(b"before")?;
    /// let time = std::time::SystemTime::now();
    /// log.append(b"after")?;
    /// let mut reader = log.reader_at_time(time)?;
    /// let record = reader.next()?.unwrap();
    /// assert_eq!(record.payload, b"after");
    /// assert!(record.time().unwrap() >= time);
    /// # Ok::<(), vellum::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As for [`positions_of_time`](Log::positions_of_time). Damage on the way to the record is met
    /// by the reader that is returned.
    ///
    /// # Cost
    ///
    /// As for [`positions_of_time`](Log::positions_of_time); with envelopes it also reads up to one
    /// segment and the records of the minute before `time`: about a tenth of a second for a segment
    /// of 64 MiB.
    pub fn reader_at_time(&self, time: SystemTime) -> Result<Reader> {
        loop {
            match time_index::reader_at(&self.core, time_index::nanos(time)) {
                // Of what was removed meanwhile nothing is to be found.
                Err(error) if error.kind() == ErrorKind::Trimmed => {}
                found => return found,
            }
        }
    }
}
