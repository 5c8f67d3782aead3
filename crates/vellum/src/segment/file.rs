//! An open segment that records are stored to, through its mapping or by `pwrite`.
//!
//! A store into a page beyond the end of the file loses the mapping (`sys::guard`), so the file's
//! length is asked of the kernel, never of a shared word: once per stretch that is made ready.

use std::borrow::Borrow;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};

use rustix::fs::OFlags;
use rustix::io::{self, Errno};

use crate::error::OsResult;
use crate::format::control::Geometry;
use crate::format::segment::path;
use crate::segment::open::WriteSegment;
use crate::segment::stage::{self, Stage};
use crate::segment::target::Target;
use crate::sys::filesystem::Filesystem;
use crate::sys::{self, Dir, Map};
use crate::{DeviceWrite, Error, ErrorKind, Fill, Lsn, Result};

/// How much of a mapping is populated at a time; 64 KiB was 10 % slower (`docs/benchmarks.md`).
const POPULATE_BYTES: usize = 256 << 10;

/// An open segment file.
pub(crate) struct Segment {
    /// Where bytes go: the file itself, or its stage.
    pub(crate) file: WriteSegment,
    /// The file itself for direct, synchronous writes from the stage, once opened.
    target: Target,
    map: Option<Map>,
    /// Length of the file when it was last asked for; it only grows while records can go there.
    file_len: AtomicUsize,
    /// File offset below which stores are known not to fault badly: inside the file, and
    /// populated where that pays.
    ready_len: AtomicUsize,
}

impl Segment {
    /// Opens the segment at `first` for writing, mapping it where the log fills by mapping.
    pub(crate) fn open(
        dir: &Dir,
        path: PathBuf,
        geometry: &Geometry,
        first: Lsn,
    ) -> Result<Segment> {
        let mut segment = Segment::of(WriteSegment::open(dir, path, geometry, first)?);
        if geometry.fill == Fill::Mapped {
            let len = (segment.file.header_len + geometry.segment_capacity) as usize;
            let map = map_or_write(segment.fd(), len);
            segment.map = map.or_unmapped("map the segment", &segment.file.path)?;
        }
        Ok(segment)
    }

    /// Opens the stage of the segment at `first`, mapped where that is safe: by a mapping
    /// of `used`, if it is one of this file.
    pub(crate) fn open_staged(
        dir: &Dir,
        stage: &Stage,
        geometry: &Geometry,
        first: Lsn,
        used: &mut Vec<UsedStage>,
    ) -> Result<Segment> {
        let fd = stage::open(dir, first, OFlags::RDWR)?;
        let len = (geometry.layout.file_header_len() + geometry.segment_capacity) as usize;
        let map = match UsedStage::take_map_of(used, &fd) {
            None if stage.is_mapped => map_or_write(fd.as_fd(), len),
            map => Ok(map),
        };
        let map = map.or_unmapped("map the stage", &stage.path(first))?;
        let file = WriteSegment::new(geometry, first, path(dir, first), fd);
        Ok(Segment { map, ..Segment::of(file) })
    }

    /// The open segment, without a mapping.
    pub(crate) fn of(file: WriteSegment) -> Segment {
        let (file_len, ready_len) = (AtomicUsize::new(0), AtomicUsize::new(0));
        Segment { file, target: Target::default(), map: None, file_len, ready_len }
    }

    /// The parts of an old stage that may serve again.
    pub(crate) fn into_used_stage(self) -> Option<UsedStage> {
        Some(UsedStage { file: sys::file::identity(self.fd()).ok()?, map: self.map? })
    }

    /// Writes what is staged from `begin` to `end`, which lie in this segment, to the file. It
    /// survives a power cut after [`sync_target`](Segment::sync_target).
    pub(crate) fn write_staged(
        &self,
        dir: &Dir,
        by: DeviceWrite,
        begin: Lsn,
        end: Lsn,
    ) -> io::Result<()> {
        let (begin, end) = (self.offset_of(begin), self.offset_of(end));
        self.target.write(dir, &self.file.path, by, |target| {
            if let Some(map) = self.kept_map() {
                map.write_to(target, begin, end)?;
            }
            // A lost mapping does not show the staged records of others.
            match self.kept_map() {
                Some(_) => Ok(()),
                None => sys::file::copy_aligned(self.fd(), target, begin, end),
            }
        })
    }

