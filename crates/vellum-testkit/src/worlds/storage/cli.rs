//! `vellum-worlds storage`: the trials, their order, and the output.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::Context;
use clap::Args;

use super::disk::{self, KINDS};
use super::reader::ReaderArgs;
use super::table::{self, TROUBLES, Trouble};
use super::trial::{Tally, Trial};
use super::writer::WriterArgs;
use super::{reader, writer};
use crate::random::Random;
use crate::trace;
use crate::worlds::shape::{SHAPES, Shape};
use crate::worlds::{surroundings, sys};

/// Sizes of disks. Trials that fill them try all, the rest one of them.
const MIB: [u64; 4] = [60, 200, 300, 1000];

/// Has logs of each kind live on disks that are full or fail, on each kind of filesystem.
#[derive(Debug, Args)]
pub(crate) struct StorageArgs {
    /// Only this trouble.
    #[arg(long, value_parser = table::find)]
    trouble: Option<&'static Trouble>,
    /// Only disks of this kind: ext4, xfs, btrfs, …
    #[arg(long, value_parser = table::find_disk)]
    disk: Option<&'static disk::Kind>,
    /// Only logs of this kind: wal, mapped, pwrite, text or text-pwrite.
    #[arg(long)]
    shape: Option<Shape>,
    /// Only disks of this size, or of the least that their kind can have; default: 60, 200, 300 and
    /// 1000 MiB.
    #[arg(long)]
    mib: Option<u64>,
    /// A sample of about so long, in random order.
    #[arg(long)]
    seconds: Option<u64>,
    /// Decides everything but the speed of processes; printed, so that a run can be repeated.
    #[arg(long)]
    seed: Option<u64>,
    /// Where the disks are mounted; default: the directory for temporary files.
    #[arg(long)]
    dir: Option<PathBuf>,
}

/// Names the troubles and their promises.
pub(crate) fn list() {
    TROUBLES.iter().for_each(|trouble| println!("{}\t{}", trouble.name, trouble.promise));
}

pub(crate) fn run_writer(args: &WriterArgs) -> anyhow::Result<ExitCode> {
    writer::run(args).map(|()| ExitCode::SUCCESS)
}

pub(crate) fn run_reader(args: &ReaderArgs) -> anyhow::Result<ExitCode> {
    reader::run(args).map(|()| ExitCode::SUCCESS)
}

/// Runs all that was asked for.
pub(crate) fn run(args: &StorageArgs) -> anyhow::Result<ExitCode> {
    let is_required = std::env::var("VELLUM_REQUIRE").is_ok_and(|what| what == "all");
    if !surroundings::can_mount() {
        println!("SKIPPED: mounts are refused here");
        return Ok(ExitCode::from(u8::from(is_required)));
    }
    // The mounts vanish with this process.
    sys::unshare(libc::CLONE_NEWNS)?;
    let none = Path::new("none");
    sys::mount(none, Path::new("/"), "", libc::MS_REC | libc::MS_PRIVATE, "")?;
    let base = args.dir.clone().unwrap_or_else(std::env::temp_dir);
    let base = tempfile::Builder::new().prefix("vellum-storage-").tempdir_in(&base)?;
    let seed = args.seed.unwrap_or_else(trace::now_ns);
    let missing = missing(args);
    let trials = choose(args, seed);
    println!("{} trials, --seed {seed}", trials.len());
    let start = Instant::now();
    let limit = args.seconds.map(Duration::from_secs);
    let (mut count, mut faults) = (0, 0);
    for (number, trial) in trials.iter().enumerate() {
        if limit.is_some_and(|limit| start.elapsed() > limit) {
            break;
        }
        count += 1;
        faults += u64::from(!take(trial, &base.path().join(format!("trial-{number}")))?);
    }
    println!(
        "{count} of {} trials, {faults} with faults; {:.1} s",
        trials.len(),
        start.elapsed().as_secs_f64()
    );
    Ok(ExitCode::from(u8::from(faults > 0 || is_required && missing)))
}

/// Says which disks cannot be had here.
fn missing(args: &StorageArgs) -> bool {
    let wanted = KINDS.iter().filter(|kind| args.disk.is_none_or(|disk| disk == *kind));
    let missing = wanted.filter_map(|kind| Some((kind.name, kind.missing()?)));
    missing.map(|(name, why)| println!("SKIPPED: {name}: {why}")).count() > 0
}

/// Each trouble in each kind of log on each disk; in a sample in random order.
fn choose(args: &StorageArgs, seed: u64) -> Vec<Trial> {
    let mut random = Random::new(seed);
    let mut trials = Vec::new();
    for trouble in TROUBLES.iter().filter(|one| args.trouble.is_none_or(|only| only == *one)) {
        for disk in KINDS.iter().filter(|one| args.disk.is_none_or(|only| only == *one)) {
            let shapes =
                SHAPES.into_iter().filter(|one| args.shape.is_none_or(|only| only == *one));
            for shape in shapes.filter(|shape| trouble.kind.can_be(disk, *shape)) {
                for mib in sizes(args, trouble, disk, &mut random) {
                    // One that is run alone is repeated by the seed that was given.
                    let seed = if trials.is_empty() { seed } else { random.next_u64() };
                    trials.push(Trial { trouble, disk, shape, mib, seed });
                }
            }
        }
    }
    if args.seconds.is_some() {
        random.shuffle(&mut trials);
    }
    trials
}

/// How large the disks of this kind are in this trouble; none where it cannot be had.
fn sizes(
    args: &StorageArgs,
    trouble: &Trouble,
    disk: &disk::Kind,
    random: &mut Random,
) -> Vec<u64> {
    let one = |mib: u64| vec![mib.max(disk.mib_min)];
    match args.mib {
        _ if disk.missing().is_some() => Vec::new(),
        Some(mib) => one(mib),
        None if trouble.kind.fills() => {
            let fitting = MIB.into_iter().filter(|mib| *mib >= disk.mib_min);
            fitting.collect()
        }
        None => one(*random.pick(&MIB)),
    }
}

/// Runs one and prints its line; whether it went well.
fn take(trial: &Trial, place: &Path) -> anyhow::Result<bool> {
    let Trial { trouble, disk, shape, mib, seed } = trial;
    let title = format!("{:<18} {:<15} {mib:>4} MiB  {shape:<11}", trouble.name, disk.name);
    let again = format!(
        "again: vellum-worlds storage --trouble {} --disk {} --mib {mib} --shape {shape} --seed \
         {seed}",
        trouble.name, disk.name
    );
    let start = Instant::now();
    let answer =
        trial.run(place).with_context(|| format!("{title} could not be tried; {again}"))?;
    let seconds = start.elapsed().as_secs_f64();
    std::fs::remove_dir_all(place)?;
    match answer {
        Ok(Tally { records, errors }) => {
            println!("{title} {records:>8} records, {errors:>3} errors, {seconds:.1} s");
            Ok(true)
        }
        Err(faults) => {
            println!("{title} FAULT, {seconds:.1} s");
            faults.iter().take(6).for_each(|fault| println!("    {fault}"));
            println!("    {again}");
            Ok(false)
        }
    }
}
