//! The options of text logs: when they continue in a new file, and which files they keep.

use std::path::Path;
use std::time::Duration;

use crate::Result;
use crate::options::Options;
use crate::options::choice::{Compression, Layout};
use crate::options::limits::{CAPACITY_UNIT_BYTES, SEGMENT_CAPACITY_BYTES_MAX, invalid};
use crate::options::policy::OnFull;

/// A segment of a new log is so many times as long as a file by its policy, so that the policy can
/// be changed.
const ROTATIONS_PER_SEGMENT: u64 = 16;
/// But at least this long, so that a long line among short files is not cut.
const ROTATING_CAPACITY_BYTES_MIN: u64 = 16 << 20;

impl Options {
    /// Length in bytes at which a text log continues in a new file: a record that would make the
    /// file longer goes into the next, so that only a record that is longer itself makes a longer
    /// file. 0 is no limit but the segment's capacity. Default for a new log: no limit.
    ///
    /// A new log for which this is chosen, and no
    /// [`segment_capacity_bytes`](crate::Tuning::segment_capacity_bytes), has segments of 16 times
    /// this, from 16 MiB to 1 GiB, so that there is room for a change and for a long line. A line
    /// that is longer than this has a file of its own, and is cut over several only where it is
    /// longer than a segment. Where a segment is full before the limit, the log continues in a file
    /// whose name ends in `-more.log`, and the limit is for both together.
    ///
    /// This option and the six that follow are the log's [`Policy`](crate::stat::Policy): they are
    /// stored with it, what is said here replaces what is stored, for every process that has the
    /// log open, and what is left alone stays. One that opens for reading changes nothing. For text
    /// logs.
    pub fn rotate_bytes(mut self, bytes: u64) -> Options {
        self.policy.rotate_bytes = Some(bytes);
        self
    }

    /// Time after which a text log continues in a new file, in whole seconds. The moments are the
    /// multiples of this since 1970-01-01 00:00:00 UTC, moved by
    /// [`rotate_offset`](Options::rotate_offset); the first record after one of them starts the new
    /// file, and where there is no record there is no file. Zero is never. Default for a new log:
    /// never.
    pub fn rotate_every(mut self, period: Duration) -> Options {
        self.policy.rotate_every = Some(period);
        self
    }

    /// By how much the moments of [`rotate_every`](Options::rotate_every) are moved. Default for a
    /// new log: zero, so that a period of a day ends at midnight UTC. 22 hours put it at midnight
    /// of a place two hours east, four days (with a period of seven) on a Monday.
    pub fn rotate_offset(mut self, offset: Duration) -> Options {
        self.policy.rotate_offset = Some(offset);
        self
    }

    /// Bytes that the files of a log may take together, the current one included. When it continues
    /// in a new file, the oldest are removed. 0 is no limit, the default for a new log.
    ///
    /// A framed log counts positions, from the oldest record to the tail. Only whole segments go,
    /// when another one is made; nothing from the [checkpoint](crate::Checkpoint::set) on goes,
    /// nor what a [cursor](crate::Cursor::hold) holds. So it may take more, and segments that are
    /// prepared ahead come on top. It needs a process of a version that knows this.
    pub fn retain_bytes(mut self, bytes: u64) -> Options {
        self.policy.retain_bytes = Some(bytes);
        self
    }

    /// How long a closed file is kept, in whole seconds since its last record was written. Zero is
    /// for ever, the default for a new log. Old files are removed when the log continues in a new
    /// one, and when it is opened.
    ///
    /// A framed log notes a time in the segment that is written, each time it makes another one and
    /// when it is opened. Records count as written at the next note, which may be a segment late:
    /// they may be kept for longer, and never for less. Its bounds are those of
    /// [`retain_bytes`](Options::retain_bytes).
    pub fn retain_age(mut self, age: Duration) -> Options {
        self.policy.retain_age = Some(age);
        self
    }

    /// How many closed files of a text log are kept beside the current one. `u64::MAX` is all of
    /// them, the default for a new log.
    ///
    /// Only files count that a rule or [`rotate`](crate::Log::rotate) ended. One that was only full
    /// continues in a file whose name ends in `-more.log`; the two count as one, and are removed
    /// together.
    pub fn retain_files(mut self, count: u64) -> Options {
        self.policy.retain_files = Some(count);
        self
    }

    /// Whether and how closed files of a text log are compressed, by the process that began the new
    /// one: a [`Compression`], or `true` for zstd. Default for a new log: no. Files that are
    /// compressed already stay so, whichever way it was; all are read.
    pub fn compress(mut self, compression: impl Into<Compression>) -> Options {
        self.policy.compression = Some(compression.into());
        self
    }

    /// Refuses options of text logs for a log of another layout; `instead` is the remedy.
    pub(crate) fn check_layout(&self, layout: Layout, dir: &Path, instead: &str) -> Result<()> {
        let message = if layout == Layout::Text {
            return Ok(());
        } else if !self.policy.for_text_alone().is_empty() {
            format!(
                "only text logs rotate, compress, and keep files by their number; this one is \
                 framed: leave out \0{}\0, or {instead}",
                self.policy.for_text_alone().names().join("\0 and \0")
            )
        } else if self.tuning.on_full == Some(OnFull::Drop) {
            "a framed log drops no records, because nothing in it would tell of them; choose \
             \0on_full\0 error or block"
                .into()
        } else {
            return Ok(());
        };
        Err(invalid(message).at_path(dir))
    }

    /// The options with the capacity of a log that is to rotate by size, where none was chosen.
    pub(crate) fn with_room_to_rotate(&self) -> Options {
        let mut options = self.clone();
        if let Some(bytes) = self.policy.rotate_bytes.filter(|bytes| *bytes != 0) {
            options.tuning.segment_capacity_bytes.get_or_insert_with(|| {
                let page = (rustix::param::page_size() as u64).max(CAPACITY_UNIT_BYTES);
                let wanted = bytes.saturating_mul(ROTATIONS_PER_SEGMENT);
                wanted
                    .clamp(ROTATING_CAPACITY_BYTES_MIN, SEGMENT_CAPACITY_BYTES_MAX)
                    .next_multiple_of(page)
            });
        }
        options
    }
}
