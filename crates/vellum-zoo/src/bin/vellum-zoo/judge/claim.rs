//! Is a disk as it says? Looked at without the doctor, by the clock and by the bytes on the disk.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::Context;
use rustix::fs::OFlags;
use vellum_command::samples::quantile_of;

use super::cage::Cage;

const BLOCK_LEN: usize = 4096;
const BLOCKS: u64 = 256;

/// The claim of a disk about itself. A commit is a direct write of a block and a flush.
#[derive(Clone, Copy, Debug)]
pub(super) enum Claim {
    /// A commit takes so long, and not twice as long.
    Takes { ms: f64 },
    /// So many commits in a second and no more.
    AtMost { a_second: f64 },
    /// Commits are fast at first, and take so long in the end.
    Ends { ms: f64 },
    /// Once in so many seconds a commit takes so long.
    Stands { ms: f64, seconds: u64 },
    /// A commit to a file that grows takes so long, and one over older bytes does not.
    Grows { ms: f64 },
    /// A write is answered, and is not there.
    Drops,
    /// A write of 512 bytes takes so long, and one of a block does not.
    Part { ms: f64 },
    /// One commit of ten takes so many times as long as another one of ten.
    Spread { times: f64 },
    /// So much of the time goes by in commits that take three times as long as most.
    Waits { share: f64 },
    /// So many writes in a second, if none is flushed.
    Unsynced { a_second: f64 },
    /// For a second most commits take less than this.
    Swift { ms: f64 },
    /// The mean of commits is below this, and one of a hundred takes longer.
    Mean { ms: f64 },
    /// A write fails.
    Fails,
    /// A cut takes blocks that were flushed.
    Forgets,
    /// A cut takes nothing that was flushed.
    Keeps,
}

/// The observation of a disk.
pub(super) struct Seen {
    pub(super) is_as_told: bool,
    pub(super) what: String,
}

impl Claim {
    /// Looks at the disk in `cage`, which is of no use for anything else then.
    pub(super) fn check(self, cage: &mut Cage) -> anyhow::Result<Seen> {
        if matches!(self, Claim::Forgets | Claim::Keeps) {
            return after_cut(cage, matches!(self, Claim::Keeps));
        }
        let probe = match Probe::new(&cage.at()) {
            Err(error) if matches!(self, Claim::Fails) => {
                return Ok(Seen { is_as_told: true, what: format!("a write failed: {error}") });
            }
            probe => probe.context("cannot write on the disk")?,
        };
        self.seen(&probe).or_else(|error| match self {
            Claim::Fails => Ok(Seen { is_as_told: true, what: format!("a write failed: {error}") }),
            _ => Err(error.into()),
        })
    }

    fn seen(self, probe: &Probe) -> io::Result<Seen> {
        let for_seconds = |seconds| probe.commits(Duration::from_secs(seconds), usize::MAX);
        Ok(match self {
            Claim::Takes { ms } => takes(&probe.commits(Duration::from_secs(2), 100)?, ms),
            Claim::AtMost { a_second } => at_most(for_seconds(2)?.len() as f64 / 2.0, a_second),
            Claim::Ends { ms } => ends(&for_seconds(12)?, ms),
            Claim::Stands { ms, seconds } => stands(&for_seconds(seconds)?, ms),
            Claim::Grows { ms } => grows(&probe.grown()?, &for_seconds(1)?, ms),
            Claim::Drops => drops(probe.lost()?),
            Claim::Part { ms } => part(probe.writes(512)?, probe.writes(BLOCK_LEN)?, ms),
            Claim::Spread { times } => spread(&for_seconds(2)?, times),
            Claim::Waits { share } => waits(&for_seconds(3)?, share),
            Claim::Unsynced { a_second } => unsynced(probe.writes(BLOCK_LEN)?, a_second),
            Claim::Swift { ms } => swift(&for_seconds(1)?, ms),
            Claim::Mean { ms } => mean(&for_seconds(3)?, ms),
            Claim::Fails => {
                probe.commits(Duration::from_secs(5), 2000)?;
                Seen { is_as_told: false, what: "no write failed".into() }
            }
            Claim::Forgets | Claim::Keeps => Seen { is_as_told: false, what: String::new() },
        })
    }
}

