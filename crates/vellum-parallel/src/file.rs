//! The result file and its life: create, prepare, write, finish.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::fs::OFlags;
use vellum::internal::OsResult;
use vellum::{Error, ErrorKind, Result};
use vellum_sys as sys;

use super::buffer::{Buffer, Pool};
use super::coverage::Coverage;
use super::reorder::{PARKED_BYTES_MAX_DEFAULT, Parked, Placement, ReorderBuffer};
use super::write_path::WritePath;
use super::{FileOptions, Method, lock};

/// A spilled piece is moved this much at a time.
const MOVE_BYTES: u64 = 1 << 20;

/// A file that several threads write at the same time, each its own pieces.
///
/// Made by [`FileOptions::create`]. Everything but [`finish`](ResultFile::finish) takes `&self`:
/// share it among the threads of a scope, or in an `Arc`. No other code may write the file or
/// change its length meanwhile. A file that is dropped without being finished is removed.
///
/// The first error of any thread ends the work: later calls answer the same error.
#[derive(Debug)]
pub struct ResultFile {
    path: PathBuf,
    options: FileOptions,
    fd: OwnedFd,
    write_path: WritePath,
    pool: Pool,
    coverage: Mutex<Coverage>,
    reorder: ReorderBuffer,
    has_failed: AtomicBool,
    failure: Mutex<Option<Error>>,
    is_finished: bool,
}

/// The result of finishing a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Finished {
    /// Its length, in bytes.
    pub len: u64,
    /// How many of them were written; the others are gaps and read as zeros.
    pub written: u64,
    /// How many numbered pieces there were; 0 without [`FileOptions::slots`].
    pub pieces: u64,
    /// The method that was used, never [`Method::Auto`].
    pub method: Method,
}

impl ResultFile {
    pub(super) fn create(options: FileOptions, path: &Path) -> Result<ResultFile> {
        if options.len.is_some() && options.piece_bytes_max.is_some() {
            let message = "a file of known length has no slots; give either `len` or `slots`";
            return Err(Error::new(ErrorKind::InvalidOption, message).at_path(path));
        }
        sys::file::check_size_limit(options.len.unwrap_or(0))
            .or_os("make a file as long as this", path)?;
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL;
        let fd = sys::file::open(path, flags, options.mode.unwrap_or(0o666))
            .or_os("create the result file", path)?;
        let parked_bytes_max = options.parked_bytes_max.unwrap_or(PARKED_BYTES_MAX_DEFAULT);
        let write_path = WritePath::choose(&fd, path, options.len, options.method, options.sync);
        let write_path = write_path.or_os("look at the result file", path).inspect_err(|_| {
            let _ = rustix::fs::unlink(path);
        })?;
        Ok(ResultFile {
            path: path.to_path_buf(),
            options,
            fd,
            write_path,
            pool: Pool::default(),
            coverage: Mutex::default(),
            reorder: ReorderBuffer::new(parked_bytes_max),
            has_failed: AtomicBool::new(false),
            failure: Mutex::default(),
            is_finished: false,
        })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The method in use, never [`Method::Auto`].
    pub fn method(&self) -> Method {
        self.write_path.method()
    }

    /// Does ahead what can be done ahead of the first piece; what, depends on the method. Without
    /// [`FileOptions::len`] there is nothing to do.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::NoSpace`] where the blocks of the file are not to be had.
    ///
    /// # Cost
    ///
    /// On disk filesystems about a millisecond. On tmpfs about 0.1 s for a GiB; without it the
    /// pages are allocated by the threads that write, which in all takes about as long. A thread
    /// may prepare while others write already.
    pub fn prepare(&self) -> Result<()> {
        if self.options.len.is_none_or(|len| len == 0) {
            return Ok(());
        }
        let prepared = self.write_path.prepare(self.fd.as_fd());
        self.noted(prepared.or_os("allocate the result file", &self.path))
    }

    /// Memory of `len` bytes, of any content, that [`Method::Direct`] writes as it is.
    ///
    /// # Cost
    ///
    /// Direct writes are fastest from aligned memory in huge pages; a piece in other memory, such
    /// as a `Vec`, is copied first, a mebibyte at a time. Dropped buffers are used again, so their
    /// pages are there already.
    pub fn buffer(&self, len: usize) -> Buffer<'_> {
        Buffer::new(&self.pool, len)
    }

