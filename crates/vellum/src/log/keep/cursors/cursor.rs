//! Named cursors: places in a log that are remembered, and that may keep records from being
//! removed.
//!
//! The stored position is in `file`; up to where records may be removed, in `held`.
//!
//! **If the process dies here**: a cursor is where it was committed last. The next owner reads the
//! records again that the dead one had in hand.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use crate::files::gap::{self, Gap};
use crate::files::window::Window;
use crate::format::cursor::{Entry, is_name};
use crate::log::commit::Commit;
use crate::log::keep::cursors::file::{Change, CursorFile, CursorWriter};
use crate::log::keep::cursors::{owner, refusals};
use crate::log::read::reader::start::starts_record;
use crate::log::read::reader::{Reader, not_a_start};
use crate::log::read::time_index;
use crate::log::state::byte_lock::ByteLock;
use crate::log::state::core::Core;
use crate::log::state::place;
use crate::log::state::writer::Writer;
use crate::shared::tail_word;
use crate::sys::clock;
use crate::{Error, ErrorKind, Lsn, Result};

/// How much a cursor keeps from being removed.
///
/// The default is everything from the cursor on, for as long as the cursor is there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct CursorHold {
    /// Bytes that it keeps at most; `None` is all. Counted in whole files.
    pub max_bytes: Option<u64>,
    /// How old a record may be that it keeps, in whole seconds; `None` is any age. Counted in whole
    /// files: a file is as old as its newest record. For text logs, and framed logs that know ages
    /// ([`Cursor::hold`]).
    pub max_age: Option<Duration>,
}

impl CursorHold {
    /// Keeps everything.
    pub fn new() -> CursorHold {
        CursorHold::default()
    }

    /// The same, but no more than `bytes`.
    pub fn max_bytes(mut self, bytes: u64) -> CursorHold {
        self.max_bytes = Some(bytes);
        self
    }

    /// The same, but nothing older than `age`.
    pub fn max_age(mut self, age: Duration) -> CursorHold {
        self.max_age = Some(age);
        self
    }
}

/// A named position in a log that survives processes and power cuts.
///
/// Made by [`Log::cursor`](crate::Log::cursor). A cursor is at the first record that its reader has
/// not finished. It moves when it is [committed](Cursor::commit), and only forward. A log has up to
/// 128 cursors. They are in the file `cursors` of its directory.
///
/// Any process may look at a cursor and read from it. One process may [own](Cursor::own) it; then
/// no other one can change it.
///
/// ```
/// # let dir = tempfile::tempdir().unwrap();
/// # let log = vellum::Options::events().open(dir.path().join("a.log"))?;
/// # log.append(b"one")?;
/// use vellum::Lsn;
///
/// let cursor = log.cursor("mailer", Lsn::ZERO)?; // made at the oldest record, or taken up
/// cursor.own()?;                                 // this process alone moves it
/// let mut reader = cursor.reader()?;
/// while let Some(record) = reader.next()? {
///     let finished = record.next_lsn;
///     // ... send the record ...
///     cursor.commit(finished)?; // after a crash the next reader begins here
/// }
/// # assert!(cursor.reader()?.next()?.is_none());
/// # Ok::<(), vellum::Error>(())
/// ```
pub struct Cursor {
    pub(crate) core: Arc<Core>,
    pub(crate) name: String,
    owned: Mutex<Option<ByteLock>>,
}

