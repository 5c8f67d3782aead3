//! Removing the oldest segments of a framed log, as its policy says.
//!
//! Done by the process that made a new segment, and by one that opens the log. Only whole segments
//! go, never the one that is written, and nothing from the checkpoint on, nor what a cursor holds.
//!
//! **How old a segment is**: each time, the segment that is written gets a note of the time, if it
//! has none. All records before that segment are older than the note. The time of a file would not
//! do: it may have been preallocated, used before, or copied.
//!
//! **If the process dies here**: as for `trim`. A note that is missing is made later, and only
//! makes records look younger.

use std::time::Duration;

use crate::files::frames::{self, Scan};
use crate::files::view::Still;
use crate::files::window::Window;
use crate::log::keep::beginning;
use crate::log::keep::cursors::file::CursorFile;
use crate::log::layout::framed::{FrameWriter, Frames};
use crate::log::state::place;
use crate::options::policy::Policy;
use crate::shared::files::RemovalRule;
use crate::shared::{commit, tail_word};
use crate::sys::clock;
use crate::{Lsn, Result};

impl Frames<'_> {
    /// The first position of the segments that may take so many bytes.
    fn first_by_bytes(self, limit: u64) -> Lsn {
        let tail = tail_word::tail(self.core.words()).get();
        Lsn::new(tail.saturating_sub(limit).next_multiple_of(self.core.files.capacity()))
    }

    /// The first position of the segments that are not too old, up to `written`, the one that
    /// records go to.
    fn first_by_age(self, age: Duration, written: Lsn) -> Result<Lsn> {
        self.note_time(written)?;
        let now = clock::seconds();
        let mut first = self.core.files.segment_of(self.core.begin());
        let mut next = first;
        while next < written {
            next = self.core.files.segment_end(next);
            // Where it is not noted, that of a later one is late enough.
            let noted = self.core.files.noted_time(next)?;
            let Some(time) = noted.filter(|time| clock::may_be_right(*time, now)) else { continue };
            if time.saturating_add(age.as_secs()) > now {
                break;
            }
            first = next;
        }
        Ok(first)
    }

    /// Up to where records may go whatever their size and age: they are published, have arrived in
    /// their file, and their user does not recover from them.
    fn last_to_remove(self) -> Lsn {
        let words = self.core.words();
        let published = tail_word::published(words).get();
        let durable = || commit::durable(&words.commits).get();
        let arrived = self.core.commits.stage.as_ref().map_or(published, |_| durable());
        match words.commits.checkpoint() {
            Lsn::ZERO => Lsn::new(published.min(arrived)),
            // Its commit record may be on the way, or its process dead. The newest that has arrived
            // carries the one before.
            checkpoint => checkpoint.min(Lsn::new(published.min(durable().saturating_sub(1)))),
        }
    }

    /// Where a record starts: at the start of the segment of `lsn`, or of one before it; `begin` if
    /// that comes first. A record that is longer than a segment goes with its last one.
    fn start_at_or_before(self, lsn: Lsn, begin: Lsn) -> Result<Lsn> {
        let files = &self.core.files;
        let mut window = Window::new(Still::of(files));
        let end = tail_word::published(self.core.words());
        let mut lsn = files.segment_of(lsn);
        while lsn > begin {
            let is_start = |found| matches!(found, Scan::Frame { .. });
            if lsn == end || is_start(frames::look(files, &mut window, lsn, end)?) {
                return Ok(lsn);
            }
            lsn = Lsn::new(lsn.get() - files.capacity());
        }
        Ok(begin)
    }
}

impl FrameWriter<'_> {
    /// Removes the segments that are not to be kept; returns how many.
    pub(crate) fn remove_old_segments(self, policy: &Policy) -> Result<u64> {
        let core = self.writer.core;
        let last = Frames::of(core).last_to_remove();
        let by_bytes =
            policy.retain_bytes.map_or(Lsn::ZERO, |limit| Frames::of(core).first_by_bytes(limit));
        let by_age = match policy.retain_age {
            Some(age) => Frames::of(core).first_by_age(age, core.files.segment_of(last))?,
            None => Lsn::ZERO,
        };
        let first = by_bytes.max(by_age).min(last);
        if core.files.segment_of(first) <= core.begin() {
            return Ok(0);
        }
        core.check_words()?;
        // Another log may have taken the place.
        place::require(core)?;
        // Before the lock, which writers need.
        let holding = CursorFile::of(core).sync_holding_cursors()?;
        let prepare = self.writer.lock_prepare()?;
        let first = first.min(CursorFile::of(core).held_from(holding)?);
        let (before, begin) =
            (core.begin(), Frames::of(core).start_at_or_before(first, core.begin())?);
        if begin <= before {
            return Ok(0);
        }
        let removed = beginning::drop_before(self.writer, prepare, begin)?;
        self.count_removed(removed, before, by_bytes);
        Ok(removed)
    }

    /// Counts removed segments, from `before` on, by the rule that each went by.
    fn count_removed(self, removed: u64, before: Lsn, by_bytes: Lsn) {
        let first = self.writer.core.files.segment_of(before).get();
        for index in 0..removed {
            let is_too_much = first + index * self.writer.core.files.capacity() < by_bytes.get();
            let rule = if is_too_much { RemovalRule::Bytes } else { RemovalRule::Age };
            self.writer.core.words().removed.count(rule, self.writer.core.files.capacity());
        }
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use std::sync::Arc;

    use crate::log::append::Append;
    use crate::log::commit::Commit;
    use crate::log::open::enter;
    use crate::{Fill, Options, Tuning};

    #[test]
    fn a_checkpoint_that_is_not_committed_yet_removes_no_commit_record_of_the_one_before() {
        let dir = tempfile::tempdir().unwrap();
        let tuning = Tuning::new().segment_capacity_bytes(16 << 10).fill(Fill::Mapped);
        let options = Options::events().tuning(tuning).retain_bytes(16 << 10);
        let log = Arc::new(enter::open(&dir.path().join("log"), &options).unwrap());
        let append = || Append::of(&log).append_record(&[5; 600]).unwrap();
        let first = append();
        Commit::of(&log).set_checkpoint(first).unwrap();
        let last = (0..100).fold(first, |_, _| append());
        // As a process does that dies then.
        log.words().commits.set_checkpoint(last);
        assert!((0..100).all(|_| append() > last));
        assert!(log.begin() <= first, "{} is kept", log.begin());
        Commit::of(&log).set_checkpoint(last).unwrap();
        assert!((0..100).all(|_| append() > last));
        assert!(log.begin() > first, "then it goes");
    }
}
