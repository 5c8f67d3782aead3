//! The file of the named cursors: reading it, changing it, and the records that cursors keep from
//! removal.
//!
//! The file is read at any time, without a lock: of each cursor the newest whole image counts. It
//! is changed under a lock of the kernel on a byte of `lock`. A change that may make a cursor keep
//! more than before is stored under the prepare lock too, because `begin` is raised under that
//! lock, after reading the file. So no record is removed in front of a cursor that was set at that
//! moment.
//!
//! **If the process dies here**: the kernel releases the lock. The image that was being written is
//! whole or is not there; the other one holds the cursors as they were before.

use std::os::fd::OwnedFd;
use std::time::Duration;

use rustix::fs::OFlags;
use rustix::io::Errno;

use crate::error::OsResult;
use crate::files::Files;
use crate::files::names::{CURSORS_NAME, LOCK_NAME, UNFINISHED_CURSORS_NAME};
use crate::files::rewrite;
use crate::files::small_file;
use crate::format::cursor::{self, Entry, FileFault, Place};
use crate::log::state::control::sync_log_names;
use crate::log::state::core::Core;
use crate::log::state::holds::{self, HoldKind};
use crate::log::state::wait::{self, is_over};
use crate::log::state::writer::Writer;
use crate::log::state::{place, poison};
use crate::shared::participants::CURSORS_BYTE;
use crate::shared::tail_word;
use crate::sys::inherited::Brief;
use crate::sys::lock::{self, Kind};
use crate::{Error, ErrorKind, Lsn, Result, sys};

/// How often to read again what another process may be in the middle of writing.
const READS: usize = 50;
/// How long to wait between two attempts to get the lock, for a caller that may not wait for ever.
const PAUSE: Duration = Duration::from_millis(1);

/// A participant that changes cursors.
#[derive(Clone, Copy)]
pub(crate) struct CursorWriter<'a> {
    pub(crate) writer: Writer<'a>,
}

impl<'a> CursorWriter<'a> {
    #[inline]
    pub(crate) fn of(writer: Writer<'a>) -> CursorWriter<'a> {
        CursorWriter { writer }
    }
}

/// The file of the cursors of a log, and the records that they keep.
#[derive(Clone, Copy)]
pub(crate) struct CursorFile<'a> {
    pub(crate) core: &'a Core,
}

impl<'a> CursorFile<'a> {
    #[inline]
    pub(crate) fn of(core: &'a Core) -> CursorFile<'a> {
        CursorFile { core }
    }
}

impl CursorFile<'_> {
    /// The places of all cursors; none where the log never had one.
    pub(crate) fn cursor_places(self) -> Result<Vec<Place>> {
        places(&self.core.files)
    }

    fn read_cursors(self, fd: &OwnedFd) -> Result<Vec<Place>> {
        read_places(&self.core.files, fd)
    }

    /// The cursors, each with its index.
    pub(crate) fn cursor_entries(self) -> Result<Vec<(usize, Entry)>> {
        let places = self.cursor_places()?.into_iter().enumerate();
        Ok(places.filter_map(|(index, place)| Some((index, place.entry?))).collect())
    }

    /// A cursor as it is in the log that is there: not beyond its end.
    pub(crate) fn within(self, entry: Entry) -> Entry {
        let lsn = entry.lsn.min(tail_word::tail(self.core.words()));
        Entry { lsn, ..entry }
    }

    /// The cursors that hold records back.
    pub(crate) fn holding_cursors(self) -> Result<Vec<Entry>> {
        let entries = self.cursor_entries()?.into_iter().map(|(_, entry)| entry);
        Ok(entries.filter(|entry| entry.holds).collect())
    }

    /// Has cursors that hold records back survive a power cut as they are. Without this, the cut
    /// could take one back to records that were removed meanwhile.
    pub(crate) fn sync_holding_cursors(self) -> Result<Vec<Entry>> {
        let holding = self.holding_cursors()?;
        if !holding.is_empty() {
            let path = self.core.files.dir.join(CURSORS_NAME);
            let fd = self
                .core
                .files
                .dir
                .open_file(&path, OFlags::RDONLY)
                .or_os("open the cursors", &path)?;
            self.sync_cursors(&fd)?;
        }
        Ok(holding)
    }

