//! The channel of records: the log, pipe or memory of a way, its writers, and its reader.

use std::fs::File;
use std::hint;
use std::io::Write as _;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::inotify;
use rustix::io::Errno;
use rustix::pipe::{PipeFlags, fcntl_setpipe_size, pipe_with};
use vellum::internal::with_layout;
use vellum::{Create, Layout, Log, Options, Reader, SegmentKeeper};

use super::LatencyWay;
use crate::error::{Context, Result};
use crate::setting::Setting;
use crate::verify::Splitter;
use crate::ways::plain::open_append;
use crate::ways::vellum_log::failed;
use crate::ways::{Appender, Prepared, WayName};

/// Segments that the thread of a writer keeps ready.
const SEGMENTS_KEPT: u64 = 2;
/// The size of a read of a file or a pipe.
const READ_BYTES: usize = 64 << 10;
/// As much as a user may give a pipe by default.
const PIPE_BYTES: usize = 1 << 20;
/// Memory of a writer of the way `floor`: more than one record, and less than a cache.
const MEMORY_BYTES: usize = 1 << 20;

/// Made before the writers and the reader are forked.
pub(super) struct Channel {
    way: LatencyWay,
    options: Options,
    dir: PathBuf,
    bytes: usize,
    /// The log or file; `None` for a pipe, and for memory.
    prepared: Option<Box<dyn Prepared>>,
    pipe: Option<(OwnedFd, OwnedFd)>,
}

/// The reader's side.
pub(super) trait Follower {
    /// Shows `visit` all records that have come. If there are none, waits for them up to
    /// `patience`, where there is any.
    fn take(&mut self, patience: Option<Duration>, visit: &mut dyn FnMut(&[u8])) -> Result<()>;
}

impl Channel {
    /// A log or file in `dir`, which is empty.
    pub(super) fn new(
        way: LatencyWay,
        options: &Options,
        dir: &Path,
        setting: &Setting,
    ) -> Result<Channel> {
        let medium = match way {
            LatencyWay::VellumFramed | LatencyWay::VellumFramedKept => {
                Some(WayName::VellumFramed.way(options))
            }
            LatencyWay::VellumText => Some(WayName::VellumText.way(options)),
            LatencyWay::VellumWal | LatencyWay::VellumWalKept => {
                Some(WayName::VellumFramed.way(&Options::wal().exclusive(false)))
            }
            LatencyWay::Write | LatencyWay::WriteFdatasync => Some(WayName::Write.way(options)),
            LatencyWay::Writev => Some(WayName::Writev.way(options)),
            LatencyWay::Pipe | LatencyWay::Floor => None,
        };
        let prepared = medium.map(|medium| medium.prepare(dir, setting)).transpose()?;
        let pipe = (way == LatencyWay::Pipe).then(make_pipe).transpose()?;
        let (dir, options, bytes) = (dir.join("log"), options.clone(), setting.bytes);
        Ok(Channel { way, options, dir, bytes, prepared, pipe })
    }

    /// The writer of one process; called there.
    pub(super) fn writer(&self, process: u32) -> Result<Box<dyn Appender>> {
        match (&self.prepared, &self.pipe) {
            (Some(prepared), _) => match self.way {
                LatencyWay::VellumWal => Ok(Box::new(WalWriter { log: self.open_wal()? })),
                LatencyWay::VellumWalKept => KeptWriter::start(self.open_wal()?),
                LatencyWay::VellumFramedKept => {
                    let options = with_layout(self.options.clone(), Layout::Framed);
                    let log = options.create(Create::Never).open(&self.dir);
                    KeptWriter::start(log.map_err(|error| failed(&error))?)
                }
                LatencyWay::WriteFdatasync => {
                    let (writer, file) = (prepared.open(process)?, open_append(&self.dir)?);
                    Ok(Box::new(SyncedWriter { writer, file }))
                }
                _ => prepared.open(process),
            },
            (None, Some((_, end))) => {
                let pipe = end.try_clone().context(|| "duplicate the end of the pipe")?;
                Ok(Box::new(PipeWriter { pipe: File::from(pipe) }))
            }
            (None, None) => Ok(Box::new(MemoryWriter::new())),
        }
    }

