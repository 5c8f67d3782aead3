//! Records from the newest back to the oldest.
//!
//! Neither frames nor lines have pointers back. So this looks for a place where a record starts
//! (`files::starts`; in a text log, behind a newline), walks forward from there, and hands out
//! backwards the records that it passed. It remembers one position for each 64 KiB that it walked
//! over, and those of the records in 64 KiB: so its memory is bounded, and it reads each returned
//! byte three times at most.

use std::sync::Arc;

use crate::files::gap::Gap;
use crate::files::window::Window;
use crate::log::layout::framed::Frames;
use crate::log::read::reader::Reader;
use crate::log::state::core::Core;
use crate::record::OwnedRecord;
use crate::{ErrorKind, Lsn, Result};

/// Bytes between two remembered positions.
const PIECE: u64 = 64 << 10;

/// Records of a log, the newest first.
///
/// Made by [`Log::backwards`](crate::Log::backwards). It is over where the log begins, also if that
/// is trimmed meanwhile, and after an error.
///
/// ```
/// # let dir = tempfile::tempdir().unwrap();
/// # let log = vellum::Options::events().open(dir.path().join("a.log"))?;
/// # for number in 0..9 {
/// #     log.append(format!("record {number}").as_bytes())?;
/// # }
/// use vellum::Lsn;
///
/// let newest: Result<Vec<_>, _> = log.backwards(Lsn::MAX)?.take(2).collect();
/// let newest: Vec<_> = newest?.into_iter().map(|record| record.payload).collect();
/// assert_eq!(newest, [b"record 8", b"record 7"]);
/// # Ok::<(), vellum::Error>(())
/// ```
pub struct Backwards {
    core: Arc<Core>,
    reader: Reader,
    window: Window,
    /// Records from here on were returned, or are in `starts`.
    end: Lsn,
    /// Positions before `end` at which records start, one for each piece, the newest last.
    marks: Vec<Lsn>,
    /// Records behind the newest mark, the newest last.
    starts: Vec<Lsn>,
    is_over: bool,
}

impl Backwards {
    pub(crate) fn new(core: &Arc<Core>, before: Lsn) -> Result<Backwards> {
        let reader = Reader::new(Arc::clone(core), Lsn::ZERO)?;
        let end = before.min(reader.published());
        let window = Window::new(Arc::clone(core));
        let (marks, starts) = (Vec::new(), Vec::new());
        Ok(Backwards { core: Arc::clone(core), reader, window, end, marks, starts, is_over: false })
    }

    /// Whether to continue behind files that are gone and damaged ranges, instead of returning an
    /// error. Default: no. [`take_gaps`](Backwards::take_gaps) reports what was left out.
    pub fn skip_damage(&mut self, skips: bool) {
        self.reader.skip_damage(skips);
    }

    /// The gaps that were skipped since the last call. A gap may be reported more than once.
    pub fn take_gaps(&mut self) -> Vec<Gap> {
        self.reader.take_gaps()
    }

    fn step_back(&mut self) -> Result<Option<OwnedRecord>> {
        loop {
            if let Some(lsn) = self.starts.pop() {
                self.reader.go_to(lsn);
                return Ok(self.reader.next()?.map(OwnedRecord::from));
            }
            match self.marks.pop() {
                Some(mark) => self.list(mark)?,
                None if self.end <= self.core.begin() => return Ok(None),
                None => self.mark()?,
            }
        }
    }

    /// Lists the records from `mark` to `end`.
    fn list(&mut self, mark: Lsn) -> Result<()> {
        self.reader.go_to(mark);
        while let Some((lsn, _)) = self.reader.next_place()?.filter(|(lsn, _)| *lsn < self.end) {
            self.starts.push(lsn);
        }
        self.end = mark;
        Ok(())
    }

    /// Finds a start before `end`, and marks pieces from there on.
    fn mark(&mut self) -> Result<()> {
        let start = match self.core.files.geometry.layout.has_frames() {
            true => Frames::of(&self.core).start_before(&mut self.window, self.end)?,
            false => self.line_before(self.end)?,
        };
        self.marks.push(start);
        let mut newest = start;
        self.reader.go_to(start);
        while self.end.get().saturating_sub(newest.get()) > PIECE
            && let Some((lsn, _)) = self.reader.next_place()?.filter(|(lsn, _)| *lsn < self.end)
        {
            if lsn.get() - newest.get() >= PIECE {
                self.marks.push(lsn);
                newest = lsn;
            }
        }
        Ok(())
    }

    /// The start of a line before `end`, or where the log begins.
    fn line_before(&mut self, end: Lsn) -> Result<Lsn> {
        let begin = self.core.begin();
        let mut step = PIECE;
        while end.get().saturating_sub(begin.get()) > step {
            // The rest of a line ends where the next one starts.
            self.reader.go_to(Lsn::new(end.get() - step));
            let next = self.reader.next_place()?.map(|(_, next)| next);
            if let Some(next) = next.filter(|next| *next < end) {
                return Ok(next);
            }
            step = step.saturating_mul(8);
        }
        Ok(begin)
    }
}

impl Iterator for Backwards {
    type Item = Result<OwnedRecord>;

    fn next(&mut self) -> Option<Result<OwnedRecord>> {
        if self.is_over {
            return None;
        }
        let found = self.step_back().or_else(|error| match error.kind() {
            ErrorKind::Trimmed => Ok(None),
            _ => Err(error),
        });
        self.is_over = !matches!(found, Ok(Some(_)));
        found.transpose()
    }
}

impl std::fmt::Debug for Backwards {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Backwards").field("end", &self.end).finish_non_exhaustive()
    }
}
