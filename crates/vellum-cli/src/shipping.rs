//! What `vellum-ship` does: it is another program, because object stores need many dependencies.

use std::ffi::OsString;
use std::io::ErrorKind;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, ExitCode};

use clap::Subcommand;
use vellum_command::output;
use vellum_command::shipping::{LsArgs, RestoreArgs, ShipArgs};

const PROGRAM: &str = "vellum-ship";

/// Commands that only it has.
const ITS_OWN: [&str; 3] = ["ship", "restore", "ls"];
/// Commands that it has for URLs.
const FOR_URLS: [&str; 5] = ["cat", "tail", "stat", "verify", "trim"];
const SCHEMES: [&str; 4] = ["s3://", "az://", "gs://", "file://"];

const NOT_FOUND: u8 = 1;
const HOW_TO_GET: &str = "this needs the program vellum-ship, beside vellum or in PATH: build it with \
                          `make ship`, install it with `make install`";

/// Becomes `vellum-ship` if the command line is for it. Returns only if it is not, or if that
/// program cannot be run; help has a text of its own then.
pub(crate) fn run() -> Option<ExitCode> {
    let words: Vec<OsString> = std::env::args_os().skip(1).collect();
    if !is_for_ship(&words) {
        return None;
    }
    let error = Command::new(program()).args(its_words(&words)).exec();
    match error.kind() {
        ErrorKind::NotFound if asks_for_help(&words) => return None,
        ErrorKind::NotFound => output::say(HOW_TO_GET),
        _ => output::say(format_args!("{PROGRAM}: {error}")),
    }
    Some(ExitCode::from(NOT_FOUND))
}

/// The command line with its commands in the list.
pub(crate) fn listed(command: clap::Command) -> clap::Command {
    Its::augment_subcommands(command).mut_subcommands(|command| match command.get_name() {
        name if ITS_OWN.contains(&name) => says_whose(command),
        _ => command,
    })
}

// No doc comment: clap would take it for the text of the whole program.
// The commands of `vellum-ship` that the help of `vellum` lists.
#[derive(Subcommand)]
enum Its {
    Ship(ShipArgs),
    Restore(RestoreArgs),
    Ls(LsArgs),
}

fn says_whose(command: clap::Command) -> clap::Command {
    let text = command.get_long_about().or_else(|| command.get_about());
    let text = text.map(ToString::to_string).unwrap_or_default();
    command.long_about(format!("{text}\n\nThe program vellum-ship does this."))
}

fn asks_for_help(words: &[OsString]) -> bool {
    words.iter().any(|word| word == "help" || word == "-h" || word == "--help")
}

fn is_for_ship(words: &[OsString]) -> bool {
    let Some(command) = words.first().and_then(|word| word.to_str()) else { return false };
    let is_url = |word: &OsString| {
        word.to_str().is_some_and(|word| SCHEMES.iter().any(|scheme| word.starts_with(scheme)))
    };
    if command == "help" {
        return words
            .get(1)
            .and_then(|word| word.to_str())
            .is_some_and(|word| ITS_OWN.contains(&word));
    }
    let is_bench = command == "bench" && words.get(1).is_some_and(|word| word == "ship");
    is_bench
        || ITS_OWN.contains(&command)
        || FOR_URLS.contains(&command) && words[1..].iter().any(is_url)
}

/// `vellum bench ship` is its `bench`, and `vellum help ship` its `ship --help`.
fn its_words(words: &[OsString]) -> Vec<OsString> {
    match words[0].to_str() {
        Some("help") => vec![words[1].clone(), "--help".into()],
        Some("bench") => [&words[..1], &words[2..]].concat(),
        _ => words.to_vec(),
    }
}

/// The one beside this program, or one in `PATH`.
fn program() -> PathBuf {
    let beside = std::env::current_exe().ok().map(|own| own.with_file_name(PROGRAM));
    beside.filter(|path| path.exists()).unwrap_or_else(|| PROGRAM.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_and_its_own_commands_are_for_ship_and_nothing_else() {
        let is = |line: &str| is_for_ship(&line.split(' ').map(OsString::from).collect::<Vec<_>>());
        assert!(is("ship log s3://bucket/log"));
        assert!(is("cat -f file:///backup"));
        assert!(is("trim --retain 30d gs://bucket/log"));
        assert!(is("bench ship --rounds 3"));
        assert!(!is("bench sync"));
        assert!(!is("cat log"));
        assert!(!is("append s3://bucket"));
        assert!(!is("--help"));
        assert!(is("help ship"));
        assert!(!is("help"));
        assert!(!is("help cat"));
    }
}
