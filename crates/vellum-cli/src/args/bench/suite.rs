//! `vellum bench SUITE`: the options of a suite are its own, and these are added.

use clap::error::ErrorKind;
use clap::{ArgMatches, Args, Command, FromArgMatches, Subcommand};
use vellum_bench::{KINDS, Kind, Suite};

use super::{BenchOutputArgs, BenchPlaceArgs};

/// A suite, as it is asked for.
#[derive(Debug)]
pub(crate) struct BenchSuiteArgs {
    pub(crate) suite: Box<dyn Suite>,
    pub(crate) place: BenchPlaceArgs,
    pub(crate) output: BenchOutputArgs,
}

impl FromArgMatches for BenchSuiteArgs {
    fn from_arg_matches(matches: &ArgMatches) -> Result<BenchSuiteArgs, clap::Error> {
        let asked = matches.subcommand().and_then(|(name, matches)| Some((kind(name)?, matches)));
        let (kind, matches) =
            asked.ok_or_else(|| clap::Error::new(ErrorKind::MissingSubcommand))?;
        Ok(BenchSuiteArgs {
            suite: kind.read(matches)?,
            place: BenchPlaceArgs::from_arg_matches(matches)?,
            output: BenchOutputArgs::from_arg_matches(matches)?,
        })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = BenchSuiteArgs::from_arg_matches(matches)?;
        Ok(())
    }
}

impl Subcommand for BenchSuiteArgs {
    fn augment_subcommands(command: Command) -> Command {
        command.subcommands(KINDS.iter().map(with_ours))
    }

    fn augment_subcommands_for_update(command: Command) -> Command {
        BenchSuiteArgs::augment_subcommands(command)
    }

    fn has_subcommand(name: &str) -> bool {
        kind(name).is_some()
    }
}

/// The command of a suite with the options that are ours.
fn with_ours(kind: &Kind) -> Command {
    let command = kind.command();
    let (about, long) = (command.get_about().cloned(), command.get_long_about().cloned());
    let command = BenchOutputArgs::augment_args(BenchPlaceArgs::augment_args(command));
    // Those structures explain themselves, and would take the place of the suite's text.
    command.about(about.unwrap_or_default()).long_about(long.unwrap_or_default())
}

fn kind(name: &str) -> Option<&'static Kind> {
    KINDS.iter().find(|kind| kind.name == name)
}
