//! C standard I/O in append mode: `fwrite` and `fflush` for each record.
//!
//! The flush is needed, for without it a record is not in the log when the call returns, and
//! records of several processes would mix where the buffer happens to be full. The buffer is
//! made one byte larger than a record: at the library's own size (4 KiB) a larger record goes out
//! in two calls to `write`, between which another process may write.
//!
//! # Safety
//!
//! A room for unsafe code: the C library's streams. A stream belongs to one appender and is
//! closed once, when that is dropped, before its buffer is freed.
#![allow(unsafe_code)]

use std::ffi::CString;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::ptr::NonNull;

use crate::error::{Context, Error, Result};
use crate::setting::Setting;
use crate::ways::plain::{PlainFile, whole};
use crate::ways::{Appender, Prepared, Way};

/// The size of the buffer unless a record needs a larger one.
const BUFFER_BYTES: usize = 4096;

pub(crate) struct Stdio;

impl Way for Stdio {
    fn prepare(&self, dir: &Path, setting: &Setting) -> Result<Box<dyn Prepared>> {
        PlainFile::create(dir, setting, |path, bytes| {
            let stream = Stream::open(path, bytes);
            Ok(Box::new(stream.context(|| format!("fopen {}", path.display()))?))
        })
    }
}

/// A stream of the C library.
pub(crate) struct Stream {
    stream: NonNull<libc::FILE>,
    /// The buffer of the stream; it must outlive the stream.
    _buffer: Box<[u8]>,
}

impl Stream {
    fn open(path: &Path, bytes: usize) -> io::Result<Stream> {
        let path = CString::new(path.as_os_str().as_bytes())?;
        // SAFETY: both arguments are NUL-terminated and live through the call.
        let stream = unsafe { libc::fopen(path.as_ptr(), c"a".as_ptr()) };
        let stream = NonNull::new(stream).ok_or_else(io::Error::last_os_error)?;
        let mut buffer = vec![0_u8; BUFFER_BYTES.max(bytes + 1)].into_boxed_slice();
        let (start, len) = (buffer.as_mut_ptr(), buffer.len());
        let stream = Stream { stream, _buffer: buffer };
        // SAFETY: the stream is open and nothing was done with it yet; the buffer is `len` bytes on
        // the heap that no other code uses until the stream is closed.
        let result =
            unsafe { libc::setvbuf(stream.stream.as_ptr(), start.cast(), libc::_IOFBF, len) };
        if result == 0 { Ok(stream) } else { Err(io::Error::last_os_error()) }
    }

    /// Opens a file that exists, to write from its beginning, with the library's own buffer.
    pub(crate) fn overwriting(path: &Path) -> io::Result<Stream> {
        let path = CString::new(path.as_os_str().as_bytes())?;
        // SAFETY: both arguments are NUL-terminated and live through the call.
        let stream = unsafe { libc::fopen(path.as_ptr(), c"r+".as_ptr()) };
        let stream = NonNull::new(stream).ok_or_else(io::Error::last_os_error)?;
        Ok(Stream { stream, _buffer: Box::default() })
    }

    /// Puts all of `bytes` into the buffer or, where that is full, into the file.
    #[inline]
    pub(crate) fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        let is_whole = self.fwrite(bytes) == bytes.len();
        if is_whole { Ok(()) } else { Err(io::Error::last_os_error()) }
    }

    /// Writes what is in the buffer.
    #[inline]
    pub(crate) fn flush(&mut self) -> io::Result<()> {
        // SAFETY: the stream is open until we are dropped.
        let result = unsafe { libc::fflush(self.stream.as_ptr()) };
        if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
    }

    #[inline]
    fn fwrite(&mut self, bytes: &[u8]) -> usize {
        // SAFETY: the stream is open until we are dropped; `bytes` is that many bytes.
        unsafe { libc::fwrite(bytes.as_ptr().cast(), 1, bytes.len(), self.stream.as_ptr()) }
    }
}

impl Appender for Stream {
    #[inline]
    fn append(&mut self, record: &[u8]) -> Result<()> {
        whole("fwrite", self.fwrite(record), record.len())?;
        self.flush().map_err(|error| Error::os("fflush", error))
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        // SAFETY: the stream is open and not used again. A caller that needs the bytes in the file
        // has flushed it, so nothing can fail that this would have to report.
        let _ = unsafe { libc::fclose(self.stream.as_ptr()) };
    }
}
