//! The identity of a log as it is in two sectors: one of the geometry file, one of the control
//! file.
//!
//! Each change is written whole, with the next number, into one sector after the other. So a copy
//! is whole or damaged, and the whole one with the higher number counts.

use std::time::{Duration, SystemTime};

use zerocopy::little_endian::{U32, U64};
use zerocopy::{FromBytes, FromZeros, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::identity::{LogId, Recovery, RecoveryReason};
use crate::sys::checksum;
use crate::{Error, ErrorKind, Lsn, Position};

/// Where the block is in both files, and its length: a sector of its own.
pub const IDENTITY_OFFSET: usize = 512;
/// Bytes of the block.
pub const IDENTITY_LEN: usize = 512;
/// Where the epoch is in the block.
pub const EPOCH_OFFSET: usize = 40;

const MAGIC: [u8; 8] = *b"VELLUMID";
/// Rewinds that are remembered one by one.
const REWINDS_MAX: usize = 16;

/// Which log this is, and which of its positions still hold the same bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// Grows with each change of the block.
    number: u64,
    /// Which log it is.
    pub id: LogId,
    /// Its newest epoch.
    pub epoch: u64,
    /// The tag that the application has given to the kind of its records, or 0.
    pub tag: u64,
    /// How it was recovered last.
    pub recovery: Option<Recovery>,
    /// The checkpoint of before the last truncation.
    pub cut: CutCheckpoint,
    /// Between which positions records were left out, because they were lost.
    pub lost: Option<(Lsn, Lsn)>,
    /// Oldest first: both epochs and positions grow.
    rewinds: Vec<Rewind>,
}

/// The checkpoint of a log that is truncated, whose commit record may be cut off.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CutCheckpoint {
    /// Where the log is cut. A commit record from there on tells a newer checkpoint.
    pub at: Lsn,
    /// The checkpoint.
    pub checkpoint: Lsn,
}

/// From an epoch on, positions from `lsn` on may hold something else.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Rewind {
    /// The last epoch before. Those between it and `epoch` are not of this log.
    after: u64,
    epoch: u64,
    lsn: u64,
}

impl Rewind {
    fn is_fork(self) -> bool {
        self.after + 1 != self.epoch
    }

    /// One for both, which refuses no less: `self` is the older one.
    fn merged(self, newer: Rewind) -> Rewind {
        let has_fork = self.is_fork() || newer.is_fork();
        Rewind {
            after: if has_fork { self.after } else { newer.after },
            epoch: newer.epoch,
            lsn: self.lsn.min(newer.lsn),
        }
    }
}

/// The question about a position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Meaning {
    /// The record that starts there.
    Record,
    /// The end of the handled records: it holds if everything before it does.
    Next,
}

impl Identity {
    /// Of a new log.
    pub fn new(id: LogId, tag: u64) -> Identity {
        let (recovery, cut, lost) = (None, CutCheckpoint::default(), None);
        Identity { number: 1, id, epoch: 1, tag, recovery, cut, lost, rewinds: Vec::new() }
    }

    /// Notes that records between two positions were left out.
    pub fn lose(&mut self, from: Lsn, end: Lsn) {
        let (first, last) = self.lost.unwrap_or((from, end));
        self.lost = Some((first.min(from), last.max(end)));
        self.merge_oldest();
    }

    /// The newer of two copies.
    pub fn newer(self, other: Identity) -> Identity {
        if other.number > self.number { other } else { self }
    }

    /// Notes the checkpoint of a log that is about to be truncated.
    pub fn note_checkpoint(&mut self, cut: CutCheckpoint) {
        self.cut = cut;
        self.number += 1;
    }

    /// Begins the epoch `step` after this one, in which positions from `lsn` on may be given out
    /// again. A step of more than one leaves out epochs that another log with this id may have.
    pub fn rewind(&mut self, lsn: Lsn, step: u64) {
        let lsn = lsn.get();
        // This rewind refuses every position that an old one with no smaller `lsn` has refused.
        self.rewinds.retain(|old| old.lsn < lsn || old.is_fork());
        self.rewinds.iter_mut().for_each(|old| old.lsn = old.lsn.min(lsn));
        let rewind = Rewind { after: self.epoch, epoch: self.epoch.saturating_add(step), lsn };
        self.rewinds.push(rewind);
        self.merge_oldest();
        self.epoch = rewind.epoch;
        self.number += 1;
    }