    /// Whether an error of [`write_staged`](Segment::write_staged) says only that there is no space
    /// for its bytes: written again when there is, they are on the device.
    pub(crate) fn had_no_space(&self, errno: Errno) -> bool {
        crate::error::FULL.contains(&errno) && self.target.is_direct()
    }

    /// Waits until what this process has written from the stage survives a power cut.
    pub(crate) fn sync_target(&self, filesystem: Filesystem, by: DeviceWrite) -> io::Result<()> {
        self.target.sync(filesystem, by)
    }

    /// The file that staged records are written to, opened once.
    pub(crate) fn open_target(&self, dir: &Dir, by: DeviceWrite) -> io::Result<()> {
        self.target.open(dir, &self.file.path, by).map(drop)
    }

    /// Reports if the kernel has failed to bring something of this stage to the device, and may
    /// have thrown it away. The range is that which was read before.
    pub(crate) fn check_stage(&self, begin: Lsn, end: Lsn) -> io::Result<()> {
        let offset = self.offset_of(begin);
        sys::sync::check_written_back(self.fd(), offset, self.offset_of(end) - offset)
    }

    /// Moves the modification time of the file, which has a published byte at `lsn`: stores through
    /// a mapping leave it alone while their page is dirty, and programs that copy changed files
    /// (rsync) go by it. A hint.
    pub(crate) fn touch(&self, lsn: Lsn) {
        sys::file::touch_at(self.fd(), self.offset_of(lsn));
    }

    /// Offset in the file of a position, which must not lie before the segment.
    #[inline]
    pub(crate) fn offset_of(&self, lsn: Lsn) -> u64 {
        self.file.offset_of(lsn)
    }

