//! Times that are noted in the headers of segments: all records before one are older.

use zerocopy::IntoBytes;

use crate::format::segment::{SegmentTime, TIME_OFFSET};
use crate::log::layout::framed::Frames;
use crate::sys::clock;
use crate::{Lsn, Result};

impl Frames<'_> {
    /// The time that is noted in a segment.
    pub(crate) fn noted_time(self, first: Lsn) -> Result<Option<u64>> {
        let mut bytes = [0; TIME_OFFSET + size_of::<SegmentTime>()];
        let count = self.core.open_to_read(first)?.read_header(&mut bytes)?;
        let noted = bytes[..count].get(TIME_OFFSET..).unwrap_or_default();
        Ok(SegmentTime::parse(noted, self.core.files.geometry.secret, first))
    }

    /// Notes the time in the segment that records go to, if it has none, or one from before the
    /// clock was set.
    pub(crate) fn note_time(self, written: Lsn) -> Result<()> {
        let (noted, now) = (self.noted_time(written)?, clock::seconds());
        if noted.is_some_and(|time| time > now || clock::may_be_right(time, now)) {
            return Ok(());
        }
        let time = SegmentTime::new(self.core.files.geometry.secret, written, now);
        self.core.open_unmapped(written)?.write(time.as_bytes(), TIME_OFFSET as u64)
    }
}
