//! The command line of `vellum-killpoints`: a process for each case, and what it came to.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use clap::Parser;

use super::answer::{ERRORS, error_of};
use super::campaign::{Campaign, Extent, FAULTS_MAX, Phase, word};
use super::cases::all_cases;
use super::full;
use super::inject::{self, Choice};
use super::point::Point;
use super::scenario::Case;
use crate::random::Random;
use crate::trace::{self, Pid, SharedPage, Stop};

/// Time that each case of a sample gets, however slow the machine is.
const SAMPLE_MIN: Duration = Duration::from_millis(50);

/// Kills a process at every instruction of an operation on a log, and has others go on.
#[derive(Debug, Parser)]
#[command(name = "vellum-killpoints")]
struct Arguments {
    /// Try every instruction (many hours).
    #[arg(long, conflicts_with = "seconds")]
    all: bool,
    /// Try a sample of the points for about so long, spread over all cases.
    #[arg(long, default_value_t = 40)]
    seconds: u64,
    /// What decides the sample; printed, so that a run can be repeated.
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
            eprintln!("vellum-killpoints: {error:#}");
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
    if vellum_skip::is_all_required() {
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

/// What is tried in each case.
#[derive(Clone, Copy, Debug)]
struct Work<'a> {
    extent: Extent,
    /// The errors that are given, where nobody is killed.
    choice: Option<&'a Choice>,
    seed: u64,
    faults_max: u64,
}

/// What all cases together came to.
#[derive(Debug)]
struct Totals {
    points: u64,
    torn: u64,
    instructions: u64,
    slow: u64,
    slowest_ns: u64,
    faults: u64,
    known: u64,
    is_injected: bool,
    /// Cases of a sample that the time was too short for.
    untried: usize,
    start: Instant,
}

impl std::fmt::Display for Totals {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let seconds = self.start.elapsed().as_secs_f64();
        if self.is_injected {
            let Totals { points, faults, known, .. } = self;
            write!(
                f,
                "{points} calls failed; {faults} faults, {known} known ones; {seconds:.1} s"
            )?;
        } else {
            self.fmt_kills(f, seconds)?;
        }
        match self.untried {
            0 => Ok(()),
            count => write!(f, "; no time for {count} cases"),
        }
    }
}

impl Totals {
    fn fmt_kills(&self, f: &mut std::fmt::Formatter<'_>, seconds: f64) -> std::fmt::Result {
        write!(
            f,
            "{} processes killed ({} of them in the middle of a write) at {} instructions; \
             survivors took at most {:.1} ms, {} of them longer than 250 ms; {} faults; {:.1} s",
            self.points,
            self.torn,
            self.instructions,
            self.slowest_ns as f64 / 1e6,
            self.slow,
            self.faults,
            seconds
        )
    }
}

/// Runs each case in a process of its own, so that one held up for ever is noticed.
fn run_cases(cases: &[Case], work: Work<'_>, base: &Path, jobs: usize) -> anyhow::Result<Totals> {
    let Work { extent, seed, .. } = work;
    let mut totals = Totals {
        points: 0,
        torn: 0,
        instructions: 0,
        slow: 0,
        slowest_ns: 0,
        faults: 0,
        known: 0,
        is_injected: work.choice.is_some(),
        untried: 0,
        start: Instant::now(),
    };
    let mut running: HashMap<Pid, (usize, &Case, SharedPage)> = HashMap::new();
    let mut waiting: Vec<(u64, &Case)> = (0..).zip(cases).collect();
    if let Extent::Sample(_) = extent {
        // What there is no time for is another choice each time.
        Random::new(seed).shuffle(&mut waiting);
    }
    let mut weight: u32 = cases.iter().map(|case| case.operation.weight()).sum();
    loop {
        let is_over = matches!(extent, Extent::Sample(time) if totals.start.elapsed() > time);
        if is_over {
            totals.untried += waiting.drain(..).count();
        }
        while running.len() < jobs
            && let Some((index, case)) = waiting.pop()
        {
            let extent = match extent {
                // What earlier cases did not need, later ones get.
                Extent::Sample(total) => {
                    let rest = total.saturating_sub(totals.start.elapsed());
                    let share = case.operation.weight() * jobs as u32;
                    Extent::Sample((rest * share / weight).max(SAMPLE_MIN))
                }
                extent => extent,
            };
            weight -= case.operation.weight();
            let page = SharedPage::new()?;
            let busy: Vec<usize> = running.values().map(|(processor, ..)| *processor).collect();
            let processor = (0..jobs).find(|number| !busy.contains(number)).unwrap_or(0);
            let dir = base.join(format!("case-{index}"));
            let live = || {
                trace::pin_to(processor);
                trace::adopt_orphans();
                run_case(case, Work { extent, seed: seed ^ index, ..work }, &dir, &page)
            };
            let child = trace::fork(live)?;
            running.insert(child, (processor, case, page));
        }
        let Some((child, stop)) = trace::wait_any()? else { return Ok(totals) };
        let Some((_, case, page)) = running.remove(&child) else { continue };
        totals.add(case, &page, stop);
    }
}

