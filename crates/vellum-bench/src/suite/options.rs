//! Suites as a command line has them: the options of a suite are its `Config`.
//!
//! A default is in one place, the attribute of its field; so is the value of `--quick`.

use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::builder::ArgPredicate;
use clap::{Arg, ArgMatches, Args, Command};
use vellum_command::values::bytes;

use super::Suite;

/// A suite that a command line can ask for.
#[derive(Clone, Copy)]
pub struct Kind {
    /// Its name, in reports and as a command.
    pub name: &'static str,
    augment: fn(Command) -> Command,
    read: fn(&ArgMatches) -> Result<Box<dyn Suite>, clap::Error>,
}

impl fmt::Debug for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

impl Kind {
    pub(super) const fn new(
        name: &'static str,
        augment: fn(Command) -> Command,
        read: fn(&ArgMatches) -> Result<Box<dyn Suite>, clap::Error>,
    ) -> Kind {
        Kind { name, augment, read }
    }

    /// A suite whose `Config` is its options.
    pub(super) const fn of<S: Suite + Args + 'static>(name: &'static str) -> Kind {
        Kind::new(name, S::augment_args, |matches| Ok(Box::new(S::from_arg_matches(matches)?)))
    }

    /// Its command, with its options.
    pub fn command(&self) -> Command {
        (self.augment)(Command::new(self.name))
    }

    /// The suite that these words ask for, in `directory`.
    pub(super) fn asked(&self, words: &[&str], directory: &Path) -> Box<dyn Suite> {
        let mut suite = self.read(&matches(self.command(), words)).expect("the options of a suite");
        suite.scope_mut().directory = directory.into();
        suite
    }

    /// The suite that a command line asks for.
    ///
    /// # Errors
    ///
    /// The command line is that of another command.
    pub fn read(&self, matches: &ArgMatches) -> Result<Box<dyn Suite>, clap::Error> {
        (self.read)(matches)
    }
}

/// The suite that these words ask for, in `directory`.
pub(super) fn from_words<S: Suite + Args>(words: &[&str], directory: impl Into<PathBuf>) -> S {
    let matches = matches(S::augment_args(Command::new("suite")), words);
    let mut suite = S::from_arg_matches(&matches).expect("the options of a suite");
    suite.scope_mut().directory = directory.into();
    suite
}

/// The values of these words. They are in this crate, so they are right.
fn matches(command: Command, words: &[&str]) -> ArgMatches {
    command.no_binary_name(true).try_get_matches_from(words).expect("the words of a suite")
}

/// An option with this default, and another one with `--quick`.
pub(super) fn usual(option: Arg, full: &'static str, quick: &'static str) -> Arg {
    option.default_value(full).default_value_if("quick", ArgPredicate::IsPresent, quick)
}

/// Reads a number of bytes that memory can hold.
pub(super) fn len(text: &str) -> Result<usize, String> {
    usize::try_from(bytes(text)?).map_err(|_| "it is too large".into())
}

/// Reads a time: `10`, `0.5`.
pub(super) fn seconds(text: &str) -> Result<Duration, String> {
    let seconds = text.parse().ok().filter(|seconds| (0.01..=86_400.0).contains(seconds));
    let seconds = seconds.ok_or("write a number of seconds, as 10 or 0.5")?;
    Ok(Duration::from_secs_f64(seconds))
}

/// Reads a time in milliseconds, up to a minute.
pub(super) fn milliseconds(text: &str) -> Result<Duration, String> {
    let number = text.parse().ok().filter(|number| (1..=60_000).contains(number));
    number.map(Duration::from_millis).ok_or_else(|| "write a number from 1 to 60000".into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::suite::{KINDS, commit, image, write};

    #[test]
    fn every_suite_has_a_command_that_makes_sense() {
        for kind in KINDS {
            let command = kind.command();
            assert!(command.get_about().is_some(), "{kind:?}");
            command.debug_assert();
            assert_eq!(kind.asked(&["--quick"], Path::new(".")).name(), kind.name);
        }
    }

    #[test]
    fn quick_changes_what_is_not_asked_for() {
        let config: commit::Config = from_words(&[], ".");
        assert_eq!((config.scope.rounds, config.threads.len()), (5, 5));
        assert_eq!(config.prepared, [true, false]);
        let config: commit::Config = from_words(&["--quick", "--bytes", "1K"], ".");
        assert_eq!((config.scope.rounds, &config.bytes[..]), (2, &[1024][..]));
        assert_eq!((&config.threads[..], &config.prepared[..]), (&[1, 4][..], &[true][..]));
        assert_eq!(config.slice, Duration::from_millis(100));
        let config: image::Config = from_words(&["--quick", "--rounds", "7"], "there");
        assert_eq!((config.engines.len(), config.scope.rounds), (1, 7));
        assert_eq!(config.scope.directory, PathBuf::from("there"));
        let config: write::Config = from_words(&["--quick"], ".");
        assert_eq!((config.chunks, config.states.len()), (vec![4096, 1 << 20], 2));
    }

    #[test]
    fn append_may_be_another_suite() {
        let suites = crate::suites(Path::new("."), true);
        let names: Vec<_> = suites.iter().map(|suite| suite.name()).collect();
        assert_eq!((names.len(), names[0], names[8]), (9, "append", "saturate"));
        let rounds: Vec<_> = suites.iter().map(|suite| suite.scope().rounds).collect();
        assert_eq!((rounds[0], rounds[8]), (2, 1));
        let three = KINDS[0].asked(&["--saturate", "--rounds", "3"], Path::new("."));
        assert_eq!((three.name(), three.scope().rounds), ("saturate", 3));
    }

    #[test]
    fn seconds_may_have_a_fraction() {
        assert_eq!(seconds("0.5"), Ok(Duration::from_millis(500)));
        assert_eq!(milliseconds("300"), Ok(Duration::from_millis(300)));
        assert!(seconds("0").is_err() && milliseconds("0").is_err());
    }
}
