//! Where a log begins and ends, as it is found out from its segments.

use crate::format::control::Geometry;
use crate::format::identity::{CutCheckpoint, Identity};
use crate::identity::{Recovery, RecoveryReason};
use crate::lsn::Range;
use crate::sys::clock;
use crate::{Fill, Lsn};

/// Where a log begins and ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Positions {
    /// Oldest position that is kept.
    pub begin: Lsn,
    /// End of the bytes that are known to survive a power cut.
    pub durable: Lsn,
    /// End of the log.
    pub tail: Lsn,
    /// From where on records are in the stage, and not yet in the segments.
    pub staged_from: Lsn,
    /// End of the newest segment that is there.
    pub allocated_end: Lsn,
    /// The checkpoint, or zero.
    pub checkpoint: Lsn,
    /// The changes that the search for them has made.
    pub recovered: Recovered,
}

/// The changes that the search for the end of a log has made, or would make.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Recovered {
    /// As in `Recovery`.
    pub durable: Lsn,
    /// As in `Recovery`.
    pub cut_bytes: u64,
    /// As in `Recovery`.
    pub padded_bytes: u64,
    /// As in `Recovery`.
    pub from: Lsn,
}

impl Positions {
    /// Of a log with nothing in it. Positions start behind a segment's worth, so that none is 0.
    pub fn of_new_log(geometry: &Geometry) -> Positions {
        let start = Lsn::new(geometry.segment_capacity);
        Positions {
            begin: start,
            durable: start,
            tail: start,
            staged_from: start,
            allocated_end: start,
            checkpoint: Lsn::ZERO,
            recovered: Recovered { durable: start, cut_bytes: 0, padded_bytes: 0, from: start },
        }
    }

    /// The result of a recovery at this moment, for `reason`.
    pub fn recovery(&self, reason: RecoveryReason) -> Recovery {
        let Recovered { durable, cut_bytes, padded_bytes, from } = self.recovered;
        let (end, from) = (self.tail, from.min(self.tail));
        let time = clock::time_of(clock::seconds());
        Recovery { end, durable, cut_bytes, padded_bytes, from, reason, time }
    }
}

/// The known facts about a log that is recovered from its files.
#[derive(Clone, Copy, Debug)]
pub struct Evidence<'a> {
    /// The loss that the log has suffered.
    pub loss: Loss,
    /// The log's newest epoch, or 0 where it has none. No other's stage is believed.
    pub epoch: u64,
    /// The checkpoint of before the last truncation.
    pub cut: CutCheckpoint,
    /// The ranges that dead writers had reserved, by words that agree with the files.
    pub reserved: &'a [Range],
}

impl<'a> Evidence<'a> {
    /// The facts about a log with this identity, whose dead writers had `reserved` these ranges.
    pub fn new(loss: Loss, identity: Option<&Identity>, reserved: &'a [Range]) -> Evidence<'a> {
        let epoch = identity.map_or(0, |identity| identity.epoch);
        let cut = identity.map_or_else(CutCheckpoint::default, |identity| identity.cut);
        Evidence { loss, epoch, cut, reserved }
    }

    /// Where there are no words.
    pub fn without_words(loss: Loss, identity: Option<&Identity>) -> Evidence<'static> {
        Evidence::new(loss, identity, &[])
    }
}

/// The loss that a log has suffered, to which its damage may be put down.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Loss {
    /// The control file is gone and nothing else: holes are those of dead writers, and are padded.
    Words,
    /// The device may have stopped in the middle of a write: everything behind a hole is cut.
    Power,
}

impl Loss {
    /// The loss that a log has suffered whose control file is gone.
    pub fn of(stored: &Geometry, boot_id: [u8; 16]) -> Loss {
        // Holes in a stage cannot be told from bytes that a power cut took.
        let is_words = stored.is_of_boot(boot_id) && stored.fill != Fill::Staged;
        if is_words { Loss::Words } else { Loss::Power }
    }
}
