//! Helpers that the tests of the command share.

use std::path::Path;
use std::process::{Command, Output};

use vellum::Log;

/// The error output of a command.
pub(crate) fn text(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[track_caller]
pub(crate) fn good(output: &Output) {
    assert!(output.status.success(), "{}", text(output));
}

/// Copies a directory as it is.
pub(crate) fn copy(from: &Path, to: &Path) {
    let done = Command::new("cp").arg("-a").arg(from).arg(to).status();
    assert!(done.unwrap().success());
}

/// All records of a log; behind missing ranges too, if `skips_damage`.
pub(crate) fn records_of(log: &Log, skips_damage: bool) -> Vec<Vec<u8>> {
    let mut reader = log.reader(log.begin()).unwrap();
    reader.skip_damage(skips_damage);
    let mut all = Vec::new();
    while let Some(record) = reader.next().unwrap() {
        all.push(record.payload.to_vec());
    }
    all
}
