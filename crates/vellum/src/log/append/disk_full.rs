//! Appends on a full disk: an append returns the error, waits, or drops the record and reports that
//! later.
//!
//! **Waiting** holds nothing that others need. A process that removes files wakes those that wait;
//! space that comes from elsewhere is noticed by looking again.
//!
//! **Dropping** counts in a shared word, and looks for space now and then (`shared::full`). The
//! next append of any process that finds space writes a line with the number, in one reservation
//! with its own record, so the line is not there without it and is right before it. `told` ≤
//! `dropped`, and both only grow.
//!
//! **If the process dies here**: holding the lock, it may have published the line and not raised
//! `told`. The next holder looks at `line_at` whether the line is in the log, and raises `told` if
//! it is. So each dropped record is reported exactly once.

use std::time::Duration;

use crate::error::FULL;
use crate::format::text;
use crate::log::append::general::Text;
use crate::log::append::{Append, Appender};
use crate::log::commit::Commit;
use crate::log::keep::retention;
use crate::log::repair::pad;
use crate::log::state::holds::HoldKind;
use crate::log::state::{busy, place, poison, wait};
use crate::shared::full::Way;
use crate::shared::tail_word;
use crate::sys::clock;
use crate::{Error, ErrorKind, Layout, Lsn, OnFull, OnStageFull, Result};

/// How often to look for space that no event reports: each look asks the filesystem for a segment.
const LOOK_AGAIN: Duration = Duration::from_millis(50);

/// Whether space may come for this.
fn is_full(error: &Error) -> bool {
    FULL.iter().any(|errno| error.raw_os_error() == Some(errno.raw_os_error()))
}

