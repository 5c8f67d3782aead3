//! Which commit path a device likes best: a staged log's way to the device.
//!
//! Each path overwrites written blocks of a nameless file, as a commit does, one path after the
//! other in every round. It is a second or two, and 4 MiB of space. A file without a name leaves
//! nothing behind if the process is killed.

use std::fs::{File, OpenOptions};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde::Serialize;
use vellum::{CommitPath, DeviceWrite, Options, Tuning};
use vellum_command::private_dir::PrivateDir;

use super::choice::choose;
use crate::error::{Context, Error, Result};
use crate::faster::Evidence;
use crate::stats::Spread;
use crate::suite::commit::write_zeros;
use crate::ways::direct::AlignedBuffer;

/// Enough that one of them may go the other way.
const ROUNDS: usize = 9;
/// How long a path commits in a round …
const SLICE: Duration = Duration::from_millis(15);
/// … and how often at least: a disk that turns takes longer.
const COMMITS_MIN: u64 = 4;
/// Each lane has so many bytes to itself, and starts over behind them.
const LANE_BYTES: u64 = 1 << 20;
const LANES: [u32; 2] = [2, 1];

/// What was measured, and what follows.
#[derive(Clone, Debug, Serialize)]
pub struct CommitPaths {
    /// The path to take, such as `fdatasync/4096/2`.
    pub chosen: String,
    /// Why, for people.
    pub reason: String,
    /// All of them, the default first.
    pub measured: Vec<MeasuredPath>,
}

/// One path, and how many commits a second it made.
#[derive(Clone, Debug, Serialize)]
pub struct MeasuredPath {
    /// The path.
    pub path: String,
    /// Commits a second, over the rounds.
    pub commits_per_second: Spread,
}

impl CommitPaths {
    /// For people.
    pub(super) fn line(&self) -> String {
        let CommitPaths { chosen, reason, .. } = self;
        format!("Commit path of staged logs: {chosen}: {reason}. `vellum prepare LOG` stores it.")
    }

    /// The path to take.
    ///
    /// # Errors
    ///
    /// None in practice: it was one before it was text.
    pub fn path(&self) -> vellum::Result<CommitPath> {
        self.chosen.parse()
    }
}

/// Times the commit paths in `dir`, none of which writes less than `safe_block_bytes`
/// ([`vellum::stat::CommitPathStat::safe_block_bytes`]).
///
/// # Errors
///
/// The directory takes no file of 4 MiB, or no direct writes.
///
/// # Cost
///
/// 1 to 5 seconds, longer on a disk that turns. A thread for each lane.
pub fn commit_paths(dir: &Path, safe_block_bytes: u64) -> Result<CommitPaths> {
    let paths = candidates(safe_block_bytes);
    let ground = Ground::new(dir)?;
    let mut scores = vec![Vec::new(); paths.len()];
    for round in 0..=ROUNDS {
        for turn in 0..paths.len() {
            // Who comes after whom changes, so that nobody always has the same one before it.
            let place = (turn + round) % paths.len();
            let score = ground.commits_per_second(paths[place])?;
            if round > 0 {
                scores[place].push(score);
            }
        }
    }
    Ok(decide(&paths, &scores))
}

/// The same in a directory in which there is no log: that of a short one is looked at first.
pub(super) fn in_directory(dir: &Path) -> Result<CommitPaths> {
    let home = PrivateDir::new(dir, "vellum-advise-");
    let home = home.context(|| format!("make a directory in {}", dir.display()))?;
    let log = Options::wal()
        .exclusive(false)
        .tuning(Tuning::new().segment_capacity_bytes(64 << 10))
        .open(home.path().join("log"));
    let state = log.and_then(|log| log.stat());
    let state = state.map_err(|error| Error::failed(error.to_string()))?;
    let safe = state.commit_path.map_or(4096, |found| found.safe_block_bytes);
    commit_paths(home.path(), safe)
}

/// The default first, and then the simplest.
fn candidates(safe_block_bytes: u64) -> Vec<CommitPath> {
    let mut blocks = vec![safe_block_bytes, 4096];
    blocks.dedup();
    let mut paths = Vec::new();
    for lanes in LANES {
        for write in [DeviceWrite::Dsync, DeviceWrite::Fdatasync] {
            let path = |block_bytes: &u64| CommitPath { write, block_bytes: *block_bytes, lanes };
            paths.extend(blocks.iter().map(path));
        }
    }
    paths
}

/// What to take by what was measured: for each path the commits a second of each round.
fn decide(paths: &[CommitPath], scores: &[Vec<f64>]) -> CommitPaths {
    let all: Vec<Option<&[f64]>> = scores.iter().map(|scores| Some(&scores[..])).collect();
    let chosen = choose(&all).map_or(0, |choice| choice.chosen);
    let measured = paths.iter().zip(scores).filter_map(|(path, scores)| {
        let commits_per_second = Spread::of(scores)?;
        Some(MeasuredPath { path: path.to_string(), commits_per_second })
    });
    CommitPaths {
        chosen: paths[chosen].to_string(),
        reason: reason(paths, scores, chosen),
        measured: measured.collect(),
    }
}

fn reason(paths: &[CommitPath], scores: &[Vec<f64>], chosen: usize) -> String {
    let default = paths[0];
    match Evidence::of(&scores[chosen], &scores[0]) {
        Some(it) if chosen > 0 => format!(
            "{:.2} times the commits of {default}, faster in {} of {} rounds",
            it.ratio.median, it.faster_rounds, it.rounds
        ),
        _ => "no other path is faster beyond noise".into(),
    }
}

