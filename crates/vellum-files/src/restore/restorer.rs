//! Making a log again from its shipped bytes.
//!
//! The segments are written in their order. Until they are all on the device, the directory holds
//! the file `restoring` and no geometry file: `open` refuses it, and [`Restorer::resume`]
//! continues. The restored log is then opened by ordinary recovery, as a log that has lost its
//! control file.
//!
//! **If the process dies here**: all segments but the newest are on the device; the newest one is
//! written again from its start.

use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;
use rustix::io::Errno;
use zerocopy::IntoBytes;

use crate::error::OsResult;
use crate::files::directory::{make_directory, open_directory};
use crate::files::geometry::{name_geometry, sync_log_names};
use crate::files::named;
use crate::files::names::{
    CONTROL_NAME, GEOMETRY_NAME, LOST_AND_FOUND_NAME, RESTORING_NAME, SMALL_LEN_MAX,
    UNFINISHED_CONTROL_NAME,
};
use crate::format::frame::Codec;
use crate::format::segment::{HEADER_LEN, SegmentHeader, file_name, text_file_name};
use crate::restore::BROKEN_OFF;
use crate::restore::note::{self, Note};
use crate::restore::options::{FileName, RestoreOptions};
use crate::restore::room::{self, Need};
use crate::restore::shape::{LogShape, fork_step};
use crate::segment::listing::{Listing, SegmentFile};
use crate::segment::rights::Rights;
use crate::segment::{list, names, sync_names};
use crate::sys::file::ZEROS_BYTES_MAX;
use crate::sys::{self, Dir};
use crate::{Error, ErrorKind, Lsn, Result};

/// As many bytes at once begin their way to the device before the segment is synced.
const EARLY: u64 = 1 << 20;

/// Writes a log again, in an empty directory, from its [shape](LogShape) and its bytes.
pub struct Restorer {
    dir: Dir,
    shape: LogShape,
    options: RestoreOptions,
    rights: Rights,
    begin: Lsn,
    /// Where the next byte goes.
    at: Lsn,
    /// The segment that is written.
    segment: Option<Open>,
    /// How many files hold nothing but gaps.
    gap_files: u64,
    /// Whether the note has the range that was left out.
    is_noted: bool,
}

struct Open {
    first: Lsn,
    path: PathBuf,
    fd: OwnedFd,
}

impl Restorer {
    /// Makes sure that there is room in the filesystem of `dir`, which need not be there, for a log
    /// with so many bytes of records and with these [gaps](Restorer::gap).
    ///
    /// The bytes of records do not count where the filesystem may compress them.
    ///
    /// # Errors
    ///
    /// [`NoSpace`](crate::ErrorKind::NoSpace);
    /// [`OutOfRange`](crate::ErrorKind::OutOfRange) for gaps that take more files than are made of
    /// them.
    pub fn check_room(
        dir: impl AsRef<Path>,
        shape: &LogShape,
        bytes: u64,
        gaps: &[(Lsn, Lsn)],
    ) -> Result<()> {
        let files = gaps.iter().map(|(from, to)| room::gap_files(shape, *from, *to));
        let gap_files = files.fold(0, u64::saturating_add);
        room::check(dir.as_ref(), shape, &Need { bytes, gap_files })
    }

