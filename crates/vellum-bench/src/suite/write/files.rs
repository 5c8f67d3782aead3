//! One file for each thread: nothing is shared but the filesystem, and nothing is in one file.

use std::fs::File;
use std::path::PathBuf;

use super::cache::Cache;
use super::clock::together;
use super::entry::{Job, Sample, Site};
use super::mapped::shares;
use super::source::Source;
use super::state::State;
use super::verify;
use crate::error::{Context, Result};

pub(super) struct Files {
    pub(super) cache: Cache,
    pub(super) state: State,
    pub(super) threads: u32,
    pub(super) piece_bytes: usize,
}

/// One of the files.
struct Part {
    file: File,
    first: u64,
    len: u64,
}

impl Job for Files {
    fn run(&self, site: &Site<'_>) -> Result<Sample> {
        let mut preparation = 0;
        let mut parts = Vec::new();
        for (index, (first, len)) in shares(site.bytes, self.threads).into_iter().enumerate() {
            let path = path(site, index);
            let (_made, nanos) = self.state.make(&path, len)?;
            preparation += nanos;
            let file = self.cache.open(&path).trying("open the file")?;
            parts.push(Part { file, first, len });
        }
        let writers = parts.iter().map(|part| {
            let mut source = Source::new(self.piece_bytes, site.round);
            move || self.write(part, &mut source)
        });
        let write = together(writers.collect())?;
        // By threads too: one after the other would wait for the device as often.
        let syncers = parts.iter().map(|part| move || part.file.sync_all().trying("fsync"));
        let sync = together(syncers.collect())?;
        Ok(Sample::new(preparation, write, sync))
    }

    fn verify(&self, site: &Site<'_>) -> Result<()> {
        let mut shares = shares(site.bytes, self.threads).into_iter().enumerate();
        let verify =
            |(index, (first, len))| verify::stamped(&path(site, index), first, len, site.round);
        shares.try_for_each(verify)
    }
}

impl Files {
    fn write(&self, part: &Part, source: &mut Source) -> Result<()> {
        for offset in (0..part.len).step_by(self.piece_bytes) {
            let len = (part.len - offset).min(self.piece_bytes as u64) as usize;
            let piece = source.piece(part.first + offset, len);
            self.cache.write_at(&part.file, piece, offset).trying("pwrite")?;
        }
        Ok(())
    }
}

fn path(site: &Site<'_>, index: usize) -> PathBuf {
    site.dir.join(format!("part-{index}"))
}
