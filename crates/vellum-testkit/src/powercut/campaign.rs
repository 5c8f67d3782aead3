//! A campaign on one filesystem: record, cut at many moments, have each one checked, count.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::Context;
use vellum_zoo::filesystem::Filesystem;

use super::command::{Runner, Template};
use super::cut::{Cut, Walk, exhaustive_cuts, random_cuts};
use super::disk::Failure;
use super::image::Image;
use super::recording::Recording;
use super::report::{Progress, Totals};
use super::sandbox::{Boot, BootNumber, Sandbox};
use super::trial::Trial;
use super::verdict::Promise;
use crate::random::Random;

/// Violations of one filesystem that are told and whose images are kept; the others are counted.
const TOLD_MAX: u64 = 5;

/// The trials of each filesystem.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Where the recordings come from.
    pub source: Source,
    /// Says what is there after a cut.
    pub check: Template,
    /// Random cuts per recording.
    pub points: usize,
    /// Instead of random cuts: every image that dropped writes can leave.
    pub is_exhaustive: bool,
    /// Cuts during each recovery.
    pub nested: usize,
    /// In which boots each image is opened.
    pub boots: Vec<Boot>,
    /// Whether what is there must have no gap.
    pub is_prefix: bool,
    /// Whether the disk has physical sectors of 4096 bytes.
    pub is_coarse: bool,
    /// Bytes of the disk, at least.
    pub size: u64,
    /// Decides the cuts.
    pub seed: u64,
    /// Where recordings and images of violations are kept.
    pub keep: PathBuf,
    /// How long a command may take.
    pub timeout: Duration,
}

/// Where recordings come from.
#[derive(Clone, Debug)]
pub enum Source {
    /// From a workload, which may meet a failure of the disk.
    Work {
        /// The workload.
        work: Template,
        /// The failure of the disk.
        failure: Option<Failure>,
        /// Where to save the recording.
        save: Option<PathBuf>,
    },
    /// From a file.
    Replay(Recording),
}

/// The recording and the promises that images are judged by.
#[derive(Clone, Copy)]
struct Case<'a> {
    recording: &'a Recording,
    promise: &'a Promise,
    seed: u64,
}

/// A campaign that is under way.
struct Campaign<'a> {
    plan: &'a Plan,
    filesystem: Filesystem,
    sandbox: &'a mut Sandbox,
    trial: Trial,
    totals: Totals,
    progress: Progress,
    deadline: Option<Instant>,
}

/// An empty filesystem; `path` is a file for a moment.
fn make(filesystem: Filesystem, path: &Path, plan: &Plan) -> anyhow::Result<Image> {
    filesystem.make(path, plan.size, plan.is_coarse)?;
    let image = Image::from_file(path)?;
    std::fs::remove_file(path)?;
    Ok(image)
}

/// Runs the campaign on one filesystem; with a time, further recordings follow until it is over.
pub fn run(
    plan: &Plan,
    filesystem: Filesystem,
    time: Option<Duration>,
    sandbox: &mut Sandbox,
) -> anyhow::Result<Totals> {
    let dir = sandbox.dir(&format!("{filesystem}-{}", plan.seed))?;
    let empty = match &plan.source {
        Source::Work { .. } => make(filesystem, &dir.join("new"), plan)?,
        Source::Replay(recording) => recording.start.clone(),
    };
    let runner = Runner::new(&dir, plan.timeout);
    let trial = Trial::new(filesystem, empty.clone(), &dir, runner)?;
    let mut campaign = Campaign {
        plan,
        filesystem,
        sandbox,
        trial,
        totals: Totals::new(filesystem),
        progress: Progress::new(),
        deadline: time.map(|time| Instant::now() + time),
    };
    for round in 0.. {
        campaign.round(&empty, plan.seed.wrapping_add(round))?;
        let is_replay = matches!(plan.source, Source::Replay(_));
        if is_replay || campaign.deadline.is_none() || campaign.is_time_over() {
            break;
        }
    }
    Ok(campaign.totals)
}