    /// Begins to restore a log that begins at `begin` into the directory `dir`, which is made, or
    /// is empty. In a text log `begin` is where a file starts.
    ///
    /// # Errors
    ///
    /// [`AlreadyExists`](crate::ErrorKind::AlreadyExists) for a directory that is not empty;
    /// [`InvalidOption`](crate::ErrorKind::InvalidOption) for a position where no log of this shape
    /// can begin; [`Io`](crate::ErrorKind::Io) and its like.
    pub fn create(
        dir: impl AsRef<Path>,
        shape: &LogShape,
        begin: Lsn,
        options: &RestoreOptions,
    ) -> Result<Restorer> {
        let dir = &directory(dir.as_ref(), shape, options);
        check_begin(shape, begin, dir)?;
        let mode = options.mode.unwrap_or(0o666);
        make_directory(dir, mode)?;
        let dir = open_directory(dir)?;
        let is_taken = is_taken(&dir, options)?;
        if is_taken && !note::is_half(&dir)? {
            let message = match options.may_have_others {
                true if dir.holds(&dir.join(RESTORING_NAME)) => BROKEN_OFF,
                true => "there is a log already",
                false => "the directory is not empty; restore into a new or empty one",
            };
            return Err(Error::new(ErrorKind::AlreadyExists, message).at_path(&dir));
        }
        let rights = Rights::of_new_log(&dir, mode).or_os("look at", &dir)?;
        let path = dir.join(RESTORING_NAME);
        let fd = rights.create(&dir, &path, "begin to restore a log")?;
        let note = note::to_bytes(shape, begin);
        sys::file::write_all_at(&fd, &note, 0)
            .and_then(|()| sys::sync::sync(&fd))
            .or_os("begin to restore a log", &path)?;
        sync_log_names(&dir)?;
        Ok(Restorer::new(dir, shape.clone(), options, rights, begin))
    }

    /// Continues a restore that did not finish, at [`position`](Restorer::position).
    ///
    /// # Errors
    ///
    /// [`NotFound`](crate::ErrorKind::NotFound) where none was begun;
    /// [`OtherLog`](crate::ErrorKind::OtherLog) where it was one of another log.
    pub fn resume(
        dir: impl AsRef<Path>,
        shape: &LogShape,
        options: &RestoreOptions,
    ) -> Result<Restorer> {
        let dir = open_directory(&directory(dir.as_ref(), shape, options))?;
        let path = dir.join(RESTORING_NAME);
        let note = match dir.read(&path, SMALL_LEN_MAX) {
            Err(Errno::NOENT) => {
                let message = "no restore was begun in this directory";
                return Err(Error::new(ErrorKind::NotFound, message).at_path(&dir));
            }
            note => note.or_os("read", &path)?,
        };
        let Note { begin, lost } = note::of(&note, shape).map_err(|error| error.at_path(&path))?;
        let rights = Rights::of_new_log(&dir, options.mode.unwrap_or(0o666));
        let rights = rights.or_os("look at", &dir)?;
        let mut restorer = Restorer::new(dir, shape.clone(), options, rights, begin);
        if let Some((from, end)) = lost {
            restorer.shape.identity.lose(from, end);
        }
        // The ones before it were synced before this one was made.
        if let Some(newest) = restorer.newest(&Listing::read(&restorer.dir)?) {
            restorer.at = newest.max(begin);
        }
        Ok(restorer)
    }

    /// Where the newest segment begins that was made. Those of a framed log follow one another.
    fn newest(&self, listing: &Listing) -> Option<Lsn> {
        let (first, capacity) = (self.segment_of(self.begin), self.shape.segment_capacity_bytes());
        let expected = (first.get()..).step_by(usize::try_from(capacity).ok()?);
        let may_lack_some = !self.shape.layout().has_every_segment();
        let made = listing.files.iter().zip(expected);
        let follows = |file: &SegmentFile, expected| may_lack_some || file.first.get() == expected;
        let made = made.take_while(|(file, expected)| follows(file, *expected));
        made.last().map(|(file, _)| file.first)
    }

    fn new(
        dir: Dir,
        shape: LogShape,
        options: &RestoreOptions,
        rights: Rights,
        begin: Lsn,
    ) -> Restorer {
        let (at, options) = (begin, options.clone());
        let (segment, gap_files, is_noted) = (None, 0, true);
        Restorer { dir, shape, options, rights, begin, at, segment, gap_files, is_noted }
    }

    /// Where the next byte goes.
    pub fn position(&self) -> Lsn {
        self.at
    }