/// The life of a case's process; returns its exit status.
fn run_case(case: &Case, work: Work<'_>, dir: &Path, page: &SharedPage) -> i32 {
    let run = || -> std::io::Result<()> {
        std::fs::create_dir(dir)?;
        let mut campaign = Campaign::new(case, dir, work.seed, page)?;
        campaign.set_faults_max(work.faults_max);
        match (work.choice, work.extent) {
            (None, extent) => campaign.run(extent),
            (Some(choice), Extent::Sample(time)) => {
                campaign.inject(choice, Some(Instant::now() + time))
            }
            (Some(choice), _) => campaign.inject(choice, None),
        }
    };
    match run() {
        Ok(()) => 0,
        Err(error) => {
            println!("FAULT: {case} could not be tried: {error}");
            1
        }
    }
}

impl Totals {
    /// Takes in a finished case, and prints its line.
    fn add(&mut self, case: &Case, page: &SharedPage, stop: Stop) {
        let load = |index: usize| page.word(index).load(Ordering::SeqCst);
        let mut faults = load(word::FAULTS);
        if stop != Stop::Exited(0) {
            faults += 1;
            let phase = load(word::PHASE);
            let what = match stop {
                Stop::Killed(_) if phase == Phase::Survive as u64 => "the survivor is held up",
                Stop::Killed(_) if phase == Phase::Fail as u64 => "the operation does not end",
                Stop::Killed(_) => "the test itself is stuck or was killed",
                _ => "the test failed",
            };
            println!("FAULT: {case} at {}: {what} ({stop:?})", page.text());
            println!("       vellum-killpoints --case {case} {}", page.text());
        }
        self.points += load(word::POINTS);
        self.torn += load(word::TORN);
        self.instructions += load(word::INSTRUCTIONS);
        self.slow += load(word::SLOW);
        self.slowest_ns = self.slowest_ns.max(load(word::SLOWEST_NS));
        self.faults += faults;
        self.known += load(word::KNOWN);
        if self.is_injected {
            let how = if load(word::IS_COMPLETE) == 0 { "a sample" } else { "all" };
            let found = if faults > 0 { format!(", {faults} FAULTS") } else { String::new() };
            let (calls, points) = (load(word::CALLS), load(word::POINTS));
            println!("{case:<42} {calls:>3} calls {points:>6} failed ({how}){found}");
            return;
        }
        let extent = match (load(word::IS_COMPLETE), load(word::LONG_STRETCHES)) {
            (0, _) => "a sample",
            (_, 0) => "all",
            _ => "all but long fills",
        };
        println!(
            "{case:<42} {:>3} calls {:>6} instructions {:>6} points ({extent}), {:>3} torn, \
             slowest {:>6.1} ms{}",
            load(word::CALLS),
            load(word::INSTRUCTIONS),
            load(word::POINTS),
            load(word::TORN),
            load(word::SLOWEST_NS) as f64 / 1e6,
            if faults > 0 { format!(", {faults} FAULTS") } else { String::new() }
        );
    }
}