impl Campaign<'_> {
    fn is_time_over(&self) -> bool {
        self.deadline.is_some_and(|deadline| Instant::now() >= deadline)
    }

    /// One recording and its cuts. The boot that is recorded has its number from `seed`, so that a
    /// recording is replayed in the same.
    fn round(&mut self, empty: &Image, seed: u64) -> anyhow::Result<()> {
        self.sandbox.enter_boot(Boot::Same, seed)?;
        let recording = match &self.plan.source {
            Source::Replay(recording) => recording.clone(),
            Source::Work { work, failure, save } => {
                let recording = self.trial.record(empty, work, *failure)?;
                if let Some(path) = save {
                    recording.save(path, self.filesystem.name()).context("cannot save")?;
                }
                recording
            }
        };
        self.totals.add_recording(&recording);
        let mut random = Random::new(seed);
        let cuts = match self.plan.is_exhaustive {
            true => exhaustive_cuts(&recording),
            false => random_cuts(&recording, self.plan.points, &mut random),
        };
        let start = Instant::now();
        let result = self.examine(&recording, &cuts, seed);
        self.totals.add_time(start.elapsed());
        result
    }

    fn examine(&mut self, recording: &Recording, cuts: &[Cut], seed: u64) -> anyhow::Result<()> {
        let mut walk = self.walk(recording);
        let prefix_from = recording.origin().filter(|_| self.plan.is_prefix);
        for cut in cuts {
            if self.is_time_over() {
                break;
            }
            walk.advance_to(cut.position);
            let promise = Promise {
                required: walk.acknowledged.without(&walk.dropped),
                dropped: walk.dropped.clone(),
                prefix_from,
            };
            let case = Case { recording, promise: &promise, seed };
            let recorded = (self.plan.nested > 0).then(|| self.boot_of(cut));
            let place = cut.to_string();
            let recovery = self.check(case, &walk.image(cut), &place, seed, recorded)?;
            if let Some((boot, recovery)) = recovery {
                self.cut_recovery(case, &recovery, cut, boot)?;
            }
            self.totals.cuts += 1;
            self.progress.tell(&self.totals);
        }
        Ok(())
    }

    /// In which boot the recovery is recorded that a cut makes necessary.
    fn boot_of(&self, cut: &Cut) -> Boot {
        self.plan.boots[cut.seed as usize % self.plan.boots.len()]
    }

    fn walk<'b>(&self, recording: &'b Recording) -> Walk<'b> {
        let walk = Walk::new(recording, self.filesystem.superblocks());
        if self.plan.is_coarse { walk.by_physical_sectors() } else { walk }
    }

    /// Cuts while the recovery from a cut is under way, in the boot `last`; the same promise holds.
    fn cut_recovery(
        &mut self,
        case: Case<'_>,
        recovery: &Recording,
        first: &Cut,
        last: BootNumber,
    ) -> anyhow::Result<()> {
        let mut random = Random::new(first.seed ^ case.seed);
        let mut walk = self.walk(recovery);
        if self.filesystem.trusts_blocks() && !self.plan.is_coarse {
            walk = walk.torn_by_blocks();
        }
        for second in random_cuts(recovery, self.plan.nested, &mut random) {
            walk.advance_to(second.position);
            let place = format!("{first}; then during recovery {second}");
            self.check(case, &walk.image(&second), &place, last, None)?;
            self.totals.nested += 1;
        }
        Ok(())
    }

    /// Has an image recovered and judged, once in each boot; the last was `last`. Returns what the
    /// recovery in the boot `recorded` did to the disk, and the number of that boot, if the promise
    /// was kept there.
    fn check(
        &mut self,
        case: Case<'_>,
        image: &Image,
        place: &str,
        last: BootNumber,
        recorded: Option<Boot>,
    ) -> anyhow::Result<Option<(BootNumber, Recording)>> {
        let mut answer = None;
        for boot in &self.plan.boots {
            let number = self.sandbox.enter_boot(*boot, last)?;
            let is_recorded = recorded == Some(*boot);
            let (found, recovery) =
                self.trial.recover(image.clone(), &self.plan.check, is_recorded)?;
            let violations = case.promise.violations(&found);
            match violations.is_empty() {
                true => answer = answer.or(recovery.map(|recovery| (number, recovery))),
                false => self.tell(case, image, &format!("{place}, {boot}"), &violations)?,
            }
        }
        Ok(answer)
    }

    /// Counts a violation, tells it and keeps its image.
    fn tell(
        &mut self,
        case: Case<'_>,
        image: &Image,
        place: &str,
        violations: &[String],
    ) -> anyhow::Result<()> {
        self.totals.violations += 1;
        if self.totals.violations <= TOLD_MAX {
            let (image, recording) = self.keep(case.recording, image, case.seed)?;
            let (filesystem, seed) = (self.filesystem, case.seed);
            let (violations, check) = (violations.join("; "), &self.plan.check);
            println!("VIOLATION: {filesystem}, {place}: {violations}; image {}", image.display());
            let recording = recording.display();
            println!(
                "    again: vellum-powercut --replay {recording} --seed {seed} --check '{check}'"
            );
        }
        Ok(())
    }

    /// Keeps the image of a violation and its recording; returns their paths.
    fn keep(
        &self,
        recording: &Recording,
        image: &Image,
        seed: u64,
    ) -> anyhow::Result<(PathBuf, PathBuf)> {
        std::fs::create_dir_all(&self.plan.keep)?;
        let name = format!("{}-{seed}", self.filesystem);
        let recording_path = self.plan.keep.join(format!("{name}.recording"));
        let image_path = self.plan.keep.join(format!("{name}-{}.img", self.totals.violations));
        if !recording_path.exists() {
            recording.save(&recording_path, self.filesystem.name())?;
        }
        image.to_file(&image_path)?;
        Ok((image_path, recording_path))
    }
}