fn takes(times: &[f64], ms: f64) -> Seen {
    // Where processors are scarce a part of them takes longer.
    let usual = quantile_of(times, 0.25);
    let what = format!("a commit takes {usual:.1} ms; told: {ms} ms");
    Seen { is_as_told: (ms..ms * 2.0).contains(&usual), what }
}

fn at_most(rate: f64, told: f64) -> Seen {
    let what = format!("{rate:.0} commits a second; told: {told}");
    Seen { is_as_told: rate <= told * 1.05, what }
}

fn ends(times: &[f64], ms: f64) -> Seen {
    let early = quantile_of(&times[..times.len().min(500)], 0.5);
    let late = quantile_of(&times[times.len().saturating_sub(20)..], 0.5);
    let what = format!("a commit takes {early:.2} ms, and {late:.1} ms later; told: {ms} ms");
    Seen { is_as_told: early < ms / 2.0 && late >= ms, what }
}

fn stands(times: &[f64], ms: f64) -> Seen {
    let (middle, longest) = (quantile_of(times, 0.5), quantile_of(times, 1.0));
    let what = format!("a commit takes {middle:.2} ms, and once {longest:.0} ms; told: {ms} ms");
    Seen { is_as_told: longest >= ms && middle < ms / 10.0, what }
}

fn grows(grown: &[f64], over: &[f64], ms: f64) -> Seen {
    let (grown, over) = (quantile_of(grown, 0.5), quantile_of(over, 0.5));
    let what = format!(
        "a file that grows takes {grown:.1} ms, and one that does not {over:.2} ms; told: {ms} ms"
    );
    Seen { is_as_told: grown >= ms && over < ms / 2.0, what }
}

fn drops((lost, count): (u32, u32)) -> Seen {
    Seen { is_as_told: lost > 0, what: format!("{lost} of {count} writes are not there") }
}

fn part(part: f64, whole: f64, ms: f64) -> Seen {
    let what = format!("512 bytes take {part:.1} ms and 4096 {whole:.2} ms; told: {ms} ms");
    Seen { is_as_told: part >= ms && whole < ms / 2.0, what }
}

fn spread(times: &[f64], told: f64) -> Seen {
    let (fast, slow) = (quantile_of(times, 0.1), quantile_of(times, 0.9));
    let what = format!("commits take {fast:.2} to {slow:.2} ms; told: {told} times as long");
    Seen { is_as_told: slow >= told * fast, what }
}

fn unsynced(ms: f64, told: f64) -> Seen {
    let rate = 1e3 / ms;
    let what = format!("without a flush {rate:.0} writes a second; told: {told}");
    Seen { is_as_told: rate >= told, what }
}

fn swift(times: &[f64], ms: f64) -> Seen {
    let middle = quantile_of(times, 0.5);
    let what = format!("for a second a commit takes {middle:.2} ms; told: less than {ms} ms");
    Seen { is_as_told: middle < ms, what }
}

fn mean(times: &[f64], ms: f64) -> Seen {
    let (mean, p99) =
        (times.iter().sum::<f64>() / times.len().max(1) as f64, quantile_of(times, 0.99));
    let what =
        format!("in the mean a commit takes {mean:.2} ms, and p99 is {p99:.1} ms; told: {ms} ms");
    Seen { is_as_told: mean < ms && p99 > ms, what }
}

fn waits(times: &[f64], told: f64) -> Seen {
    let middle = quantile_of(times, 0.5);
    let waited: f64 = times.iter().filter(|time| **time >= 3.0 * middle).sum();
    let share = waited / times.iter().sum::<f64>();
    let (percent, told_percent) = (share * 100.0, told * 100.0);
    let what = format!(
        "most commits take {middle:.2} ms, and {percent:.0} % of the time goes by in others; told: \
         {told_percent:.0} %"
    );
    Seen { is_as_told: share >= told, what }
}

