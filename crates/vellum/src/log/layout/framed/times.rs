//! Times that are noted in the headers of segments: all records before one are older.

use zerocopy::IntoBytes;

use crate::format::segment::{SegmentTime, TIME_OFFSET};
use crate::log::layout::framed::Frames;
use crate::sys::clock;
use crate::{Lsn, Result};

impl Frames<'_> {
    /// Notes the time in the segment that records go to, if it has none, or one from before the
    /// clock was set.
    pub(crate) fn note_time(self, written: Lsn) -> Result<()> {
        let (noted, now) = (self.core.files.noted_time(written)?, clock::seconds());
        if noted.is_some_and(|time| time > now || clock::may_be_right(time, now)) {
            return Ok(());
        }
        let time = SegmentTime::new(self.core.files.geometry.secret, written, now);
        self.core.open_unmapped(written)?.write(time.as_bytes(), TIME_OFFSET as u64)
    }
}
