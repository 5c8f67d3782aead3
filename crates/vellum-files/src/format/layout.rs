//! The consequences of a layout for records and files.

use super::frame::{ALIGNMENT, HEADER_LEN, frame_len};
use super::segment;
use crate::Layout;

#[doc(hidden)]
impl Layout {
    /// Whether each record is in a frame; otherwise records are lines.
    #[inline]
    pub const fn has_frames(self) -> bool {
        matches!(self, Layout::Framed)
    }

    /// Bytes of the header in front of a record.
    pub const fn record_header_len(self) -> usize {
        if self.has_frames() { HEADER_LEN } else { 0 }
    }

    /// Bytes that a record takes whose payload, with its envelope, has `len` bytes.
    pub const fn record_len(self, len: u64) -> u64 {
        if self.has_frames() { frame_len(len) } else { len }
    }

    /// The number of which the position of each record is a multiple.
    pub const fn alignment(self) -> u64 {
        if self.has_frames() { ALIGNMENT } else { 1 }
    }

    /// Whether commits put records of their own into the log, which carry the checkpoint and the
    /// durable end.
    pub const fn has_commit_records(self) -> bool {
        self.has_frames()
    }

    /// Bytes of a segment file before the log's own.
    pub const fn file_header_len(self) -> u64 {
        if self.has_frames() { segment::HEADER_LEN } else { 0 }
    }

    /// Whether each segment begins where the one before ends, so that one that is missing is
    /// damage.
    pub const fn has_every_segment(self) -> bool {
        self.has_frames()
    }

    /// Whether a file ends with its last record, because programs read it as it is: skipped space
    /// at its end is cut off.
    pub const fn ends_with_records(self) -> bool {
        !self.has_frames()
    }

    /// Whether the name of a file has the time of its first record: it gets that name when it is
    /// needed, one is made ahead at most, and where a segment is, only a listing tells.
    pub const fn names_have_times(self) -> bool {
        !self.has_frames()
    }

    /// Whether a policy says when the log continues in a new file.
    pub const fn rotates(self) -> bool {
        !self.has_frames()
    }
}
