//! `vellum-zoo beside`: p99 of a log alone, beside a neighbour, and beside the same one in a
//! control group with a limit. So a line of `vellum doctor --iocost` is tried.
//!
//! The control group is one of version 1, whose limits hold for direct writes. The neighbour is a
//! process of this program: it ends with its input, and so with the one that started it.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use clap::Args;
use rustix::fs::{OFlags, major, minor};
use vellum_command::private_dir::PrivateDir;
use vellum_zoo::Missing;

use super::judge::p99;

const GROUPS: &str = "/sys/fs/cgroup/blkio";
/// The file that the neighbour writes, again and again.
const FILE_LEN: u64 = 256 << 20;
/// Bytes of a piece that it writes, and how many pieces there are.
const PIECE_LEN: usize = 1 << 20;
const PIECES: u64 = 8;
const BLOCK_LEN: usize = 4096;

#[derive(Args, Clone, Debug)]
pub(super) struct BesideArguments {
    /// Where both write; 256 MiB are taken.
    dir: PathBuf,
    /// What the neighbour may write in a second, as 50M.
    #[arg(long, value_name = "BYTES", value_parser = super::size)]
    limit: u64,
    /// How long each of the three measurements takes.
    #[arg(long, value_name = "COUNT", default_value_t = 5)]
    #[arg(value_parser = clap::value_parser!(u64).range(1..=600))]
    seconds: u64,
}

#[derive(Args, Clone, Debug)]
pub(super) struct NeighbourArguments {
    file: PathBuf,
    /// The control group that it enters first.
    #[arg(long)]
    group: Option<PathBuf>,
}

/// Measures three times, and prints a line for each.
pub(super) fn run(arguments: &BesideArguments) -> anyhow::Result<()> {
    let BesideArguments { dir, limit, seconds } = arguments;
    let time = Duration::from_secs(*seconds);
    let dir = PrivateDir::new(dir, "vellum-zoo-")?;
    let group = Group::new(&whole_disk(dir.path())?, *limit)?;
    let file = dir.path().join("neighbour");
    make(&file).context("cannot make the file of the neighbour")?;
    println!("{:<40} p99 {:>8.2} ms", "alone", p99(dir.path(), time)?);
    for (name, group) in [("beside a neighbour", None), ("beside one with the limit", Some(&group))]
    {
        let neighbour = Neighbour::new(&file, group)?;
        let (begun, before) = (Instant::now(), neighbour.written());
        let p99_ms = p99(dir.path(), time)?;
        let wrote = (neighbour.written() - before) as f64 / begun.elapsed().as_secs_f64();
        let mebibytes = wrote / f64::from(1 << 20);
        println!("{name:<40} p99 {p99_ms:>8.2} ms, it writes {mebibytes:.0} MiB a second");
    }
    Ok(())
}

/// `MAJ:MIN` of the disk that a directory is on: limits are for whole disks.
fn whole_disk(dir: &Path) -> anyhow::Result<String> {
    let device = fs::metadata(dir)?.dev();
    let number = format!("{}:{}", major(device), minor(device));
    let found = fs::canonicalize(Path::new("/sys/dev/block").join(&number));
    let found = found.map_err(|_| Missing(format!("{} is on no block device", dir.display())))?;
    if !found.join("partition").exists() {
        return Ok(number);
    }
    let disk = found.parent().context("a partition without a disk")?;
    Ok(fs::read_to_string(disk.join("dev"))?.trim().to_owned())
}

/// A control group with a limit; it goes in the end.
struct Group(PathBuf);

impl Group {
    fn new(disk: &str, limit: u64) -> anyhow::Result<Group> {
        let name = format!("vellum-zoo-{}", std::process::id());
        let group = Group(Path::new(GROUPS).join(name));
        let made = fs::create_dir(&group.0).and_then(|()| {
            let file = group.0.join("blkio.throttle.write_bps_device");
            fs::write(file, format!("{disk} {limit}"))
        });
        let missing = |error| Missing(format!("no control group of blkio for {disk}: {error}"));
        made.map_err(missing)?;
        Ok(group)
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        let _ = fs::remove_dir(&self.0);
    }
}

fn make(path: &Path) -> io::Result<()> {
    let (mut file, piece) = (File::create_new(path)?, vec![7; PIECE_LEN]);
    for _ in 0..FILE_LEN / PIECE_LEN as u64 {
        file.write_all(&piece)?;
    }
    file.sync_all()
}

/// The process beside the log, until this is dropped.
struct Neighbour(Child);

impl Neighbour {
    fn new(file: &Path, group: Option<&Group>) -> anyhow::Result<Neighbour> {
        let mut command = Command::new(std::env::current_exe()?);
        command.arg("neighbour").arg(file).stdin(Stdio::piped());
        if let Some(group) = group {
            command.arg("--group").arg(&group.0);
        }
        let mut child = Neighbour(command.spawn().context("cannot start a neighbour")?);
        while child.written() == 0 {
            ensure!(child.0.try_wait()?.is_none(), "the neighbour has ended");
            thread::yield_now();
        }
        Ok(child)
    }

    /// Bytes that it has written.
    fn written(&self) -> u64 {
        let path = format!("/proc/{}/io", self.0.id());
        let text = fs::read_to_string(path).unwrap_or_default();
        let line = text.lines().find_map(|line| line.strip_prefix("write_bytes: "));
        line.and_then(|count| count.parse().ok()).unwrap_or(0)
    }
}

impl Drop for Neighbour {
    fn drop(&mut self) {
        // It ends with its input.
        drop(self.0.stdin.take());
        let _ = self.0.wait();
    }
}

/// Writes past the page cache until its input ends.
pub(super) fn neighbour(arguments: &NeighbourArguments) -> anyhow::Result<()> {
    if let Some(group) = &arguments.group {
        fs::write(group.join("cgroup.procs"), std::process::id().to_string())
            .context("cannot enter the control group")?;
    }
    let flags = OFlags::DIRECT.bits() as i32;
    let file = OpenOptions::new().write(true).custom_flags(flags).open(&arguments.file)?;
    let next = AtomicU64::new(0);
    let writer = || {
        let room = vec![9; PIECE_LEN + BLOCK_LEN];
        // Direct writes need memory that begins where a block does.
        let start = room.as_ptr().align_offset(BLOCK_LEN);
        let offset = || next.fetch_add(PIECE_LEN as u64, Ordering::Relaxed) % FILE_LEN;
        while file.write_all_at(&room[start..start + PIECE_LEN], offset()).is_ok() {}
    };
    thread::scope(|scope| {
        for _ in 0..PIECES {
            scope.spawn(writer);
        }
        let _ = io::stdin().read_to_end(&mut Vec::new());
        // The writers have no end of their own.
        std::process::exit(0)
    })
}
