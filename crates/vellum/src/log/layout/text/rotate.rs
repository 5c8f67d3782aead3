//! Rotation: by length, by time, or by a call of `rotate`.
//!
//! A reservation that would end behind the limit of its segment, or start before `closed_before`,
//! starts at the next segment, exactly as one that does not fit: its writer skips the rest,
//! makes and names the next file, and cuts the old one to its text. No writer waits for another,
//! nothing is moved, and a file is not touched any more once what was reserved in it is published.
//!
//! Zeros are written ahead of the tail of a text log only as far as its pace needs: other tools
//! that read the newest file see them.
//!
//! A clock that is put back, or on and back again, costs a rotation or makes one too many: the next
//! moment is found anew as soon as it is more than a period ahead.
//!
//! **If the process dies here**: between `closed_before` and `rotate_at`, the next one finds the
//! moment still past, and a newer file than that, and only sets the next moment.

use std::time::Duration;

use crate::log::layout::helped;
use crate::log::layout::text::{TextLog, TextSpace, TextWriter};
use crate::log::ready::{RoomMaker, space};
use crate::log::state::attachment::{AfterPublish, Space};
use crate::log::state::{newest, place};
use crate::options::policy::Policy;
use crate::segment::listing::Listing;
use crate::shared::files::Newest;
use crate::shared::tail_word;
use crate::sys::clock;
use crate::{Error, ErrorKind, Lsn, Result};

impl TextLog<'_> {
    /// Has a text log continue in a new file at the next append.
    pub(crate) fn rotate(self) -> Result<()> {
        if !self.core.files.geometry.layout.rotates() {
            let message = "a framed log does not rotate; `trim` drops what is not needed any more";
            return Err(Error::new(ErrorKind::Unsupported, message).at_path(&self.core.files.dir));
        }
        let writer = self.core.writer()?;
        let prepare = writer.lock_prepare()?;
        self.core.check_words()?;
        newest::leave(&prepare);
        Ok(())
    }

    /// Position beyond which the next file is to be made; found out where it is not known.
    fn edge(self) -> u64 {
        let words = self.core.words();
        let edge = words.files.rule.edge().unwrap_or(0);
        let tail = tail_word::tail(words);
        if edge != 0 || words.allocated_end() <= tail.get() {
            return edge;
        }
        let edge = self.core.files.segment_of(tail).get()
            + self.newest_room().saturating_sub(self.core.ready.window.most());
        words.files.rule.set_edge(edge);
        edge
    }

    /// Up to where zeros are to be written: a window ahead of the tail, within what records go to.
    fn zeros_end(self) -> u64 {
        if !space::needs_zeros(self.core) {
            return 0;
        }
        let tail = tail_word::tail(self.core.words());
        (tail.get() + self.core.ready.window.bytes()).min(helped::zeros_limit(self.core))
    }
}

impl TextSpace<'_> {
    /// Stores the first moment behind `time`, and the one before.
    pub(crate) fn set_moment(self, policy: &Policy, time: u64) {
        let rule = &self.prepare.writer.core.words().files.rule;
        let moment = next_moment(policy, time);
        let every = policy.rotate_every.map_or(0, |every| every.as_secs());
        rule.set_period(moment.saturating_sub(every)..moment);
    }

    /// Stores how much of the newest segment records go to: the rest of the policy's limit after
    /// the files that it continues.
    pub(crate) fn set_limit(self, policy: &Policy) {
        let core = self.prepare.writer.core;
        let files = &core.words().files;
        let before = files.names.newest().map_or(0, |newest| newest.group_bytes);
        // At least something, because 0 means no limit.
        let left = |limit: u64| limit.saturating_sub(before).max(1).min(core.files.capacity());
        files.rule.set_limit(policy.rotate_bytes.map(left));
    }

    /// Creates text segments from `allocated` until `end` is allocated, for a record of `len` bytes
    /// that ends there; all or none.
    #[cold]
    pub(crate) fn allocate_text(self, allocated: u64, end: Lsn, len: u64) -> Result<()> {
        let core = self.prepare.writer.core;
        // No file for a log that is gone: another one may have taken its place.
        place::require(core)?;
        let words = core.words();
        let left_over = words.files.names.newest().map_or(Lsn::ZERO, |newest| newest.first);
        let mut next = self.next_name(allocated, len)?;
        let is_continuation = next.is_continuation;
        loop {
            if let Err(error) = self.name_next(next) {
                // A file that is left keeps its name, so that the next one gets no second file
                // there.
                if RoomMaker::of(self.prepare).unallocate(allocated, next.first.get()) {
                    words.files.names.forget();
                }
                return Err(error);
            }
            words.count_segment();
            let segment_end = core.files.segment_end(next.first);
            if segment_end >= end {
                break;
            }
            // A record that does not fit continues in the next.
            let group_bytes = next.group_bytes.saturating_add(core.files.capacity());
            next = Newest { first: segment_end, is_continuation: true, group_bytes, ..next };
        }
        if left_over > next.first {
            self.remove_behind(next.first);
        }
        if !is_continuation {
            // The limit will be that of the new file, where the one before may have room.
            words.files.rule.leave(Lsn::new(allocated));
        }
        self.set_limit(&words.files.policy.load().unwrap_or_default());
        let newest = next.first.get();
        let next = newest + core.files.capacity();
        let edge =
            newest + TextLog::of(core).newest_room().saturating_sub(core.ready.window.most());
        words.files.rule.set_edge(edge);
        words.set_allocated_end(next);
        self.point_to_newest();
        Ok(())
    }
}

