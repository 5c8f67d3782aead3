//! The common part of the two Vellum ways: making the log, appending, waiting for the tail.

use std::path::Path;

use vellum::internal::with_layout;
use vellum::{Create, Layout, Log, Lsn, Options};

use crate::error::{Error, Result};
use crate::setting::Setting;
use crate::ways::Appender;

/// Room for segments that are prepared ahead, and for the control file.
const AHEAD_BYTES: u64 = 192 << 20;

/// Each record's header and padding, at most.
const FRAME_BYTES: u64 = 16;

/// The most bytes of the log on the disk.
pub(crate) fn disk_bytes(setting: &Setting) -> u64 {
    let frames = setting.total_records().saturating_mul(FRAME_BYTES);
    setting.total_bytes().saturating_add(frames).saturating_add(AHEAD_BYTES)
}

/// Creates an empty log in `dir`.
pub(crate) fn create(options: &Options, layout: Layout, dir: &Path) -> Result<()> {
    let options = with_layout(options.clone(), layout);
    options.open(dir).map(drop).map_err(|error| failed(&error))
}

/// Opens the log in `dir` for one process.
pub(crate) fn open(options: &Options, layout: Layout, dir: &Path) -> Result<Box<dyn Appender>> {
    let options = with_layout(options.clone(), layout).create(Create::Never);
    let log = options.open(dir).map_err(|error| failed(&error))?;
    Ok(Box::new(LogAppender { log }))
}

/// Opens the log in `dir` to read it.
pub(crate) fn open_read_only(options: &Options, layout: Layout, dir: &Path) -> Result<Log> {
    let options = with_layout(options.clone(), layout).create(Create::Never).read_only(true);
    options.open(dir).map_err(|error| failed(&error))
}

/// Vellum's errors are whole sentences: nothing to add.
#[cold]
pub(crate) fn failed(error: &vellum::Error) -> Error {
    Error::failed(error.to_string())
}

struct LogAppender {
    log: Log,
}

impl Appender for LogAppender {
    #[inline]
    fn append(&mut self, record: &[u8]) -> Result<()> {
        self.log.append(record).map(drop).map_err(|error| failed(&error))
    }

    fn append_marked(&mut self, record: &[u8]) -> Result<Option<u64>> {
        self.log.append(record).map(|lsn| Some(lsn.get())).map_err(|error| failed(&error))
    }

    fn trim(&mut self, before: u64) -> Result<()> {
        self.log.trim(Lsn::new(before)).map(drop).map_err(|error| failed(&error))
    }

    fn wait_readable(&mut self) -> Result<()> {
        // All appends have returned, so this is true at once unless something is wrong; then the
        // race's limit ends it. Yielding costs no process anything: all have finished.
        while self.log.published() < self.log.tail() {
            std::thread::yield_now();
        }
        Ok(())
    }
}
