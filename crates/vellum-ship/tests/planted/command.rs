//! Commands that have to end, and how they do.

use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::thing::{Outside, Thing};

const SHIP: &str = env!("CARGO_BIN_EXE_vellum-ship");
/// The memory that a command may map: no file of an impossible length is read.
const MEMORY: &str = "--as=2147483648";
/// No file that a command writes is longer.
const FILE: &str = "--fsize=268435456";
/// A command that takes longer than this waits for something.
const PATIENCE: Duration = Duration::from_secs(60);
const NAP: Duration = Duration::from_millis(2);

/// How a command ended.
pub(crate) struct Ended {
    /// `None`: by a signal.
    pub(crate) code: Option<i32>,
    pub(crate) said: String,
}

/// Runs a command, and kills it if it does not end.
pub(crate) fn run(arguments: &[String], home: &Path) -> Result<Ended, String> {
    let (out, said) = (home.join("stdout"), home.join("stderr"));
    let mut child = Command::new("prlimit")
        .args([MEMORY, FILE, SHIP])
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(fs::File::create(&out).unwrap())
        .stderr(fs::File::create(&said).unwrap())
        .spawn()
        .unwrap();
    let begun = Instant::now();
    let status = loop {
        if let Some(status) = child.try_wait().unwrap() {
            break status;
        }
        if begun.elapsed() > PATIENCE {
            child.kill().unwrap();
            child.wait().unwrap();
            return Err("it does not end".into());
        }
        std::thread::sleep(NAP);
    };
    let said = String::from_utf8_lossy(&fs::read(said).unwrap()).into_owned();
    match status.signal() {
        Some(signal) => Err(format!("it was killed by signal {signal}: {said}")),
        None => Ok(Ended { code: status.code(), said }),
    }
}

/// The fault of a command that runs after a thing was put at `name`.
pub(crate) fn fault(
    arguments: &[String],
    thing: Thing,
    name: &str,
    outside: &Outside,
    home: &Path,
) -> Option<String> {
    let checked = run(arguments, home).and_then(|ended| {
        let said = &ended.said;
        let is_raw = |c: char| c.is_control() && c != '\n';
        // By default a panic has this code.
        if ended.code == Some(101) {
            return Err(format!("it panicked: {said}"));
        }
        if said.contains(is_raw) {
            return Err(format!("its text is not for terminals: {said:?}"));
        }
        if ended.code != Some(0) && !said.contains(name) {
            return Err(format!("its error does not name it: {said}"));
        }
        outside.change().map_or(Ok(()), Err)
    });
    let fault = checked.err()?;
    Some(format!("{thing:?} at {name}, {arguments:?}: {fault}"))
}

/// Tells all faults at once.
#[track_caller]
pub(crate) fn assert_none(faults: &[String]) {
    assert!(faults.is_empty(), "{} faults:\n{}", faults.len(), faults.join("\n"));
}

/// Copies a directory as it is.
pub(crate) fn copy(from: &Path, to: &Path) {
    let copied = Command::new("cp").args(["-a", "--sparse=always"]).arg(from).arg(to).status();
    assert!(copied.unwrap().success());
}