    /// Writes `bytes` at `offset`. Pieces may begin, end and follow in any order, and must not
    /// overlap.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::OutOfRange`] where a piece ends beyond [`FileOptions::len`];
    /// [`ErrorKind::InvalidOption`] where it overlaps another, or the file has
    /// [slots](FileOptions::slots); [`ErrorKind::NoSpace`] where the disk is full; the first
    /// error of any thread, where there has been one.
    ///
    /// # Durability
    ///
    /// None before [`finish`](ResultFile::finish).
    ///
    /// # Cost
    ///
    /// One system call for a large piece, a few where it is not aligned. The ends of pieces (up to
    /// 64 KiB each) are kept in memory by [`Method::Direct`] until their neighbours come, up to
    /// 64 MiB in all.
    pub fn write_at(&self, offset: u64, bytes: &[u8]) -> Result<()> {
        self.check()?;
        self.noted(self.claim_and_put(offset, bytes))
    }

    fn claim_and_put(&self, offset: u64, bytes: &[u8]) -> Result<()> {
        if self.options.piece_bytes_max.is_some() {
            let message = "a file with slots takes numbered pieces; use `write_piece`";
            return Err(self.wrong(ErrorKind::InvalidOption, message));
        }
        let len = self.options.len.unwrap_or(i64::MAX as u64);
        let end = offset.checked_add(bytes.len() as u64).filter(|end| *end <= len);
        let Some(end) = end else {
            let piece = format!("{} bytes at offset {offset}", bytes.len());
            let message = format!("{piece} do not fit into a file of {len} bytes");
            return Err(self.wrong(ErrorKind::OutOfRange, message));
        };
        if bytes.is_empty() {
            return Ok(());
        }
        lock(&self.coverage).claim(offset, end).map_err(|taken| {
            let piece = format!("{} bytes at offset {offset}", bytes.len());
            let message = format!("{piece} overlap another piece at offset {taken}");
            self.wrong(ErrorKind::InvalidOption, message)
        })?;
        self.put(offset, bytes)
    }

