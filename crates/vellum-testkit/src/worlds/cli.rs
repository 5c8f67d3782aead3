//! The command line of `vellum-worlds`, and its output.

use std::io::{IsTerminal, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::Context;
use clap::{Parser, Subcommand};
use vellum_command::output::say_as;

use super::campaign::{Campaign, Tally};
use super::shape::{SHAPES, Shape};
use super::storage::cli::{self as storage, StorageArgs};
use super::storage::{ReaderArgs, WriterArgs};
use super::surroundings;
use super::table::{self, WORLDS, World};
use super::worker::{self, WorkerArgs};
use crate::random::Random;
use crate::trace;

/// Has many processes use a log in worlds with forks, limits, other users, containers and copies,
/// and verifies that nothing they were promised is lost.
#[derive(Debug, Parser)]
#[command(name = "vellum-worlds")]
struct Arguments {
    /// Name the worlds and their promises, and do nothing.
    #[arg(long)]
    list: bool,
    /// Only this world, or these at once: `--world umask-077+exec`.
    #[arg(long, value_name = "NAME", value_parser = together)]
    world: Option<Together>,
    /// Only logs of this kind: wal, mapped, pwrite, text or text-pwrite.
    #[arg(long)]
    shape: Option<Shape>,
    /// After the worlds one by one, two at once, wherever a process can be in both.
    #[arg(long)]
    pairs: bool,
    /// A sample of about so long: each world once, in one kind of log, and pairs with `--pairs`.
    #[arg(long)]
    seconds: Option<u64>,
    /// Decides everything but the speed of processes; printed, so that a run can be repeated.
    #[arg(long)]
    seed: Option<u64>,
    /// Also where a promise is known not to hold yet; faults there do not count.
    #[arg(long)]
    known: bool,
    /// How often each is run.
    #[arg(long, default_value_t = 1)]
    times: u64,
    /// Where to make the logs; default: the directory for temporary files.
    #[arg(long)]
    dir: Option<PathBuf>,
    #[command(subcommand)]
    role: Option<Role>,
}

#[derive(Debug, Subcommand)]
enum Role {
    /// The processes of a campaign.
    #[command(hide = true)]
    Worker(WorkerArgs),
    /// Has logs live on disks that are full or fail.
    Storage(StorageArgs),
    #[command(hide = true)]
    StorageWriter(WriterArgs),
    #[command(hide = true)]
    StorageReader(ReaderArgs),
}

/// Worlds that a campaign is in at once.
type Together = std::sync::Arc<[&'static World]>;

fn together(names: &str) -> Result<Together, String> {
    let worlds = table::find_all(names)?;
    if worlds.len() > 1 && !table::agree(&worlds) {
        return Err("a process cannot be in all of these at once".into());
    }
    Ok(Together::from(worlds))
}

/// What `vellum-worlds` does.
pub fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let answer = match &arguments.role {
        Some(Role::Worker(args)) => worker::run(args).map(|()| ExitCode::SUCCESS),
        Some(Role::Storage(args)) => storage::run(args),
        Some(Role::StorageWriter(args)) => storage::run_writer(args),
        Some(Role::StorageReader(args)) => storage::run_reader(args),
        None if arguments.list => {
            WORLDS.iter().for_each(|world| println!("{}\t{}", world.name, world.promise));
            storage::list();
            Ok(ExitCode::SUCCESS)
        }
        None => run(&arguments),
    };
    answer.unwrap_or_else(|error| {
        say_as("vellum-worlds", format_args!("{error:#}"));
        ExitCode::from(2)
    })
}

fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    trace::adopt_orphans();
    let base = arguments.dir.clone().unwrap_or_else(std::env::temp_dir);
    let base = tempfile::Builder::new()
        .prefix("vellum-worlds-")
        .permissions(std::os::unix::fs::PermissionsExt::from_mode(0o755))
        .tempdir_in(&base)
        .with_context(|| format!("cannot make a directory in {}", base.display()))?;
    let seed = arguments.seed.unwrap_or_else(trace::now_ns);
    let (here, missing) = worlds_here(arguments);
    let campaigns = choose(arguments, &here, seed);
    let total = campaigns.len();
    println!("{total} campaigns, --seed {seed}");
    let limit = arguments.seconds.map(Duration::from_secs);
    let mut run = Run::new();
    for (number, campaign) in campaigns.into_iter().enumerate() {
        if limit.is_some_and(|limit| run.start.elapsed() > limit) {
            break;
        }
        run.progress(number, total);
        run.take(&campaign, &base.path().join(format!("campaign-{number}")))?;
    }
    println!("{run} of {total}; {:.1} s", run.start.elapsed().as_secs_f64());
    if run.faults > 0 {
        println!("the logs are kept in {}", base.keep().display());
    }
    let is_required = std::env::var("VELLUM_REQUIRE").is_ok_and(|what| what == "all");
    if is_required && missing > 0 {
        println!("{missing} worlds cannot be had here, which VELLUM_REQUIRE=all forbids");
    }
    Ok(ExitCode::from(u8::from(run.faults > 0 || is_required && missing > 0)))
}

