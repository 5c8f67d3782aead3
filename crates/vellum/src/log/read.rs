//! Reading records from any position, in any process, while others append.
//!
//! A reader takes nothing from the writers: it looks at the published end, reads files, and sleeps
//! on a futex when there is no more. Where a dead writer holds the end back, a reader of a log that
//! was opened for writing pads the hole; one of a log that was opened for reading goes past it
//! (`sight`).
//!
//! **Trimming**: files can go, or be used again, under a reader. It checks `begin` whenever what
//! it read makes no sense, as a sequence lock would.

use std::sync::Arc;

use crate::format::envelope::Envelope;
use crate::format::frame::{ALIGNMENT, HEADER_LEN, Kind};
use crate::log::core::Core;
use crate::log::framed::frames::{self, Found};
use crate::log::gap::{self, Gap};
use crate::log::names::CONTROL_NAME;
use crate::log::pad;
use crate::log::record::Record;
use crate::log::sight::Sight;
use crate::log::window::Window;
use crate::shared::primitive::Ordering;
use crate::shared::tail_word;
use crate::sys::clock;
use crate::{Error, ErrorKind, Layout, Lsn, Result};

/// How often to look whether a writer is done before checking whether it lives.
const GLANCES: u32 = 64;
/// How long a writer that was alive is believed to be, in microseconds.
const BELIEVED_MICROS: u64 = 100;

/// A place in a log, and the way to the next record.
///
/// Made by [`Log::reader`](crate::Log::reader). A reader keeps the log open, and may be moved to
/// another thread.
pub struct Reader {
    pub(super) core: Arc<Core>,
    pub(super) window: Window,
    pub(super) position: Lsn,
    /// The published end as last seen, and what to pass over before it.
    pub(super) sight: Sight,
    /// Whether to go on behind what cannot be read, and what that was.
    skips_damage: bool,
    gaps: Vec<Gap>,
    /// Whether what was read last is a line without its end.
    is_in_line: bool,
    /// The position that a living writer held back when last checked, and until when that is
    /// believed, in microseconds of the machine's own clock.
    held_back: (Lsn, u64),
    /// The log's epoch when it was last looked at.
    pub(super) epoch: u64,
    /// Whether the log ends for this reader where its durable part does.
    pub(super) is_durable: bool,
}

/// Where a record was found.
#[derive(Clone, Copy)]
pub(crate) struct Place {
    lsn: Lsn,
    next: Lsn,
    /// Bytes before the payload: header and envelope.
    header_len: usize,
    len: u64,
}

impl Reader {
    pub(crate) fn new(core: Arc<Core>, from: Lsn) -> Result<Reader> {
        let window = Window::new(Arc::clone(&core));
        Reader::with(window, core, from)
    }

    /// A reader for one record, which reads little ahead.
    pub(crate) fn of_one(core: Arc<Core>, lsn: Lsn) -> Result<Reader> {
        let window = Window::of_one(Arc::clone(&core));
        Reader::with(window, core, lsn)
    }

    fn with(window: Window, core: Arc<Core>, from: Lsn) -> Result<Reader> {
        core.check_words()?;
        // Before the tail is read: what is seen later is seen by `check_epoch`.
        let epoch = core.live_epoch();
        let begin = core.begin();
        let position = if from == Lsn::ZERO { begin } else { from };
        if position < begin {
            return Err(trimmed(&core, position, begin));
        }
        let tail = tail_word::tail(core.words());
        if position > tail {
            return Err(beyond_the_end(&core, position, tail));
        }
        let mut reader = Reader {
            core,
            window,
            position,
            sight: Sight::default(),
            skips_damage: false,
            gaps: Vec::new(),
            is_in_line: false,
            held_back: (Lsn::ZERO, 0),
            epoch,
            is_durable: false,
        };
        if from > begin && !reader.starts_at(from)? {
            return Err(not_a_start(&reader.core, from));
        }
        Ok(reader)
    }

