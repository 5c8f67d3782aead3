//! Reading records from any position, in any process, while others append.
//!
//! A reader takes nothing from the writers: it looks at the published end, reads files, and sleeps
//! on a futex when there is no more. Where a dead writer holds the end back, a reader of a log that
//! was opened for writing pads the hole; one of a log that was opened for reading goes past it
//! (`sight`).
//!
//! **Trimming**: files can go, or be used again, under a reader. It checks `begin` whenever what
//! it read makes no sense, as a sequence lock would.

mod lines;
mod seen;
pub(crate) mod start;

use std::sync::Arc;

use crate::format::envelope::Envelope;
use crate::format::frame::{HEADER_LEN, Kind};
use crate::log::layout::framed::frames::{self, Found};
use crate::log::read::gap::{self, Gap};
use crate::log::read::record::Record;
use crate::log::read::window::Window;
use crate::log::repair::sight::Sight;
use crate::log::state::core::Core;
use crate::log::state::names::CONTROL_NAME;
use crate::shared::tail_word;
use crate::{Error, ErrorKind, Layout, Lsn, Result};

/// A place in a log, and the way to the next record.
///
/// Made by [`Log::reader`](crate::Log::reader). A reader keeps the log open, and may be moved to
/// another thread.
pub struct Reader {
    pub(crate) core: Arc<Core>,
    pub(crate) window: Window,
    pub(crate) position: Lsn,
    /// The published end as last seen, and what to pass over before it.
    pub(crate) sight: Sight,
    /// Whether to go on behind what cannot be read, and what that was.
    skips_damage: bool,
    gaps: Vec<Gap>,
    /// Whether what was read last is a line without its end.
    is_in_line: bool,
    /// The position that a living writer held back when last checked, and until when that is
    /// believed, in microseconds of the machine's own clock.
    held_back: (Lsn, u64),
    /// Bytes of the log that the last record took: the next one may take as many.
    last_len: u64,
    /// The log's epoch when it was last looked at.
    pub(crate) epoch: u64,
    /// Whether the log ends for this reader where its durable part does.
    pub(crate) is_durable: bool,
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
        let epoch = core.live_epoch();
        let mut reader = Reader {
            window: Window::new(Arc::clone(&core)),
            core,
            position: Lsn::ZERO,
            sight: Sight::default(),
            skips_damage: false,
            gaps: Vec::new(),
            is_in_line: false,
            held_back: (Lsn::ZERO, 0),
            last_len: 0,
            epoch,
            is_durable: false,
        };
        reader.seek(from)?;
        Ok(reader)
    }

    /// Goes on at `to`, where a record starts, or at the oldest record for [`Lsn::ZERO`].
    ///
    /// This is how to read many records at random: the files that were read last stay open, and
    /// little is read beyond the record. Who stays and reads on reads more at a time.
    ///
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let log = vellum::Options::new().open(dir.path().join("app.log")).unwrap();
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
    /// another one if it is longer; opening a file where it lies in none of the last four segments,
    /// whose files the reader keeps open.
    pub fn seek(&mut self, to: Lsn) -> Result<()> {
        let core = &self.core;
        core.check_words()?;
        // Before the tail is read: what is seen later is seen by `check_epoch`.
        let epoch = core.live_epoch();
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
            (self.epoch, self.sight) = (epoch, Sight::default());
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
        Ok(())
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
    /// copies from a mapping.
    #[allow(clippy::should_implement_trait, reason = "an iterator cannot lend its items")]
    pub fn next(&mut self) -> Result<Option<Record<'_>>> {
        match self.locate()? {
            Some(place) => self.lend(place).map(Some),
            None => Ok(None),
        }
    }

    /// As [`seek`](Reader::seek), where the caller knows that a record starts, or inside of a text
    /// log.
    pub(crate) fn go_to(&mut self, position: Lsn) {
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
        self.last_len = header_len as u64 + len;
        let bytes = self.window.fetch(lsn, self.last_len, next)?;
        self.is_in_line = header_len == 0 && !bytes.ends_with(b"\n");
        let (head, payload) = bytes.split_at(header_len);
        let envelope = head.get(HEADER_LEN..).and_then(Envelope::of);
        Ok(Record { lsn, next_lsn: next, payload, envelope })
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

    /// Goes on behind what cannot be read, if that is wanted; else the error.
    fn pass(&mut self, error: Error) -> Result<()> {
        if self.take_up_words() {
            // Who recovered the log has moved what is staged.
            return Ok(());
        }
        let error = self.unless_trimmed(error);
        if !self.skips_damage || error.kind() != ErrorKind::Corrupt {
            return Err(error);
        }
        let (from, end) = (self.position, self.sight.end);
        let (core, reason) = (&self.core, error.to_string());
        let gap = match core.geometry.layout {
            Layout::Text => gap::gap_at(core, from, end, reason),
            Layout::Framed => {
                let next = frames::find_next(&self.core, from, end)?.unwrap_or(end);
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
        let begin = words.begin();
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

pub(crate) fn not_a_start(core: &Core, lsn: Lsn) -> Error {
    let message = format!("no whole record starts at position {lsn}; use one that was returned");
    Error::new(ErrorKind::OutOfRange, message).at_path(&core.dir).at_lsn(lsn)
}

pub(crate) fn beyond_the_end(core: &Core, position: Lsn, tail: Lsn) -> Error {
    let message = format!("position {position} is beyond the end of the log, {tail}");
    Error::new(ErrorKind::OutOfRange, message).at_path(&core.dir).at_lsn(position)
}

pub(crate) fn truncated(core: &Core, position: Lsn, tail: Lsn) -> Error {
    let message = format!("position {position} has been truncated away; the log ends at {tail}");
    Error::new(ErrorKind::OutOfRange, message).at_path(&core.dir).at_lsn(position)
}

fn trimmed(core: &Core, position: Lsn, begin: Lsn) -> Error {
    let message = format!("position {position} has been trimmed away; the log begins at {begin}");
    Error::new(ErrorKind::Trimmed, message).at_path(&core.dir.join(CONTROL_NAME)).at_lsn(position)
}
