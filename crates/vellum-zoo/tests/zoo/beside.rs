//! `vellum-zoo beside`: a log beside a neighbour with a limit. Times are not asserted.

use std::fs;
use std::process::Command;
use std::sync::{Mutex, PoisonError};

use vellum_testing::plants::Outside;

/// All control groups are looked at, so one test runs at a time.
static ALONE: Mutex<()> = Mutex::new(());

#[test]
fn a_log_is_measured_beside_a_neighbour_and_nothing_is_left() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let dir = tempfile::tempdir().unwrap();
    let mut command = Command::new("timeout");
    command.args(["120", env!("CARGO_BIN_EXE_vellum-zoo"), "beside", "--seconds", "1"]);
    let output = command.args(["--limit", "64M"]).arg(dir.path()).output().unwrap();
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    if output.status.code() == Some(77) {
        return vellum_testing::missing::skip(told.trim());
    }
    assert_eq!(output.status.code(), Some(0), "{told}");
    let text = String::from_utf8(output.stdout).unwrap();
    let starts: Vec<&str> = text.lines().map(|line| line.split("  ").next().unwrap()).collect();
    assert_eq!(starts, ["alone", "beside a neighbour", "beside one with the limit"], "{text}");
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
    let groups = fs::read_dir("/sys/fs/cgroup/blkio").unwrap().map(|entry| entry.unwrap());
    let left =
        groups.filter(|group| group.file_name().to_string_lossy().starts_with("vellum-zoo-"));
    assert_eq!(left.count(), 0);
}

#[test]
fn a_log_beside_a_neighbour_follows_no_plant() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let (dir, outside) = (tempfile::tempdir().unwrap(), Outside::new());
    for seed in 0..4 {
        let run = || {
            let mut command = Command::new("timeout");
            command.args(["60", env!("CARGO_BIN_EXE_vellum-zoo"), "beside", "--seconds", "1"]);
            command.args(["--limit", "64M"]).arg(dir.path()).output().unwrap()
        };
        let (output, _) = outside.swapped(dir.path(), &["neighbour", "p99"], seed, run);
        outside.assert_untouched();
        let told = String::from_utf8_lossy(&output.stderr).into_owned();
        match output.status.code() {
            Some(0 | 2) => {}
            Some(77) => return vellum_testing::missing::skip(told.trim()),
            code => panic!("{code:?}: {told}"),
        }
    }
}