    /// Whether one may start to read at `from`.
    fn starts_at(&mut self, from: Lsn) -> Result<bool> {
        let sight = Sight::of(&self.core);
        match sight.hole_at(from) {
            Some(hole) if self.core.geometry.layout == Layout::Framed => {
                Ok(hole.range.start == from)
            }
            Some(_) => Ok(true),
            None => starts_record_before(&self.core, &mut self.window, from, sight.end),
        }
    }

    /// The same reader, which goes no further than [`Log::durable`](crate::Log::durable): it
    /// returns a record only after some process has committed it.
    ///
    /// What it has returned survives a power cut, and the loss of the control file, as everything
    /// that was [committed](crate::Log::commit). Only [`Log::truncate`](crate::Log::truncate) takes
    /// it back. It commits nothing itself: where nobody commits, it returns nothing new. After a
    /// reboot, until a process opens the log for writing, it returns no more than a commit record
    /// vouches for, and nothing of a text log.
    ///
    /// [`follow`](Reader::follow) returns [`ErrorKind::Poisoned`] when everything durable was
    /// returned and nothing more will be until all processes have closed the log. The reader may
    /// be asked again afterwards.
    ///
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let log = vellum::Options::new().open(dir.path().join("app.log")).unwrap();
    /// let mut reader = log.reader(vellum::Lsn::ZERO)?.durable();
    /// let lsn = log.append(b"a record")?;
    /// assert!(reader.next()?.is_none());
    /// log.commit(lsn)?;
    /// assert_eq!(reader.next()?.unwrap().lsn, lsn);
    /// # Ok::<(), vellum::Error>(())
    /// ```
    ///
    /// # Cost
    ///
    /// Nothing for those who append. Each batch of commits does one more load, and wakes those who
    /// follow.
    #[must_use]
    pub fn durable(mut self) -> Reader {
        self.is_durable = true;
        self.sight = Sight::default();
        self.window.forget();
        self
    }

    /// Where the next record will be looked for.
    pub fn position(&self) -> Lsn {
        self.position
    }

    /// Whether to go on behind files that are gone and stretches that are damaged, instead of
    /// returning an error. Default: no. What was left out [`take_gaps`](Reader::take_gaps) tells.
    pub fn skip_damage(&mut self, skips: bool) {
        self.skips_damage = skips;
    }

    /// What this reader has left out since it was last asked, oldest first.
    pub fn take_gaps(&mut self) -> Vec<Gap> {
        std::mem::take(&mut self.gaps)
    }

