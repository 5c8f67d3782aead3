//! Where a log begins and ends, as it is found out from its segments.

use crate::format::control::Geometry;
use crate::format::identity::{CutCheckpoint, Identity};
use crate::lsn::Range;
use crate::{Fill, Lsn};

/// Where a log begins and ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Positions {
    pub(crate) begin: Lsn,
    /// End of what is known to survive a power cut.
    pub(crate) durable: Lsn,
    pub(crate) tail: Lsn,
    /// From where on records are in the stage, and not yet in the segments.
    pub(crate) staged_from: Lsn,
    pub(crate) allocated_end: Lsn,
    pub(crate) checkpoint: Lsn,
    pub(crate) recovered: Recovered,
}

/// What finding the end of a log has changed, or would.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Recovered {
    /// As in `Recovery`.
    pub(crate) durable: Lsn,
    pub(crate) cut_bytes: u64,
    pub(crate) padded_bytes: u64,
    pub(crate) from: Lsn,
}

impl Positions {
    /// Of a log with nothing in it. Positions start behind a segment's worth, so that none is 0.
    pub(crate) fn of_new_log(geometry: &Geometry) -> Positions {
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
}

/// What is known of a log that is recovered from its files.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Evidence<'a> {
    pub(crate) loss: Loss,
    /// The log's newest epoch, or 0 where it has none. No other's stage is believed.
    pub(crate) epoch: u64,
    /// The checkpoint of before the last truncation.
    pub(crate) cut: CutCheckpoint,
    /// What the dead had reserved, by words that agree with the files.
    pub(crate) reserved: &'a [Range],
}

impl<'a> Evidence<'a> {
    pub(crate) fn new(
        loss: Loss,
        identity: Option<&Identity>,
        reserved: &'a [Range],
    ) -> Evidence<'a> {
        let epoch = identity.map_or(0, |identity| identity.epoch);
        let cut = identity.map_or_else(CutCheckpoint::default, |identity| identity.cut);
        Evidence { loss, epoch, cut, reserved }
    }

    /// Where there are no words.
    pub(crate) fn without_words(loss: Loss, identity: Option<&Identity>) -> Evidence<'static> {
        Evidence::new(loss, identity, &[])
    }
}

/// What has happened to the log, and so what damage may be put down to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Loss {
    /// The control file is gone and nothing else: holes are those of dead writers, and are padded.
    Words,
    /// The device may have stopped in the middle of a write: what follows a hole is cut.
    Power,
}

impl Loss {
    /// What has happened to a log whose control file is gone.
    pub(crate) fn of(stored: &Geometry, boot_id: [u8; 16]) -> Loss {
        // Holes in a stage are not told from what a power cut took.
        let is_words = stored.is_of_boot(boot_id) && stored.fill != Fill::Staged;
        if is_words { Loss::Words } else { Loss::Power }
    }
}
