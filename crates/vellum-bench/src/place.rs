//! Where a suite is run: in the directory given, and on filesystems made for the run.

use std::fs;
use std::path::{Path, PathBuf};

use clap::Args;
use vellum_command::private_dir::PrivateDir;

use crate::conditions::{filesystem_of, free_bytes, keeps_old_blocks};
use crate::error::{Context, Error, Result};
use crate::interrupt;
use crate::progress::{Event, Progress};
use crate::scratch::{Making, Room, ScratchKind};
use crate::sys;

/// So many times as much as stays free.
const FREE_SHARE: u64 = 10;

/// Where a suite is measured, and how often.
#[derive(Args, Clone, Debug)]
#[non_exhaustive]
pub struct Scope {
    /// A directory that exists, on the filesystem of interest. A run makes a new directory in it
    /// and removes that at the end.
    #[arg(skip)]
    pub directory: PathBuf,
    /// Is the filesystem of that directory measured? The default is yes.
    #[arg(skip = true)]
    pub in_directory: bool,
    /// Filesystems to make for the run and to measure too; the default is none. Needs root.
    #[arg(skip)]
    pub scratch: Vec<ScratchKind>,
    /// How they are made.
    #[arg(skip)]
    pub making: Making,
    /// How many rounds are counted
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u32).range(1..=1000))]
    #[arg(default_value = "5")]
    pub rounds: u32,
    /// Quick settings, as far as nothing else is asked for
    #[arg(long)]
    pub quick: bool,
}

impl Scope {
    /// `rounds` rounds in `directory`.
    pub(crate) fn new(directory: impl Into<PathBuf>, rounds: u32) -> Scope {
        let (scratch, making) = (Vec::new(), Making::default());
        let directory = directory.into();
        Scope { directory, in_directory: true, scratch, making, rounds, quick: false }
    }

    /// How many filesystems are measured.
    pub(crate) fn places(&self) -> u64 {
        u64::from(self.in_directory) + self.scratch.len() as u64
    }

    /// How many versions of a file have to have room: two where one of the filesystems keeps the
    /// old blocks of a file that is written again.
    pub(crate) fn versions(&self) -> u64 {
        let here =
            || filesystem_of(&self.directory).is_some_and(|found| keeps_old_blocks(&found.kind));
        let is_kept = self.scratch.iter().any(|kind| kind.keeps_old_blocks());
        1 + u64::from(is_kept || self.in_directory && here())
    }

    pub(crate) fn check(&self) -> Result<()> {
        if self.places() == 0 || self.rounds == 0 {
            return Err(Error::invalid("a directory or a filesystem and one round are needed"));
        }
        self.making.check(&self.scratch)?;
        ScratchKind::check(&self.scratch)
    }
}

/// One of the places.
pub(crate) struct Place<'a> {
    /// An empty directory.
    pub(crate) dir: &'a Path,
    /// The type of its filesystem.
    pub(crate) filesystem: &'a str,
    /// Is it made for this run, in memory?
    pub(crate) is_scratch: bool,
}

impl Place<'_> {
    /// The filesystem as titles and keys name it: one that was made for the run says so.
    pub(crate) fn name(&self) -> String {
        let has_device = self.is_scratch && self.filesystem != "tmpfs";
        let medium = if has_device { ", loop device in memory" } else { "" };
        format!("{}{medium}", self.filesystem)
    }

    /// How much a suite may write here: a tenth stays free, for other programs live there too, and
    /// filesystems that are nearly full are slow.
    pub(crate) fn usable_bytes(&self) -> u64 {
        let free = free_bytes(self.dir).unwrap_or(u64::MAX);
        free - free / FREE_SHARE
    }
}

/// Makes a new directory inside `directory`, for all that a run writes; removed when dropped.
pub(crate) fn home(directory: &Path) -> Result<PrivateDir> {
    let home = PrivateDir::new(directory, "vellum-bench-");
    home.context(|| format!("make a directory in {}", directory.display()))
}

/// The places of a run.
pub(crate) struct Places<'a> {
    /// A new directory, where the places are made.
    pub(crate) home: &'a Path,
    pub(crate) scope: &'a Scope,
    /// The bytes that each has to have room for.
    pub(crate) bytes: u64,
}

impl Places<'_> {
    /// Takes one place after the other. One that can't be made, or where the suite can't continue,
    /// is left out with a warning, unless there is no other.
    pub(crate) fn visit(
        &self,
        warnings: &mut Vec<String>,
        progress: &mut dyn Progress,
        run: &mut dyn FnMut(&Place<'_>, &mut dyn Progress) -> Result<()>,
    ) -> Result<()> {
        sys::ignore_file_size_signal();
        let mut good = 0;
        let mut judge = |name: &str, result: Result<()>, progress: &mut dyn Progress| match result {
            Ok(()) => {
                good += 1;
                Ok(())
            }
            Err(error) if self.scope.places() == 1 => Err(error),
            Err(error) => {
                let warning = format!("{name} is left out: {error}");
                progress.event(&Event::Warning(&warning));
                warnings.push(warning);
                Ok(())
            }
        };
        if self.scope.in_directory {
            let result = self.visit_directory(progress, run);
            judge("the directory", result, progress)?;
        }
        if !self.scope.scratch.is_empty() {
            let bytes = Room::bytes_for(self.bytes, &self.scope.making);
            let room = Room::new(self.home, bytes);
            for kind in self.scope.scratch.iter().take_while(|_| !interrupt::is_asked()) {
                let result = match &room {
                    Ok(room) => self.visit_scratch(room, *kind, progress, run),
                    Err(error) => Err(error.clone()),
                };
                judge(kind.as_str(), result, progress)?;
            }
        }
        if good == 0 {
            return Err(Error::failed(warnings.join("; ")));
        }
        Ok(())
    }

    fn visit_directory(
        &self,
        progress: &mut dyn Progress,
        run: &mut dyn FnMut(&Place<'_>, &mut dyn Progress) -> Result<()>,
    ) -> Result<()> {
        let dir = self.home.join("directory");
        fs::create_dir(&dir).context(|| format!("make {}", dir.display()))?;
        let kind = filesystem_of(&dir).map_or_else(|| "unknown".into(), |mount| mount.kind);
        let result = run(&Place { dir: &dir, filesystem: &kind, is_scratch: false }, progress);
        let removed = fs::remove_dir_all(&dir).context(|| format!("remove {}", dir.display()));
        result.and(removed)
    }

    /// The filesystem is given back before this returns: there is memory for one at a time.
    fn visit_scratch(
        &self,
        room: &Room,
        kind: ScratchKind,
        progress: &mut dyn Progress,
        run: &mut dyn FnMut(&Place<'_>, &mut dyn Progress) -> Result<()>,
    ) -> Result<()> {
        let scratch = room.furnish(kind, self.bytes, &self.scope.making)?;
        let dir = scratch.dir().join("bench");
        fs::create_dir(&dir).context(|| format!("make {}", dir.display()))?;
        run(&Place { dir: &dir, filesystem: kind.as_str(), is_scratch: true }, progress)
    }
}
