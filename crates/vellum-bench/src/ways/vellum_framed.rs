//! A Vellum log of framed records. Read back through a reader, which checks each checksum.

use std::path::{Path, PathBuf};

use vellum::{Layout, Lsn, Options};

use crate::error::Result;
use crate::setting::Setting;
use crate::ways::vellum_log::{self, failed};
use crate::ways::{Appender, Prepared, Way};

pub(crate) struct VellumFramed {
    options: Options,
}

impl VellumFramed {
    pub(crate) fn new(options: &Options) -> VellumFramed {
        VellumFramed { options: options.clone() }
    }
}

impl Way for VellumFramed {
    fn can_trim(&self) -> bool {
        true
    }

    fn disk_bytes(&self, setting: &Setting) -> u64 {
        vellum_log::disk_bytes(setting)
    }

    fn prepare(&self, dir: &Path, _setting: &Setting) -> Result<Box<dyn Prepared>> {
        let dir = dir.join("log");
        vellum_log::create(&self.options, Layout::Framed, &dir)?;
        Ok(Box::new(FramedLog { options: self.options.clone(), dir }))
    }
}

struct FramedLog {
    options: Options,
    dir: PathBuf,
}

impl Prepared for FramedLog {
    fn open(&self, _process: u32) -> Result<Box<dyn Appender>> {
        vellum_log::open(&self.options, Layout::Framed, &self.dir)
    }

    fn read_back(&self, visit: &mut dyn FnMut(&[u8])) -> Result<()> {
        read_back(&self.options, &self.dir, visit)
    }
}

/// Shows `visit` every record of the framed log in `dir`.
pub(crate) fn read_back(options: &Options, dir: &Path, visit: &mut dyn FnMut(&[u8])) -> Result<()> {
    let log = vellum_log::open_read_only(options, Layout::Framed, dir)?;
    let mut reader = log.reader(Lsn::ZERO).map_err(|error| failed(&error))?;
    while let Some(record) = reader.next().map_err(|error| failed(&error))? {
        visit(record.payload);
    }
    Ok(())
}
