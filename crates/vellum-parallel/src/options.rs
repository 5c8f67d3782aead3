//! How a result file is made: [`FileOptions`].

use std::path::Path;

use vellum::Result;

use super::{Method, ResultFile};

/// How to make a result file: a builder.
///
/// ```
/// # let dir = tempfile::tempdir().unwrap();
/// # let path = dir.path().join("result.gz");
/// use vellum_parallel::FileOptions;
///
/// // Pieces whose sizes are known when they are there, as those of a compressor.
/// let file = FileOptions::new().slots(1 << 20).sync(true).create(&path)?;
/// file.write_piece(1, b"second")?;
/// file.write_piece(0, b"first ")?;
/// let finished = file.finish()?;
/// assert_eq!((finished.len, finished.pieces), (12, 2));
/// # assert_eq!(std::fs::read(&path).unwrap(), b"first second");
/// # Ok::<(), vellum_parallel::Error>(())
/// ```
#[derive(Clone, Debug, Default)]
#[must_use]
pub struct FileOptions {
    pub(super) len: Option<u64>,
    pub(super) piece_bytes_max: Option<u64>,
    pub(super) parked_bytes_max: Option<u64>,
    pub(super) method: Method,
    pub(super) sync: bool,
    pub(super) keep_partial: bool,
    pub(super) mode: Option<u32>,
}

impl FileOptions {
    /// Options for a file of unknown length: it ends where the last piece ends.
    pub fn new() -> FileOptions {
        FileOptions::default()
    }

    /// The exact length of the finished file, in bytes. Space is made ready ahead only with it.
    /// Ranges that are not written read as zeros.
    pub fn len(mut self, bytes: u64) -> FileOptions {
        self.len = Some(bytes);
        self
    }

    /// Numbered pieces instead of offsets: each at most `piece_bytes_max` bytes long and behind the
    /// piece before it, handed in by [`ResultFile::write_piece`] in any order.
    ///
    /// # Cost
    ///
    /// A piece is written at its final place as soon as all pieces before it have been handed in.
    /// One that comes earlier is copied: into memory as far as
    /// [`parked_bytes_max`](FileOptions::parked_bytes_max) allows, else into a nameless file in the
    /// same directory. So pieces that come nearly in order cost nothing, and in the worst order
    /// (the first comes last) all that does not fit into that memory is written twice.
    pub fn slots(mut self, piece_bytes_max: u64) -> FileOptions {
        self.piece_bytes_max = Some(piece_bytes_max);
        self
    }

    /// Memory for numbered pieces that come before their predecessors, in bytes. Default: 64 MiB.
    pub fn parked_bytes_max(mut self, bytes: u64) -> FileOptions {
        self.parked_bytes_max = Some(bytes);
        self
    }

    /// Which way pieces take into the file. Default: [`Method::Auto`].
    pub fn method(mut self, method: Method) -> FileOptions {
        self.method = method;
        self
    }

    /// Whether [`ResultFile::finish`] waits until the file survives a power cut. Default: no.
    pub fn sync(mut self, sync: bool) -> FileOptions {
        self.sync = sync;
        self
    }

    /// Whether a file that is never finished, or fails to be, is left as it is. Default: no, it is
    /// removed.
    pub fn keep_partial(mut self, keep: bool) -> FileOptions {
        self.keep_partial = keep;
        self
    }

    /// Permission bits of the file, before the umask. Default: `0o666`.
    pub fn mode(mut self, mode: u32) -> FileOptions {
        self.mode = Some(mode);
        self
    }

    /// Makes the file. It has its name at once, so a process that is killed leaves a part of it.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::AlreadyExists`](vellum::ErrorKind::AlreadyExists) where there is a file at
    /// `path`; [`ErrorKind::InvalidOption`](vellum::ErrorKind::InvalidOption) where both
    /// [`len`](FileOptions::len) and [`slots`](FileOptions::slots) are given;
    /// [`ErrorKind::NoSpace`](vellum::ErrorKind::NoSpace) where the process may not write files as
    /// long as this.
    ///
    /// # Cost
    ///
    /// A few system calls; space is allocated by [`ResultFile::prepare`] or the first writes.
    pub fn create(&self, path: impl AsRef<Path>) -> Result<ResultFile> {
        ResultFile::create(self.clone(), path.as_ref())
    }
}
