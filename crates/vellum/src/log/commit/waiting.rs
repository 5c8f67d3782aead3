//! Waiting for the writers in front of the wanted end, and for a commit record to be published; and
//! work while the device writes.

use std::time::{Duration, Instant};

use crate::log::append::Appender;
use crate::log::commit::{Commit, Leader};
use crate::log::layout;
use crate::log::ready::space::PAGE_BYTES;
use crate::log::repair::pad;
use crate::log::state::attachment::AfterPublish;
use crate::shared::lock::Until;
use crate::shared::{event_count, primitive, tail_word};
use crate::{Lsn, Result};

/// How long to sleep before checking whether the writers are alive: a death wakes no waiter.
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
    /// Makes ready what appends will need next, where records wait in a stage: a thread whose
    /// commit waits for the device has time, and between two groups others wait for it. Returns
    /// whether that was due.
    pub(crate) fn prepare_meanwhile(self) -> bool {
        let core = self.writer.core;
        let tail = tail_word::tail(core.words()).get();
        // Long records are written by system call, and leave no more than a page ready.
        let is_stored_to = core.ready_end().get() > tail + PAGE_BYTES;
        if core.commits.stage.is_none() || !is_stored_to {
            return false;
        }
        // As an append that is a window further on.
        let end = Lsn::new(tail + core.ready.window.bytes());
        let mut after = AfterPublish::default();
        layout::look_ahead(self.writer, end, 0, true, &mut after);
        let is_due = after.is_anything();
        if is_due {
            Appender::of(self.writer).run_after_publish(&mut after);
        }
        is_due
    }

    /// Waits until everything before `wanted` is published: a process is in the middle of an
    /// append, or died there.
    pub(crate) fn wait_for_writers(self, end: Lsn, wanted: Lsn, until: Until) -> Result<()> {
        let words = self.writer.core.words();
        let (rings, _) = event_count::prepare_wait(&words.event_count);
        // No event reports a group that others have begun meanwhile.
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
    /// The event count stays unarmed: appends without a pause would ring it for every record.
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

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use vellum_testing::counts::moved_bytes;

    use super::*;
    use crate::Options;
    use crate::log::append::Append;
    use crate::log::open::enter;

    /// Bytes that this thread has written by system calls, where the kernel counts them.
    fn written() -> Option<u64> {
        moved_bytes().map(|(_, written)| written)
    }

    #[test]
    fn a_thread_that_waits_for_the_device_makes_the_next_window_of_a_stage() {
        for (options, is_due) in [(Options::wal(), true), (Options::events(), false)] {
            let dir = tempfile::tempdir().unwrap();
            let log = enter::open(&dir.path().join("log"), &options).unwrap();
            let append = || Append::of(&log).append_record(&[b'x'; 100]).unwrap();
            append();
            let writer = log.writer().unwrap();
            assert_eq!(Leader::of(writer).prepare_meanwhile(), is_due);
            if !is_due {
                continue;
            }
            assert!(!Leader::of(writer).prepare_meanwhile(), "once is enough");
            let (until, before) = (log.ready_end(), written());
            let window = log.ready.window.bytes();
            assert!(until.get() >= tail_word::tail(log.words()).get() + 2 * window);
            while tail_word::tail(log.words()).get() + window + 200 < until.get() {
                append();
            }
            assert_eq!(written(), before, "appends found it");
            assert!(Leader::of(writer).prepare_meanwhile() && log.ready_end() > until);
            Append::of(&log).append_record(&vec![b'x'; 1 << 20]).unwrap();
            assert!(!Leader::of(writer).prepare_meanwhile(), "long records need no zeros");
        }
    }
}