    /// Says which file of a text log follows. Positions between the last byte and its start hold
    /// nothing.
    ///
    /// # Errors
    ///
    /// [`InvalidOption`](crate::ErrorKind::InvalidOption) for a framed log, or a position before
    /// the last byte or at which no segment starts; otherwise as for [`write`](Restorer::write).
    pub fn file(&mut self, file: FileName) -> Result<()> {
        let FileName { start, time, is_continuation } = file;
        let is_new = start > self.at || start == self.segment_of(self.at);
        if !self.shape.layout().names_have_times() || !is_new || self.segment_of(start) != start {
            let message = format!("no file of the log can start at {start}");
            return Err(self.refuse(ErrorKind::InvalidOption, message));
        }
        if self.is_open(start) {
            return Ok(());
        }
        let name = time.map(|time| text_file_name(time, start, is_continuation));
        self.open(start, &name.unwrap_or_else(|| file_name(start)))?;
        self.at = start;
        Ok(())
    }

    /// Writes the bytes at `lsn`, which is where the last ones ended.
    ///
    /// # Errors
    ///
    /// [`OutOfRange`](crate::ErrorKind::OutOfRange) for another position, or for bytes over the end
    /// of a text file; [`NoSpace`](crate::ErrorKind::NoSpace); [`Io`](crate::ErrorKind::Io). After
    /// a sync that failed, [`position`](Restorer::position) is where the segment begins that could
    /// not be synced: its bytes are to be written again.
    ///
    /// # Durability
    ///
    /// None until [`finish`](Restorer::finish). All segments but the newest are on the device.
    pub fn write(&mut self, lsn: Lsn, mut bytes: &[u8]) -> Result<()> {
        if lsn != self.at || lsn.get().saturating_add(bytes.len() as u64) > Lsn::MAX.get() {
            let message = format!("{lsn} cannot be restored: the log ends at {} so far", self.at);
            return Err(self.refuse(ErrorKind::OutOfRange, message));
        }
        while !bytes.is_empty() {
            let first = self.segment_of(self.at);
            let room = first.get() + self.shape.segment_capacity_bytes() - self.at.get();
            let (now, later) = bytes.split_at(room.min(bytes.len() as u64) as usize);
            let offset = self.shape.layout().file_header_len() + (self.at.get() - first.get());
            let open = self.segment_at(first)?;
            sys::file::write_all_at(&open.fd, now, offset).or_os("restore", &open.path)?;
            if now.len() as u64 >= EARLY {
                // The device works while the next bytes come.
                sys::sync::begin_to_write_back(&open.fd, offset, now.len() as u64);
            }
            self.at = Lsn::new(self.at.get() + now.len() as u64);
            bytes = later;
        }
        Ok(())
    }

    /// Leaves the positions up to `to` out: they were lost before they were shipped. Readers of a
    /// framed log skip them; those of a text log find that its files are gone.
    ///
    /// # Errors
    ///
    /// [`OutOfRange`](crate::ErrorKind::OutOfRange) for a position before the last byte, or at
    /// which no record can start; those of [`check_room`](Restorer::check_room), before anything is
    /// written; otherwise as for [`write`](Restorer::write).
    ///
    /// # Cost
    ///
    /// In a framed log a file of two blocks for each segment, up to 65,536 files in one restore.
    pub fn gap(&mut self, to: Lsn) -> Result<()> {
        let alignment = self.shape.layout().alignment();
        let is_aligned = |lsn: Lsn| lsn.get().is_multiple_of(alignment);
        if to < self.at || to > Lsn::MAX || !(is_aligned(to) && is_aligned(self.at)) {
            let message = format!("no gap can end at {to}: the log ends at {} so far", self.at);
            return Err(self.refuse(ErrorKind::OutOfRange, message));
        }
        let gap_files = self.gap_files + room::gap_files(&self.shape, self.at, to);
        if gap_files > self.gap_files {
            room::check(self.dir.path(), &self.shape, &Need { bytes: 0, gap_files })?;
            self.gap_files = gap_files;
        }
        if to > self.at {
            self.lose(self.at, to);
        }
        self.pad(to)
    }

    /// Has the log know that records between two positions were left out.
    #[doc(hidden)]
    pub fn lose(&mut self, from: Lsn, end: Lsn) {
        self.shape.identity.lose(from, end);
        self.is_noted = false;
    }

