//! Going on in a new file: by length, by time, or because somebody asked.
//!
//! A reservation that would end behind the limit of its segment, or start before `closed_before`,
//! starts at the next segment, exactly as one that does not fit: whoever makes it skips the rest,
//! makes and names the next file, and cuts the old one to its text. No writer waits for another,
//! nothing is moved, and a file is not touched any more once what was reserved in it is published.
//!
//! Zeros are written ahead of the tail of a text log only as far as its pace asks for: whoever
//! reads the newest file with other tools sees them.
//!
//! A clock that is put back, or on and back again, costs a rotation or makes one too many: the next
//! moment is found anew as soon as it lies more than a period ahead.
//!
//! **If the process dies here**: between `closed_before` and `rotate_at`, the next one finds the
//! moment still past, and a newer file than that, and only sets the next moment.

use std::time::Duration;

use crate::log::layout::text::{TextLog, TextSpace, TextWriter};
use crate::log::ready::RoomMaker;
use crate::log::state::attachment::{Later, Space};
use crate::options::policy::Policy;
use crate::shared::files::Newest;
use crate::shared::tail_word;
use crate::sys::clock;
use crate::{Error, ErrorKind, Layout, Lsn, Result};

/// Zeros written ahead of the tail of a text log that is written slowly.
const WINDOW_BYTES_MIN: u64 = 16 << 10;
/// A window that is used up within this time is followed by one of twice the length.
const FAST_MICROS: u64 = 1_000;
/// One that lasts longer than this is followed by one of the least.
const SLOW_MICROS: u64 = 8_000;

