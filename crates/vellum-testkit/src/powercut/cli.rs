//! The command line of `vellum-powercut`, and its exit status.

use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::{Command, ExitCode};
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use clap::{Args, Parser, Subcommand};
use vellum_command::output::say_as;
use vellum_zoo::Missing;
use vellum_zoo::filesystem::Filesystem;

use super::campaign::{self, Plan, Source};
use super::command::Template;
use super::disk::Failure;
use super::profile::Profile;
use super::recording::Recording;
use super::reference::{CheckMode, WorkMode, check, work};
use super::report::TABLE_HEAD;
use super::sandbox::{self, Boot, Sandbox};
use super::sys::{self, End};
use crate::trace::now_ns;

/// The campaign could not be carried out.
const CANNOT_RUN: u8 = 2;

/// This machine lacks something that the harness needs; the customary code of a skipped test.
const MACHINE_CANNOT: u8 = 77;

/// Cuts the power under a workload on real filesystems, at any write, and has checked what is left.
///
/// The workload prints `ACK n` or `ACK a-b` once records are durable and `DROP a-b` before it
/// deletes some. The check prints the records it finds, as `n` or `a-b`, or `BAD` and a reason, and
/// exits with 0 if all is well; it must also do so where nothing or only half of a log is there.
#[derive(Debug, Parser)]
#[command(name = "vellum-powercut", args_conflicts_with_subcommands = true)]
#[command(subcommand_negates_reqs = true)]
#[command(
    after_help = "Exit status: 0 all promises kept, 1 a promise broken, 2 could not run, 77 \
                        this machine cannot do it (2 where VELLUM_REQUIRE=all)."
)]
struct Arguments {
    #[command(subcommand)]
    reference: Option<Reference>,
    #[command(flatten)]
    campaign: CampaignArguments,
}

/// Built-in workloads, right and wrong ones, that prove the harness.
#[derive(Debug, Subcommand)]
enum Reference {
    /// Append records to a small log, as well or as badly as the mode says.
    SelfWork {
        /// Its right or wrong behaviour.
        mode: WorkMode,
        /// Where the log is.
        dir: PathBuf,
        /// How many records.
        #[arg(long, default_value_t = 100)]
        records: u64,
    },
    /// Look through the log that `self-work` has left.
    SelfCheck {
        /// The part that it checks.
        mode: CheckMode,
        /// Where the log is.
        dir: PathBuf,
    },
}

