//! Waiting for the writers in front of what is to be committed, and for a commit record to be
//! published.

use std::time::{Duration, Instant};

use crate::log::commit::{Commit, Leader};
use crate::log::repair::pad;
use crate::shared::lock::Until;
use crate::shared::{event_count, primitive, tail_word};
use crate::{Lsn, Result};

/// How long to sleep before asking whether those who write are alive: nobody rings for the dead.
pub(crate) const LOOK_FOR_THE_DEAD: Duration = Duration::from_millis(10);
/// How often to look for the writers in front of a commit record before sleeping: most are done
/// within microseconds.
const RECORD_LOOKS: u32 = 64;
/// How long to sleep between looks at them then.
const RECORD_LOOK_AGAIN: Duration = Duration::from_micros(50);

impl Commit<'_> {
    /// Whether everything before `end` is in a group.
    pub(crate) fn is_grouped(self, end: Lsn) -> bool {
        self.core.words().commits.grouped() >= end
    }
}

impl Leader<'_> {
    /// Waits until everything before `wanted` is published: somebody is in the middle of an
    /// append, or died there.
    pub(crate) fn wait_for_writers(self, end: Lsn, wanted: Lsn, until: Until) -> Result<()> {
        let words = self.writer.core.words();
        let (rings, _) = event_count::prepare_wait(&words.event_count);
        // Nobody rings for what others have begun meanwhile.
        if Commit::of(self.writer.core).is_grouped(end) || tail_word::published(words) >= wanted {
            return Ok(());
        }
        let since = Instant::now();
        event_count::wait(&words.event_count, rings, LOOK_FOR_THE_DEAD);
        if since.elapsed() < LOOK_FOR_THE_DEAD {
            return Ok(());
        }
        self.repair_what_holds_back(until)
    }

    /// Pads what a dead writer left in front of everything; notes that a living one is waited for.
    pub(crate) fn repair_what_holds_back(self, until: Until) -> Result<()> {
        tail_word::note_wait(self.writer.core.words());
        if pad::is_held_back_by_the_dead(self.writer) {
            pad::repair_until(self.writer, until)?;
        }
        Ok(())
    }

    /// Waits until the commit record that ends at `record_end` is published, for a while.
    ///
    /// The event count stays unarmed: those who append without a pause would ring it for every
    /// record.
    pub(crate) fn wait_for_record(self, end: Lsn, record_end: Lsn, until: Until) -> Result<()> {
        let core = self.writer.core;
        let words = core.words();
        let is_there =
            || Commit::of(core).is_grouped(end) || tail_word::published(words) >= record_end;
        for _ in 0..RECORD_LOOKS {
            if is_there() {
                return Ok(());
            }
            (0..8).for_each(|_| primitive::spin_loop());
        }
        let since = Instant::now();
        while !is_there() {
            if since.elapsed() >= LOOK_FOR_THE_DEAD {
                return self.repair_what_holds_back(until);
            }
            let rings = event_count::listen(&words.event_count);
            event_count::wait(&words.event_count, rings, RECORD_LOOK_AGAIN);
        }
        Ok(())
    }
}