    /// Hands in piece `index`, counted from 0, of a file with [slots](FileOptions::slots).
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidOption`] where the piece was handed in before, is longer than a slot, or
    /// the file has none; else as [`write_at`](ResultFile::write_at).
    ///
    /// # Durability
    ///
    /// None before [`finish`](ResultFile::finish).
    ///
    /// # Cost
    ///
    /// As [`write_at`](ResultFile::write_at) where all earlier pieces have been handed in, and the
    /// later ones that have waited for it too. Otherwise a copy of `bytes`.
    pub fn write_piece(&self, index: u64, bytes: &[u8]) -> Result<()> {
        self.check()?;
        self.noted(self.enter_piece(index, bytes))
    }

    fn enter_piece(&self, index: u64, bytes: &[u8]) -> Result<()> {
        let len = bytes.len() as u64;
        let max = self.options.piece_bytes_max.unwrap_or(0);
        if self.options.piece_bytes_max.is_none() || len > max {
            let message = format!("piece {index} of {len} bytes is longer than a slot ({max})");
            return Err(self.wrong(ErrorKind::InvalidOption, message));
        }
        let placement = self.reorder.enter(index, len).map_err(|_| {
            let message = format!("piece {index} was handed in before");
            self.wrong(ErrorKind::InvalidOption, message)
        })?;
        let place = match placement {
            Placement::Write(offset) => Some(offset),
            Placement::Park { in_memory: true } => {
                self.reorder.park(index, Parked::Memory(bytes.to_vec()))
            }
            Placement::Park { in_memory: false } => {
                let parked = self.reorder.spill(&self.path, bytes);
                self.reorder.park(index, parked.or_os("park a piece beside", &self.path)?)
            }
        };
        match place {
            Some(offset) => {
                self.put(offset, bytes)?;
                self.write_parked()
            }
            None => Ok(()),
        }
    }

    /// Writes the parked pieces whose places have become known.
    fn write_parked(&self) -> Result<()> {
        while let Some((offset, parked)) = self.reorder.next_parked() {
            match &parked {
                Parked::Memory(bytes) => self.put(offset, bytes)?,
                Parked::File { offset: from, len } => self.bring_back(offset, *from, *len)?,
            }
            self.reorder.release(&parked);
        }
        Ok(())
    }

    /// Moves a spilled piece to its place.
    fn bring_back(&self, to: u64, from: u64, len: u64) -> Result<()> {
        let mut buffer = self.buffer(MOVE_BYTES.min(len) as usize);
        let mut moved = 0;
        while moved < len {
            let part_len = (len - moved).min(MOVE_BYTES) as usize;
            let part = &mut buffer[..part_len];
            let read = self.reorder.read_back(part, from + moved);
            read.or_os("read a piece parked beside", &self.path)?;
            self.put(to + moved, part)?;
            moved += part_len as u64;
        }
        Ok(())
    }

    /// Writes bytes that no other piece has.
    fn put(&self, offset: u64, bytes: &[u8]) -> Result<()> {
        let put = self.write_path.write(self.fd.as_fd(), &self.pool, offset, bytes);
        put.map_err(|errno| {
            let operation = format!("write {} bytes at offset {offset} of", bytes.len());
            Error::os(errno, &operation, &self.path)
        })
    }

    fn wrong(&self, kind: ErrorKind, message: impl Into<String>) -> Error {
        Error::new(kind, message).at_path(&self.path)
    }

    /// Keeps the first error, for all threads.
    fn noted<T>(&self, answer: Result<T>) -> Result<T> {
        if let Err(error) = &answer {
            lock(&self.failure).get_or_insert_with(|| error.clone());
            self.has_failed.store(true, Ordering::Release);
        }
        answer
    }

    /// Answers the first error, where there has been one.
    fn check(&self) -> Result<()> {
        if !self.has_failed.load(Ordering::Acquire) {
            return Ok(());
        }
        lock(&self.failure).as_ref().map_or(Ok(()), |error| Err(error.clone()))
    }

    /// Ends the work: the file has its exact length, and all that was written is in it.
    ///
    /// # Errors
    ///
    /// The first error of any thread; [`ErrorKind::InvalidOption`] where a numbered piece is
    /// missing; errors of the filesystem for the last writes. The file is removed then, unless
    /// [`FileOptions::keep_partial`] says otherwise.
    ///
    /// # Durability
    ///
    /// With [`FileOptions::sync`] the content, the length and the name survive a power cut when
    /// this returns. Without, the kernel writes the file back in its own time.
    ///
    /// # Cost
    ///
    /// The cells that are still open, one change of length; with sync one `fsync` of the file and
    /// one of its directory: [`Method::Direct`] leaves little for them to write.
    pub fn finish(mut self) -> Result<Finished> {
        self.check()?;
        let (pieces, len, written) = self.extent()?;
        self.complete(len)?;
        self.is_finished = true;
        Ok(Finished { len, written, pieces, method: self.method() })
    }

    /// How many pieces there are, where the file ends, and how much of it is written.
    fn extent(&self) -> Result<(u64, u64, u64)> {
        if self.options.piece_bytes_max.is_some() {
            let end = self.reorder.end().map_err(|missing| {
                let message = format!("piece {missing} is missing, and later ones are there");
                self.wrong(ErrorKind::InvalidOption, message)
            });
            return end.map(|(pieces, end)| (pieces, end, end));
        }
        let coverage = lock(&self.coverage);
        Ok((0, self.options.len.unwrap_or(coverage.end()), coverage.covered()))
    }

    fn complete(&self, len: u64) -> Result<()> {
        let kept = self.write_path.finish(self.fd.as_fd(), &self.pool);
        kept.or_os("write the ends of pieces of", &self.path)?;
        // To set the length that it has makes XFS write everything back first.
        if sys::file::len(&self.fd).or_os("look at", &self.path)? != len {
            sys::file::set_len(&self.fd, len).or_os("set the length of", &self.path)?;
        }
        if self.options.sync {
            sys::sync::sync(&self.fd).or_os("sync", &self.path)?;
            let dir = sys::file::directory_of(&self.path);
            sys::file::open(dir, OFlags::RDONLY | OFlags::DIRECTORY, 0)
                .and_then(sys::sync::sync_names)
                .or_os("sync the directory", dir)?;
        }
        Ok(())
    }

    /// Whether the name still is this file's.
    fn is_at(&self, fd: BorrowedFd<'_>) -> bool {
        match (rustix::fs::fstat(fd), rustix::fs::lstat(&self.path)) {
            (Ok(mine), Ok(found)) => (mine.st_dev, mine.st_ino) == (found.st_dev, found.st_ino),
            _ => false,
        }
    }
}

impl Drop for ResultFile {
    fn drop(&mut self) {
        if !self.is_finished && !self.options.keep_partial && self.is_at(self.fd.as_fd()) {
            let _ = rustix::fs::unlink(&self.path);
        }
    }
}