#[derive(Args, Debug)]
struct CampaignArguments {
    /// The workload, a shell command with {dir} for its directory.
    #[arg(long, required_unless_present_any = ["replay", "profile"], conflicts_with = "replay")]
    work: Option<Template>,
    /// The check, a shell command with {dir} for the same directory.
    #[arg(long, required_unless_present = "profile")]
    check: Option<Template>,
    /// Instead of one campaign: a list of them, with the `vellum-stress` beside this program. Of
    /// the other options, --seconds alone goes with it.
    #[arg(long, value_enum, conflicts_with_all = [
        "work", "check", "fs", "size", "points", "at_least", "exhaustive", "seed",
        "physical_sectors", "boots", "prefix", "nested", "fail", "save_log", "replay", "keep",
        "timeout",
    ])]
    profile: Option<Profile>,
    /// The filesystems.
    #[arg(long, value_delimiter = ',', default_value = "ext4,xfs,btrfs")]
    fs: Vec<Filesystem>,
    /// MiB of the disk, at least; each filesystem has its own minimum.
    #[arg(long, default_value_t = 0)]
    size: u64,
    /// Random cuts per recording.
    #[arg(long, default_value_t = 300)]
    points: usize,
    /// Fail if fewer cuts than this were tried on a filesystem.
    #[arg(long, default_value_t = 1)]
    at_least: u64,
    /// Instead of random cuts: every image that dropping unflushed writes can leave.
    #[arg(long)]
    exhaustive: bool,
    /// Continue with further recordings for about so long, spread over the filesystems.
    #[arg(long)]
    seconds: Option<u64>,
    /// The number that decides the cuts; printed, so that a recording can be repeated.
    #[arg(long)]
    seed: Option<u64>,
    /// The disk has physical sectors of 4096 bytes: a write of less that is interrupted destroys
    /// all of the sector.
    #[arg(long)]
    physical_sectors: bool,
    /// In which boots each image is opened: in another, as after a power cut, and in the same, as
    /// when the disk alone was lost.
    #[arg(long, value_enum, value_delimiter = ',', default_value = "another,same")]
    boots: Vec<Boot>,
    /// Also demand that the records have no gap.
    #[arg(long)]
    prefix: bool,
    /// Also cut the power during each recovery, so many times.
    #[arg(long, value_name = "TIMES", num_args = 0..=1, default_value_t = 0)]
    #[arg(default_missing_value = "1")]
    nested: usize,
    /// Fail once: write:K or flush:K answers with an error, lose:K also forgets what was unflushed,
    /// and fails as many more flushes as writes are gone.
    #[arg(long)]
    fail: Option<Failure>,
    /// Save the recording (of one filesystem).
    #[arg(long, value_name = "FILE", conflicts_with_all = ["replay", "seconds"])]
    save_log: Option<PathBuf>,
    /// Take a saved recording instead of a workload.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["fs", "fail", "size"])]
    replay: Option<PathBuf>,
    /// Where recordings and images of violations are kept.
    #[arg(long, value_name = "DIR")]
    keep: Option<PathBuf>,
    /// Seconds that a command may take.
    #[arg(long, default_value_t = 60)]
    timeout: u64,
}

/// What `vellum-powercut` does.
pub fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let result = match arguments.reference {
        Some(Reference::SelfWork { mode, dir, records }) => work(mode, &dir, records).map(|()| 0),
        Some(Reference::SelfCheck { mode, dir }) => check(mode, &dir).map(|()| 0),
        None => match arguments.campaign.profile {
            Some(profile) => run_all(profile, arguments.campaign.seconds),
            None => run_apart(&arguments.campaign),
        },
    };
    ExitCode::from(result.unwrap_or_else(|error| tell(&error)))
}

/// Tells an error and gives the exit status for it.
fn tell(error: &anyhow::Error) -> u8 {
    say_as("vellum-powercut", format_args!("{error:#}"));
    let may_be_missing = !vellum_testing::missing::is_all_required();
    if error.is::<Missing>() && may_be_missing { MACHINE_CANNOT } else { CANNOT_RUN }
}

/// Runs the campaigns of a list. One that breaks a promise or cannot run is the last; campaigns
/// that this machine cannot run are left out, and the status says so.
fn run_all(profile: Profile, seconds: Option<u64>) -> anyhow::Result<u8> {
    let mut status = 0;
    for campaign in profile.campaigns() {
        let words = campaign.words(profile.seconds(seconds))?;
        let line: Vec<String> = words.iter().map(|word| shown(word)).collect();
        println!("vellum-powercut {}", line.join(" "));
        match run_another(&words)? {
            0 => {}
            MACHINE_CANNOT => status = MACHINE_CANNOT,
            failed => return Ok(failed),
        }
    }
    Ok(status)
}

/// Runs a campaign in a program of its own: a process that has made a namespace cannot make the
/// next one.
fn run_another(words: &[String]) -> anyhow::Result<u8> {
    let own = std::env::current_exe().context("cannot find this program")?;
    let status = Command::new(own).args(words).status().context("cannot start this program")?;
    let by_signal = || status.signal().map(|signal| 128 + signal);
    Ok(status.code().or_else(by_signal).map_or(CANNOT_RUN, |code| code as u8))
}

/// A word as one types it in a shell.
fn shown(word: &str) -> String {
    let is_plain = word.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-:,".contains(&byte));
    if is_plain { word.to_string() } else { format!("\"{word}\"") }
}

