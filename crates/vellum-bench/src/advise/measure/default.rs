//! What the library does by itself, and whether another way can be gone where it is.

use std::fs;
use std::path::Path;
use std::time::Duration;

use vellum::{Fill, Log, Lsn, Options, Preallocate};

use crate::advise::way::LogWay;
use crate::error::{Error, Result};
use crate::process::figures;
use crate::ways::vellum_log::failed;

const LIMIT: Duration = Duration::from_secs(60);

/// What a new log comes to that nobody made any choices for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Default {
    fill: Fill,
    /// Does the library map files here?
    maps: bool,
}

impl Default {
    /// For logs with `options`, on the filesystem of the directory `dir`.
    ///
    /// # Errors
    ///
    /// Why there can be no log here.
    pub(super) fn of(dir: &Path, options: &Options) -> Result<Default> {
        let fill = |options: &Options| try_log(dir, options).map_err(Error::failed);
        Ok(Default { fill: fill(options)?, maps: fill(&Options::default())? == Fill::Mapped })
    }

    /// The default, and then those of `others` that are something else.
    pub(super) fn and(&self, others: &[LogWay]) -> Vec<LogWay> {
        let default = LogWay { is_default: true, ..LogWay::new(self.fill, Preallocate::Auto) };
        let twin = match self.fill {
            Fill::Staged => Preallocate::Recycle,
            _ => Preallocate::Fallocate,
        };
        let twin = LogWay::new(self.fill, twin);
        let others = others.iter().copied().filter(|way| *way != twin);
        [default].into_iter().chain(others).collect()
    }

    /// `Err` with the reason if a log with `options`, made in the way `way`, is not to be measured.
    pub(super) fn probe(
        &self,
        dir: &Path,
        options: &Options,
        way: LogWay,
    ) -> std::result::Result<(), String> {
        // No speed would make up for that.
        if way.fill == Fill::Mapped && !self.maps {
            return Err("a store into a mapping may end the process here, on a full disk".into());
        }
        try_log(dir, options).map(drop)
    }
}

/// Uses a log in a process of its own, for it may be killed by what it maps. Returns how it is
/// filled.
fn try_log(dir: &Path, options: &Options) -> std::result::Result<Fill, String> {
    const FILLS: [Fill; 3] = [Fill::Mapped, Fill::Pwrite, Fill::Staged];
    let dir = dir.join("probe");
    let tried = figures(LIMIT, 1, || {
        let log = options.open(&dir).map_err(|error| failed(&error))?;
        use_it(&log)?;
        let fill = log.stat().map_err(|error| failed(&error))?.fill;
        let index = FILLS.iter().position(|one| *one == fill).unwrap_or(FILLS.len());
        Ok(vec![index as f64])
    });
    let _ = fs::remove_dir_all(&dir);
    let told = tried.map_err(|error| error.to_string())?;
    FILLS.get(told[0] as usize).copied().ok_or_else(|| "it is filled in an unknown way".into())
}

/// Appends, commits and reads back.
fn use_it(log: &Log) -> Result<()> {
    let record = [b'x'; 100];
    log.append_durable(&record).map_err(|error| failed(&error))?;
    let mut reader = log.reader(Lsn::ZERO).map_err(|error| failed(&error))?;
    match reader.next().map_err(|error| failed(&error))? {
        Some(found) if found.payload == record => Ok(()),
        _ => Err(Error::failed("a record that was appended can't be read")),
    }
}