/// Written blocks to commit into.
struct Ground {
    file: File,
}

impl Ground {
    fn new(dir: &Path) -> Result<Ground> {
        let what = || format!("make a file to measure with in {}", dir.display());
        let file = tempfile::tempfile_in(dir).context(what)?;
        write_zeros(&file, LANE_BYTES * u64::from(LANES[0])).context(what)?;
        file.sync_all().context(what)?;
        Ok(Ground { file })
    }

    fn open(&self, path: CommitPath) -> Result<File> {
        let synced = if path.write == DeviceWrite::Dsync { libc::O_DSYNC } else { 0 };
        let name = PathBuf::from(format!("/proc/self/fd/{}", self.file.as_raw_fd()));
        let mut options = OpenOptions::new();
        let opened = options.write(true).custom_flags(libc::O_DIRECT | synced).open(name);
        opened.context(|| format!("open a file with O_DIRECT for {path}"))
    }

    fn commits_per_second(&self, path: CommitPath) -> Result<f64> {
        let file = self.open(path)?;
        let begun = Instant::now();
        let commit = |lane| commit_for_a_slice(&file, path, u64::from(lane) * LANE_BYTES, begun);
        let counts = std::thread::scope(|scope| {
            let others: Vec<_> =
                (1..path.lanes).map(|lane| scope.spawn(move || commit(lane))).collect();
            let first = commit(0);
            let joined = others.into_iter().map(|other| match other.join() {
                Ok(count) => count,
                Err(panic) => std::panic::resume_unwind(panic),
            });
            std::iter::once(first).chain(joined).sum::<std::io::Result<u64>>()
        });
        let count = counts.context(|| format!("commit by {path}"))?;
        Ok(count as f64 / begun.elapsed().as_secs_f64())
    }
}

/// Commits one block after the other from `offset` on; returns how many those were.
fn commit_for_a_slice(
    file: &File,
    path: CommitPath,
    offset: u64,
    begun: Instant,
) -> std::io::Result<u64> {
    let block = AlignedBuffer::new(path.block_bytes as usize);
    let blocks = LANE_BYTES / path.block_bytes;
    let mut count = 0;
    while count < COMMITS_MIN || begun.elapsed() < SLICE {
        file.write_all_at(block.as_slice(), offset + count % blocks * path.block_bytes)?;
        if path.write == DeviceWrite::Fdatasync {
            file.sync_data()?;
        }
        count += 1;
    }
    Ok(count)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What follows if a path makes so many commits a second in each round, but for some noise.
    fn decided(safe: u64, speed: impl Fn(CommitPath) -> f64) -> CommitPaths {
        let paths = candidates(safe);
        let noise = |round: usize| 1.0 + 0.02 * ((round * 7 % 5) as f64 - 2.0);
        let rounds = |path: &CommitPath| {
            (0..ROUNDS).map(|round| speed(*path) * noise(round)).collect::<Vec<f64>>()
        };
        let scores: Vec<Vec<f64>> = paths.iter().map(rounds).collect();
        decide(&paths, &scores)
    }

    #[test]
    fn a_drive_whose_fua_is_slow_gets_fdatasync() {
        // As a drive without protection against power loss was measured: 250 against 609.
        let found = decided(512, |path| match path.write {
            DeviceWrite::Dsync => 250.0,
            _ => 609.0,
        });
        assert_eq!(found.chosen, "fdatasync/512/2");
        assert!(found.reason.contains("2.44 times") && found.reason.contains("9 of 9"));
    }

    #[test]
    fn the_default_stays_where_nothing_is_faster_beyond_noise() {
        let fdatasync = |path: CommitPath| path.write == DeviceWrite::Fdatasync;
        for better in [1.0, 1.03] {
            let found =
                decided(4096, |path| if fdatasync(path) { 1000.0 * better } else { 1000.0 });
            assert_eq!(found.chosen, "dsync/4096/2", "{better}");
        }
    }

    #[test]
    fn one_lane_is_taken_where_two_are_in_each_others_way() {
        let found = decided(4096, |path| 3000.0 / f64::from(path.lanes));
        assert_eq!(found.chosen, "dsync/4096/1");
    }

    #[test]
    fn larger_blocks_are_taken_where_small_ones_are_slow_and_never_smaller_than_is_safe() {
        let by_block = |path: CommitPath| path.block_bytes as f64;
        assert_eq!(decided(512, by_block).chosen, "dsync/4096/2");
        let smallest = decided(4096, |path| 1e6 / path.block_bytes as f64);
        assert!(smallest.measured.iter().all(|it| it.path.contains("/4096/")));
    }

    #[test]
    fn one_fast_round_among_slow_ones_moves_nothing() {
        let paths = candidates(4096);
        let mut scores = vec![vec![100.0; ROUNDS]; paths.len()];
        scores[1][0] = 100_000.0;
        assert_eq!(decide(&paths, &scores).chosen, "dsync/4096/2");
    }

    #[test]
    fn what_is_measured_here_is_one_of_the_paths() {
        let dir = tempfile::tempdir().unwrap();
        let found = in_directory(dir.path()).unwrap();
        assert!(found.measured.iter().any(|it| it.path == found.path().unwrap().to_string()));
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
    }
}
