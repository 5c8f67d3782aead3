//! The header of a stage: whose it is.

use zerocopy::little_endian::U64;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::Lsn;

const MAGIC: [u8; 8] = *b"VELLUMST";

/// The first bytes of a stage.
#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub(crate) struct StageHeader {
    magic: [u8; 8],
    /// The id by which the control file's words call the stage.
    id: U64,
    /// First position of its segment.
    first: U64,
    /// The log's epoch when the stage was made; 0 where there is none, or an earlier version made
    /// it.
    epoch: U64,
}

impl StageHeader {
    /// The header of the stage of the segment at `first`.
    pub(crate) fn new(id: u64, first: Lsn, epoch: u64) -> StageHeader {
        StageHeader {
            magic: MAGIC,
            id: U64::new(id),
            first: U64::new(first.get()),
            epoch: U64::new(epoch),
        }
    }

    /// Whether the words that call the stage `id` mean this file.
    pub(crate) fn is_called(&self, id: u64, first: Lsn) -> bool {
        self.is_of(first) && self.id.get() == id
    }

    /// Whether the stage was made in `epoch`; the words do not matter.
    pub(crate) fn is_of_epoch(&self, epoch: u64, first: Lsn) -> bool {
        self.is_of(first) && epoch != 0 && self.epoch.get() == epoch
    }

    fn is_of(&self, first: Lsn) -> bool {
        self.magic == MAGIC && self.first.get() == first.get()
    }
}
