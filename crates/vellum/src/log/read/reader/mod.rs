//! Reading records from any position, in any process, while others append.
//!
//! A reader takes nothing from the writers: it looks at the published end, reads files, and sleeps
//! on a futex when there is no more. Where a dead writer holds the end back, a reader of a log that
//! was opened for writing pads the hole; one of a log that was opened for reading goes past it
//! (`read_limit`).
//!
//! **Trimming**: files can go, or be used again, under a reader. It checks `begin` whenever what
//! it read makes no sense, as a sequence lock would.

mod damage;
mod lines;
mod next;
mod seek;
mod seen;
pub(crate) mod start;

use std::sync::Arc;

use crate::files::gap::Gap;
use crate::files::names::CONTROL_NAME;
use crate::files::window::Window;
use crate::log::repair::read_limit::ReadLimit;
use crate::log::state::core::Core;
use crate::{Error, ErrorKind, Lsn};

/// A place in a log, and the way to the next record.
///
/// Made by [`Log::reader`](crate::Log::reader). A reader keeps the log open, and may be moved to
/// another thread.
///
/// ```
/// # let dir = tempfile::tempdir().unwrap();
/// # let path = dir.path().join("a.log");
/// # let log = vellum::Options::events().open(&path)?;
/// # log.append(b"one")?;
/// # log.append(b"two")?;
/// use std::time::Duration;
/// use vellum::{Lsn, Options};
///
/// // In this program or another one: reading takes the right to read, and no more.
/// let log = Options::default().read_only(true).open(&path)?;
/// let mut reader = log.reader(Lsn::ZERO)?; // from the oldest record
/// while let Some(record) = reader.next()? {
///     println!("{}: {:?}", record.lsn, record.payload);
/// }
/// // The end, for now: wait for more.
/// while let Some(record) = reader.follow(Some(Duration::from_millis(10)))? {
///     println!("{}: {:?}", record.lsn, record.payload);
/// }
/// # assert_eq!(reader.position(), log.published());
/// # Ok::<(), vellum::Error>(())
/// ```
pub struct Reader {
    pub(crate) core: Arc<Core>,
    pub(crate) window: Window,
    pub(crate) position: Lsn,
    /// The published end as last seen, and the ranges to pass over before it.
    pub(crate) read_limit: ReadLimit,
    /// Whether to continue behind unreadable ranges, and which these were.
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
    /// Where it stops, if the log continues there.
    pub(crate) stop: Lsn,
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
    /// The same reader, which goes no further than [`Log::durable`](crate::Log::durable): it
    /// returns a record only after some process has committed it.
    ///
    /// Its records survive a power cut, and the loss of the control file, as everything that was
    /// [committed](crate::Log::commit). Only [`Log::truncate`](crate::Log::truncate) takes it back.
    /// It commits nothing itself: where no process commits, it returns nothing new. After a reboot,
    /// until a process opens the log for writing, it returns only records that a commit record
    /// vouches for, and nothing of a text log.
    ///
    /// [`follow`](Reader::follow) returns [`ErrorKind::Poisoned`] when everything durable was
    /// returned and nothing more will be until all processes have closed the log. The reader may
    /// be asked again afterwards.
    ///
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let log = vellum::Options::events().open(dir.path().join("app.log")).unwrap();
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
    /// Nothing for appends. Each batch of commits does one more load, and wakes the followers.
    #[must_use]
    pub fn durable(mut self) -> Reader {
        self.is_durable = true;
        self.read_limit = ReadLimit::default();
        self.window.forget();
        self
    }

    /// The same reader, which leaves no trace in the page cache when it reads closed segments:
    /// pages that were not there before are dropped behind it. For reading a log once and in order.
    pub(crate) fn leave_no_trace(mut self) -> Reader {
        self.window = self.window.leave_no_trace();
        self
    }

    /// Where the next record will be looked for: behind all that was returned or left out, and not
    /// behind a record that is to come. So it may be compared with the position of a record, and
    /// with where an end was.
    pub fn position(&self) -> Lsn {
        self.position
    }

    /// Has the reader stop at `end`: it returns the records that start before. There
    /// [`next`](Reader::next) returns `None`, and [`follow`](Reader::follow) does not wait; unlike
    /// at the end of the log, [`position`](Reader::position) is not before `end`. [`Lsn::MAX`]
    /// takes it back.
    ///
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let log = vellum::Options::events().open(dir.path().join("app.log"))?;
    /// log.append(b"one")?;
    /// let end = log.published();
    /// log.append(b"two")?;
    /// let mut reader = log.reader(vellum::Lsn::ZERO)?;
    /// reader.stop_at(end);
    /// assert_eq!(reader.into_iter().count(), 1);
    /// # Ok::<(), vellum::Error>(())
    /// ```
    pub fn stop_at(&mut self, end: Lsn) {
        self.stop = end;
        self.window.set_row_end(Lsn::ZERO);
    }

    /// Whether it has come to where it stops.
    pub(crate) fn is_at_stop(&self) -> bool {
        self.position >= self.stop
    }

    /// Whether to continue behind missing files and damaged ranges, instead of returning an error.
    /// Default: no. [`take_gaps`](Reader::take_gaps) returns the skipped ranges.
    pub fn skip_damage(&mut self, skips: bool) {
        self.skips_damage = skips;
    }

    /// The gaps that this reader has skipped since the last call, oldest first.
    pub fn take_gaps(&mut self) -> Vec<Gap> {
        std::mem::take(&mut self.gaps)
    }

    /// As [`seek`](Reader::seek), where the caller knows that a record starts, or inside of a text
    /// log.
    pub(crate) fn go_to(&mut self, position: Lsn) {
        self.position = position;
        self.is_in_line = false;
    }

    /// The end of the records that this reader sees now.
    pub(crate) fn published(&self) -> Lsn {
        ReadLimit::of(&self.core).end
    }
}

impl std::fmt::Debug for Reader {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Reader").field("position", &self.position).finish_non_exhaustive()
    }
}

pub(crate) fn not_a_start(core: &Core, lsn: Lsn) -> Error {
    let message = format!("no whole record starts at position {lsn}; use one that was returned");
    Error::new(ErrorKind::OutOfRange, message).at_path(&core.files.dir).at_lsn(lsn)
}

pub(crate) fn beyond_the_end(core: &Core, position: Lsn, tail: Lsn) -> Error {
    let message = format!("position {position} is beyond the end of the log, {tail}");
    Error::new(ErrorKind::OutOfRange, message).at_path(&core.files.dir).at_lsn(position)
}

pub(crate) fn truncated(core: &Core, position: Lsn, tail: Lsn) -> Error {
    let message = format!("position {position} has been truncated away; the log ends at {tail}");
    Error::new(ErrorKind::OutOfRange, message).at_path(&core.files.dir).at_lsn(position)
}

fn trimmed(core: &Core, position: Lsn, begin: Lsn) -> Error {
    let message = format!("position {position} has been trimmed away; the log begins at {begin}");
    Error::new(ErrorKind::Trimmed, message)
        .at_path(&core.files.dir.join(CONTROL_NAME))
        .at_lsn(position)
}