impl TextLog<'_> {
    /// Up to which offset records go that start at `start`, in a text log; 0 where its segment has
    /// been left.
    #[inline]
    pub(crate) fn limit_at(self, start: Lsn) -> u64 {
        if self.core.words().files.rule.is_left(start) { 0 } else { self.newest_room() }
    }

    /// Bytes of the newest segment of a text log that records go to.
    #[inline]
    pub(crate) fn newest_room(self) -> u64 {
        let limit = self.core.words().files.rule.limit();
        limit.map_or(self.core.capacity(), |limit| limit.min(self.core.capacity()))
    }

    /// Has a text log go on in a new file at the next append.
    pub(crate) fn rotate(self) -> Result<()> {
        if self.core.geometry.layout == Layout::Framed {
            let message = "a framed log does not rotate; `trim` drops what is not needed any more";
            return Err(Error::new(ErrorKind::Unsupported, message).at_path(&self.core.dir));
        }
        let writer = self.core.writer()?;
        let prepare = writer.lock_prepare()?;
        self.core.check_words()?;
        TextSpace::of(&prepare).leave_segment();
        Ok(())
    }

    /// Whether the policy, or somebody who asked for it, has a record of `len` bytes start a file
    /// of its own at `first`, behind files with `group_bytes`. Otherwise the one before is only
    /// full, and goes on there.
    pub(crate) fn is_over(self, first: Lsn, group_bytes: u64, len: u64) -> bool {
        let words = self.core.words();
        let policy = words.files.policy.load().unwrap_or_default();
        let is_left = words.files.rule.left_end() >= first;
        is_left || policy.rotate_bytes.is_some_and(|limit| group_bytes.saturating_add(len) > limit)
    }

    /// Position beyond which the next file is to be made; found out where it is not known.
    fn edge(self) -> u64 {
        let words = self.core.words();
        let edge = words.files.rule.edge().unwrap_or(0);
        let tail = tail_word::tail(words);
        if edge != 0 || words.allocated_end() <= tail.get() {
            return edge;
        }
        let edge = self.core.segment_of(tail).get()
            + self.newest_room().saturating_sub(self.core.ready.prefault_bytes);
        words.files.rule.set_edge(edge);
        edge
    }

    /// Up to where zeros are to be written: a window ahead of the tail, within what records go to.
    fn zeros_end(self) -> u64 {
        if !self.core.needs_zeros() {
            return 0;
        }
        let words = self.core.words();
        let tail = tail_word::tail(words);
        let limit = self.core.segment_of(tail).get() + self.limit_at(tail);
        let allocated = words.allocated_end();
        (tail.get() + self.window()).min(limit).min(allocated)
    }

    /// Bytes of zeros to keep ahead of the tail.
    #[inline]
    pub(crate) fn window(self) -> u64 {
        let window = self.core.words().files.rule.window();
        window.clamp(
            WINDOW_BYTES_MIN.min(self.core.ready.prefault_bytes),
            self.core.ready.prefault_bytes,
        )
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

    /// Has the next record go to a new segment, unless this one is empty.
    fn leave_segment(self) {
        let words = self.prepare.writer.core.words();
        let tail = tail_word::tail(words);
        let is_full = tail.get() == words.allocated_end();
        if is_full || !tail.get().is_multiple_of(self.prepare.writer.core.capacity()) {
            let end = if is_full { tail } else { self.prepare.writer.core.segment_end(tail) };
            words.files.rule.leave(end);
        }
    }

    /// Stores how much of the newest segment records go to: what the files that it continues leave
    /// of the policy's limit.
    pub(crate) fn set_limit(self, policy: &Policy) {
        let files = &self.prepare.writer.core.words().files;
        let before = files.names.newest().map_or(0, |newest| newest.group_bytes);
        // At least something, because 0 stands for no limit.
        let left = |limit: u64| {
            limit.saturating_sub(before).max(1).min(self.prepare.writer.core.capacity())
        };
        files.rule.set_limit(policy.rotate_bytes.map(left));
    }

    /// Creates text segments from `allocated` until `end` is allocated, for a record of `len` bytes
    /// that ends there; all or none.
    #[cold]
    pub(crate) fn allocate_text(self, allocated: u64, end: Lsn, len: u64) -> Result<()> {
        let words = self.prepare.writer.core.words();
        let left_over = words.files.names.newest().map_or(Lsn::ZERO, |newest| newest.first);
        let mut next = self.next_name(allocated, len)?;
        let is_continuation = next.is_continuation;
        loop {
            if let Err(error) = self.name_next(next) {
                // What is left keeps its name, so that the next one gets no second file there.
                if RoomMaker::of(self.prepare).unallocate(allocated, next.first.get()) {
                    words.files.names.forget();
                }
                return Err(error);
            }
            words.count_segment();
            let segment_end = self.prepare.writer.core.segment_end(next.first);
            if segment_end >= end {
                break;
            }
            // What does not fit goes on in the next.
            let group_bytes = next.group_bytes.saturating_add(self.prepare.writer.core.capacity());
            next = Newest { first: segment_end, is_continuation: true, group_bytes, ..next };
        }
        // Somebody made them for a longer record and died: they would get a second name later.
        RoomMaker::of(self.prepare).unallocate(
            self.prepare.writer.core.segment_end(next.first).get(),
            self.prepare.writer.core.segment_end(left_over).get(),
        );
        if !is_continuation {
            // The limit will be that of the new file, where the one before may have room.
            words.files.rule.leave(Lsn::new(allocated));
        }
        self.set_limit(&words.files.policy.load().unwrap_or_default());
        let newest = next.first.get();
        let next = newest + self.prepare.writer.core.capacity();
        let edge = newest
            + TextLog::of(self.prepare.writer.core)
                .newest_room()
                .saturating_sub(self.prepare.writer.core.ready.prefault_bytes);
        words.files.rule.set_edge(edge);
        words.set_allocated_end(next);
        self.point_to_newest();
        Ok(())
    }

    /// Chooses how much to write now, by how long it has lasted last time.
    pub(crate) fn adapt_window(self) {
        if self.prepare.writer.core.geometry.layout == Layout::Framed {
            return;
        }
        let files = &self.prepare.writer.core.words().files;
        let now = clock::micros();
        let lasted = now.saturating_sub(files.names.zeroed_at(now));
        let window = match lasted {
            ..FAST_MICROS => (TextLog::of(self.prepare.writer.core).window() * 2)
                .min(self.prepare.writer.core.ready.prefault_bytes),
            SLOW_MICROS.. => WINDOW_BYTES_MIN.min(self.prepare.writer.core.ready.prefault_bytes),
            _ => TextLog::of(self.prepare.writer.core).window(),
        };
        files.rule.set_window(window);
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
            TextSpace::of(&prepare).leave_segment();
        }
        TextSpace::of(&prepare).set_moment(&words.files.policy.load().unwrap_or_default(), now);
    }

    /// Notes what is to be prepared before it is needed: a window of zeros, or the file that comes
    /// next.
    #[inline]
    pub(crate) fn look_ahead(self, end: Lsn, is_ready: bool, later: &mut Later) {
        let words = self.writer.core.words();
        let rule = &words.files.rule;
        let ahead = words.ahead_of(end, true);
        let wants_zeros = is_ready
            && ahead < TextLog::of(self.writer.core).window()
            && self.writer.core.needs_zeros();
        let wants_file = end.get() > rule.edge().unwrap_or(0);
        if (wants_zeros || wants_file) && !words.prepare.is_held() {
            later.space = Some(Space { end, ahead: 0, is_ready });
        }
    }

    /// Prepares what was noted.
    pub(crate) fn prepare_text(self, space: Space, later: &mut Later) {
        let Space { end, is_ready, .. } = space;
        let edge = TextLog::of(self.writer.core).edge();
        let wants_zeros = is_ready
            && TextLog::of(self.writer.core).zeros_end() > self.writer.core.ready_end().get();
        if self.writer.attachment.is_discouraged(end) || !(end.get() > edge || wants_zeros) {
            return;
        }
        let Some(prepare) = self.writer.try_lock_prepare() else { return };
        let mut prepared = self.writer.core.check_words();
        if is_ready {
            // Others may have gone on meanwhile.
            prepared = prepared.and_then(|()| {
                RoomMaker::of(&prepare)
                    .make_ready_to(Lsn::new(TextLog::of(self.writer.core).zeros_end()))
            });
        }
        if end.get() > edge {
            prepared = prepared.and_then(|()| TextSpace::of(&prepare).make_next().map(drop));
        }
        if prepared.is_err() {
            // A full disk is not asked again for every record.
            self.writer
                .attachment
                .discourage(Lsn::new(end.get() + self.writer.core.ready.prefault_bytes / 8));
        }
        later.pause = later.pause.max(prepare.writer.core.ready.pace.due());
    }
}

/// The first moment behind `time` at which the log goes on in a new file, in seconds since 1970; 0
/// for never.
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

    #[test]
    fn moments_are_multiples_of_the_period_moved_by_the_offset() {
        let day = 86_400;
        let moment = |every, offset, time| {
            let (every, offset) = (Duration::from_secs(every), Duration::from_secs(offset));
            let policy =
                Policy { rotate_every: Some(every), rotate_offset: offset, ..Policy::default() };
            next_moment(&policy, time)
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
