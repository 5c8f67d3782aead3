//! Removing the oldest segments of a framed log, as its policy says.
//!
//! Done by the process that made a new segment, and by one that opens the log. Only whole segments
//! go, never the one that is written, and nothing from the checkpoint on, nor what a cursor holds.
//!
//! **If the process dies here**: as for `trim`.

use std::sync::Arc;

use crate::log::core::{Core, bare_core};
use crate::log::framed::frames::{self, Found};
use crate::log::trim;
use crate::log::window::Window;
use crate::log::writer::Writer;
use crate::shared::files::RemovalRule;
use crate::shared::primitive::Ordering;
use crate::shared::{commit, tail_word};
use crate::{Lsn, Policy, Result};

impl Core {
    /// The first position that the policy keeps, in whole segments.
    fn first_to_keep(&self, policy: &Policy) -> Lsn {
        let words = self.words();
        let tail = tail_word::tail(words).get();
        let Some(limit) = policy.retain_bytes else { return Lsn::ZERO };
        let first = tail.saturating_sub(limit).next_multiple_of(self.capacity());
        let published = tail_word::published(words).get();
        // What is on its way to a file must arrive before the file goes.
        let durable =
            self.stage.as_ref().map_or(u64::MAX, |_| commit::durable(&words.commits).get());
        let checkpoint = words.commits.ends.checkpoint.load(Ordering::Acquire);
        let user = if checkpoint == 0 { u64::MAX } else { checkpoint };
        Lsn::new(first.min(published).min(durable).min(user))
    }

    /// Where a record starts: at the start of the segment of `lsn`, or of one before it; `begin` if
    /// that comes first. A record that is longer than a segment goes with its last one.
    fn start_at_or_before(&self, lsn: Lsn, begin: Lsn) -> Result<Lsn> {
        let bare = Arc::new(bare_core(&self.dir, &self.geometry));
        let mut window = Window::new(Arc::clone(&bare));
        let end = tail_word::published(self.words());
        let mut lsn = self.segment_of(lsn);
        while lsn > begin {
            if lsn == end
                || matches!(frames::look(&bare, &mut window, lsn, end)?, Found::Frame { .. })
            {
                return Ok(lsn);
            }
            lsn = Lsn::new(lsn.get() - self.capacity());
        }
        Ok(begin)
    }
}

impl Writer<'_> {
    /// Removes the segments that are not to be kept; returns how many.
    pub(crate) fn remove_old_segments(self, policy: &Policy) -> Result<u64> {
        let first = self.first_to_keep(policy);
        if self.segment_of(first) <= self.begin() {
            return Ok(0);
        }
        self.check_words()?;
        // Another log may have taken the place.
        self.require_place()?;
        // Before the lock, which writers need.
        let holding = self.sync_holding_cursors()?;
        let prepare = self.lock_prepare()?;
        let first = first.min(self.held_from(holding)?);
        let begin = self.start_at_or_before(first, self.begin())?;
        if begin <= self.begin() {
            return Ok(0);
        }
        let removed = trim::drop_before(self, prepare, begin)?;
        for _ in 0..removed {
            self.words().removed.count(RemovalRule::Bytes, self.capacity());
        }
        Ok(removed)
    }
}
