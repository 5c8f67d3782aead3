//! The handle of the process that ships the log.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::files::window::Window;
use crate::log::commit::Commit;
use crate::log::keep::cursors::cursor::Cursor;
use crate::log::layout::framed::Frames;
use crate::log::read::reader::start::starts_record;
use crate::log::ship::election;
use crate::log::ship::raw::{self, Piece, Raw};
use crate::log::ship::state::{self, ShipFault, ShipStatus};
use crate::log::ship::{hold, saved};
use crate::log::state::byte_lock::ByteLock;
use crate::log::state::core::Core;
use crate::log::state::place;
use crate::shared::participants::SHIPPER_BYTE;
use crate::shared::words::ShipWords;
use crate::shared::{commit, event_count};
use crate::{Error, ErrorKind, Lsn, Result};

/// Ends of records behind `shipped` that are remembered.
const ENDS_MAX: usize = 4096;

/// The right to ship a log, and the calls for it.
///
/// Made by [`ship::Ship::elect`](crate::ship::Ship::elect). One process has it at a time, until
/// this is dropped or the process dies. A forked child does not have it: there every call returns
/// [`Busy`](crate::ErrorKind::Busy).
///
/// Any thread may use it.
pub struct Shipper {
    core: Arc<Core>,
    elected: ByteLock,
    raw: Mutex<Raw>,
    /// Known ends of records behind the shipped end.
    ends: Mutex<BTreeSet<Lsn>>,
    hold: Mutex<Option<Cursor>>,
}

impl Shipper {
    pub(crate) fn elect(core: &Arc<Core>) -> Result<Option<Shipper>> {
        let me = core.writer()?.attachment.me();
        let Some(elected) = election::elect(&core.files)? else { return Ok(None) };
        let words = &core.words().ship;
        words.set_holder(Some(me));
        // The shipped end of the one before is true, but not its status.
        state::set_status(words, ShipStatus::Running, None);
        let core = Arc::clone(core);
        let (raw, ends) = (Mutex::new(Raw::new(Arc::clone(&core))), Mutex::default());
        Ok(Some(Shipper { core, elected, raw, ends, hold: Mutex::default() }))
    }

    /// Where a log that was never shipped is shipped from: the oldest position that is kept, in a
    /// text log the start of its file.
    pub fn begin(&self) -> Lsn {
        raw::first_kept(&*self.core)
    }

    /// End of the records that may be shipped: those that survive a power cut here. In a log that
    /// is not [staged](crate::Fill::Staged), commits the published records first. It waits for no
    /// append: a record behind one that is in progress is shipped later. [`sync`](Shipper::sync)
    /// waits.
    ///
    /// # Errors
    ///
    /// As for [`Log::sync`](crate::Log::sync), but for [`Poisoned`](crate::ErrorKind::Poisoned):
    /// earlier durable records stay durable, and may be shipped.
    ///
    /// # Cost
    ///
    /// A read of memory in a staged log; in others an `fdatasync`, if something was appended since.
    pub fn durable(&self) -> Result<Lsn> {
        self.durable_after(|commit| commit.commit_published())
    }

    /// As [`durable`](Shipper::durable), but in a log that is not [staged](crate::Fill::Staged) it
    /// commits each record whose append had returned before, and waits for appends in front.
    ///
    /// # Errors, Cost
    ///
    /// As for [`durable`](Shipper::durable).
    pub fn sync(&self) -> Result<Lsn> {
        self.durable_after(|commit| commit.commit_all().map(drop))
    }