    /// The reader; called in its process.
    pub(super) fn follower(&self) -> Result<Box<dyn Follower>> {
        match (self.way, &self.pipe) {
            (_, Some((begin, _))) => {
                let pipe = begin.try_clone().context(|| "duplicate the end of the pipe")?;
                rustix::io::ioctl_fionbio(&pipe, true).context(|| "set up the pipe")?;
                Ok(Box::new(PipeReader { pipe, splitter: Splitter::new(self.bytes) }))
            }
            (LatencyWay::VellumFramed | LatencyWay::VellumFramedKept, _) => {
                self.log_reader(Layout::Framed)
            }
            (LatencyWay::VellumWalKept, _) => reader_of(self.open_wal()?),
            (LatencyWay::VellumText, _) => self.log_reader(Layout::Text),
            _ => Ok(Box::new(FileReader::open(&self.dir, self.bytes)?)),
        }
    }

    /// Shows `visit` every record that was made durable.
    pub(super) fn read_back(&self, visit: &mut dyn FnMut(&[u8])) -> Result<()> {
        self.prepared.as_ref().map_or(Ok(()), |prepared| prepared.read_back(visit))
    }

    fn open_wal(&self) -> Result<Log> {
        Options::wal()
            .exclusive(false)
            .create(Create::Never)
            .open(&self.dir)
            .map_err(|error| failed(&error))
    }

    fn log_reader(&self, layout: Layout) -> Result<Box<dyn Follower>> {
        let options = with_layout(self.options.clone(), layout).create(Create::Never);
        // Opened for writing: a reader that may only read is not woken.
        reader_of(options.open(&self.dir).map_err(|error| failed(&error))?)
    }
}

fn reader_of(log: Log) -> Result<Box<dyn Follower>> {
    let reader = log.reader(log.begin()).map_err(|error| failed(&error))?;
    Ok(Box::new(LogReader { reader }))
}

fn make_pipe() -> Result<(OwnedFd, OwnedFd)> {
    let (begin, end) = pipe_with(PipeFlags::CLOEXEC).context(|| "make a pipe")?;
    // Without the right to that, the pipe is as long as the system makes it.
    let _ = fcntl_setpipe_size(&end, PIPE_BYTES);
    Ok((begin, end))
}

/// Memory of the writer, all of it touched: the cost of a store, and nothing else.
struct MemoryWriter {
    memory: Box<[u8]>,
    at: usize,
}

impl MemoryWriter {
    fn new() -> MemoryWriter {
        MemoryWriter { memory: vec![1; MEMORY_BYTES].into_boxed_slice(), at: 0 }
    }
}

impl Appender for MemoryWriter {
    fn append(&mut self, record: &[u8]) -> Result<()> {
        if self.at + record.len() > self.memory.len() {
            self.at = 0;
        }
        self.memory[self.at..self.at + record.len()].copy_from_slice(record);
        self.at += record.len();
        hint::black_box(&self.memory);
        Ok(())
    }
}

struct PipeWriter {
    pipe: File,
}

impl Appender for PipeWriter {
    fn append(&mut self, record: &[u8]) -> Result<()> {
        self.pipe.write_all(record).context(|| "write to the pipe")
    }
}

struct SyncedWriter {
    writer: Box<dyn Appender>,
    /// The same file.
    file: File,
}

impl Appender for SyncedWriter {
    fn append(&mut self, record: &[u8]) -> Result<()> {
        self.writer.append(record)?;
        self.file.sync_data().context(|| "fdatasync")
    }
}

struct WalWriter {
    log: Log,
}

impl Appender for WalWriter {
    fn append(&mut self, record: &[u8]) -> Result<()> {
        self.log.append_durable(record).map(drop).map_err(|error| failed(&error))
    }
}

/// A writer beside a thread that keeps segments ready.
struct KeptWriter {
    /// Before the log, which it uses.
    _keeper: SegmentKeeper,
    log: Log,
}

impl KeptWriter {
    fn start(log: Log) -> Result<Box<dyn Appender>> {
        let keeper = log.keep_prepared(SEGMENTS_KEPT).map_err(|error| failed(&error))?;
        Ok(Box::new(KeptWriter { _keeper: keeper, log }))
    }
}