    /// Writes the range that was left out into the note, before a segment is made behind the range:
    /// a restore that is resumed continues from the note.
    fn note_lost(&mut self) -> Result<()> {
        if let Some((from, end)) = self.shape.identity.lost.filter(|_| !self.is_noted) {
            let path = self.dir.join(RESTORING_NAME);
            let note = || -> rustix::io::Result<()> {
                let fd = self.dir.open_file(&path, OFlags::RDWR)?;
                sys::file::write_all_at(&fd, &note::lost_bytes(from, end), note::LOST_OFFSET)?;
                sys::sync::sync(&fd)
            };
            note().or_os("note what was left out in", &path)?;
        }
        self.is_noted = true;
        Ok(())
    }

    /// Writes pads up to `to`, where a frame may start.
    #[doc(hidden)]
    pub fn pad(&mut self, to: Lsn) -> Result<()> {
        while self.shape.layout().has_every_segment() && self.at < to {
            let first = self.segment_of(self.at);
            let end = Lsn::new(first.get() + self.shape.segment_capacity_bytes()).min(to);
            let (codec, len) = (Codec::new(self.shape.geometry.secret), end.get() - self.at.get());
            self.write(self.at, &codec.pad(self.at, len).to_bytes())?;
            self.at = end;
        }
        self.at = to;
        Ok(())
    }

    /// Adds a small file that the log has beside its segments.
    #[doc(hidden)]
    pub fn add(&self, name: &str, bytes: &[u8]) -> Result<()> {
        let path = self.dir.join(name);
        let fd = self.rights.create(&self.dir, &path, "make")?;
        sys::file::write_all_at(&fd, bytes, 0)
            .and_then(|()| sys::sync::sync(&fd))
            .or_os("write", &path)
    }

    /// Makes the log whole and durable; returns its end. The next process that opens it recovers
    /// it, as a log that has lost its control file, and it begins another epoch.
    ///
    /// # Errors
    ///
    /// As for [`write`](Restorer::write); [`InvalidOption`](crate::ErrorKind::InvalidOption) for a
    /// text log without a file. The restore can be finished again, or resumed.
    ///
    /// # Durability
    ///
    /// When it returns, the log survives a power cut.
    pub fn finish(mut self) -> Result<Lsn> {
        let is_named = !self.shape.layout().names_have_times();
        if is_named && self.segment.is_none() && Listing::read(&self.dir)?.files.is_empty() {
            self.segment_at(self.segment_of(self.begin))?;
        }
        if Listing::read(&self.dir)?.files.is_empty() {
            let message = "nothing was written: no text log begins without a file".into();
            return Err(self.refuse(ErrorKind::InvalidOption, message));
        }
        self.close(true)?;
        let bytes = self.shape.restored(self.at, self.options.keeps_retention, fork_step());
        let unfinished = self.dir.join(UNFINISHED_CONTROL_NAME);
        let fd = self.rights.create(&self.dir, &unfinished, "make the geometry file")?;
        sys::file::write_all_at(&fd, &bytes, 0).or_os("write", &unfinished)?;
        name_geometry(&self.dir, &fd)?;
        sync_names(&self.dir)?;
        let note = self.dir.join(RESTORING_NAME);
        self.dir.unlink(&note).or_os("remove", &note)?;
        sync_log_names(&self.dir)?;
        if makes_link(&self.shape, &self.options) {
            named::make_link(self.dir.path());
        }
        Ok(self.at)
    }

    /// The segment at `first`, which is open, or is made now.
    fn segment_at(&mut self, first: Lsn) -> Result<&Open> {
        if !self.is_open(first) {
            if self.shape.layout().names_have_times() {
                let message = format!("the file at {first} has no name yet");
                return Err(self.refuse(ErrorKind::OutOfRange, message));
            }
            self.open(first, &file_name(first))?;
        }
        Ok(self.segment.as_ref().expect("was just opened"))
    }

    fn is_open(&self, first: Lsn) -> bool {
        self.segment.as_ref().is_some_and(|open| open.first == first)
    }

    /// Makes the file of the segment at `first`, in the place of one that a restore left that died.
    fn open(&mut self, first: Lsn, name: &str) -> Result<()> {
        self.close(false)?;
        self.note_lost()?;
        let path = self.dir.join(name);
        let fd = self.rights.create(&self.dir, &path, "make a segment")?;
        if self.shape.layout().file_header_len() > 0 {
            self.write_header(&fd, first).or_os("restore", &path)?;
        }
        self.segment = Some(Open { first, path, fd });
        Ok(())
    }