/// Runs the campaign in a process that takes everything with it when it ends.
fn run_apart(arguments: &CampaignArguments) -> anyhow::Result<u8> {
    let (filesystems, plan) = plan(arguments)?;
    sandbox::look_for_needs(&filesystems)?;
    let (seconds, at_least) = (arguments.seconds, arguments.at_least);
    let run = || run(&filesystems, &plan, seconds, at_least);
    let body = || run().unwrap_or_else(|error| tell(&error));
    match sys::supervise(body) {
        Ok(End::Exited(status)) => Ok(status),
        Ok(End::Signalled(signal)) => Ok(128 + signal as u8),
        Err(error) => Err(Missing(format!("no process namespace: {error}")).into()),
    }
}

fn plan(arguments: &CampaignArguments) -> anyhow::Result<(Vec<Filesystem>, Plan)> {
    let seed = arguments.seed.unwrap_or_else(now_ns);
    let mut filesystems = arguments.fs.clone();
    let source = match (&arguments.replay, &arguments.work) {
        (Some(path), _) => {
            let (recording, name) = Recording::load(path)
                .with_context(|| format!("cannot replay {}", path.display()))?;
            filesystems = vec![name.parse().map_err(anyhow::Error::msg)?];
            Source::Replay(recording)
        }
        (None, Some(work)) => Source::Work {
            work: work.clone(),
            failure: arguments.fail,
            save: arguments.save_log.clone(),
        },
        (None, None) => bail!("there is neither a workload nor a recording"),
    };
    if arguments.save_log.is_some() && filesystems.len() > 1 {
        bail!("--save-log wants one filesystem, as in --fs ext4");
    }
    let keep = arguments.keep.clone();
    let keep = keep.unwrap_or_else(|| std::env::temp_dir().join(format!("vellum-powercut-{seed}")));
    let plan = Plan {
        source,
        check: arguments.check.clone().context("there is no check")?,
        points: arguments.points,
        is_exhaustive: arguments.exhaustive,
        nested: arguments.nested,
        boots: arguments.boots.clone(),
        is_prefix: arguments.prefix,
        is_coarse: arguments.physical_sectors,
        size: arguments.size << 20,
        seed,
        keep,
        timeout: Duration::from_secs(arguments.timeout),
    };
    Ok((filesystems, plan))
}

/// The campaign itself, in its own process.
fn run(
    filesystems: &[Filesystem],
    plan: &Plan,
    seconds: Option<u64>,
    at_least: u64,
) -> anyhow::Result<u8> {
    println!("--seed {}", plan.seed);
    let end = seconds.map(|seconds| Instant::now() + Duration::from_secs(seconds));
    let mut sandbox = Sandbox::enter(plan.seed)?;
    let mut totals = Vec::new();
    for (index, filesystem) in filesystems.iter().enumerate() {
        let left = (filesystems.len() - index) as u32;
        let time = end.map(|end| end.saturating_duration_since(Instant::now()) / left);
        let total = campaign::run(plan, *filesystem, time, &mut sandbox)
            .with_context(|| format!("on {filesystem}"))?;
        totals.push(total);
    }
    println!("{TABLE_HEAD}");
    totals.iter().for_each(|total| println!("{total}"));
    if let Some(total) = totals.iter().find(|total| total.cuts < at_least) {
        bail!("{} cuts are too few; {at_least} are wanted", total.cuts);
    }
    Ok(u8::from(totals.iter().any(|total| total.violations > 0)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_campaign_of_a_list_is_a_command_line() {
        for profile in [Profile::Sample, Profile::Long] {
            for campaign in profile.campaigns() {
                let words = campaign.words(profile.seconds(None)).unwrap();
                let words = [String::from("vellum-powercut")].into_iter().chain(words);
                let arguments = Arguments::try_parse_from(words).unwrap();
                assert!(arguments.campaign.work.is_some());
                assert_eq!(arguments.campaign.seconds.is_some(), profile == Profile::Long);
            }
        }
    }
}