impl Cursor {
    /// The cursor of this name, made at `at` if there is none.
    pub(crate) fn open(core: Arc<Core>, name: &str, at: Lsn) -> Result<Cursor> {
        if !is_name(name) {
            let message = format!(
                "{name:?} is no name for a cursor: use 1 to 64 letters, digits, '.', '_' and '-'"
            );
            return Err(Error::new(ErrorKind::InvalidOption, message).at_path(&core.files.dir));
        }
        let is_there =
            CursorFile::of(&core).cursor_entries()?.iter().any(|(_, entry)| entry.name == name);
        let cursor = Cursor { core, name: name.into(), owned: Mutex::default() };
        match is_there {
            true => Ok(cursor),
            false if cursor.core.writer.is_none() => {
                Err(refusals::missing(&cursor.core, &cursor.name))
            }
            false => cursor.make(at).map(|()| cursor),
        }
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Where it is: the position of the first record that its reader has not finished.
    ///
    /// # Errors
    ///
    /// [`NotFound`](crate::ErrorKind::NotFound) when the cursor was removed,
    /// [`Io`](crate::ErrorKind::Io) and [`Corrupt`](crate::ErrorKind::Corrupt) where its file
    /// cannot be read.
    pub fn position(&self) -> Result<Lsn> {
        self.entry().map(|entry| entry.lsn)
    }

    /// A reader that starts at the cursor. Reading does not move the cursor.
    ///
    /// # Errors
    ///
    /// [`Trimmed`](crate::ErrorKind::Trimmed) if records were removed in front of the cursor:
    /// [`skip_overrun`](Cursor::skip_overrun) reports how much that was, and continues behind it.
    /// Otherwise as for [`Log::reader`](crate::Log::reader).
    pub fn reader(&self) -> Result<Reader> {
        let (position, begin) = (self.position()?, self.core.begin());
        if position < begin {
            return Err(refusals::overrun(&self.core, &self.name, position, begin));
        }
        Reader::new(Arc::clone(&self.core), position)
    }

    /// Moves the cursor to `lsn`: its reader has finished everything before. That is the
    /// [`next_lsn`](crate::Record::next_lsn) of the last record it has finished.
    ///
    /// # Errors
    ///
    /// [`OutOfRange`](crate::ErrorKind::OutOfRange) for a position before the cursor, beyond the
    /// end of the log, or (framed) where no record starts; [`Busy`](crate::ErrorKind::Busy) when
    /// another process owns the cursor; [`NotFound`](crate::ErrorKind::NotFound) when it was
    /// removed; [`ReadOnly`](crate::ErrorKind::ReadOnly);
    /// [`TimedOut`](crate::ErrorKind::TimedOut) with [`Options::timeout`](crate::Options::timeout);
    /// otherwise as for [`Log::commit`](crate::Log::commit). After a failed sync the cursor may
    /// have moved.
    ///
    /// # Durability
    ///
    /// The records before `lsn` are committed first. When it returns, they and the cursor survive a
    /// power cut. So a cursor is never beyond the end of its log.
    ///
    /// # Cost
    ///
    /// A commit of the log if something before `lsn` is not durable, then a write of 512 bytes and
    /// one `fdatasync`: as long as the device takes for one or two writes. All cursors of a log
    /// take turns. So commit once for many records.
    pub fn commit(&self, lsn: Lsn) -> Result<()> {
        self.checked(|| {
            let writer = self.core.writer()?;
            self.check_start(lsn)?;
            Commit::of(&self.core).commit_to(lsn)?;
            let mut change = CursorWriter::of(writer).change_cursors()?;
            let (index, entry) = self.find_in(&change)?;
            if lsn < entry.lsn {
                return Err(refusals::backwards(&self.core, &self.name, lsn, entry.lsn));
            }
            change.store(index, Some(Entry { lsn, committed_at: clock::seconds(), ..entry }))?;
            change.sync()
        })
    }

    /// Moves the cursor to any position of the log, forward or back; [`Lsn::ZERO`] is the oldest
    /// record.
    ///
    /// # Errors
    ///
    /// [`Trimmed`](crate::ErrorKind::Trimmed) for a position that is no longer kept; otherwise as
    /// for [`commit`](Cursor::commit).
    ///
    /// # Durability, Cost
    ///
    /// As for [`commit`](Cursor::commit). It waits for processes that prepare or remove files.
    pub fn set(&self, lsn: Lsn) -> Result<()> {
        self.checked(|| {
            self.prepare_for(lsn)?;
            self.update(|entry, begin| {
                let lsn = self.kept(lsn, begin)?;
                Ok(Entry { lsn, committed_at: clock::seconds(), ..entry })
            })
        })
    }

    /// Keeps the records from the cursor on from being removed: by [`trim`](crate::Log::trim), by
    /// the rules of retention, and by compression. This lasts until [`unhold`](Cursor::unhold) or
    /// [`remove`](Cursor::remove), whether the cursor has an owner or not. A cursor that holds
    /// already gets the new limits.
    ///
    /// # Errors
    ///
    /// [`Trimmed`](crate::ErrorKind::Trimmed) if records were removed in front of the cursor
    /// already; [`Unsupported`](crate::ErrorKind::Unsupported) for a limit of age in a framed log
    /// that has neither [envelopes](crate::Options::envelope) nor a limit of
    /// [age](crate::Options::retain_age) of its own, because nothing there tells when records were
    /// written; otherwise as for [`set`](Cursor::set).
    ///
    /// # Cost
    ///
    /// As for [`set`](Cursor::set). While a cursor holds, each trim and each removal of files costs
    /// one `fdatasync` more.
    pub fn hold(&self, hold: CursorHold) -> Result<()> {
        self.checked(|| {
            if hold.max_age.is_some() && !time_index::knows_ages(&self.core) {
                let message = "this framed log does not know how old its records are, as one that \
                               was created with envelopes does, or one that removes records by \
                               their age; limit the bytes that the cursor holds";
                return Err(
                    Error::new(ErrorKind::Unsupported, message).at_path(&self.core.files.dir)
                );
            }
            self.update(|entry, begin| {
                let held_age_max = hold.max_age.map(|age| Duration::from_secs(age.as_secs()));
                let held_bytes_max = hold.max_bytes;
                let lsn = self.kept(entry.lsn, begin)?;
                Ok(Entry { lsn, holds: true, held_bytes_max, held_age_max, ..entry })
            })
        })
    }

    /// Keeps nothing from being removed any more.
    ///
    /// # Errors, Cost
    ///
    /// As for [`set`](Cursor::set).
    pub fn unhold(&self) -> Result<()> {
        self.checked(|| {
            self.update(|entry, _| {
                Ok(Entry { holds: false, held_bytes_max: None, held_age_max: None, ..entry })
            })
        })
    }

    /// Continues behind records that were removed in front of the cursor: moves it to the oldest
    /// record, counts the gap in the cursor and returns it. `None` if nothing was removed.
    ///
    /// The size of the gap is an upper bound: of a text log, positions that no record has had may
    /// be among it.
    ///
    /// # Errors, Durability, Cost
    ///
    /// As for [`set`](Cursor::set).
    pub fn skip_overrun(&self) -> Result<Option<Gap>> {
        self.checked(|| {
            self.core.writer()?;
            Commit::of(&self.core).commit_to(self.core.begin())?;
            let mut gap = None;
            self.update(|entry, begin| {
                if entry.lsn >= begin {
                    return Ok(entry);
                }
                let removed = gap::removed(&*self.core, entry.lsn, begin, &self.name);
                let overrun_bytes = entry.overrun_bytes + removed.bytes_max;
                let (overruns, overrun_at) = (entry.overruns + 1, clock::seconds());
                gap = Some(removed);
                Ok(Entry { lsn: begin, overruns, overrun_bytes, overrun_at, ..entry })
            })?;
            Ok(gap)
        })
    }

    /// Makes this process the owner of the cursor, so that no other one can change it. The process
    /// owns it until this handle is dropped, [`disown`](Cursor::disown) is called, or the process
    /// dies. A forked child does not own it.
    ///
    /// # Errors
    ///
    /// [`Busy`](crate::ErrorKind::Busy) when another handle owns it, here or in another process,
    /// which the text names; [`NotFound`](crate::ErrorKind::NotFound) when it was removed;
    /// [`ReadOnly`](crate::ErrorKind::ReadOnly); [`Io`](crate::ErrorKind::Io) when the process is
    /// short of descriptors.
    ///
    /// # Cost
    ///
    /// A descriptor for as long as it lasts. Nothing is written.
    pub fn own(&self) -> Result<()> {
        self.checked(|| {
            let change = CursorWriter::of(self.core.writer()?).change_cursors()?;
            let index =
                change.find(&self.name).ok_or_else(|| refusals::missing(&self.core, &self.name))?.0;
            let mut owned = self.owned.lock().unwrap_or_else(PoisonError::into_inner);
            if owned.as_ref().is_some_and(|lock| lock.is_mine(owner::byte(index))) {
                return Ok(());
            }
            let taken = owner::take(&self.core.files, index)?;
            *owned = Some(
                taken.ok_or_else(|| refusals::owned_by_another(&self.core, &self.name, index))?,
            );
            Ok(())
        })
    }

    /// Gives the cursor up, so that another process can own it.
    pub fn disown(&self) {
        *self.owned.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    /// Removes the cursor, and its hold on records. Later calls return
    /// [`NotFound`](crate::ErrorKind::NotFound).
    ///
    /// # Errors, Durability, Cost
    ///
    /// As for [`commit`](Cursor::commit).
    pub fn remove(&self) -> Result<()> {
        self.checked(|| {
            let mut change = CursorWriter::of(self.core.writer()?).change_cursors()?;
            let (index, _) = self.find_in(&change)?;
            change.store(index, None)?;
            change.sync_twice(index)?;
            self.disown();
            Ok(())
        })
    }

    fn make(&self, at: Lsn) -> Result<()> {
        self.checked(|| {
            let writer = self.prepare_for(at)?;
            let mut change = CursorWriter::of(writer).change_cursors()?;
            if change.find(&self.name).is_some() {
                // Another process was faster.
                return Ok(());
            }
            let index = change.free_place()?;
            let prepare = writer.lock_prepare()?;
            let lsn = self.kept(at, self.core.begin())?;
            change.store(index, Some(Entry::new(&self.name, lsn, clock::seconds())))?;
            drop(prepare);
            change.sync_twice(index)
        })
    }

    /// Makes everything before `lsn` durable, where a cursor is to be set.
    fn prepare_for(&self, lsn: Lsn) -> Result<Writer<'_>> {
        let writer = self.core.writer()?;
        let lsn = if lsn == Lsn::ZERO { self.core.begin() } else { lsn };
        self.check_start(lsn)?;
        Commit::of(&self.core).commit_to(lsn)?;
        Ok(writer)
    }

    /// Stores what `change` makes of the cursor, durably. Nothing is removed meanwhile, so the
    /// beginning of the log that `change` gets holds until the new state is seen.
    fn update(&self, change: impl FnOnce(Entry, Lsn) -> Result<Entry>) -> Result<()> {
        let writer = self.core.writer()?;
        let mut cursors = CursorWriter::of(writer).change_cursors()?;
        let (index, entry) = self.find_in(&cursors)?;
        let prepare = writer.lock_prepare()?;
        let entry = change(entry, self.core.begin())?;
        cursors.store(index, Some(entry))?;
        drop(prepare);
        cursors.sync()
    }

    /// The cursor among those that are about to be changed, unless another process owns it.
    fn find_in(&self, change: &Change<'_>) -> Result<(usize, Entry)> {
        let (index, entry) =
            change.find(&self.name).ok_or_else(|| refusals::missing(&self.core, &self.name))?;
        let owned = self.owned.lock().unwrap_or_else(PoisonError::into_inner);
        if owned.as_ref().is_some_and(|lock| lock.is_mine(owner::byte(index))) {
            return Ok((index, entry));
        }
        match owner::is_owned(&self.core.files, index) {
            true => Err(refusals::owned_by_another(&self.core, &self.name, index)),
            false => Ok((index, entry)),
        }
    }

    fn entry(&self) -> Result<Entry> {
        let entries =
            CursorFile::of(&self.core).cursor_entries()?.into_iter().map(|(_, entry)| entry);
        let mut found = entries.filter(|entry| entry.name == self.name);
        found
            .next()
            .map(|entry| CursorFile::of(&self.core).within(entry))
            .ok_or_else(|| refusals::missing(&self.core, &self.name))
    }

    /// Refuses a position where no cursor can be.
    fn check_start(&self, lsn: Lsn) -> Result<()> {
        let core = &self.core;
        let published = tail_word::published(core.words());
        if lsn > published {
            let message =
                format!("cursor {} cannot be at {lsn}: the log ends at {published}", self.name);
            return Err(Error::new(ErrorKind::OutOfRange, message)
                .at_path(&core.files.dir)
                .at_lsn(lsn));
        }
        let starts = starts_record(core, &mut Window::new(Arc::clone(core)), lsn);
        // A removed position cannot be checked.
        if lsn < core.begin() || starts? {
            return Ok(());
        }
        Err(not_a_start(core, lsn))
    }

    /// The stored position of `lsn`, if it is still kept.
    fn kept(&self, lsn: Lsn, begin: Lsn) -> Result<Lsn> {
        match lsn {
            Lsn::ZERO => Ok(begin),
            lsn if lsn < begin => Err(refusals::overrun(&self.core, &self.name, lsn, begin)),
            lsn => Ok(lsn),
        }
    }

    /// The result of `act`, or its error with the explanation.
    fn checked<T>(&self, act: impl FnOnce() -> Result<T>) -> Result<T> {
        act().map_err(|error| place::explain(&self.core, error))
    }
}

impl std::fmt::Debug for Cursor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Cursor").field("name", &self.name).finish_non_exhaustive()
    }
}