    fn write_header(&self, fd: &OwnedFd, first: Lsn) -> rustix::io::Result<()> {
        let geometry = &self.shape.geometry;
        if geometry.is_staged() {
            sys::file::overwrite_in_place(fd);
        }
        let is_oldest = self.segment_of(self.begin) == first;
        // Also at the start of the segment: a commit record may know an earlier begin.
        let begin = if is_oldest { self.begin } else { Lsn::ZERO };
        let header = SegmentHeader::new(geometry.secret, first, geometry.segment_capacity, begin);
        let mut block = vec![0; HEADER_LEN as usize];
        block[..size_of::<SegmentHeader>()].copy_from_slice(header.as_bytes());
        sys::file::write_all_at(fd, &block, 0)
    }

    /// Brings the segment that is written to the device; the last one of a framed log gets the
    /// length, and of a staged one the blocks, that records need that come later.
    fn close(&mut self, is_last: bool) -> Result<()> {
        let Some(Open { first, path, fd }) = self.segment.take() else { return Ok(()) };
        let geometry = &self.shape.geometry;
        let len = HEADER_LEN + geometry.segment_capacity;
        let settle = || -> rustix::io::Result<()> {
            if !geometry.layout.ends_with_records() {
                sys::file::set_len(&fd, len)?;
            }
            let written = HEADER_LEN + (self.at.get() - first.get()).min(geometry.segment_capacity);
            if is_last && geometry.is_staged() {
                sys::file::write_zeros_at(&fd, written, len - written, ZEROS_BYTES_MAX)?;
            }
            sys::sync::sync(&fd)?;
            if !is_last {
                // The one that is last is read when the log is opened.
                sys::file::forget_pages(&fd);
            }
            // So that the next one is not there without this one.
            self.dir.sync()
        };
        let settled = settle().or_os("sync the segment", &path);
        if settled.is_err() {
            // All of it is written once more: the kernel takes the pages for clean.
            self.at = first.max(self.begin);
        }
        settled
    }

    fn segment_of(&self, lsn: Lsn) -> Lsn {
        Lsn::new(lsn.get() - lsn.get() % self.shape.segment_capacity_bytes())
    }

    fn refuse(&self, kind: ErrorKind, message: String) -> Error {
        Error::new(kind, message).at_path(&self.dir).at_lsn(self.at)
    }
}

impl std::fmt::Debug for Restorer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Restorer").field("dir", &self.dir.path()).finish_non_exhaustive()
    }
}

/// Whether something is in the directory that does not belong beside a log that is restored there.
fn is_taken(dir: &Dir, options: &RestoreOptions) -> Result<bool> {
    let has_log = |name: &str| [CONTROL_NAME, GEOMETRY_NAME, RESTORING_NAME].contains(&name);
    let names = names(dir)?;
    Ok(match options.may_have_others {
        true => names.iter().any(|name| has_log(name)) || !list(dir)?.is_empty(),
        false => names.iter().any(|name| name != LOST_AND_FOUND_NAME),
    })
}

fn makes_link(shape: &LogShape, options: &RestoreOptions) -> bool {
    options.file_link && shape.layout().names_have_times()
}

/// The directory of the log that is restored to `path`.
fn directory(path: &Path, shape: &LogShape, options: &RestoreOptions) -> PathBuf {
    named::directory(path, makes_link(shape, options))
}

fn check_begin(shape: &LogShape, begin: Lsn, dir: &Path) -> Result<()> {
    let capacity = shape.segment_capacity_bytes();
    let unit = match shape.layout().names_have_times() {
        true => capacity,
        false => shape.layout().alignment(),
    };
    if (capacity..=Lsn::MAX.get()).contains(&begin.get()) && begin.get().is_multiple_of(unit) {
        return Ok(());
    }
    let message = format!("no log with segments of {capacity} bytes begins at {begin}");
    Err(Error::new(ErrorKind::InvalidOption, message).at_path(dir))
}