    /// The next record, or `None` at the published end; later calls go on from there.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Trimmed`] when the position has been trimmed away meanwhile,
    /// [`ErrorKind::Corrupt`] for damage, with file and position, unless it is
    /// [skipped](Reader::skip_damage).
    ///
    /// # Cost
    ///
    /// One `pread` per 256 KiB, and a checksum of the record. A reader that keeps up with the
    /// writers of a mapped log, and whose log was opened for writing, makes no system call: it
    /// copies from a mapping. If something other than Vellum cuts the file at that moment, the
    /// process is killed by `SIGBUS`, as one that appends.
    #[allow(clippy::should_implement_trait, reason = "an iterator cannot lend its items")]
    pub fn next(&mut self) -> Result<Option<Record<'_>>> {
        match self.locate()? {
            Some(place) => self.lend(place).map(Some),
            None => Ok(None),
        }
    }

    /// Continues at `position`, where a record starts, or inside of a text log.
    pub(crate) fn seek(&mut self, position: Lsn) {
        self.position = position;
        self.is_in_line = false;
    }

    /// Where the next record is, and what follows it; passes it.
    pub(crate) fn next_place(&mut self) -> Result<Option<(Lsn, Lsn)>> {
        Ok(self.locate()?.map(|place| (place.lsn, place.next)))
    }

    /// The end of what this reader sees now.
    pub(crate) fn published(&self) -> Lsn {
        Sight::of(&self.core).end
    }

    /// Finds the next record and moves the position behind it.
    pub(crate) fn locate(&mut self) -> Result<Option<Place>> {
        match self.core.geometry.layout {
            Layout::Framed => self.next_frame(),
            Layout::Text => self.next_line(),
        }
    }

    /// The record at a place that was just found.
    pub(crate) fn lend(&mut self, place: Place) -> Result<Record<'_>> {
        let Place { lsn, next, header_len, len } = place;
        let bytes = self.window.fetch(lsn, header_len as u64 + len, next)?;
        self.is_in_line = header_len == 0 && !bytes.ends_with(b"\n");
        let (head, payload) = bytes.split_at(header_len);
        let envelope = head.get(HEADER_LEN..).and_then(Envelope::of);
        Ok(Record { lsn, next_lsn: next, payload, envelope })
    }

    /// Whether something is published beyond the position, which moves past what the dead had
    /// reserved.
    fn has_more(&mut self) -> Result<bool> {
        loop {
            if self.position >= self.sight.end && !self.sees_more()? {
                return Ok(false);
            }
            let Some(hole) = self.sight.hole_at(self.position) else { return Ok(true) };
            if hole.is_there(&self.core) {
                self.position = hole.range.end();
            } else {
                // Padded meanwhile: what stands there now counts.
                self.sight.holes.retain(|other| *other != hole);
                self.window.forget();
            }
        }
    }

    /// Looks for more beyond the position; a reader that may write pads what the dead left.
    fn sees_more(&mut self) -> Result<bool> {
        let is_at_tail = tail_word::tail(self.core.words()) == self.position;
        if is_at_tail && self.sight.end == self.position {
            // Who polls at the end reads one word, which only a reservation changes.
            return self.check_epoch().map(|()| false);
        }
        let is_held_back = self.is_held_back();
        if is_held_back && self.is_believed_alive() {
            return Ok(false);
        }
        self.look();
        self.check_epoch()?;
        if self.position < self.sight.end {
            return Ok(true);
        }
        let core = &self.core;
        let tail = tail_word::tail(core.words());
        if tail < self.position {
            return Err(truncated(&self.core, self.position, tail));
        }
        // Whoever commits pads for a durable reader.
        if is_held_back
            && self.sight.end < tail_word::tail(core.words())
            && core.writer.is_some()
            && !self.is_durable
            && pad::is_held_back_by_the_dead(core.writer()?)
        {
            pad::repair_with_space(core.writer()?)?;
            self.look();
        }
        if is_held_back {
            self.held_back = (self.position, clock::micros() + BELIEVED_MICROS);
        }
        Ok(self.position < self.sight.end)
    }

    /// Whether a reservation keeps records from this reader for longer than most appends take: what
    /// began a moment ago is not held against anybody, for checking liveness costs a few system
    /// calls.
    fn is_held_back(&self) -> bool {
        let words = self.core.words();
        (0..GLANCES).all(|_| {
            let (end, tail) = (tail_word::published(words), tail_word::tail(words));
            let is_in_flight = end <= self.position && end < tail;
            if is_in_flight {
                std::hint::spin_loop();
            }
            is_in_flight
        })
    }

    /// Whether a moment ago the writer was alive that holds back what starts at the position.
    fn is_believed_alive(&self) -> bool {
        self.held_back.0 == self.position && clock::micros() < self.held_back.1
    }

    /// Sees what there is now; what was read before may have changed.
    fn look(&mut self) {
        let end = self.sight.end;
        self.sight = match self.is_durable {
            true => Sight::of_durable(&self.core),
            false => Sight::of(&self.core),
        };
        if self.sight.end > end {
            self.window.forget_until(self.sight.end);
        }
        // The published end never goes back, but for a truncation, which shows in the tail.
        self.sight.end = self.sight.end.max(end);
    }

    pub(crate) fn core(&self) -> &Core {
        &self.core
    }

    fn next_frame(&mut self) -> Result<Option<Place>> {
        while self.has_more()? {
            let lsn = self.position;
            match frames::look(&self.core, &mut self.window, lsn, self.sight.end) {
                Ok(Found::Frame { kind: Kind::Record | Kind::Member, payload_len, next }) => {
                    self.position = next;
                    let envelope_len = self.core.geometry.envelope_len();
                    let header_len = HEADER_LEN + envelope_len;
                    let len = payload_len - envelope_len as u64;
                    return Ok(Some(Place { lsn, next, header_len, len }));
                }
                Ok(Found::Frame { next, .. }) => self.position = next,
                Ok(Found::Unwritten) => self.pass(self.damage("no record starts here"))?,
                Ok(Found::Invalid(reason)) => self.pass(self.damage(reason))?,
                Err(error) => self.pass(error)?,
            }
        }
        Ok(None)
    }

    fn next_line(&mut self) -> Result<Option<Place>> {
        while self.has_more()? {
            let lsn = self.position;
            match self.find_line() {
                Ok(Some((len, next))) => {
                    let begin = self.core.words().begin.load(Ordering::Acquire);
                    if lsn.get() < begin {
                        return Err(trimmed(&self.core, lsn, Lsn::new(begin)));
                    }
                    self.position = next;
                    return Ok(Some(Place { lsn, next, header_len: 0, len }));
                }
                // The end of a segment that was cut: go on at the next.
                Ok(None) => {
                    let end = self.core.segment_end(lsn);
                    if self.skips_damage && (self.is_in_line || lsn == self.core.segment_of(lsn)) {
                        self.gaps.extend(gap::gap_behind(&self.core, lsn, end));
                    }
                    self.position = end;
                }
                Err(error) => self.pass(error)?,
            }
        }
        Ok(None)
    }

    /// Length of the line at the position and where the next one starts; `None` at the end of a
    /// segment's text.
    fn find_line(&mut self) -> Result<Option<(u64, Lsn)>> {
        let (start, limit) = (self.position, self.sight.end);
        let mut searched = 0;
        let mut data_end = self.text_end(start)?;
        if start >= data_end {
            return Ok(None);
        }
        loop {
            let available = data_end.get() - start.get();
            let len = (searched * 2).max(4096).min(available);
            let bytes = self.window.fetch(start, len, limit)?;
            let newline = memchr::memchr(b'\n', &bytes[searched as usize..]);
            if let Some(offset) = newline {
                let len = searched + offset as u64 + 1;
                return Ok(Some((len, Lsn::new(start.get() + len))));
            }
            if (bytes.len() as u64) < len {
                let message = "the segment is shorter than what was published in it";
                return Err(Error::new(ErrorKind::Corrupt, message).at_lsn(start));
            }
            searched = len;
            if searched < available {
                continue;
            }
            // A full segment without a newline at its end: a line longer than a segment goes on.
            let is_full = data_end.get().is_multiple_of(self.core.capacity());
            if !is_full || data_end >= limit {
                return Ok(Some((len, data_end)));
            }
            let next_end = self.text_end(data_end)?;
            if next_end == data_end {
                return Ok(Some((len, data_end)));
            }
            data_end = next_end;
        }
    }

    /// Where the text of the segment that holds `lsn` ends, as far as it is published; or where
    /// something begins that a dead writer had reserved.
    fn text_end(&mut self, lsn: Lsn) -> Result<Lsn> {
        let mut holes = self.sight.holes.iter().filter(|hole| lsn < hole.range.end());
        let hole = holes.next().map_or(self.sight.end, |hole| hole.range.start.max(lsn));
        let first = self.core.segment_of(lsn);
        if hole < self.core.segment_end(lsn) {
            return Ok(hole);
        }
        let end = first.get() + self.window.segment_data_len(first)?;
        Ok(Lsn::new(end).min(hole))
    }

    /// Goes on behind what cannot be read, if that is wanted; else the error.
    fn pass(&mut self, error: Error) -> Result<()> {
        let error = self.unless_trimmed(error);
        if !self.skips_damage || error.kind() != ErrorKind::Corrupt {
            return Err(error);
        }
        let (from, end) = (self.position, self.sight.end);
        let (core, reason) = (&self.core, error.to_string());
        let gap = match core.geometry.layout {
            Layout::Text => gap::gap_at(core, from, end, reason),
            Layout::Framed => {
                let next = frames::find_next(&self.core, from, end).unwrap_or(end);
                gap::gap_between(core, from, next, reason)
            }
        };
        self.position = gap.to;
        self.gaps.push(gap);
        self.window.forget();
        Ok(())
    }

    fn damage(&self, reason: &'static str) -> Error {
        let core = &self.core;
        let first = core.segment_of(self.position);
        let path = core.segment_path(first);
        let offset = crate::format::segment::HEADER_LEN + self.position.get() - first.get();
        let message = format!("{reason}: position {}, byte {offset} of the file", self.position);
        Error::new(ErrorKind::Corrupt, message).at_path(&path).at_lsn(self.position)
    }

    /// The error, unless the explanation is that the position has been trimmed or cut away.
    fn unless_trimmed(&self, error: Error) -> Error {
        let words = self.core.words();
        let begin = Lsn::new(words.begin.load(Ordering::SeqCst));
        let tail = tail_word::tail(words);
        if self.position < begin {
            trimmed(&self.core, self.position, begin)
        } else if tail < self.sight.end {
            truncated(&self.core, self.position, tail)
        } else {
            error
        }
    }
}