    /// The open file.
    pub(crate) fn fd(&self) -> BorrowedFd<'_> {
        self.file.fd()
    }

    /// Refuses descriptors that the program has closed, and may have given to files of its own.
    pub(crate) fn check_open(&self) -> Result<()> {
        let checked = self.file.check().and_then(|()| self.target.check());
        checked.or_os("write by the descriptor of", &self.file.path)
    }

    /// Whether a descriptor is another file's, or none, by now.
    pub(crate) fn is_another_file(&self) -> bool {
        self.file.check() == Err(Errno::BADF) || self.target.check() == Err(Errno::BADF)
    }

    /// Bytes of address space this segment takes.
    pub(crate) fn mapped_len(&self) -> u64 {
        self.map.as_ref().map_or(0, |map| map.len() as u64)
    }

    /// The mapping, with `len` bytes at `offset` ready to be stored to. Asks `ready_end` up to
    /// which position the log has been made ready, only when it has to look.
    #[inline]
    pub(crate) fn mapped(
        &self,
        offset: u64,
        len: usize,
        ready_end: impl FnOnce() -> Lsn,
    ) -> Result<Option<&Map>> {
        let Some(map) = self.kept_map() else { return Ok(None) };
        if offset as usize + len > self.ready_len.load(Ordering::Relaxed) {
            self.make_ready(map, offset as usize, len, ready_end())?;
        }
        Ok(Some(map))
    }

    /// Up to which position the mapping is ready to be stored to; zero without one.
    pub(crate) fn ready_end(&self) -> Lsn {
        let ready = match &self.map {
            Some(_) => self.ready_len.load(Ordering::Relaxed) as u64,
            None => 0,
        };
        Lsn::new(self.file.first.get() + ready.saturating_sub(self.file.header_len))
    }

    /// This, with its mapping, under which storage may have failed.
    #[inline]
    pub(crate) fn with_map(&self) -> Option<(&Segment, &Map)> {
        self.map.as_ref().map(|map| (self, map))
    }

    /// The mapping, unless storage has failed under it: then system calls return the error.
    #[inline]
    pub(crate) fn kept_map(&self) -> Option<&Map> {
        self.map.as_ref().filter(|map| !map.is_lost())
    }

    /// Refuses a file that was cut behind a reservation in it.
    #[cold]
    pub(crate) fn check_len(&self, offset: u64, len: usize) -> Result<()> {
        let file_len =
            sys::file::len(self.fd()).or_os("read the length of", &self.file.path)? as usize;
        let end = offset as usize + len;
        if end <= file_len { Ok(()) } else { Err(self.was_cut(file_len, end)) }
    }

    fn was_cut(&self, file_len: usize, end: usize) -> Error {
        let message = format!(
            "the segment ends at byte {file_len} although space up to {end} was reserved in it; \
             something other than Vellum has changed the file"
        );
        Error::new(ErrorKind::Corrupt, message).at_path(&self.file.path)
    }

    /// Checks that the bytes are inside the file, and populates from there on where this process
    /// has been writing close by.
    #[cold]
    fn make_ready(&self, map: &Map, offset: usize, len: usize, ready_end: Lsn) -> Result<()> {
        let end = offset + len;
        let mut file_len = self.file_len.load(Ordering::Relaxed);
        // A file that grows may be longer by now, and have more to populate.
        if end + POPULATE_BYTES > file_len {
            file_len =
                sys::file::len(self.fd()).or_os("read the length of", &self.file.path)? as usize;
            self.file_len.store(file_len, Ordering::Relaxed);
        }
        let limit = file_len.min(map.len());
        if end > limit {
            return Err(self.was_cut(file_len, end));
        }
        let ready = self.ready_len.load(Ordering::Relaxed);
        let is_close = ready > 0 && offset < ready + POPULATE_BYTES;
        let ready = if is_close {
            // Beyond what was made ready lie holes, which cost many times more to populate.
            let ready_end =
                ready_end.get().saturating_sub(self.file.first.get()) + self.file.header_len;
            // A long record's own pages are enough: the next record is another's more often.
            let ahead = if len < POPULATE_BYTES / 16 { POPULATE_BYTES } else { 0 };
            let target = (end + ahead).min(limit).min(ready_end as usize).max(end);
            map.populate(offset, target - offset);
            target
        } else {
            end
        };
        self.ready_len.fetch_max(ready, Ordering::Relaxed);
        Ok(())
    }

    /// Populates what was made ready from `begin` to `ready_end`, before it is needed.
    pub(crate) fn make_ready_ahead(&self, begin: Lsn, ready_end: Lsn) -> Result<()> {
        let Some(map) = self.kept_map() else { return Ok(()) };
        let begin = (self.offset_of(begin) as usize).max(self.ready_len.load(Ordering::Relaxed));
        let end = (self.offset_of(ready_end) as usize).min(map.len());
        if begin < end {
            let file_len =
                sys::file::len(self.fd()).or_os("read the length of", &self.file.path)?;
            let end = end.min(file_len as usize);
            map.populate(begin, end.saturating_sub(begin));
            self.ready_len.fetch_max(end, Ordering::Relaxed);
        }
        Ok(())
    }
}

impl Borrow<WriteSegment> for Segment {
    fn borrow(&self) -> &WriteSegment {
        &self.file
    }
}

/// The mapping of a stage that is over. Its file is mostly that of a stage to come, and the page
/// tables of the mapping know the pages of it.
pub(crate) struct UsedStage {
    file: (u64, u64),
    map: Map,
}

impl UsedStage {
    /// The mapping of the file that is open as `fd`, if there is one.
    fn take_map_of(used: &mut Vec<UsedStage>, fd: &OwnedFd) -> Option<Map> {
        // A mapping keeps its file, so no other one has the number.
        let file = sys::file::identity(fd).ok()?;
        let at = used.iter().position(|stage| stage.file == file)?;
        Some(used.remove(at).map).filter(|map| !map.is_lost())
    }
}

/// Maps a segment; `None` where this process may lock no more memory (`mlockall`), or files cannot
/// be mapped: then records are written by system call.
fn map_or_write(fd: BorrowedFd<'_>, len: usize) -> io::Result<Option<Map>> {
    match Map::new(fd, len, true) {
        Err(Errno::AGAIN | Errno::NODEV) => Ok(None),
        answer => answer.map(Some),
    }
}
