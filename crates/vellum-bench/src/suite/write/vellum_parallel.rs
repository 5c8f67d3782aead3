//! `vellum_parallel`: one file by several threads, in the way that it takes here by itself.

use std::fs::File;
use std::time::Instant;

use vellum::ErrorKind;
use vellum_parallel::FileOptions;

use super::clock::{Span, once, together};
use super::entry::{Job, Sample, Site};
use super::source::Source;
use crate::error::{Context, Error, Result};

pub(super) struct VellumParallel {
    /// Is the file made to be synced, or only synced when it is finished, as any file can be?
    pub(super) sync: bool,
    pub(super) threads: u32,
    pub(super) piece_bytes: usize,
}

impl Job for VellumParallel {
    fn run(&self, site: &Site<'_>) -> Result<Sample> {
        let begun = Instant::now();
        let options = FileOptions::new().len(site.bytes).sync(self.sync);
        let file = options.create(site.file()).map_err(failed)?;
        file.prepare().map_err(failed)?;
        let preparation = begun.elapsed().as_nanos() as u64;
        let ours = &file;
        let workers = (0..self.threads).map(|thread| {
            let mut source = Source::new(self.piece_bytes, site.round);
            move || {
                let step = self.piece_bytes * self.threads as usize;
                let first = self.piece_bytes as u64 * u64::from(thread);
                for offset in (first..site.bytes).step_by(step) {
                    let len = (site.bytes - offset).min(self.piece_bytes as u64) as usize;
                    ours.write_at(offset, source.piece(offset, len)).map_err(failed)?;
                }
                Ok(())
            }
        });
        let written = together(workers.collect())?;
        let finished = once(|| file.finish().map(drop).map_err(failed))?;
        if self.sync {
            return Ok(Sample::new(preparation, written, finished));
        }
        let write = Span { time: written.time + finished.time, cpu: written.cpu + finished.cpu };
        let file = File::open(site.file()).trying("open the file")?;
        let sync = once(|| file.sync_all().trying("fsync"))?;
        Ok(Sample::new(preparation, write, sync))
    }
}

fn failed(error: vellum::Error) -> Error {
    let text = format!("vellum: {error}");
    let is_unsupported = error.kind() == ErrorKind::Unsupported;
    if is_unsupported { Error::unsupported(text) } else { Error::failed(text) }
}