    fn durable_after(&self, commit: impl FnOnce(Commit<'_>) -> Result<()>) -> Result<Lsn> {
        self.check_mine()?;
        if self.core.commits.stage.is_none() {
            match commit(Commit::of(&self.core)) {
                Err(error) if error.kind() == ErrorKind::Poisoned => {}
                answer => answer.map_err(|error| place::explain(&self.core, error))?,
            }
        }
        self.durable_so_far()
    }

    /// As [`durable`](Shipper::durable), but syncs nothing.
    ///
    /// # Errors
    ///
    /// [`Busy`](crate::ErrorKind::Busy) in a forked child.
    ///
    /// # Cost
    ///
    /// A read of memory.
    pub fn durable_so_far(&self) -> Result<Lsn> {
        self.check_mine()?;
        let durable = commit::durable(&self.core.words().commits);
        self.note_end(durable);
        Ok(durable)
    }

    /// The furthest position that a waiter wants shipped; zero where there was none.
    pub fn wanted(&self) -> Lsn {
        self.words().wanted()
    }

    /// Sleeps until there is work for a shipper that has begun to ship everything before `from`: a
    /// process waits for more, or, where nothing behind `from` is durable, something is now; for
    /// `timeout` at most.
    ///
    /// An append to a log without commits wakes no shipper: pass the time after which you want to
    /// check anyway.
    ///
    /// # Cost
    ///
    /// For the others: a commit that makes something durable while this sleeps and nothing was, and
    /// a call that begins to wait for the shipper, each make one system call.
    pub fn wait(&self, from: Lsn, timeout: Duration) {
        let until = Instant::now().checked_add(timeout);
        let left = || until.map_or(timeout, |end| end.saturating_duration_since(Instant::now()));
        let commits = &self.core.words().commits;
        let is_behind = || commit::durable(commits) > from;
        let commits_itself = self.core.commits.stage.is_none();
        // Records that cannot be shipped yet are waited for as if they were not wanted.
        let is_wanted = || self.wanted() > from && (commits_itself || is_behind());
        let was_behind = is_behind();
        let event_count = match was_behind || commits_itself {
            true => &self.words().wanted_count,
            false => &commits.ends.durable_count,
        };
        while !is_wanted() && is_behind() == was_behind && !left().is_zero() {
            let rings = event_count::arm(event_count, event_count::SLEEPER);
            if !is_wanted() && is_behind() == was_behind {
                event_count::wait(event_count, rings, left());
            }
        }
    }

    /// Reads the bytes of the log from `from` on, of one segment and before the
    /// [durable](Shipper::durable) end, as many as `buf` holds. Of a framed log the checksums of
    /// all frames are verified; the bytes end behind a whole record or batch, unless that is longer
    /// than `buf`. Of a text log they end behind a line, if one ends there.
    ///
    /// A piece without bytes and with `next` equal to `from` says that nothing more is durable.
    /// One that ends its segment has `next` at the start of the next segment.
    ///
    /// # Errors
    ///
    /// [`Trimmed`](crate::ErrorKind::Trimmed) if the position is kept no more: the range between it
    /// and [`begin`](Shipper::begin) is a gap. [`Corrupt`](crate::ErrorKind::Corrupt) with file and
    /// position where a frame is damaged. [`OutOfRange`](crate::ErrorKind::OutOfRange) for a
    /// position behind the durable end. [`Io`](crate::ErrorKind::Io).
    ///
    /// # Cost
    ///
    /// Each byte is read from the page cache once, those of records longer than a mebibyte twice.
    /// Read in order: to start inside of a record, the one it belongs to is looked for.
    pub fn read(&self, from: Lsn, buf: &mut [u8]) -> Result<Piece> {
        self.check_mine()?;
        let piece = lock(&self.raw).read(from, buf)?;
        if piece.is_whole {
            self.note_end(piece.next);
        }
        Ok(piece)
    }

    /// Stores that everything before `end` is shipped, or, after the log was cut, only that; wakes
    /// the waiters.
    ///
    /// # Errors
    ///
    /// [`OutOfRange`](crate::ErrorKind::OutOfRange) behind the durable end here: a power cut would
    /// take those records back.
    pub fn set_shipped(&self, end: Lsn) -> Result<()> {
        self.check_mine()?;
        let durable = commit::durable(&self.core.words().commits);
        if end > durable {
            let message = format!("{end} cannot be shipped: the log is durable up to {durable}");
            let error = Error::new(ErrorKind::OutOfRange, message);
            return Err(error.at_path(&self.core.files.dir).at_lsn(end));
        }
        if end == durable {
            self.note_end(end);
        }
        let mut ends = lock(&self.ends);
        let behind = ends.split_off(&Lsn::new(end.get().saturating_add(1)));
        let known = std::mem::replace(&mut *ends, behind).pop_last();
        let whole = known.unwrap_or_else(|| self.words().whole().min(end));
        self.words().store(end, whole);
        Ok(())
    }

    /// Where the last record or batch ends of which it is known that it is
    /// [shipped](Shipper::set_shipped) whole. If that is all that is shipped, the next piece begins
    /// with a record.
    pub fn whole(&self) -> Lsn {
        self.words().whole()
    }

    /// Stores that the records from `start` to `end` were removed before they were shipped. Waiters
    /// for one of them get [`Trimmed`](crate::ErrorKind::Trimmed).
    ///
    /// # Errors
    ///
    /// [`Busy`](crate::ErrorKind::Busy) in a forked child.
    pub fn set_gap(&self, start: Lsn, end: Lsn) -> Result<()> {
        self.check_mine()?;
        self.words().set_gap(start, end);
        self.note_end(end);
        Ok(())
    }

    /// Stores the state of shipping, and its reason. With [`ShipStatus::Fenced`] waiters are woken,
    /// and get [`Fenced`](crate::ErrorKind::Fenced); this stays until another process ships.
    ///
    /// # Errors
    ///
    /// [`Busy`](crate::ErrorKind::Busy) in a forked child.
    pub fn set_status(&self, status: ShipStatus, fault: Option<(ShipFault, u16)>) -> Result<()> {
        self.check_mine()?;
        state::set_status(self.words(), status, fault);
        self.words().notify();
        Ok(())
    }

    /// The state that was [saved](Shipper::save) last, by this process or another one; `None` where
    /// there is none.
    ///
    /// # Errors
    ///
    /// [`Incompatible`](crate::ErrorKind::Incompatible) where something else than a file has its
    /// name; [`Corrupt`](crate::ErrorKind::Corrupt) for more than 256 KiB;
    /// [`Io`](crate::ErrorKind::Io).
    pub fn load(&self) -> Result<Option<Vec<u8>>> {
        self.check_mine()?;
        saved::load(&self.core.files)
    }

    /// Replaces what a shipper must know after a crash: the file `ship` beside the segments, of at
    /// most 256 KiB. One thread at a time may call this.
    ///
    /// # Errors
    ///
    /// [`Busy`](crate::ErrorKind::Busy) in a forked child;
    /// [`Removed`](crate::ErrorKind::Removed) where the log is not at its path any more;
    /// [`NoSpace`](crate::ErrorKind::NoSpace); [`Io`](crate::ErrorKind::Io). The earlier state
    /// stays then.
    ///
    /// # Durability
    ///
    /// When it returns, `bytes` survive a power cut.
    pub fn save(&self, bytes: &[u8]) -> Result<()> {
        self.check_mine()?;
        saved::save(&self.core, bytes)
    }

    /// As [`ship::Ship::figures`](crate::ship::Ship::figures).
    ///
    /// # Errors
    ///
    /// As for that.
    pub fn figures(&self) -> Result<Option<Vec<u8>>> {
        saved::figures(&self.core.files)
    }

    /// Stores figures for everybody who has the log open: the file `ship-figures` beside the
    /// segments, of at most 4096 bytes. The log does not know their meaning. One thread at a time
    /// may call this.
    ///
    /// # Errors
    ///
    /// [`Busy`](crate::ErrorKind::Busy) in a forked child;
    /// [`NoSpace`](crate::ErrorKind::NoSpace); [`Io`](crate::ErrorKind::Io).
    ///
    /// # Durability
    ///
    /// None. A handle that reads at that moment may get half of them.
    pub fn set_figures(&self, bytes: &[u8]) -> Result<()> {
        self.check_mine()?;
        saved::set_figures(&self.core.files, bytes)
    }

    /// Keeps the records from `from` on from being removed, but no more than `max_bytes`, also
    /// while no process ships, until [`ship::Ship::detach`](crate::ship::Ship::detach). Where
    /// records are kept already it is from where they are kept.
    ///
    /// # Errors, Durability, Cost
    ///
    /// As for [`Cursor::hold`](crate::Cursor::hold).
    pub fn hold(&self, from: Lsn, max_bytes: Option<u64>) -> Result<()> {
        self.check_mine()?;
        *lock(&self.hold) = Some(hold::hold(&self.core, from, max_bytes)?);
        Ok(())
    }

    /// Keeps no more what is before `before` and is shipped. Does nothing where nothing is
    /// [held](Shipper::hold).
    ///
    /// # Errors, Durability, Cost
    ///
    /// As for [`Cursor::commit`](crate::Cursor::commit): an `fdatasync`. So call it once for many
    /// pieces; until then more is kept than has to be.
    pub fn release(&self, before: Lsn) -> Result<()> {
        self.check_mine()?;
        let hold = lock(&self.hold);
        let Some(cursor) = hold.as_ref() else { return Ok(()) };
        let before = self.start_at(before.min(self.words().whole()))?;
        if before > cursor.position()? { cursor.commit(before) } else { Ok(()) }
    }

    /// The position at which a record starts at or before `lsn`.
    fn start_at(&self, lsn: Lsn) -> Result<Lsn> {
        let mut window = Window::new(Arc::clone(&self.core));
        match lsn <= self.core.begin() || starts_record(&self.core, &mut window, lsn)? {
            true => Ok(lsn),
            false => Frames::of(&self.core).start_before(&mut window, lsn),
        }
    }

    fn note_end(&self, end: Lsn) {
        let mut ends = lock(&self.ends);
        if end > self.words().whole() && ends.insert(end) && ends.len() > ENDS_MAX {
            // Any of them serves as well as another, but for the last.
            let second = ends.iter().rev().nth(1).copied();
            ends.retain(|end| Some(*end) != second);
        }
    }

    fn words(&self) -> &ShipWords {
        &self.core.words().ship
    }

    /// Refuses a forked child.
    fn check_mine(&self) -> Result<()> {
        if self.elected.is_mine(SHIPPER_BYTE) {
            return Ok(());
        }
        let message = "this process does not ship the log: its parent does";
        Err(Error::new(ErrorKind::Busy, message).at_path(&self.core.files.dir))
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Drop for Shipper {
    fn drop(&mut self) {
        if !self.elected.is_mine(SHIPPER_BYTE) {
            return;
        }
        let words = self.words();
        words.set_holder(None);
        let (status, fault) = state::status(words);
        if !matches!(status, ShipStatus::Fenced | ShipStatus::Diverged) {
            // The last fault may be the reason for the end.
            state::set_status(words, ShipStatus::None, fault);
        }
        // They look at the lock, which is free a moment later, once more after a nap.
        words.notify();
    }
}

impl std::fmt::Debug for Shipper {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Shipper").field("dir", &self.core.files.dir.path()).finish_non_exhaustive()
    }
}