    /// Moves cursors back that are beyond `end`, where the log ends now: after a truncation, or
    /// when older segments were restored. No other process uses the log.
    pub(crate) fn clamp_cursors(self, end: Lsn) -> Result<()> {
        let path = self.core.files.dir.join(CURSORS_NAME);
        let fd = match self.core.files.dir.open_file(&path, OFlags::RDWR) {
            Err(Errno::NOENT) => return Ok(()),
            answer => answer.or_os("open the cursors", &path)?,
        };
        let mut is_changed = false;
        for (index, place) in self.read_cursors(&fd)?.into_iter().enumerate() {
            let Some(entry) = place.entry.clone().filter(|entry| entry.lsn > end) else { continue };
            let (offset, bytes, _) = place.next(index, Some(Entry { lsn: end, ..entry }));
            sys::file::write_all_at(&fd, &bytes, offset).or_os("write", &path)?;
            is_changed = true;
        }
        if is_changed {
            self.sync_cursors(&fd)?;
        }
        Ok(())
    }

    fn sync_cursors(self, fd: &OwnedFd) -> Result<()> {
        let synced = sys::sync::sync_data_on(self.core.ready.filesystem, fd);
        let path = self.core.files.dir.join(CURSORS_NAME);
        poison::heed_sync(self.core, synced.or_unsynced("sync the cursors", &path))
    }
}

/// The right to change cursors, held until dropped.
pub(crate) struct CursorLock {
    _file: Brief,
}

impl<'a> CursorWriter<'a> {
    /// Waits until no other process changes cursors. Taken before the prepare lock, never behind
    /// it.
    pub(crate) fn lock_cursors(self) -> Result<CursorLock> {
        let path = self.writer.core.files.dir.join(LOCK_NAME);
        let file = Brief::open(&self.writer.core.files.dir, &path).or_os("open", &path)?;
        let until = wait::deadline(self.writer.core);
        if until.is_none() {
            lock::lock(&file, CURSORS_BYTE, Kind::Exclusive).or_os("lock", &path)?;
            return Ok(CursorLock { _file: file });
        }
        while !lock::try_lock(&file, CURSORS_BYTE, Kind::Exclusive).or_os("lock", &path)? {
            if is_over(until) {
                let holds = holds::of_lock_file(self.writer.core, HoldKind::Cursors, CURSORS_BYTE);
                return Err(wait::timed_out(self.writer.core, holds.into_iter().next()));
            }
            std::thread::sleep(PAUSE);
        }
        Ok(CursorLock { _file: file })
    }

    /// Begins to change cursors.
    pub(crate) fn change_cursors(self) -> Result<Change<'a>> {
        let lock = self.lock_cursors()?;
        let path = self.writer.core.files.dir.join(CURSORS_NAME);
        let file = match self.writer.core.files.dir.open_file(&path, OFlags::RDWR) {
            Ok(fd) => Some(fd),
            Err(Errno::NOENT) => None,
            Err(errno) => return Err(Error::os(errno, "open the cursors", &path)),
        };
        let places = file
            .as_ref()
            .map_or(Ok(Vec::new()), |fd| CursorFile::of(self.writer.core).read_cursors(fd))?;
        Ok(Change { writer: self.writer, _lock: lock, file, places })
    }

    /// Makes the file, durably, with all its blocks: a commit needs no space later.
    fn make_cursors(self) -> Result<OwnedFd> {
        let core = self.writer.core;
        // Another log may have taken the place.
        place::require(core)?;
        let (files, bytes) = (&core.files, cursor::new_file(core.files.geometry.secret));
        let names = [UNFINISHED_CURSORS_NAME, CURSORS_NAME];
        let what = "make the file of the cursors";
        let made = small_file::write(&files.dir, &files.rights, names, &bytes, what, |_| Ok(()));
        let fd = poison::heed_sync(core, made)?;
        poison::heed_sync(core, sync_log_names(&files.dir))?;
        Ok(fd)
    }
}

