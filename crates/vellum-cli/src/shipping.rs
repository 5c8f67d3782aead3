//! What `vellum-ship` does: it is another program, because object stores need many dependencies.

use std::ffi::OsString;
use std::io::ErrorKind;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, ExitCode};

use vellum_command::output;

const PROGRAM: &str = "vellum-ship";

/// Commands that only it has.
const ITS_OWN: [&str; 3] = ["ship", "restore", "ls"];
/// Commands that it has for URLs.
const FOR_URLS: [&str; 5] = ["cat", "tail", "stat", "verify", "trim"];
const SCHEMES: [&str; 4] = ["s3://", "az://", "gs://", "file://"];

const NOT_FOUND: u8 = 1;

/// Becomes `vellum-ship` if the command line is for it. Returns only if it is not, or if that
/// program cannot be run.
pub(crate) fn run() -> Option<ExitCode> {
    let words: Vec<OsString> = std::env::args_os().skip(1).collect();
    is_for_ship(&words).then(|| become_ship(its_words(&words)))
}

fn is_for_ship(words: &[OsString]) -> bool {
    let Some(command) = words.first().and_then(|word| word.to_str()) else { return false };
    let is_url = |word: &OsString| {
        word.to_str().is_some_and(|word| SCHEMES.iter().any(|scheme| word.starts_with(scheme)))
    };
    let is_bench = command == "bench" && words.get(1).is_some_and(|word| word == "ship");
    is_bench
        || ITS_OWN.contains(&command)
        || FOR_URLS.contains(&command) && words[1..].iter().any(is_url)
}

/// `vellum bench ship` is its `bench`.
fn its_words(words: &[OsString]) -> Vec<&OsString> {
    let is_bench = words[0] == "bench";
    let of_ship = |(index, _): &(usize, &OsString)| !(is_bench && *index == 1);
    words.iter().enumerate().filter(of_ship).map(|(_, word)| word).collect()
}

fn become_ship(words: Vec<&OsString>) -> ExitCode {
    let error = Command::new(program()).args(words).exec();
    match error.kind() {
        ErrorKind::NotFound => output::say(
            "this needs the program vellum-ship, beside vellum or in PATH: build it with \
             `make ship`, install it with `make install`",
        ),
        _ => output::say(format_args!("{PROGRAM}: {error}")),
    }
    ExitCode::from(NOT_FOUND)
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
    }
}
