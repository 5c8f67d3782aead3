//! An open segment file: bytes go in by `pwrite`, and come out by `pread`.

use std::io::IoSlice;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::fs::OFlags;
use rustix::io::{self, Errno};

use crate::error::OsResult;
use crate::format::control::Geometry;
use crate::segment::mapped_end::MappedEnd;
use crate::segment::{packed, stage};
use crate::sys::cache::Uncached;
use crate::sys::kept::KeptFile;
use crate::sys::lock::Kind;
use crate::sys::{self, Dir, clock};
use crate::{Compression, Error, ErrorKind, Lsn, Result};

/// Byte of a segment file that its readers hold a shared lock on.
const PIN_BYTE: u64 = 0;

/// An open segment file, or its stage, that bytes are written to by system call.
pub struct WriteSegment {
    /// First position of the segment.
    pub first: Lsn,
    /// Path of the segment, also where its stage is open.
    pub path: PathBuf,
    fd: KeptFile,
    /// Bytes of the file before the log's own.
    pub header_len: u64,
}

impl WriteSegment {
    /// Opens the segment at `first`.
    pub fn open(dir: &Dir, path: PathBuf, geometry: &Geometry, first: Lsn) -> Result<WriteSegment> {
        let opened = dir.open_file(&path, OFlags::RDWR);
        let fd = opened.map_err(|errno| not_opened(errno, &path, first))?;
        Ok(WriteSegment::new(geometry, first, path, fd))
    }

    /// The segment at `first`, which is open as `fd`.
    pub fn new(geometry: &Geometry, first: Lsn, path: PathBuf, fd: OwnedFd) -> WriteSegment {
        let header_len = geometry.layout.file_header_len();
        WriteSegment { first, path, fd: KeptFile::new(fd), header_len }
    }

    /// Offset in the file of a position, which must not lie before the segment.
    #[inline]
    pub fn offset_of(&self, lsn: Lsn) -> u64 {
        self.header_len + (lsn.get() - self.first.get())
    }

    /// The open file.
    #[inline]
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }

    /// `BADF` where the program has closed the descriptor, which may be that of a file of its own.
    pub fn check(&self) -> io::Result<()> {
        self.fd.check()
    }

    /// Writes several pieces by one system call at `offset`, going on after a short write.
    ///
    /// The caller has seen to it that this process may write to the whole segment: asking here too
    /// would cost a short record a third of its time.
    #[inline]
    pub fn write_vectored(&self, pieces: &mut [IoSlice<'_>], offset: u64) -> Result<()> {
        sys::file::write_all_vectored_at(&self.fd, pieces, offset)
            .or_os("write to the segment", &self.path)
    }

    /// Writes by system call at `offset`.
    #[inline]
    pub fn write(&self, bytes: &[u8], offset: u64) -> Result<()> {
        sys::file::write_all_at(&self.fd, bytes, offset).or_os("write to the segment", &self.path)
    }
}

/// An open segment file of which only reading is asked.
///
/// While it is open the file is not used again for other records: it holds a shared lock on the
/// file's first byte, which a process that recycles it asks for.
pub struct ReadSegment {
    /// First position of the segment.
    pub first: Lsn,
    /// Path of the file.
    pub path: PathBuf,
    fd: KeptFile,
    /// The second in which the descriptor was compared last.
    compared_at: AtomicU64,
    header_len: u64,
    /// Whether this is the stage of the segment.
    pub is_staged: bool,
    end: MappedEnd,
    /// The pages of it that were not cached, for a reader that leaves no trace in the page cache.
    uncached: Uncached,
}

impl Drop for ReadSegment {
    fn drop(&mut self) {
        self.uncached.drop_all(&self.fd);
    }
}

impl ReadSegment {
    /// Opens the segment at `first`.
    pub fn open(dir: &Dir, path: PathBuf, geometry: &Geometry, first: Lsn) -> Result<ReadSegment> {
        let fd = dir.open_shared(&path).map_err(|errno| not_opened(errno, &path, first))?;
        let fd = match packed::compression_of(&path) {
            Compression::None => fd,
            compression => packed::unpack(fd, &path, compression, geometry.segment_capacity)?,
        };
        // Where there are no locks, readers notice by `begin` that a file was used again.
        let _ = sys::lock::try_lock(&fd, PIN_BYTE, Kind::Shared);
        let header_len = geometry.layout.file_header_len();
        Ok(ReadSegment::new(first, path, fd, header_len, false))
    }

    /// Opens the stage of the segment at `first`.
    pub fn open_staged(dir: &Dir, geometry: &Geometry, first: Lsn) -> Result<ReadSegment> {
        let fd = stage::open(dir, first, OFlags::RDONLY)?;
        let (header_len, path) = (geometry.layout.file_header_len(), stage::path(dir, first));
        Ok(ReadSegment::new(first, path, fd, header_len, true))
    }

