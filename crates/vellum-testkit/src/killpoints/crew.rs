//! Runs cases, each in a process of its own and some at the same time.

use std::collections::HashMap;
use std::io;
use std::path::Path;
use std::time::{Duration, Instant};

use super::campaign::Campaign;
use super::inject::Choice;
use super::point::Extent;
use super::scenario::Case;
use super::totals::Totals;
use crate::random::Random;
use crate::trace::{self, Pid, SharedPage};

/// Time that each case of a sample gets, however slow the machine is.
const SAMPLE_MIN: Duration = Duration::from_millis(50);

/// The trials of each case.
#[derive(Clone, Copy, Debug)]
pub(super) struct Work<'a> {
    pub(super) extent: Extent,
    /// The injected errors, where no process is killed.
    pub(super) choice: Option<&'a Choice>,
    pub(super) seed: u64,
    pub(super) faults_max: u64,
}

/// Runs all `cases`, `jobs` at a time. One that is held up for ever ends with its process.
pub(super) fn run_cases(
    cases: &[Case],
    work: Work<'_>,
    base: &Path,
    jobs: usize,
) -> io::Result<Totals> {
    let mut crew = Crew::new(cases, work, base, jobs);
    loop {
        crew.start_cases()?;
        let Some((child, stop)) = trace::wait_any()? else { return Ok(crew.totals) };
        if let Some(job) = crew.running.remove(&child) {
            crew.totals.add(job.case, &job.page, stop);
        }
    }
}

/// The processes, and the cases that are left for them.
struct Crew<'a> {
    work: Work<'a>,
    base: &'a Path,
    /// How many run at the same time.
    jobs: usize,
    /// The cases that have not begun, with their numbers.
    waiting: Vec<(u64, &'a Case)>,
    /// The weight of these together.
    weight: u32,
    running: HashMap<Pid, Job<'a>>,
    totals: Totals,
}

/// A case that runs.
struct Job<'a> {
    processor: usize,
    case: &'a Case,
    page: SharedPage,
}

impl<'a> Crew<'a> {
    fn new(cases: &'a [Case], work: Work<'a>, base: &'a Path, jobs: usize) -> Crew<'a> {
        let mut waiting: Vec<(u64, &Case)> = (0..).zip(cases).collect();
        if let Extent::Sample(_) = work.extent {
            // The cases that the time does not suffice for differ with the seed.
            Random::new(work.seed).shuffle(&mut waiting);
        }
        let weight = cases.iter().map(|case| case.operation.weight()).sum();
        let totals = Totals::new(work.choice.is_some());
        Crew { work, base, jobs, waiting, weight, running: HashMap::new(), totals }
    }

    /// Starts as many cases as may run at the same time.
    fn start_cases(&mut self) -> io::Result<()> {
        if matches!(self.work.extent, Extent::Sample(time) if self.totals.start.elapsed() > time) {
            self.totals.untried += self.waiting.drain(..).count();
        }
        while self.running.len() < self.jobs
            && let Some((index, case)) = self.waiting.pop()
        {
            self.start(index, case)?;
        }
        Ok(())
    }

    fn start(&mut self, index: u64, case: &'a Case) -> io::Result<()> {
        let work = Work { extent: self.share_of(case), seed: self.work.seed ^ index, ..self.work };
        self.weight -= case.operation.weight();
        let page = SharedPage::new()?;
        let busy: Vec<usize> = self.running.values().map(|job| job.processor).collect();
        let processor = (0..self.jobs).find(|number| !busy.contains(number)).unwrap_or(0);
        let dir = self.base.join(format!("case-{index}"));
        let child = trace::fork(|| {
            trace::pin_to(processor);
            trace::adopt_orphans();
            run_case(case, work, &dir, &page)
        })?;
        self.running.insert(child, Job { processor, case, page });
        Ok(())
    }

    /// The extent of a case. In a sample it gets its share of the time that is left: later cases
    /// get the time that earlier ones did not need.
    fn share_of(&self, case: &Case) -> Extent {
        let Extent::Sample(total) = self.work.extent else { return self.work.extent };
        let rest = total.saturating_sub(self.totals.start.elapsed());
        let share = case.operation.weight() * self.jobs as u32;
        Extent::Sample((rest * share / self.weight).max(SAMPLE_MIN))
    }
}

/// The life of a case's process; returns its exit status.
fn run_case(case: &Case, work: Work<'_>, dir: &Path, page: &SharedPage) -> i32 {
    let run = || -> io::Result<()> {
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