/// A file is written and flushed, and the power goes.
fn after_cut(cage: &mut Cage, is_kept: bool) -> anyhow::Result<Seen> {
    let path = cage.at().join("file");
    let mut file = File::create(&path)?;
    file.write_all(b"promised")?;
    file.sync_all()?;
    drop(file);
    File::open(cage.at())?.sync_all()?;
    let cut = cage.cut()?;
    let is_there = fs::read(&path).is_ok_and(|text| text == b"promised");
    let what = if is_there { "is there" } else { "is gone" };
    Ok(Seen {
        is_as_told: is_there == is_kept,
        what: format!("what was flushed {what} after a cut ({cut})"),
    })
}

/// 99 of a hundred commits in `dir` take no longer than this, in milliseconds; for so long.
pub(crate) fn p99(dir: &Path, time: Duration) -> io::Result<f64> {
    let probe = Probe::new(dir)?;
    let times = probe.commits(time, usize::MAX)?;
    Ok(quantile_of(&times, 0.99))
}

/// Writes until one is missing, at the most.
const WRITES: u32 = 20_000;
/// Commits of a file that grows.
const GROWN: usize = 20;

/// A file that exists with all its blocks.
struct Probe {
    file: File,
    /// Beside it, to be grown.
    grown: PathBuf,
    room: Vec<u8>,
}

impl Probe {
    fn new(dir: &Path) -> io::Result<Probe> {
        let path = dir.join("probe");
        let content = vec![1; BLOCKS as usize * BLOCK_LEN];
        let mut made = File::create(&path)?;
        made.write_all(&content)?;
        made.sync_all()?;
        drop(made);
        let flags = OFlags::DIRECT.bits() as i32;
        let file = OpenOptions::new().read(true).write(true).custom_flags(flags).open(&path)?;
        Ok(Probe { file, grown: dir.join("grown"), room: vec![7; 2 * BLOCK_LEN] })
    }

    fn write(&self, block: u64, len: usize) -> io::Result<()> {
        // Direct writes need memory that begins where a block does.
        let start = self.room.as_ptr().align_offset(BLOCK_LEN);
        self.file.write_all_at(&self.room[start..start + len], block * BLOCK_LEN as u64)
    }

    /// How long commits take, for so long or so many of them.
    fn commits(&self, time: Duration, count: usize) -> io::Result<Vec<f64>> {
        let (begun, mut times) = (Instant::now(), Vec::new());
        while begun.elapsed() < time && times.len() < count {
            let from = Instant::now();
            self.write(times.len() as u64 % BLOCKS, BLOCK_LEN)?;
            self.file.sync_data()?;
            times.push(from.elapsed().as_secs_f64() * 1e3);
        }
        Ok(times)
    }

    /// How long commits take that make a file longer.
    fn grown(&self) -> io::Result<Vec<f64>> {
        let mut file = File::create_new(&self.grown)?;
        let commit = |_| {
            let from = Instant::now();
            file.write_all(&self.room[..BLOCK_LEN])?;
            file.sync_data()?;
            Ok(from.elapsed().as_secs_f64() * 1e3)
        };
        (0..GROWN).map(commit).collect()
    }

    /// How many writes were lost of how many, when the first was.
    fn lost(&self) -> io::Result<(u32, u32)> {
        let mut room = vec![0; 2 * BLOCK_LEN];
        let start = room.as_ptr().align_offset(BLOCK_LEN);
        let block = &mut room[start..start + BLOCK_LEN];
        for count in 1..=WRITES {
            let content = count.to_le_bytes();
            block[..4].copy_from_slice(&content);
            let offset = u64::from(count) % BLOCKS * BLOCK_LEN as u64;
            self.file.write_all_at(block, offset)?;
            self.file.read_exact_at(block, offset)?;
            if block[..4] != content {
                return Ok((1, count));
            }
        }
        Ok((0, WRITES))
    }

    /// How long a write of so many bytes takes, in the median.
    fn writes(&self, len: usize) -> io::Result<f64> {
        let mut times = Vec::new();
        for block in 0..50 {
            let from = Instant::now();
            self.write(block, len)?;
            times.push(from.elapsed().as_secs_f64() * 1e3);
        }
        Ok(quantile_of(&times, 0.5))
    }
}
