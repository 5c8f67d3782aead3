//! The loggers of this crate: a Vellum text log, and plain `write`.

use std::fs::File;
use std::io::Write as _;
use std::path::Path;

use vellum::internal::with_layout;
use vellum::{Create, Layout, Log, Options};

use super::contender::{Contender, Kept, Logger, Session, VELLUM_DIR};
use crate::error::{Context, Result};
use crate::ways::plain::{open_append, whole};
use crate::ways::vellum_log::failed;

/// `Log::append`: one log for all threads.
pub(super) struct VellumText {
    pub(super) options: Options,
}

impl Contender for VellumText {
    fn name(&self) -> &str {
        "vellum-text"
    }

    fn kept(&self) -> Kept {
        Kept::VellumLog
    }

    fn open(&self, dir: &Path, _bytes: usize) -> Result<Box<dyn Logger>> {
        let options = with_layout(self.options.clone(), Layout::Text).create(Create::New);
        let log = options.open(dir.join(VELLUM_DIR)).map_err(|error| failed(&error))?;
        Ok(Box::new(TextLog { log }))
    }
}

struct TextLog {
    log: Log,
}

impl Logger for TextLog {
    fn session(&self) -> Result<Box<dyn Session + '_>> {
        Ok(Box::new(TextSession { log: &self.log }))
    }

    fn finish(self: Box<Self>) -> Result<u64> {
        Ok(0)
    }
}

struct TextSession<'a> {
    log: &'a Log,
}

impl Session for TextSession<'_> {
    fn log(&mut self, record: &[u8]) -> Result<()> {
        self.log.append(record).map(drop).map_err(|error| failed(&error))
    }
}

/// One call to `write` for each record, on one file for all threads, opened with `O_APPEND`.
pub(super) struct Write;

impl Contender for Write {
    fn name(&self) -> &str {
        super::BASELINE
    }

    fn open(&self, dir: &Path, _bytes: usize) -> Result<Box<dyn Logger>> {
        let path = dir.join("log");
        File::create_new(&path).context(|| format!("create {}", path.display()))?;
        Ok(Box::new(PlainFile { file: open_append(&path)? }))
    }
}

struct PlainFile {
    file: File,
}

impl Logger for PlainFile {
    fn session(&self) -> Result<Box<dyn Session + '_>> {
        Ok(Box::new(PlainSession { file: &self.file }))
    }

    fn finish(self: Box<Self>) -> Result<u64> {
        Ok(0)
    }
}

struct PlainSession<'a> {
    file: &'a File,
}

impl Session for PlainSession<'_> {
    fn log(&mut self, record: &[u8]) -> Result<()> {
        let written = self.file.write(record).context(|| "write")?;
        whole("write", written, record.len())
    }
}
