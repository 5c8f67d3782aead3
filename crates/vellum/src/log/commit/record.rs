//! Commit records: the frame at the end of each group of a framed log, which tells recovery what
//! was durable before it.
//!
//! The leader puts a commit record at the tail and takes everything up to its end as the group.
//! Writers that are in the middle of an append in front of it are waited for a short while, without
//! the commit lock. If they do not come to an end (one may be stopped), the group ends at the
//! published end, and the commit record belongs to a later one: no process puts another there
//! before it is published. So between two commit records there are at most one group and the
//! appends in progress when the second was put there.
//!
//! Recovery has to trust the records that no commit record vouches for yet: the last group of each
//! lane. A long group is therefore followed by a commit record at once.
//!
//! **If the process dies here**: a commit record in flight is padded like any record. One that is
//! published and not noted is one too many.

use crate::format::commit_record::{CommitRecord, RECORD_LEN};
use crate::log::append::Appender;
use crate::log::append::fill::Filler;
use crate::log::append::reserve::{Placement, Reserved};
use crate::log::commit::Leader;
use crate::log::layout::{self, limits};
use crate::log::ready::RoomMaker;
use crate::log::state::core::Core;
use crate::shared::commit::{self, CommitLock};
use crate::shared::lock::Until;
use crate::{Lsn, Result};

/// The result of putting a commit record at the tail.
pub(crate) enum Placed {
    /// It ends here.
    To(Lsn),
    /// It would end here, beyond what is ready.
    Beyond(Lsn),
}

/// Whether a commit record ends at `tail` that says all that one behind it would say. Everything
/// before `tail` is durable.
pub(crate) fn is_at_end(core: &Core, tail: Lsn) -> Result<bool> {
    let at = Lsn::new(tail.get().saturating_sub(RECORD_LEN));
    if at < core.begin() {
        return Ok(false);
    }
    let mut bytes = [0; RECORD_LEN as usize];
    let count = core.open_to_read(core.files.segment_of(at))?.read(at, &mut bytes)?;
    let found = CommitRecord::parse(core.files.codec, at, &bytes[..count]);
    Ok(found == Some(CommitRecord { durable: at, ..newest(core) }))
}

/// The content of a commit record now.
fn newest(core: &Core) -> CommitRecord {
    let commits = &core.words().commits;
    let (durable, checkpoint) = (commit::durable(commits), commits.checkpoint());
    CommitRecord { durable, begin: core.begin(), checkpoint }
}

impl<'a> Leader<'a> {
    /// Puts a commit record at the tail, if there is room for it in the ready space: at the start
    /// of the next segment where the tail's has not enough left. Padded to a block boundary if
    /// other groups are on their way.
    pub(crate) fn write_commit_record(self, lock: &CommitLock<'a>) -> Result<Placed> {
        let capacity = self.writer.core.files.capacity();
        let block = if lock.is_crowded() { self.writer.core.commits.block } else { 1 };
        let record_len = |offset: u64| (offset + RECORD_LEN).next_multiple_of(block) - offset;
        let len_at = |start: Lsn| match start.get() % capacity {
            offset if offset + RECORD_LEN <= capacity => record_len(offset),
            offset => capacity - offset + record_len(0),
        };
        if !self.writer.core.has_mapping() {
            limits::check_size_limit(self.writer.core)?;
        }
        let appender = Appender::of(self.writer);
        let mut slot = appender.take_slot()?;
        let grant = match appender.reserve_ready(&mut slot, len_at)? {
            Reserved::Granted(grant) => grant,
            Reserved::Beyond(end) => {
                appender.end_use(&mut slot);
                return Ok(Placed::Beyond(end));
            }
        };
        let range = grant.range;
        let segment_end = self.writer.core.files.segment_end(range.start);
        let is_skipped = segment_end.get() < range.start.get() + RECORD_LEN;
        let at = if is_skipped { segment_end } else { range.start };
        let is_mapped = self.writer.core.has_mapping();
        appender.fill_reserved(&mut slot, Placement { grant, at }, is_mapped, |filler, at| {
            self.fill_commit_record(filler, at, range.end())
        })?;
        appender.publish(&mut slot);
        slot.let_go();
        lock.note_record(range.end());
        Ok(Placed::To(range.end()))
    }

    /// Puts a commit record at `at`, and a pad from there to `end`.
    fn fill_commit_record(self, filler: &mut Filler<'_>, at: Lsn, end: Lsn) -> Result<()> {
        let core = self.writer.core;
        let record = newest(core).to_frame(core.files.codec, at);
        let pad_at = Lsn::new(at.get() + RECORD_LEN);
        let pad = (end > pad_at)
            .then(|| core.files.codec.pad(pad_at, end.get() - pad_at.get()).to_bytes());
        let pad = pad.as_ref().map_or(&[][..], |pad| &pad[..]);
        filler.bytes(at, &[&record, pad])
    }

    /// Makes space ready up to `end`, where a commit record is to be.
    pub(crate) fn extend_for_record(self, end: Lsn, until: Until) -> Result<()> {
        let prepare = self.writer.lock_prepare_until(until)?;
        self.writer.core.check_words()?;
        layout::allocate_to(&prepare, end, 0)?;
        RoomMaker::of(&prepare).make_ready_for_record(end)
    }
}