impl Appender for KeptWriter {
    fn append(&mut self, record: &[u8]) -> Result<()> {
        self.log.append(record).map(drop).map_err(|error| failed(&error))
    }
}

struct LogReader {
    reader: Reader,
}

impl Follower for LogReader {
    fn take(&mut self, patience: Option<Duration>, visit: &mut dyn FnMut(&[u8])) -> Result<()> {
        let first = match patience {
            Some(patience) => self.reader.follow(Some(patience)),
            None => self.reader.next(),
        };
        match first.map_err(|error| failed(&error))? {
            Some(record) => visit(record.payload),
            None => return Ok(()),
        }
        while let Some(record) = self.reader.next().map_err(|error| failed(&error))? {
            visit(record.payload);
        }
        Ok(())
    }
}

/// Reads a file that grows, as `tail -f` does.
struct FileReader {
    file: File,
    changes: OwnedFd,
    offset: u64,
    splitter: Splitter,
    buffer: Vec<u8>,
}

impl FileReader {
    fn open(path: &Path, bytes: usize) -> Result<FileReader> {
        let open = || format!("watch {}", path.display());
        let flags = inotify::CreateFlags::NONBLOCK | inotify::CreateFlags::CLOEXEC;
        let changes = inotify::init(flags).context(open)?;
        inotify::add_watch(&changes, path, inotify::WatchFlags::MODIFY).context(open)?;
        let file = File::open(path).context(open)?;
        let (splitter, buffer) = (Splitter::new(bytes), vec![0; READ_BYTES]);
        Ok(FileReader { file, changes, offset: 0, splitter, buffer })
    }

    /// Whether there was anything.
    fn read(&mut self, visit: &mut dyn FnMut(&[u8])) -> Result<bool> {
        let before = self.offset;
        loop {
            let len = self.file.read_at(&mut self.buffer, self.offset).context(|| "read")?;
            if len == 0 {
                return Ok(self.offset > before);
            }
            self.offset += len as u64;
            self.splitter.feed(&self.buffer[..len], visit);
        }
    }
}

impl Follower for FileReader {
    fn take(&mut self, patience: Option<Duration>, visit: &mut dyn FnMut(&[u8])) -> Result<()> {
        if self.read(visit)? {
            return Ok(());
        }
        let Some(patience) = patience else { return Ok(()) };
        wait_for(self.changes.as_fd(), patience)?;
        // Records of earlier changes are read below.
        drain(&self.changes, &mut self.buffer, &mut |_| {})?;
        self.read(visit).map(drop)
    }
}

struct PipeReader {
    pipe: OwnedFd,
    splitter: Splitter,
}

impl Follower for PipeReader {
    fn take(&mut self, patience: Option<Duration>, visit: &mut dyn FnMut(&[u8])) -> Result<()> {
        if let Some(patience) = patience {
            wait_for(self.pipe.as_fd(), patience)?;
        }
        let mut buffer = [0; READ_BYTES];
        drain(&self.pipe, &mut buffer, &mut |piece| self.splitter.feed(piece, visit))
    }
}

/// Sleeps until there is something to read.
fn wait_for(fd: BorrowedFd<'_>, patience: Duration) -> Result<()> {
    let timeout = Timespec::try_from(patience).unwrap_or_default();
    match poll(&mut [PollFd::new(&fd, PollFlags::IN)], Some(&timeout)) {
        Ok(_) | Err(Errno::INTR) => Ok(()),
        Err(error) => Err(error).context(|| "wait for records"),
    }
}

/// Reads until nothing is left.
fn drain(fd: &OwnedFd, buffer: &mut [u8], take: &mut dyn FnMut(&[u8])) -> Result<()> {
    loop {
        match rustix::io::read(fd, &mut *buffer) {
            Ok(0) | Err(Errno::AGAIN) => return Ok(()),
            Ok(len) => take(&buffer[..len]),
            Err(Errno::INTR) => {}
            Err(error) => return Err(error).context(|| "read"),
        }
    }
}