/// Cursors as they are, and the right to change them.
pub(crate) struct Change<'a> {
    writer: Writer<'a>,
    _lock: CursorLock,
    file: Option<OwnedFd>,
    places: Vec<Place>,
}

impl Change<'_> {
    /// The cursor of this name.
    pub(crate) fn find(&self, name: &str) -> Option<(usize, Entry)> {
        let is_it = |place: &Place| place.entry.as_ref().is_some_and(|entry| entry.name == name);
        let index = self.places.iter().position(is_it)?;
        Some((index, self.places[index].entry.clone()?))
    }

    /// A place for a new cursor without an owner.
    pub(crate) fn free_place(&mut self) -> Result<usize> {
        if self.file.is_none() {
            let fd = CursorWriter::of(self.writer).make_cursors()?;
            self.places = CursorFile::of(self.writer.core).read_cursors(&fd)?;
            self.file = Some(fd);
        }
        self.places.iter().position(|place| place.entry.is_none()).ok_or_else(|| {
            let message = format!("the log has {} cursors, as many as it can have", cursor::COUNT);
            Error::new(ErrorKind::Busy, message)
                .at_path(&self.writer.core.files.dir.join(CURSORS_NAME))
        })
    }

    /// Stores a cursor, so that every process sees it.
    pub(crate) fn store(&mut self, index: usize, entry: Option<Entry>) -> Result<()> {
        let path = self.writer.core.files.dir.join(CURSORS_NAME);
        let Some(fd) = &self.file else { return Ok(()) };
        let (offset, bytes, place) = self.places[index].next(index, entry);
        sys::file::write_all_at(fd, &bytes, offset).or_os("write", &path)?;
        self.places[index] = place;
        Ok(())
    }

    /// Has what was stored survive a power cut.
    pub(crate) fn sync(&self) -> Result<()> {
        let Some(fd) = &self.file else { return Ok(()) };
        CursorFile::of(self.writer.core).sync_cursors(fd).inspect_err(|_| {
            // A trim relies on the content, once it has synced it.
            let _ = rewrite::write_over_itself(fd, 0, cursor::FILE_LEN as u64);
        })
    }

    /// Stores what is there once more, durably: where a cursor begins or ends, no image of before
    /// may come back if one sector is damaged.
    pub(crate) fn sync_twice(&mut self, index: usize) -> Result<()> {
        self.sync()?;
        self.store(index, self.places[index].entry.clone())?;
        self.sync()
    }
}

/// The places of all cursors; none where the log never had one.
pub(crate) fn places(files: &Files) -> Result<Vec<Place>> {
    let path = files.dir.join(CURSORS_NAME);
    match files.dir.open_file(&path, OFlags::RDONLY) {
        Ok(fd) => read_places(files, &fd),
        Err(Errno::NOENT) => Ok(Vec::new()),
        Err(errno) => Err(Error::os(errno, "open the cursors", &path)),
    }
}

fn read_places(files: &Files, fd: &OwnedFd) -> Result<Vec<Place>> {
    let path = files.dir.join(CURSORS_NAME);
    let mut bytes = vec![0; cursor::FILE_LEN + 1];
    for _ in 0..READS {
        let count = sys::file::read_up_to_at(fd, &mut bytes, 0).or_os("read", &path)?;
        let places = cursor::parse_file(&bytes[..count], files.geometry.secret);
        let places = places.map_err(|fault| refuse(files, fault))?;
        if places.iter().all(|place| !place.is_damaged) {
            return Ok(places);
        }
    }
    Err(refuse(files, FileFault::Damaged))
}

fn refuse(files: &Files, fault: FileFault) -> Error {
    let (kind, message) = match fault {
        FileFault::Damaged => (
            ErrorKind::Corrupt,
            "the file of the cursors is damaged; restore it, or remove it and set the cursors \
             again"
                .into(),
        ),
        FileFault::Stranger => (
            ErrorKind::Incompatible,
            "the file of the cursors belongs to another log; remove it".into(),
        ),
        FileFault::Version(version) => (
            ErrorKind::Incompatible,
            format!("the file of the cursors has format version {version}, not 1"),
        ),
    };
    Error::new(kind, message).at_path(&files.dir.join(CURSORS_NAME))
}