impl Append<'_> {
    /// Appends one record; on a full disk, as this process chose.
    #[inline]
    pub(crate) fn append_record(self, record: &[u8]) -> Result<Lsn> {
        let answer = match self.core.files.geometry.layout {
            Layout::Framed => self.append_short::<true>(record),
            _ => self.append_short::<false>(record),
        };
        match answer {
            Some(Ok(lsn)) => Ok(lsn),
            answer => self.append_unusual(record, answer.and_then(Result::err)),
        }
    }

    /// Appends a record that is not a usual one, or that was refused with `error`.
    #[cold]
    fn append_unusual(self, record: &[u8], error: Option<Error>) -> Result<Lsn> {
        let Some(error) = error else { return self.append_parts(&[record]) };
        busy::step_back_if_lost(self.core);
        self.append_refused(&[record], error)
    }

    /// Appends one record given in parts; on a full disk, as this process chose.
    #[inline]
    pub(crate) fn append_parts(self, parts: &[&[u8]]) -> Result<Lsn> {
        if self.core.choices.on_full == OnFull::Drop {
            return self.append_or_drop(parts);
        }
        match self.append_once(parts) {
            Err(error) => self.append_refused(parts, error),
            answer => answer,
        }
    }

    /// Appends one record given in parts, if there is space.
    #[inline]
    pub(crate) fn append_once(self, parts: &[&[u8]]) -> Result<Lsn> {
        let core = self.core;
        let len: u64 = parts.iter().map(|part| part.len() as u64).sum();
        self.check_record_len(len)?;
        match core.files.geometry.layout {
            Layout::Framed => self.append_framed(parts, len),
            _ => self.append_text(Text { parts, len, records: 1 }),
        }
    }

    /// Appends text, behind a line that reports dropped records.
    #[inline]
    pub(crate) fn append_text(self, text: Text<'_>) -> Result<Lsn> {
        if text.len == 0 {
            return self.core.attachment().map(|_| tail_word::tail(self.core.words()));
        }
        if self.core.words().full.has_untold() {
            return self.append_behind_line(text);
        }
        self.append_bytes(text)
    }

    /// The result of an append whose record was refused with `error`.
    #[cold]
    pub(crate) fn append_refused(self, parts: &[&[u8]], error: Error) -> Result<Lsn> {
        if self.may_commit_first(&error) {
            return self.retry_when_full(|| self.append_once(parts));
        }
        if !is_full(&error) {
            return Err(error);
        }
        retention::apply(self.core.writer()?);
        match self.core.choices.on_full {
            OnFull::Block => self.retry_when_full(|| self.append_once(parts)),
            // An append that drops does not come here.
            OnFull::Error | OnFull::Drop => Err(error),
        }
    }

    /// Appends one record given in parts, or drops it where there is no space: at once where others
    /// have just looked for some in vain.
    pub(crate) fn append_or_drop(self, parts: &[&[u8]]) -> Result<Lsn> {
        let words = &self.core.words().full;
        let len: u64 = parts.iter().map(|part| part.len() as u64).sum();
        let way = if len == 0 { Way::Open } else { words.way(len, clock::micros) };
        if way == Way::Shut {
            self.check_record_len(len)?;
            self.core.attachment()?;
            poison::check(self.core)?;
            place::check(self.core)?;
            return Ok(self.drop_record());
        }
        match self.append_once(parts) {
            Err(error) if is_full(&error) => {
                words.shut_way(len, clock::micros());
                // Opens the way if this log had files to remove.
                retention::apply(self.core.writer()?);
                Ok(self.drop_record())
            }
            Ok(at) if way == Way::Trying => {
                words.open_way();
                Ok(at)
            }
            answer => answer,
        }
    }

    /// Counts a record that is dropped.
    fn drop_record(self) -> Lsn {
        self.core.words().full.count_drop();
        Lsn::ZERO
    }

    /// Repeats an attempt that finds the disk full, if this process chose to wait, or the stage, if
    /// it chose to commit.
    pub(crate) fn retry_when_full<T>(self, mut attempt: impl FnMut() -> Result<T>) -> Result<T> {
        let words = &self.core.words().full;
        let until = wait::deadline(self.core);
        loop {
            let seen = words.removals();
            match attempt() {
                Err(error)
                    if self.core.choices.on_full == OnFull::Block
                        && is_full(&error)
                        && !wait::is_over(until) =>
                {
                    words.wait_for_removal(seen, LOOK_AGAIN);
                    retention::apply(self.core.writer()?);
                }
                Err(error) if self.may_commit_first(&error) => {
                    Commit::of(self.core).commit_for_room(until)?;
                }
                answer => return answer,
            }
        }
    }

    /// Whether a commit makes space for a record that was refused with `error`.
    fn may_commit_first(self, error: &Error) -> bool {
        let is_stage_full = error.kind() == ErrorKind::NoSpace && error.raw_os_error().is_none();
        is_stage_full && self.core.choices.on_stage_full == OnStageFull::Commit
    }

    /// Writes the line that reports dropped records, if one is due.
    pub(crate) fn tell_of_drops(self) -> Result<()> {
        // Frames have no room for such a line.
        if !self.core.files.geometry.layout.has_frames() && self.core.words().full.has_untold() {
            self.append_behind_line(Text { parts: &[], len: 0, records: 0 })?;
        }
        Ok(())
    }

    /// Appends text right behind the line that is due.
    #[cold]
    pub(crate) fn append_behind_line(self, text: Text<'_>) -> Result<Lsn> {
        let len = text.len;
        let writer = self.core.writer()?;
        let words = &self.core.words().full;
        let busy = writer.busy();
        let _held = writer.hold(HoldKind::DroppedRecords, &busy)?;
        Appender::of(writer).finish_telling()?;
        let (told, dropped) = (words.told(), words.dropped());
        if dropped <= told {
            return if len == 0 {
                Ok(tail_word::tail(self.core.words()))
            } else {
                self.append_bytes(text)
            };
        }
        let line = text::dropped(dropped - told);
        let line_len = line.len() as u64;
        if len > 0 && line_len + len > self.core.files.capacity() {
            // Together they would be torn apart at the end of the segment.
            let alone = Text { parts: &[line.as_bytes()], len: line_len, records: 0 };
            self.append_line(alone, dropped)?;
            return self.append_bytes(text);
        }
        let parts: Vec<&[u8]> =
            [line.as_bytes()].into_iter().chain(text.parts.iter().copied()).collect();
        let both = Text { parts: &parts, len: line_len + len, ..text };
        let at = self.append_line(both, dropped)?;
        Ok(Lsn::new(at.get() + line_len))
    }

    /// Appends text of which the first part is the line after which `dropped` records are reported.
    fn append_line(self, text: Text<'_>, dropped: u64) -> Result<Lsn> {
        let words = &self.core.words().full;
        let Text { parts, len, records } = text;
        let at = self.append_with(records, len, |filler, at| {
            words.begin_line(at, dropped);
            filler.bytes(at, parts)
        });
        words.end_line(at.is_ok().then_some(dropped));
        at
    }

    /// Whether `line` is at `at`; records are reported once more where that cannot be read.
    fn has_line(self, at: Lsn, line: &str) -> bool {
        let core = self.core;
        let end = at.get().saturating_add(line.len() as u64);
        if at < core.begin() || end > tail_word::published(core.words()).get() {
            return false;
        }
        let mut bytes = vec![0; line.len()];
        let read = core
            .open_to_read(core.files.segment_of(at))
            .and_then(|segment| segment.read(at, &mut bytes));
        read.is_ok() && bytes == line.as_bytes()
    }
}

