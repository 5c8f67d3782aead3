//! The header of a stage: whose it is.

use zerocopy::little_endian::U64;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::Lsn;

const MAGIC: [u8; 8] = *b"VELLUMST";

/// The first bytes of a stage.
#[derive(Clone, Copy, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub(crate) struct StageHeader {
    magic: [u8; 8],
    /// What the control file's words call the stage.
    id: U64,
    /// First position of its segment.
    first: U64,
}

impl StageHeader {
    pub(crate) fn new(id: u64, first: Lsn) -> StageHeader {
        StageHeader { magic: MAGIC, id: U64::new(id), first: U64::new(first.get()) }
    }
}
