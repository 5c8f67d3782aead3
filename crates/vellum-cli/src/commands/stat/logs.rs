//! The logs that the command line names, and their state at a moment.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Instant;

use rustix::fs::statvfs;
use vellum::Log;
use vellum::internal::{log_directory, log_link};
use vellum::stat::{Metrics, Stat};
use vellum_ship_figures::Figures;

use super::rates::Rates;
use crate::args::StatArgs;
use crate::commands::open::{is_missing, open_to_read};

/// How many logs stay open from one look to the next: each takes descriptors.
const OPEN_MAX: usize = 100;

/// Logs, and directories that hold logs.
pub(super) struct Logs {
    named: Vec<PathBuf>,
    /// How many of them stay open.
    open_max: usize,
    has_metrics: bool,
    known: BTreeMap<PathBuf, Known>,
}

/// The part of a log's state that is kept between two reports.
struct Known {
    /// Device and number of its directory, which no other has as long as this one is open.
    directory: (u64, u64),
    log: Option<Log>,
    before: Stat,
    at: Instant,
}

/// The log, or the error, at a path.
pub(super) struct Found {
    pub(super) path: PathBuf,
    pub(super) state: anyhow::Result<State>,
}

/// A log at a moment.
pub(super) struct State {
    pub(super) stat: Stat,
    /// Where they were asked for.
    pub(super) metrics: Option<Metrics>,
    /// Of the process that ships the log.
    pub(super) figures: Figures,
    pub(super) disk_bytes: u64,
    /// Whether there is no space left where it is.
    pub(super) is_disk_full: bool,
    /// The rates since the look before.
    pub(super) rates: Option<Rates>,
}

impl Logs {
    /// The logs that are named; some stay open if there will be a second look.
    pub(super) fn new(args: &StatArgs) -> Logs {
        let StatArgs { logs, watch, prometheus, .. } = args;
        let open_max = if *watch { OPEN_MAX } else { 0 };
        let (named, known) = (logs.clone(), BTreeMap::new());
        Logs { named, open_max, has_metrics: *prometheus, known }
    }

    /// Looks at all of them, in the order of the command line, and by name below a directory.
    pub(super) fn look(&mut self) -> Vec<Found> {
        self.known.retain(|path, known| directory_id(path) == Some(known.directory));
        let mut found = Vec::new();
        for path in self.named.clone() {
            if let Some(error) = self.look_at(&path, &mut found) {
                found.push(Found { path, state: Err(error) });
            }
        }
        found
    }

    /// Looks at the log there, or else at all logs below. Where there is none it answers why.
    fn look_at(&mut self, path: &Path, found: &mut Vec<Found>) -> Option<anyhow::Error> {
        match self.state(path) {
            Err(error) if is_missing(&error) => {
                let before = found.len();
                for below in directories(path) {
                    self.look_at(&called(below), found);
                }
                (found.len() == before).then_some(error)
            }
            state => {
                found.push(Found { path: path.into(), state });
                None
            }
        }
    }

    fn state(&mut self, path: &Path) -> anyhow::Result<State> {
        let known = self.known.remove(path);
        let (log, before) =
            known.map_or((None, None), |known| (known.log, Some((known.before, known.at))));
        let directory = directory_id(path).unwrap_or_default();
        let log = log.map_or_else(|| open_to_read(path), Ok)?;
        let (stat, at) = (log.stat()?, Instant::now());
        let rates = before.map(|(before, since)| Rates::between(&before, &stat, at - since));
        let metrics = self.has_metrics.then(|| log.metrics());
        // Where they cannot be read, the rest can.
        let figures = Figures::of(&log).unwrap_or_default();
        let disk_bytes = disk_bytes(&log_directory(path));
        let open = self.known.values().filter(|known| known.log.is_some()).count();
        let log = Some(log).filter(|_| open < self.open_max);
        self.known.insert(path.into(), Known { directory, log, before: stat.clone(), at });
        let is_disk_full = statvfs(path).is_ok_and(|disk| disk.f_bavail == 0);
        Ok(State { stat, metrics, figures, disk_bytes, is_disk_full, rates })
    }
}

/// Of the directory of the log that this path names.
fn directory_id(path: &Path) -> Option<(u64, u64)> {
    fs::metadata(log_directory(path)).ok().map(|metadata| (metadata.dev(), metadata.ino()))
}

/// The name that people use for the log in a directory: `app.log` where that is a link to
/// `app.log.d`.
fn called(directory: PathBuf) -> PathBuf {
    let is_its = |link: &PathBuf| link.is_symlink() && log_directory(link) == directory;
    log_link(&directory).filter(is_its).unwrap_or(directory)
}

/// The directories in this one, links left out, in the order of their names.
fn directories(path: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(path).into_iter().flatten().flatten();
    let is_directory = |entry: &fs::DirEntry| {
        // Of a filesystem, for root alone.
        let is_own = entry.file_name() != "lost+found";
        is_own && entry.file_type().is_ok_and(|kind| kind.is_dir())
    };
    let mut paths: Vec<PathBuf> = entries.filter(is_directory).map(|entry| entry.path()).collect();
    paths.sort();
    paths
}

/// The size of the directory on disk, with stages and prepared files: as du(1) counts.
fn disk_bytes(log: &Path) -> u64 {
    let files = fs::read_dir(log).into_iter().flatten().flatten();
    let own = fs::metadata(log).ok();
    let all = files.filter_map(|file| file.metadata().ok()).chain(own);
    all.map(|metadata| metadata.blocks() * 512).sum()
}