impl std::fmt::Debug for Reader {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Reader").field("position", &self.position).finish_non_exhaustive()
    }
}

/// Whether a record starts at a published position, or may later.
///
/// A text log has no marks between its bytes, so any position in it will do. A reader there starts
/// at a line, though (`starts_line_before`).
pub(crate) fn starts_record(core: &Core, window: &mut Window, lsn: Lsn) -> Result<bool> {
    if core.geometry.layout == Layout::Text {
        return Ok(true);
    }
    starts_record_before(core, window, lsn, tail_word::published(core.words()))
}

/// The same, where everything is published before `published`.
fn starts_record_before(
    core: &Core,
    window: &mut Window,
    lsn: Lsn,
    published: Lsn,
) -> Result<bool> {
    if lsn >= published {
        return Ok(true);
    }
    if core.geometry.layout == Layout::Text {
        return Ok(starts_line(core, window, lsn));
    }
    if !lsn.get().is_multiple_of(ALIGNMENT) {
        return Ok(false);
    }
    let found = frames::look(core, window, lsn, published)?;
    Ok(matches!(found, Found::Frame { .. }))
}

/// Whether a line starts at a published position, or the text of its segment has ended there or
/// before. What cannot be read is left to the reader that starts there.
fn starts_line(core: &Core, window: &mut Window, lsn: Lsn) -> bool {
    let before = Lsn::new(lsn.get() - 1);
    let first = core.segment_of(before);
    let Ok(len) = window.segment_data_len(first) else { return true };
    let data_end = first.get() + len;
    let is_in_text = lsn.get() < data_end || lsn.get() == data_end && len == core.capacity();
    // A NUL is no part of a line: the rest of the segment was skipped.
    !is_in_text || before < core.begin() || {
        let byte = window.fetch(before, 1, lsn).unwrap_or_default();
        matches!(byte, b"\n" | b"\0" | b"")
    }
}

pub(crate) fn not_a_start(core: &Core, lsn: Lsn) -> Error {
    let message = format!("no whole record starts at position {lsn}; use one that was returned");
    Error::new(ErrorKind::OutOfRange, message).at_path(&core.dir).at_lsn(lsn)
}

pub(crate) fn beyond_the_end(core: &Core, position: Lsn, tail: Lsn) -> Error {
    let message = format!("position {position} is beyond the end of the log, {tail}");
    Error::new(ErrorKind::OutOfRange, message).at_path(&core.dir).at_lsn(position)
}

pub(super) fn truncated(core: &Core, position: Lsn, tail: Lsn) -> Error {
    let message = format!("position {position} has been truncated away; the log ends at {tail}");
    Error::new(ErrorKind::OutOfRange, message).at_path(&core.dir).at_lsn(position)
}

fn trimmed(core: &Core, position: Lsn, begin: Lsn) -> Error {
    let message = format!("position {position} has been trimmed away; the log begins at {begin}");
    Error::new(ErrorKind::Trimmed, message).at_path(&core.dir.join(CONTROL_NAME)).at_lsn(position)
}
