//! The command line of `vellum-killpoints`: a process for each case, and its outcome.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, bail};
use clap::Parser;
use vellum_command::output::say_as;

use super::answer::{ERRORS, error_of};
use super::campaign::FAULTS_MAX;
use super::cases::all_cases;
use super::crew::{Work, run_cases};
use super::full;
use super::inject::{self, Choice};
use super::point::{Extent, Point};
use super::scenario::Case;
use crate::trace;

/// Kills a process at every instruction of an operation on a log, and has others continue.
#[derive(Debug, Parser)]
#[command(name = "vellum-killpoints")]
struct Arguments {
    /// Try every instruction (many hours).
    #[arg(long, conflicts_with = "seconds")]
    all: bool,
    /// Try a sample of the points for about so long, spread over all cases.
    #[arg(long, default_value_t = 40)]
    seconds: u64,
    /// The number that decides the sample; printed, so that a run can be repeated.
    #[arg(long)]
    seed: Option<u64>,
    /// Only cases whose name contains this.
    #[arg(long, default_value = "")]
    case: String,
    /// Only this point: CALLS:STEPS, torn:CALLS:COUNT or end.
    #[arg(long)]
    point: Option<Point>,
    /// Do not kill: have system calls give `all` errors that they can give, a list of them (EIO,
    /// ENOSPC, EDQUOT, EINTR, ENOMEM, EMFILE, EACCES, short), or one at one place (12:EIO, or
    /// 12:EIO+ for all later calls too).
    #[arg(long, value_name = "ERRORS", value_parser = read_choice, conflicts_with = "point")]
    inject: Option<Choice>,
    /// Try what is known to fail too.
    #[arg(long, requires = "inject")]
    known: bool,
    /// Leave a case after so many faults.
    #[arg(long, default_value_t = FAULTS_MAX)]
    faults: u64,
    /// Fail if fewer points than this were tried.
    #[arg(long, default_value_t = 1)]
    at_least: u64,
    /// Where to make the logs; default: the directory for temporary files.
    #[arg(long)]
    dir: Option<PathBuf>,
    /// Cases at the same time; default: one per processor.
    #[arg(long)]
    jobs: Option<usize>,
    /// Name the cases and do nothing.
    #[arg(long)]
    list: bool,
}

/// Reads which errors are to be given.
fn read_choice(text: &str) -> Result<Choice, String> {
    if let Ok(injection) = text.parse() {
        return Ok(Choice::One(injection));
    }
    let is_all = text == "all";
    let mut errors: Vec<i32> = Vec::new();
    let mut short = is_all;
    if is_all {
        errors.extend(ERRORS.iter().map(|(errno, _)| errno));
    }
    for name in text.split(',').filter(|_| !is_all) {
        match error_of(name) {
            Some(errno) => errors.push(errno),
            None if name == "short" => short = true,
            None => {
                let names: Vec<&str> = ERRORS.iter().map(|(_, name)| *name).collect();
                let names = names.join(", ");
                return Err(format!("{name:?} is none of all, {names}, short, CALLS:ERROR"));
            }
        }
    }
    Ok(Choice::Errors { errors, short, known: false })
}

/// What `vellum-killpoints` does.
pub fn main() -> ExitCode {
    match run(&Arguments::parse()) {
        Ok(code) => code,
        Err(error) => {
            say_as("vellum-killpoints", format_args!("{error:#}"));
            ExitCode::from(2)
        }
    }
}

fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let mut cases = choose_cases(arguments);
    if arguments.list {
        cases.iter().for_each(|case| println!("{case}"));
        return Ok(ExitCode::SUCCESS);
    }
    if cases.is_empty() {
        bail!("no case is called {:?}; --list names them", arguments.case);
    }
    if let Err(error) = trace::try_tracing() {
        let what = format!("a child process cannot be traced here: {error}");
        return skip(&what).map(|()| ExitCode::SUCCESS);
    }
    let base = arguments.dir.clone().unwrap_or_else(std::env::temp_dir);
    let base = tempfile::Builder::new()
        .prefix("vellum-killpoints-")
        .tempdir_in(&base)
        .with_context(|| format!("cannot make a directory in {}", base.display()))?;
    leave_out_full_disks(&mut cases, base.path())?;
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    let jobs = arguments.jobs.unwrap_or(processors).clamp(1, cases.len().max(1));
    let seed = arguments.seed.unwrap_or_else(trace::now_ns);
    let extent = match (arguments.point, arguments.all) {
        (Some(point), _) => Extent::One(point),
        (None, true) => Extent::All,
        (None, false) => Extent::Sample(Duration::from_secs(arguments.seconds)),
    };
    println!("{} cases, {jobs} at a time, --seed {seed}", cases.len());
    let mut choice = arguments.inject.clone();
    if let Some(Choice::Errors { known, .. }) = &mut choice {
        *known = arguments.known;
    }
    let (choice, faults_max) = (choice.as_ref(), arguments.faults);
    let work = Work { extent, choice, seed, faults_max };
    let totals = run_cases(&cases, work, base.path(), jobs)?;
    println!("{totals}");
    if totals.points < arguments.at_least && totals.faults == 0 {
        println!("FAULT: {} points are too few; {} are wanted", totals.points, arguments.at_least);
        return Ok(ExitCode::FAILURE);
    }
    if totals.faults > 0 {
        println!("the logs are kept in {}", base.keep().display());
        return Ok(ExitCode::FAILURE);
    }
    Ok(ExitCode::SUCCESS)
}

/// The cases that are asked for: the one of this name, or all that have it in theirs.
fn choose_cases(arguments: &Arguments) -> Vec<Case> {
    let mut cases = all_cases();
    cases.retain(|case| arguments.inject.is_none() || inject::is_tried(case));
    match cases.iter().find(|case| case.to_string() == arguments.case) {
        Some(case) => vec![*case],
        None => {
            cases.retain(|case| case.to_string().contains(&arguments.case));
            cases
        }
    }
}

/// Says what is left out; an error where everything has to run.
fn skip(what: &str) -> anyhow::Result<()> {
    if vellum_testing::missing::is_all_required() {
        bail!("VELLUM_REQUIRE=all, and {what}");
    }
    println!("SKIPPED: {what}");
    Ok(())
}

/// Takes out the cases that need a disk to fill up, where none can be had.
fn leave_out_full_disks(cases: &mut Vec<Case>, base: &Path) -> anyhow::Result<()> {
    let is_on_full_disk = |case: &Case| case.operation.is_on_full_disk();
    if cases.iter().any(is_on_full_disk) && !full::try_mounting(&base.join("disk")) {
        skip("the cases on a full disk need root and a mount of their own")?;
        cases.retain(|case| !is_on_full_disk(case));
    }
    Ok(())
}
