//! Where a reader starts.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::files::window::Window;
use crate::log::read::reader::{Reader, beyond_the_end, not_a_start, trimmed};
use crate::log::repair::read_limit::ReadLimit;
use crate::log::state::core::Core;
use crate::log::state::identity;
use crate::segment::kept::KeptFiles;
use crate::shared::tail_word;
use crate::{Lsn, Result};

impl Reader {
    pub(crate) fn new(core: Arc<Core>, from: Lsn) -> Result<Reader> {
        let mut reader = Reader::unchecked_at(core, Lsn::ZERO);
        reader.seek(from)?;
        Ok(reader)
    }

    /// At `position`, unchecked: for a caller that reads no record there.
    pub(crate) fn unchecked_at(core: Arc<Core>, position: Lsn) -> Reader {
        let epoch = identity::live_epoch(&core);
        let mut reader = Reader::with(Window::new(Arc::clone(&core)), core, epoch);
        reader.go_to(position);
        reader
    }

    /// For the one record at `lsn`, of files that the log keeps open. `None` where something is
    /// unusual. Whether a frame starts there is left to the caller.
    pub(crate) fn of_one(core: Arc<Core>, lsn: Lsn, files: &KeptFiles) -> Option<Reader> {
        let (epoch, layout) = (identity::live_epoch(&core), core.files.geometry.layout);
        let mut reader = Reader::with(Window::of_kept(Arc::clone(&core), epoch), core, epoch);
        // Now, so that looking for the end later does not have the record read once more.
        reader.read_limit = ReadLimit::of(&reader.core);
        reader.core.check_words().ok()?;
        let begin = reader.core.begin();
        let is_there = begin <= lsn && lsn < reader.read_limit.end;
        if !is_there || !lsn.get().is_multiple_of(layout.alignment()) {
            return None;
        }
        // With the byte before it, which ends a line.
        reader.window.jump(files.last_len.load(Ordering::Relaxed) + 1);
        if !layout.has_frames() && lsn > begin && !reader.starts_at(lsn).ok()? {
            return None;
        }
        reader.go_to(lsn);
        Some(reader)
    }

    fn with(window: Window, core: Arc<Core>, epoch: u64) -> Reader {
        Reader {
            window,
            core,
            position: Lsn::ZERO,
            read_limit: ReadLimit::default(),
            skips_damage: false,
            gaps: Vec::new(),
            is_in_line: false,
            held_back: (Lsn::ZERO, 0),
            last_len: 0,
            epoch,
            is_durable: false,
            stop: Lsn::MAX,
        }
    }

    /// Continues at `to`, where a record starts, or at the oldest record for [`Lsn::ZERO`].
    ///
    /// This is how to read many records at random: the files that were read last stay open, and
    /// little is read beyond the record. A reader that stays reads more at a time.
    ///
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let log = vellum::Options::events().open(dir.path().join("app.log")).unwrap();
    /// let places = [log.append(b"one")?, log.append(b"two")?];
    /// let mut reader = log.reader(vellum::Lsn::ZERO)?;
    /// for lsn in places.into_iter().rev() {
    ///     reader.seek(lsn)?;
    ///     assert_eq!(reader.next()?.unwrap().lsn, lsn);
    /// }
    /// # Ok::<(), vellum::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As for [`Log::reader`](crate::Log::reader). The position stays as it was.
    ///
    /// # Cost
    ///
    /// One `pread` of little more than the last record, unless the record was read ahead, and
    /// another one if it is longer; opening a file where it is in none of the last four segments,
    /// whose files the reader keeps open.
    pub fn seek(&mut self, to: Lsn) -> Result<()> {
        let core = &self.core;
        core.check_words()?;
        // Before the tail is read: `check_epoch` sees a later change.
        let epoch = identity::live_epoch(core);
        let begin = core.begin();
        let position = if to == Lsn::ZERO { begin } else { to };
        if position < begin {
            return Err(trimmed(core, position, begin));
        }
        let tail = tail_word::tail(core.words());
        if position > tail {
            return Err(beyond_the_end(core, position, tail));
        }
        if epoch != self.epoch {
            // Truncated since: there may be other bytes and other files by now.
            (self.epoch, self.read_limit) = (epoch, ReadLimit::default());
            self.window.close();
        }
        if self.last_len > 0 {
            // With the byte before it, which ends a line.
            self.window.jump(self.last_len + 1);
        }
        if to > begin && !self.starts_at(to)? {
            return Err(not_a_start(&self.core, to));
        }
        self.go_to(position);
        self.window.set_row_end(self.row_end());
        Ok(())
    }
}
