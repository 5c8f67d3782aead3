//! Runs the command that is tested.

use std::path::Path;
use std::process::Command;

/// Where syncs cost nothing: most of the time goes into making logs ready otherwise.
const SHARED_MEMORY: &str = "/dev/shm";

/// Runs `vellum-killpoints`, which must find nothing. The list of skipped cases is written past the
/// harness's capture, so that they never count as tried.
pub(crate) fn run(arguments: &[&str]) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_vellum-killpoints"));
    command.args(arguments);
    if Path::new(SHARED_MEMORY).is_dir() {
        command.args(["--dir", SHARED_MEMORY]);
    }
    let output = command.output().expect("the command starts");
    let text = String::from_utf8_lossy(&output.stdout);
    let talk = String::from_utf8_lossy(&output.stderr);
    for line in text.lines().filter(|line| line.starts_with("SKIPPED")) {
        use std::io::Write;
        let _ = writeln!(std::io::stderr(), "{line}");
    }
    println!("{text}{talk}");
    assert!(output.status.success(), "{}: {text}{talk}", output.status);
}