    /// Merges the oldest rewinds where there are more than the block has room for. The lost range
    /// takes the place of one.
    fn merge_oldest(&mut self) {
        if self.rewinds.len() > REWINDS_MAX - usize::from(self.lost.is_some()) {
            let oldest = self.rewinds.remove(0);
            self.rewinds[0] = oldest.merged(self.rewinds[0]);
        }
    }

    /// The LSN of a position, if that still holds the same bytes.
    pub fn resolve(&self, position: Position, meaning: Meaning) -> Result<Lsn, Error> {
        if position.log != self.id {
            return Err(other_log(position, self.id));
        }
        let rewind = self.rewinds.iter().find(|rewind| rewind.epoch > position.epoch);
        let is_known = (1..=self.epoch).contains(&position.epoch)
            && rewind.is_none_or(|rewind| position.epoch <= rewind.after);
        if !is_known {
            return Err(unknown_epoch(position, self.epoch));
        }
        match rewind.map(|rewind| Lsn::new(rewind.lsn)) {
            Some(from) if position.lsn > from => Err(rewound(position, from)),
            Some(from) if position.lsn == from && meaning == Meaning::Record => {
                Err(rewound(position, from))
            }
            _ => Ok(position.lsn),
        }
    }
}

fn other_log(position: Position, id: LogId) -> Error {
    let message = format!("the position {position} is of log {}, and this is {id}", position.log);
    Error::new(ErrorKind::OtherLog, message).at_lsn(position.lsn)
}

fn unknown_epoch(position: Position, epoch: u64) -> Error {
    let message = format!(
        "the position {position} is of an epoch that this log, now in epoch {epoch}, never had: \
         one of the two was copied or restored; where they differ is not known"
    );
    Error::new(ErrorKind::Rewound, message)
}

fn rewound(position: Position, from: Lsn) -> Error {
    let message = format!(
        "the position {position} was taken before a power cut or a truncation took back what was \
         there: the log may differ from LSN {from} on"
    );
    Error::new(ErrorKind::Rewound, message).at_lsn(from)
}

/// The block as it is in a file.
#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
struct Block {
    magic: [u8; 8],
    /// CRC32C of the block with this field zero.
    check: U32,
    reserved: U32,
    number: U64,
    id: [u8; 16],
    epoch: U64,
    tag: U64,
    recovery: RecoveryBlock,
    rewinds: [RewindBlock; REWINDS_MAX],
    cut_at: U64,
    cut_checkpoint: U64,
}

#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
struct RecoveryBlock {
    /// A `RecoveryReason`, or 0 where there was no recovery.
    reason: U32,
    reserved: U32,
    seconds: U64,
    end: U64,
    durable: U64,
    cut_bytes: U64,
    padded_bytes: U64,
    from: U64,
}

/// A rewind; with epoch 0 there is none.
#[derive(Clone, Copy, Default, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
struct RewindBlock {
    after: U64,
    epoch: U64,
    lsn: U64,
}

const _: () = assert!(size_of::<Block>() == IDENTITY_LEN);
const _: () = assert!(std::mem::offset_of!(Block, epoch) == EPOCH_OFFSET);

/// A copy of the block as it was found in a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Copy {
    /// Nothing was ever written there.
    Absent,
    /// A whole block.
    Whole(Identity),
    /// Something else.
    Damaged,
}

impl Copy {
    /// Reads the block of a file with these first bytes.
    pub fn in_file(file: &[u8]) -> Copy {
        Copy::parse(file.get(IDENTITY_OFFSET..).unwrap_or_default())
    }

    /// Reads a block.
    pub fn parse(bytes: &[u8]) -> Copy {
        let bytes = &bytes[..bytes.len().min(IDENTITY_LEN)];
        if bytes.iter().all(|byte| *byte == 0) {
            return Copy::Absent;
        }
        let Ok(block) = Block::read_from_bytes(bytes) else { return Copy::Damaged };
        let unchecked = Block { check: U32::ZERO, ..block };
        if block.magic != MAGIC || checksum::crc32c(unchecked.as_bytes()) != block.check.get() {
            return Copy::Damaged;
        }
        Copy::Whole(block.to_identity())
    }
}

