//! Writes block after block, and tells each number when it is durable.

use std::fs::File;
use std::io::Write;
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::fs::OFlags;
use rustix::io::Errno;
use vellum_sys::Dir;

use super::place::{
    BLOCK_LEN, OVERWRITTEN, OVERWRITTEN_BLOCKS, Place, Way, content, dir_in, opened_in, place,
};
use super::promises::{Head, RUN_FILE};
use super::witness::Witness;
use crate::error::{Context, Error, Result};
use crate::interrupt::is_asked;

/// When writing ends that no cut ends.
#[derive(Clone, Copy, Debug, Default)]
pub struct Limits {
    /// After so many blocks.
    pub blocks: Option<u64>,
    /// After so long.
    pub time: Option<Duration>,
}

/// Writes below `dir` until the plug is pulled, a limit is reached or the run is to end
/// ([`end_runs_when_readable`](crate::end_runs_when_readable)). Returns the last number. The
/// witness is not told of the end; that is for the caller, who knows whether a cut is to come.
///
/// # Errors
///
/// There are blocks already, a write or a flush failed, or the witness does not hear.
pub fn write(dir: &Path, witness: &mut dyn Witness, limits: Limits) -> Result<u64> {
    let mut writer = Writer::new(dir)?;
    witness.hear(&writer.head.to_string())?;
    let begun = Instant::now();
    let mut number = 0;
    let is_over = |number: u64| {
        limits.blocks.is_some_and(|blocks| number >= blocks)
            || limits.time.is_some_and(|time| begun.elapsed() >= time)
            || is_asked()
    };
    while !is_over(number) {
        writer.write(number + 1)?;
        number += 1;
        witness.hear(&number.to_string())?;
    }
    Ok(number)
}

/// The directory of the blocks, and what is open in it.
struct Writer {
    head: Head,
    dir: Dir,
    /// To be flushed after a file was made in it.
    itself: File,
    overwritten: File,
    grown: Option<(String, File)>,
}

impl Writer {
    /// Makes the directory. What it needs is durable before the first promise.
    fn new(tested: &Path) -> Result<Writer> {
        let (path, head) = (dir_in(tested), Head::new(tested)?);
        let what = || format!("make {}", path.display());
        let parent = Dir::open(tested).context(what)?;
        match parent.make_subdirectory(&path, 0o755) {
            Err(Errno::EXIST) => {
                let path = path.display();
                return Err(Error::invalid(format!(
                    "{path} is there: has it been checked? Remove it then"
                )));
            }
            made => made.context(what)?,
        }
        let dir = opened_in(tested).context(what)?;
        let itself = File::from(dir.descriptor().context(what)?);
        let mut run = File::from(made(&dir, RUN_FILE).context(what)?);
        run.write_all(format!("{head}\n").as_bytes()).context(what)?;
        run.sync_all().context(what)?;
        let zeros = vec![0; BLOCK_LEN * OVERWRITTEN_BLOCKS as usize];
        let file = File::from(made(&dir, OVERWRITTEN).context(what)?);
        file.write_all_at(&zeros, 0).and_then(|()| file.sync_all()).context(what)?;
        let overwritten = dir.open_file(Path::new(OVERWRITTEN), OFlags::WRONLY | OFlags::DSYNC);
        let overwritten = File::from(overwritten.context(what)?);
        itself.sync_all().context(what)?;
        File::from(parent.descriptor().context(what)?).sync_all().context(what)?;
        Ok(Writer { head, dir, itself, overwritten, grown: None })
    }

    /// Has the block of a number durable.
    fn write(&mut self, number: u64) -> Result<()> {
        let place = place(number);
        let bytes = content(self.head.run, number);
        let what = || format!("write block {number}");
        if let Some(removed) = &place.removed {
            self.dir.unlink(Path::new(removed)).context(what)?;
        }
        match place.way {
            Way::Grown => {
                let file = self.grown(&place)?;
                file.write_all_at(&bytes, place.offset).context(what)?;
                file.sync_data().context(what)
            }
            Way::Overwritten => self.overwritten.write_all_at(&bytes, place.offset).context(what),
            Way::New => {
                let mut file = File::from(made(&self.dir, &place.name).context(what)?);
                file.write_all(&bytes).context(what)?;
                file.sync_all().context(what)?;
                self.itself.sync_all().context(what)
            }
        }
    }

    /// The file that grows now. Its directory entry is durable before its first block.
    fn grown(&mut self, place: &Place) -> Result<&File> {
        if self.grown.as_ref().is_none_or(|(name, _)| *name != place.name) {
            let what = || format!("make {}", place.name);
            let file = File::from(made(&self.dir, &place.name).context(what)?);
            self.itself.sync_all().context(what)?;
            self.grown = Some((place.name.clone(), file));
        }
        match &self.grown {
            Some((_, file)) => Ok(file),
            None => Err(Error::failed("there is no file that grows")),
        }
    }
}

/// Makes a new file. Nothing else can have its name: the directory is new.
fn made(dir: &Dir, name: &str) -> rustix::io::Result<OwnedFd> {
    dir.create(Path::new(name), 0o644)
}