    fn new(
        first: Lsn,
        path: PathBuf,
        fd: OwnedFd,
        header_len: u64,
        is_staged: bool,
    ) -> ReadSegment {
        let (fd, compared_at) = (KeptFile::new(fd), AtomicU64::new(clock::uptime()));
        let (end, uncached) = (MappedEnd::default(), Uncached::default());
        ReadSegment { first, path, fd, compared_at, header_len, is_staged, end, uncached }
    }

    /// Refuses a descriptor that the program has closed, and may have given to a file of its own.
    /// Compares it once a second.
    #[inline]
    fn check_open(&self) -> io::Result<()> {
        let now = clock::uptime();
        if self.compared_at.load(Ordering::Relaxed) != now {
            self.fd.check()?;
            self.compared_at.store(now, Ordering::Relaxed);
        }
        Ok(())
    }

    /// Has pages that were not in the page cache leave it again, once they were read.
    pub fn leave_no_trace(&mut self, capacity: u64) {
        self.uncached = Uncached::of(&self.fd, self.header_len + capacity);
    }

    /// Says that nothing before `lsn` is read again.
    #[inline]
    pub fn pass(&mut self, lsn: Lsn) {
        let offset = self.offset_of(lsn);
        self.uncached.drop_before(&self.fd, offset);
    }

    /// Whether it is the segment at `first`, or the stage of that.
    #[inline]
    pub(crate) fn is_at(&self, first: Lsn, is_staged: bool) -> bool {
        self.first == first && self.is_staged == is_staged
    }

    /// Whether its text was compressed, and is in memory.
    pub(crate) fn is_unpacked(&self) -> bool {
        packed::compression_of(&self.path) != Compression::None
    }

    /// Offset in the file of a position, which must not lie before the segment.
    pub fn offset_of(&self, lsn: Lsn) -> u64 {
        self.header_len + (lsn.get() - self.first.get())
    }

    /// Reads the bytes at `lsn`, fewer where the file ends.
    pub fn read(&self, lsn: Lsn, bytes: &mut [u8]) -> Result<usize> {
        let mut read = || sys::file::read_up_to_at(&self.fd, bytes, self.offset_of(lsn));
        self.check_open().and_then(|()| read()).or_os("read the segment", &self.path)
    }

    /// As [`read`](ReadSegment::read), through a mapping: for records that were published a moment
    /// ago in a segment that is not full.
    #[inline]
    pub fn read_end(&mut self, lsn: Lsn, bytes: &mut [u8]) -> Result<usize> {
        let offset = self.offset_of(lsn);
        match self.check_open().is_ok() && self.end.read(&self.fd, offset, bytes) {
            true => Ok(bytes.len()),
            false => self.read(lsn, bytes),
        }
    }

    /// The first position from `lsn` on at which the file stores something, or where its filesystem
    /// does not tell, `lsn`.
    pub fn next_data(&self, lsn: Lsn) -> Result<Option<Lsn>> {
        let data = sys::file::next_data(&self.fd, self.offset_of(lsn));
        let lsn_of = |offset: u64| Lsn::new(self.first.get() + (offset - self.header_len));
        Ok(data.or_os("look for data in", &self.path)?.map(lsn_of))
    }

    /// Where the last byte from `begin` to `end` ends that is not zero; `begin` without one.
    pub(crate) fn end_before_zeros(&self, begin: Lsn, end: Lsn) -> Result<Lsn> {
        let offset = self.offset_of(begin);
        let found = sys::file::end_before_zeros(&self.fd, offset, self.offset_of(end));
        let found = found.or_os("read the segment", &self.path)?;
        Ok(Lsn::new(begin.get() + (found - offset)))
    }

    /// Reads the first bytes of the file, without a check.
    pub fn read_header(&self, bytes: &mut [u8]) -> Result<usize> {
        sys::file::read_up_to_at(&self.fd, bytes, 0).or_os("read the segment", &self.path)
    }

    /// Whether nothing is stored at some place from `begin` to `end`, which lie in the file.
    pub fn has_hole(&self, begin: Lsn, end: Lsn) -> bool {
        sys::file::has_hole(&self.fd, self.offset_of(begin), self.offset_of(end))
    }

    /// Bytes of log that the file is long enough to hold.
    pub fn data_len(&self) -> Result<u64> {
        let len = self.check_open().and_then(|()| sys::file::len(&self.fd));
        Ok(len.or_os("read the length of", &self.path)?.saturating_sub(self.header_len))
    }
}

/// Whether no process reads the segment file at `path`, so that it may be used again.
pub fn is_unpinned(dir: &Dir, path: &Path) -> bool {
    let is_locked = || -> io::Result<bool> {
        let fd = dir.open_file(path, OFlags::RDWR)?;
        sys::lock::try_lock(&fd, PIN_BYTE, Kind::Exclusive)
    };
    is_locked().unwrap_or(false)
}

fn not_opened(errno: Errno, path: &Path, first: Lsn) -> Error {
    match errno {
        Errno::NOENT => {
            let message =
                format!("the segment of positions from {first} on is missing; restore the file");
            Error::new(ErrorKind::Corrupt, message).at_path(path).at_lsn(first)
        }
        errno => Error::os(errno, "open the segment", path),
    }
}
