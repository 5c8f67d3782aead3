//! The command line of `vellum-lies`, and the outcomes of the trials.

use std::process::ExitCode;

use anyhow::Context;
use clap::Parser;
use vellum_command::output::say_as;
use vellum_zoo::filesystem::Filesystem;
use vellum_zoo::{Animal, Missing};

use super::trial::{self, Outcome};
use crate::powercut::sandbox::{self, Sandbox};
use crate::powercut::sys::{self, End};
use crate::random::Random;
use crate::trace::now_ns;

const CANNOT_RUN: u8 = 2;
const MACHINE_CANNOT: u8 = 77;

/// The disks: their animal, its options, and whether it keeps its promises.
const DISKS: [(&str, &[&str], bool); 4] = [
    ("sound", &[], true),
    ("forgets", &["kept=0.5"], true),
    ("lying", &["kept=0.3", "cache=4M"], false),
    ("forgets-flushed", &["lost=16"], false),
];

/// Cuts the power of lying and honest disks while `vellum doctor --lies` writes, and asks it what
/// is lost.
///
/// Each block that is nowhere on the medium must be found. On an honest disk nothing may be.
#[derive(Debug, Parser)]
#[command(name = "vellum-lies")]
#[command(
    after_help = "Exit status: 0 as it should be, 1 not so, 2 could not run, 77 this machine \
                        cannot do it (2 where VELLUM_REQUIRE=all)."
)]
struct Arguments {
    /// Cuts of each disk, spread over the filesystems.
    #[arg(long, default_value_t = 50)]
    cuts: u64,
    /// The filesystems.
    #[arg(long, value_delimiter = ',', default_value = "ext4,xfs,btrfs")]
    fs: Vec<Filesystem>,
    /// The number that decides the cuts.
    #[arg(long)]
    seed: Option<u64>,
}

/// What `vellum-lies` does.
pub fn main() -> ExitCode {
    let arguments = Arguments::parse();
    ExitCode::from(run_apart(&arguments).unwrap_or_else(|error| tell(&error)))
}

fn tell(error: &anyhow::Error) -> u8 {
    say_as("vellum-lies", format_args!("{error:#}"));
    let may_be_missing = !vellum_testing::missing::is_all_required();
    if error.is::<Missing>() && may_be_missing { MACHINE_CANNOT } else { CANNOT_RUN }
}

/// Runs the trials in a process that takes everything with it when it ends.
fn run_apart(arguments: &Arguments) -> anyhow::Result<u8> {
    sandbox::look_for_needs(&arguments.fs)?;
    match sys::supervise(|| run(arguments).unwrap_or_else(|error| tell(&error))) {
        Ok(End::Exited(status)) => Ok(status),
        Ok(End::Signalled(signal)) => Ok(128 + signal as u8),
        Err(error) => Err(Missing(format!("no process namespace: {error}")).into()),
    }
}

fn run(arguments: &Arguments) -> anyhow::Result<u8> {
    let seed = arguments.seed.unwrap_or_else(now_ns);
    println!("--seed {seed}");
    println!(
        "{:<16} {:>5} {:>9} {:>10} {:>9} {:>6} {:>6} {:>6}",
        "disk", "cuts", "promised", "looked for", "forgotten", "lost", "missed", "ruined"
    );
    let (mut sandbox, mut random) = (Sandbox::enter(seed)?, Random::new(seed));
    let mut is_good = true;
    for (names, told, is_honest) in DISKS {
        let (mut total, mut ruined) = (Outcome::default(), 0);
        for cut in 0..arguments.cuts {
            let filesystem = arguments.fs[cut as usize % arguments.fs.len()];
            let animal = Animal::new(names, told, random.next_u64()).map_err(anyhow::Error::msg)?;
            let outcome = trial::run(&animal, filesystem, &mut sandbox, &mut random)
                .with_context(|| format!("{names} on {filesystem}"))?;
            total.add(&outcome);
            ruined += u64::from(outcome.is_ruined);
        }
        let Outcome { promised, looked_for, forgotten, lost, missed, .. } = total;
        println!(
            "{names:<16} {:>5} {promised:>9} {looked_for:>10} {forgotten:>9} {lost:>6} {missed:>6} \
             {ruined:>6}",
            arguments.cuts
        );
        is_good &= match is_honest {
            true => looked_for > 0 && forgotten + lost + ruined == 0,
            false => forgotten + ruined > 0 && missed == 0,
        };
    }
    Ok(u8::from(!is_good))
}

impl Outcome {
    fn add(&mut self, other: &Outcome) {
        self.promised += other.promised;
        self.looked_for += other.looked_for;
        self.forgotten += other.forgotten;
        self.lost += other.lost;
        self.missed += other.missed;
    }
}
