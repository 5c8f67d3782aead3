//! `vellum-killpoints`: kills a process at every instruction of an operation on a log, in turn.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use clap::Parser;
use vellum_testkit::campaign::{Campaign, Extent, Phase, word};
use vellum_testkit::cases::all_cases;
use vellum_testkit::full;
use vellum_testkit::point::Point;
use vellum_testkit::power;
use vellum_testkit::random::Random;
use vellum_testkit::scenario::Case;
use vellum_testkit::trace::{self, Pid, SharedPage, Stop};

/// Time that each case of a sample gets, however slow the machine is.
const SAMPLE_MIN: Duration = Duration::from_millis(50);

/// Kills a process at every instruction of an operation on a log, and has others go on.
#[derive(Debug, Parser)]
#[command(name = "vellum-killpoints")]
struct Arguments {
    /// Try every instruction (minutes).
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

fn main() -> ExitCode {
    match run(&Arguments::parse()) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("vellum-killpoints: {error:#}");
            ExitCode::from(2)
        }
    }
}

fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let mut cases: Vec<Case> =
        all_cases().into_iter().filter(|case| case.to_string().contains(&arguments.case)).collect();
    if arguments.list {
        cases.iter().for_each(|case| println!("{case}"));
        return Ok(ExitCode::SUCCESS);
    }
    if cases.is_empty() {
        bail!("no case is called {:?}; --list names them", arguments.case);
    }
    if let Err(error) = try_tracing() {
        println!("SKIPPED: a child process cannot be traced here: {error}");
        return Ok(ExitCode::SUCCESS);
    }
    let base = arguments.dir.clone().unwrap_or_else(std::env::temp_dir);
    let base = tempfile::Builder::new()
        .prefix("vellum-killpoints-")
        .tempdir_in(&base)
        .with_context(|| format!("cannot make a directory in {}", base.display()))?;
    leave_out_full_disks(&mut cases, base.path());
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    let jobs = arguments.jobs.unwrap_or(processors).clamp(1, cases.len().max(1));
    let seed = arguments.seed.unwrap_or_else(trace::now_ns);
    let extent = match (arguments.point, arguments.all) {
        (Some(point), _) => Extent::One(point),
        (None, true) => Extent::All,
        (None, false) => Extent::Sample(Duration::from_secs(arguments.seconds)),
    };
    println!("{} cases, {jobs} at a time, --seed {seed}", cases.len());
    let totals = run_cases(&cases, extent, base.path(), jobs, seed)?;
    println!("{totals}");
    if totals.faults > 0 {
        println!("the logs are kept in {}", base.keep().display());
        return Ok(ExitCode::FAILURE);
    }
    Ok(ExitCode::SUCCESS)
}

/// Takes out the cases that need a disk to fill up, where none can be had.
fn leave_out_full_disks(cases: &mut Vec<Case>, base: &Path) {
    let is_on_full_disk = |case: &Case| case.operation.is_on_full_disk();
    if cases.iter().any(is_on_full_disk) && !full::try_mounting(&base.join("disk")) {
        println!("SKIPPED: the cases on a full disk, which need root and a mount of their own");
        cases.retain(|case| !is_on_full_disk(case));
    }
}

/// Whether a child may be traced, which a container can forbid.
fn try_tracing() -> anyhow::Result<()> {
    let child = trace::fork(|| match trace::trace_me() {
        Ok(()) => {
            trace::mark();
            0
        }
        Err(error) => error.raw_os_error().unwrap_or(1),
    })?;
    match trace::wait(child)? {
        Stop::Mark => {
            let allowed = trace::set_options(child);
            trace::kill_and_reap(child)?;
            Ok(allowed?)
        }
        Stop::Exited(code) => Err(std::io::Error::from_raw_os_error(code).into()),
        stop => bail!("the child ended by {stop:?}"),
    }
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
    /// Cases of a sample that the time was too short for.
    untried: usize,
    start: Instant,
}

impl std::fmt::Display for Totals {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
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
            self.start.elapsed().as_secs_f64()
        )?;
        match self.untried {
            0 => Ok(()),
            count => write!(f, "; no time for {count} cases"),
        }
    }
}

/// Runs each case in a process of its own, so that one held up for ever is noticed.
fn run_cases(
    cases: &[Case],
    extent: Extent,
    base: &Path,
    jobs: usize,
    seed: u64,
) -> anyhow::Result<Totals> {
    let mut totals = Totals {
        points: 0,
        torn: 0,
        instructions: 0,
        slow: 0,
        slowest_ns: 0,
        faults: 0,
        untried: 0,
        start: Instant::now(),
    };
    let mut running: HashMap<Pid, (usize, &Case, SharedPage, PathBuf)> = HashMap::new();
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
            let work = || {
                trace::pin_to(processor);
                trace::adopt_orphans();
                run_case(case, extent, &dir, seed ^ index, &page)
            };
            let child = trace::fork(work)?;
            running.insert(child, (processor, case, page, dir));
        }
        let Some((child, stop)) = trace::wait_any()? else { return Ok(totals) };
        let Some((_, case, page, dir)) = running.remove(&child) else { continue };
        if stop != Stop::Exited(0) {
            // It could not do so itself.
            power::remove_stage(&dir.join("log"));
        }
        totals.add(case, &page, stop);
    }
}

/// The life of a case's process; returns its exit status.
fn run_case(case: &Case, extent: Extent, dir: &Path, seed: u64, page: &SharedPage) -> i32 {
    let work = || -> std::io::Result<()> {
        std::fs::create_dir(dir)?;
        Campaign::new(case, dir, seed, page)?.run(extent)
    };
    match work() {
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
                Stop::Killed(_) => "the test itself is stuck or was killed",
                _ => "the test failed",
            };
            println!("FAULT: {case} at {}: {what} ({stop:?})", page.text());
        }
        self.points += load(word::POINTS);
        self.torn += load(word::TORN);
        self.instructions += load(word::INSTRUCTIONS);
        self.slow += load(word::SLOW);
        self.slowest_ns = self.slowest_ns.max(load(word::SLOWEST_NS));
        self.faults += faults;
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