impl Appender<'_> {
    /// Finds out whether a line is in the log whose writer died before it could note that. The lock
    /// is held.
    fn finish_telling(self) -> Result<()> {
        let words = &self.writer.core.words().full;
        let Some((at, line_told)) = words.line() else { return Ok(()) };
        // Afterwards the line is published, or padded over.
        pad::repair(self.writer)?;
        let told = words.told();
        let is_there = line_told > told
            && Append::of(self.writer.core).has_line(at, &text::dropped(line_told - told));
        words.end_line(is_there.then_some(line_told));
        Ok(())
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;
    use crate::log::open::enter;
    use crate::log::state::core::Core;
    use crate::{Options, Tuning};

    /// A log in which a process was killed that had to report three records and had written `line`
    /// so far.
    fn left_by_the_dead(dir: &tempfile::TempDir, line: &str) -> Core {
        let options = Options::mapped_text().tuning(Tuning::new().segment_capacity_bytes(4096));
        let log = enter::open(&dir.path().join("log"), &options).unwrap();
        let text = Text { parts: &[line.as_bytes()], len: line.len() as u64, records: 1 };
        let at = Append::of(&log).append_bytes(text).unwrap();
        let words = &log.words().full;
        (0..3).for_each(|_| words.count_drop());
        words.begin_line(at, 3);
        log
    }

    fn lines_after_one_more(line: &str) -> usize {
        let dir = tempfile::tempdir().unwrap();
        let log = left_by_the_dead(&dir, line);
        Append::of(&log).append_parts(&[b"more\n"]).unwrap();
        let words = &log.words().full;
        assert!(!words.has_untold() && words.line().is_none());
        let text = std::fs::read(log.segment_path(Lsn::new(4096))).unwrap();
        let text = String::from_utf8(text).unwrap();
        assert!(text.contains("more\n"));
        text.matches("~ vellum: 3 records dropped: ").count()
    }

    #[test]
    fn a_line_whose_writer_died_before_noting_it_is_not_written_again() {
        assert_eq!(lines_after_one_more(&text::dropped(3)), 1);
    }

    #[test]
    fn a_line_that_was_padded_over_is_written_again() {
        let padded = text::marker(Some(60), 60, "their writer died");
        assert_eq!(lines_after_one_more(std::str::from_utf8(&padded).unwrap()), 1);
    }

    #[test]
    fn a_line_is_not_torn_apart_by_the_record_behind_it() {
        let dir = tempfile::tempdir().unwrap();
        let log = left_by_the_dead(&dir, "x\n");
        let long = vec![b'y'; 4090];
        let at = Append::of(&log).append_parts(&[&long]).unwrap();
        assert_eq!(at.get() % 4096, 0, "at the start of a segment of its own");
    }
}
