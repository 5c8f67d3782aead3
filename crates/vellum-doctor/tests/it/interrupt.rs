//! A signal that ends a run: what was measured until then is told.

use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::thread;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

/// A run that is asked to end after `wait` from when it has its directory.
fn interrupted(dir: &Path, wait: Duration) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_vellum-doctor"));
    command.args(["--seconds", "10", "--for", "etcd", "--json", "-"]).arg(dir);
    let command = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = command.spawn().unwrap();
    let has_begun = || {
        fs::read_dir(dir).unwrap().any(|home| {
            // Its files are in a directory of the run, in one that always goes.
            fs::read_dir(home.unwrap().path()).is_ok_and(|mut inside| inside.next().is_some())
        })
    };
    while !has_begun() {
        thread::yield_now();
    }
    thread::sleep(wait);
    kill_process(Pid::from_child(&child), Signal::TERM).unwrap();
    child.wait_with_output().unwrap()
}

#[test]
fn what_was_measured_until_a_signal_is_told() {
    let dir = tempfile::tempdir().unwrap();
    let output = interrupted(dir.path(), Duration::ZERO);
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.signal(), Some(Signal::TERM.as_raw()), "{said}");
    assert!(output.stdout.is_empty() && said.contains("interrupted before"), "{said}");
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
    // The longer it runs, the more has been measured.
    let runs = (1..=5).map(|seconds| interrupted(dir.path(), Duration::from_secs(seconds)));
    let mut told = runs.filter(|output| !output.stdout.is_empty());
    let output = told.next().expect("something is measured after some seconds");
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.signal(), Some(Signal::TERM.as_raw()), "{said}");
    assert!(said.contains("interrupted after "), "{said}");
    let value: Value = serde_json::from_slice(&output.stdout).unwrap();
    super::support::against_schema(&value).unwrap();
    assert!(value["programs"][0]["operations"].as_u64().unwrap() > 0, "{value}");
    let warning = value["warnings"][0].as_str().unwrap();
    assert!(warning.starts_with("interrupted after ") && warning.ends_with(" rounds"), "{warning}");
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
}