impl Block {
    fn to_identity(self) -> Identity {
        let rewinds = self.rewinds.iter().filter(|rewind| rewind.epoch.get() != 0);
        let rewind = |block: &RewindBlock| Rewind {
            after: block.after.get(),
            epoch: block.epoch.get(),
            lsn: block.lsn.get(),
        };
        Identity {
            number: self.number.get(),
            id: LogId::from_bytes(self.id),
            epoch: self.epoch.get(),
            tag: self.tag.get(),
            recovery: self.recovery.to_recovery(),
            cut: CutCheckpoint {
                at: Lsn::new(self.cut_at.get()),
                checkpoint: Lsn::new(self.cut_checkpoint.get()),
            },
            lost: self.rewinds[REWINDS_MAX - 1].to_lost(),
            rewinds: rewinds.map(rewind).collect(),
        }
    }
}

impl RewindBlock {
    /// Between which positions records were left out: no rewind has the epoch 0.
    fn of_lost((from, end): (Lsn, Lsn)) -> RewindBlock {
        RewindBlock { after: U64::new(from.get()), epoch: U64::ZERO, lsn: U64::new(end.get()) }
    }

    fn to_lost(self) -> Option<(Lsn, Lsn)> {
        let is_lost = self.epoch.get() == 0 && self.lsn.get() != 0;
        is_lost.then(|| (Lsn::new(self.after.get()), Lsn::new(self.lsn.get())))
    }
}

impl RecoveryBlock {
    fn of(recovery: Recovery) -> RecoveryBlock {
        let since = recovery.time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        RecoveryBlock {
            reason: U32::new(recovery.reason as u32),
            reserved: U32::ZERO,
            seconds: U64::new(since.as_secs()),
            end: U64::new(recovery.end.get()),
            durable: U64::new(recovery.durable.get()),
            cut_bytes: U64::new(recovery.cut_bytes),
            padded_bytes: U64::new(recovery.padded_bytes),
            from: U64::new(recovery.from.get()),
        }
    }

    fn to_recovery(self) -> Option<Recovery> {
        let since = Duration::from_secs(self.seconds.get());
        Some(Recovery {
            end: Lsn::new(self.end.get()),
            durable: Lsn::new(self.durable.get()),
            cut_bytes: self.cut_bytes.get(),
            padded_bytes: self.padded_bytes.get(),
            from: Lsn::new(self.from.get()),
            reason: RecoveryReason::of_number(self.reason.get())?,
            time: SystemTime::UNIX_EPOCH.checked_add(since)?,
        })
    }
}

impl Identity {
    /// The block as it is in a file.
    pub fn to_bytes(&self) -> [u8; IDENTITY_LEN] {
        let mut rewinds = [RewindBlock::default(); REWINDS_MAX];
        for (block, rewind) in rewinds.iter_mut().zip(&self.rewinds) {
            let Rewind { after, epoch, lsn } = *rewind;
            *block =
                RewindBlock { after: U64::new(after), epoch: U64::new(epoch), lsn: U64::new(lsn) };
        }
        if let Some(lost) = self.lost {
            rewinds[REWINDS_MAX - 1] = RewindBlock::of_lost(lost);
        }
        let mut block = Block {
            magic: MAGIC,
            check: U32::ZERO,
            reserved: U32::ZERO,
            number: U64::new(self.number),
            id: self.id.to_bytes(),
            epoch: U64::new(self.epoch),
            tag: U64::new(self.tag),
            recovery: self.recovery.map_or_else(RecoveryBlock::new_zeroed, RecoveryBlock::of),
            rewinds,
            cut_at: U64::new(self.cut.at.get()),
            cut_checkpoint: U64::new(self.cut.checkpoint.get()),
        };
        block.check = U32::new(checksum::crc32c(block.as_bytes()));
        zerocopy::transmute!(block)
    }
}

#[cfg(test)]
mod tests;