/// The worlds to be in; names those that cannot be had here, and counts them.
fn worlds_here(arguments: &Arguments) -> (Vec<&'static World>, u64) {
    let (mut here, mut missing) = (Vec::new(), 0);
    for world in WORLDS {
        if let Some(why) = surroundings::missing(world) {
            println!("SKIPPED: {}: {why}", world.name);
            missing += 1;
            continue;
        }
        here.push(world);
        let known = SHAPES.iter().filter_map(|shape| Some((shape, world.kind.known(*shape)?)));
        for (shape, why) in known.filter(|_| !arguments.known && arguments.world.is_none()) {
            println!("known not to hold yet: {} of {shape}: {why}", world.name);
        }
    }
    (here, missing)
}

/// The campaigns to run, in this order.
fn choose(arguments: &Arguments, here: &[&'static World], seed: u64) -> Vec<Campaign> {
    let mut random = Random::new(seed);
    let tries_known = arguments.known || arguments.world.is_some();
    let all_shapes = arguments.shape.map_or(SHAPES.to_vec(), |shape| vec![shape]);
    let one_shape = |random: &mut Random| vec![*random.pick(&all_shapes)];
    let mut sets: Vec<Together> = match &arguments.world {
        Some(worlds) => vec![worlds.clone()],
        None => here.iter().map(|world| Together::from([*world])).collect(),
    };
    random.shuffle(&mut sets);
    let singles = sets.len();
    if arguments.pairs && arguments.world.is_none() {
        let mut pairs = pairs_of(here);
        random.shuffle(&mut pairs);
        sets.extend(pairs);
    }
    let mut campaigns = Vec::new();
    for _ in 0..arguments.times {
        for (number, worlds) in sets.iter().enumerate() {
            let in_all = number < singles && arguments.seconds.is_none();
            let shapes = if in_all { all_shapes.clone() } else { one_shape(&mut random) };
            for shape in shapes {
                // One that is run alone is repeated by the seed that was given.
                let seed = if campaigns.is_empty() { seed } else { random.next_u64() };
                let campaign = Campaign { worlds: worlds.to_vec(), shape, seed };
                if tries_known || campaign.known().is_none() {
                    campaigns.push(campaign);
                }
            }
        }
    }
    campaigns
}

/// Each two worlds that a process can be in at once.
fn pairs_of(worlds: &[&'static World]) -> Vec<Together> {
    let pairs = worlds.iter().enumerate().flat_map(|(index, one)| {
        worlds[..index].iter().map(move |other| Together::from([*other, *one]))
    });
    pairs.filter(|pair| table::agree(pair)).collect()
}

/// The outcomes of the campaigns so far.
struct Run {
    start: Instant,
    campaigns: u64,
    tally: Tally,
    faults: u64,
    known: u64,
}

impl Run {
    fn new() -> Run {
        Run { start: Instant::now(), campaigns: 0, tally: Tally::default(), faults: 0, known: 0 }
    }

    fn progress(&self, number: usize, total: usize) {
        if std::io::stderr().is_terminal() {
            let _ = write!(std::io::stderr(), "\r{number} of {total} campaigns\x1b[K");
        }
    }

    /// Runs one, and prints its line.
    fn take(&mut self, campaign: &Campaign, place: &std::path::Path) -> anyhow::Result<()> {
        let Campaign { worlds, shape, seed } = campaign;
        let start = Instant::now();
        let title = table::title(worlds);
        let answer = campaign.run(place).with_context(|| {
            format!(
                "{title} could not be tried\n    again: vellum-worlds --world {title} --shape {shape} \
                 --seed {seed}"
            )
        })?;
        if std::io::stderr().is_terminal() {
            let _ = write!(std::io::stderr(), "\r\x1b[K");
        }
        self.campaigns += 1;
        let seconds = start.elapsed().as_secs_f64();
        let known = campaign.known();
        match answer {
            Ok(Tally { records, kills, refusals }) => {
                println!(
                    "{title:<62} {shape:<11} {records:>4} records, {kills} killed, \
                     {refusals:>3} refusals, {seconds:.1} s"
                );
                self.tally.records += records;
                self.tally.kills += kills;
                self.tally.refusals += refusals;
                std::fs::remove_dir_all(place)?;
            }
            Err(faults) => {
                let word = if known.is_some() { "known" } else { "FAULT" };
                println!("{title:<62} {shape:<11} {word}, {seconds:.1} s");
                known.iter().for_each(|why| println!("    known: {why}"));
                faults.iter().take(4).for_each(|fault| println!("    {fault}"));
                println!("    again: vellum-worlds --world {title} --shape {shape} --seed {seed}");
                if known.is_some() {
                    self.known += 1;
                    std::fs::remove_dir_all(place)?;
                } else {
                    self.faults += 1;
                }
            }
        }
        Ok(())
    }
}

impl std::fmt::Display for Run {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Tally { records, kills, refusals } = self.tally;
        write!(
            f,
            "{} faults, {} known; {records} records acknowledged, {kills} processes killed, \
             {refusals} calls refused in {} campaigns",
            self.faults, self.known, self.campaigns
        )
    }
}