impl TextSpace<'_> {
    /// Removes the files behind the one at `first`, the newest first: a process made them for a
    /// longer record and died, and they would get a second name later.
    fn remove_behind(self, first: Lsn) {
        let dir = &self.prepare.writer.core.files.dir;
        let Ok(listing) = Listing::read(dir) else { return };
        let behind = listing.files.iter().rev().take_while(|file| file.first > first);
        behind.for_each(|file| _ = file.remove(dir));
    }
}

impl TextWriter<'_> {
    /// Leaves the file that is being written if its time is over.
    #[inline]
    pub(crate) fn look_at_clock(self) {
        if let Some(period) = self.writer.core.words().files.rule.period()
            && !period.contains(&clock::seconds())
        {
            self.leave_by_time();
        }
    }

    #[cold]
    fn leave_by_time(self) {
        let words = self.writer.core.words();
        let Ok(prepare) = self.writer.lock_prepare() else { return };
        let Some(rotate_at) = words.files.rule.rotate_at() else { return };
        let now = clock::seconds();
        // A file that got its first record since then is the new one already. A name from the
        // future tells nothing.
        let is_new = |time| (rotate_at..=now).contains(&time);
        let newest = words.files.names.newest();
        let newest = newest.filter(|newest| !newest.is_continuation && is_new(newest.time));
        if now >= rotate_at && newest.is_none() {
            newest::leave(&prepare);
        }
        TextSpace::of(&prepare).set_moment(&words.files.policy.load().unwrap_or_default(), now);
    }

    /// Up to where records end that have nothing prepared: a window of zeros, or the file that
    /// comes next.
    #[inline]
    pub(crate) fn prepared_limit(self, is_ready: bool) -> u64 {
        let core = self.writer.core;
        let words = core.words();
        let edge = words.files.rule.edge().unwrap_or(0);
        match is_ready && space::needs_zeros(core) {
            true => edge.min(words.prepared_end(true).saturating_sub(core.ready.window.bytes())),
            false => edge,
        }
    }

    /// Prepares what was noted.
    pub(crate) fn prepare_text(self, space: Space, after: &mut AfterPublish) {
        let core = self.writer.core;
        let Space { end, is_ready, .. } = space;
        let edge = TextLog::of(core).edge();
        let helpers = &self.writer.attachment.helpers;
        let is_near = || core.ready_end().get() < end.get() + core.ready.window.bytes();
        if helpers.ask(helped::asks_next(core, end)) && end.get() <= edge && !is_near() {
            return;
        }
        let wants_zeros = is_ready && TextLog::of(core).zeros_end() > core.ready_end().get();
        if self.writer.attachment.backs_off_at(end) || !(end.get() > edge || wants_zeros) {
            return;
        }
        let Some(prepare) = self.writer.try_lock_prepare() else { return };
        core.ready.window.adapt(tail_word::tail(core.words()));
        // Others may have gone on meanwhile.
        let zeros_end = if is_ready { TextLog::of(core).zeros_end() } else { 0 };
        let prepared = core
            .check_words()
            .and_then(|()| RoomMaker::of(&prepare).make_ready_to(Lsn::new(zeros_end)))
            .and_then(|()| match end.get() > edge {
                true => TextSpace::of(&prepare).make_next().map(drop),
                false => Ok(()),
            });
        if prepared.is_err() {
            // A full disk is not asked again for every record.
            self.writer.attachment.back_off(Lsn::new(end.get() + core.ready.window.most() / 8));
        }
        after.pause = after.pause.max(core.ready.pace.due());
    }
}

/// The first moment behind `time` at which the log continues in a new file, in seconds since 1970;
/// 0 for never.
fn next_moment(policy: &Policy, time: u64) -> u64 {
    let Some(every) = policy.rotate_every.as_ref().map(Duration::as_secs).filter(|s| *s > 0) else {
        return 0;
    };
    let phase = policy.rotate_offset.as_secs() % every;
    let since = (time % every + every - phase) % every;
    time.saturating_add(every - since)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::policy::PolicyUpdate;

    #[test]
    fn moments_are_multiples_of_the_period_moved_by_the_offset() {
        let day = 86_400;
        let moment = |every, offset, time| {
            let (every, offset) = (Duration::from_secs(every), Duration::from_secs(offset));
            let update = PolicyUpdate {
                rotate_every: Some(every),
                rotate_offset: Some(offset),
                ..PolicyUpdate::default()
            };
            next_moment(&update.applied_to(Policy::default()), time)
        };
        assert_eq!(moment(day, 0, 0), day, "what begins at a moment lasts until the next");
        assert_eq!(moment(day, 0, day - 1), day);
        assert_eq!(moment(day, 0, day), 2 * day);
        assert_eq!(moment(day, 22 * 3600, day), day + 22 * 3600, "midnight two hours east");
        assert_eq!(moment(day, 22 * 3600, day + 22 * 3600), 2 * day + 22 * 3600);
        // 1970-01-01 was a Thursday, 1970-01-05 a Monday.
        assert_eq!(moment(7 * day, 4 * day, 0), 4 * day);
        assert_eq!(moment(7 * day, 4 * day, 4 * day), 11 * day);
        assert_eq!(moment(day, 3 * day + 5, 10), day + 5, "an offset longer than the period");
        assert_eq!(moment(3600, 0, u64::MAX), u64::MAX);
        assert_eq!(next_moment(&Policy::default(), 5), 0);
    }
}
