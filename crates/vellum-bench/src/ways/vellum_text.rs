//! A Vellum text log. Read back as a log shipper would: from the segment files, as plain files.
//!
//! The segments in order of name hold the bytes of the log. A segment is named by its time and the
//! LSN of its first byte; in the last one the published end of the log is where its data ends, and
//! the rest was prepared and is not data. A sealed segment ends where its file ends.

use std::fs;
use std::path::{Path, PathBuf};

use vellum::{Layout, Options};

use crate::error::{Context, Result};
use crate::setting::Setting;
use crate::verify::Splitter;
use crate::ways::plain::read_pieces;
use crate::ways::{Appender, Prepared, Way, vellum_log};

pub(crate) struct VellumText {
    options: Options,
}

impl VellumText {
    pub(crate) fn new(options: &Options) -> VellumText {
        VellumText { options: options.clone() }
    }
}

impl Way for VellumText {
    fn can_trim(&self) -> bool {
        true
    }

    fn disk_bytes(&self, setting: &Setting) -> u64 {
        vellum_log::disk_bytes(setting)
    }

    fn prepare(&self, dir: &Path, setting: &Setting) -> Result<Box<dyn Prepared>> {
        let dir = dir.join("log");
        vellum_log::create(&self.options, Layout::Text, &dir)?;
        Ok(Box::new(TextLog { options: self.options.clone(), dir, bytes: setting.bytes }))
    }
}

/// Shows `visit` the records of the text log in `dir`, each `bytes` long.
pub(crate) fn read_log(dir: &Path, bytes: usize, visit: &mut dyn FnMut(&[u8])) -> Result<()> {
    let options = Options::default();
    TextLog { options, dir: dir.to_path_buf(), bytes }.read_back(visit)
}

struct TextLog {
    options: Options,
    dir: PathBuf,
    bytes: usize,
}

impl Prepared for TextLog {
    fn open(&self, _process: u32) -> Result<Box<dyn Appender>> {
        vellum_log::open(&self.options, Layout::Text, &self.dir)
    }

    fn read_back(&self, visit: &mut dyn FnMut(&[u8])) -> Result<()> {
        let log = vellum_log::open_read_only(&self.options, Layout::Text, &self.dir)?;
        let (begin, published) = (log.begin().get(), log.published().get());
        let mut splitter = Splitter::new(self.bytes);
        for (first_lsn, path) in segments(&self.dir)? {
            // A trimmed log begins within its first segment.
            let mut skipped = begin.saturating_sub(first_lsn);
            let len = published.saturating_sub(first_lsn);
            read_pieces(&path, len, &mut |piece| {
                let skip = skipped.min(piece.len() as u64);
                skipped -= skip;
                splitter.feed(&piece[skip as usize..], visit);
            })?;
        }
        splitter.finish(visit);
        Ok(())
    }
}

/// The segment files of the log in `dir`, each with the LSN that it is named by, in order.
fn segments(dir: &Path) -> Result<Vec<(u64, PathBuf)>> {
    let mut segments = Vec::new();
    for entry in fs::read_dir(dir).context(|| format!("list {}", dir.display()))? {
        let path = entry.context(|| format!("list {}", dir.display()))?.path();
        let stem = path.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
        // A file that continues the one before it.
        let stem = stem.strip_suffix("-more").unwrap_or(stem);
        let is_segment = path.extension().is_some_and(|extension| extension == "log");
        let first_lsn = stem.rsplit_once('-').map(|(_, lsn)| u64::from_str_radix(lsn, 16));
        if is_segment && let Some(Ok(first_lsn)) = first_lsn {
            segments.push((first_lsn, path));
        }
    }
    segments.sort();
    Ok(segments)
}
