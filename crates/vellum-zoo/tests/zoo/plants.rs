//! The user of the directory swaps what the command makes there for links and pipes. None of them
//! is followed, and none is waited for.

use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use vellum_testing::plants::Outside;
use vellum_testing::scratch;

use super::command::{is_ext4_possible, is_mounted};
use super::judge::doctor;

/// A command that `timeout` has ended.
const ENDED_BY_TIMEOUT: i32 = 124;
/// Files and directories that the command makes, and those that the user names for it.
const NAMES: [&str; 8] =
    ["image", "at", "disk", "device", "probe", "promises", "neighbour", "etcd-0"];

/// Has the command show a disk in `dir` until it is ready, and ends it.
fn shown(dir: &Path) -> Output {
    let mut command = Command::new("timeout");
    command.args(["60", env!("CARGO_BIN_EXE_vellum-zoo"), "run", "sound", "--size", "64M"]);
    command.args(["--mkfs", "ext4", "--file"]).arg(dir.join("vellum-disks/image"));
    command.arg("--mount").arg(dir.join("vellum-disks/at")).env("TMPDIR", dir);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
    for line in lines {
        if line.starts_with("ready") {
            // It passes the signal on to the command.
            kill_process(Pid::from_child(&child), Signal::INT).unwrap();
        }
    }
    child.wait_with_output().unwrap()
}

#[test]
fn a_disk_that_is_shown_follows_no_plant() {
    if !is_ext4_possible() {
        return;
    }
    let (dir, outside) = (scratch(), Outside::new());
    let (mut swaps, mut ready) = (0, 0);
    for seed in 0..24 {
        fs::create_dir_all(dir.path().join("vellum-disks/at")).unwrap();
        let run = || shown(dir.path());
        let (output, swapped) = outside.swapped(dir.path(), &NAMES, seed, run);
        swaps += swapped;
        outside.assert_untouched();
        let said = String::from_utf8_lossy(&output.stderr);
        let code = output.status.code().unwrap();
        assert_ne!(code, ENDED_BY_TIMEOUT, "a plant was waited for: {said}");
        assert!(matches!(code, 0 | 2), "{code}: {said}");
        ready += u32::from(code == 0);
        assert!(!is_mounted(dir.path()), "{said}");
    }
    assert!(swaps > 24 && ready > 0, "swapped {swaps} times, {ready} disks");
}

#[test]
fn the_judge_follows_no_plant() {
    let Some(doctor) = doctor().filter(|_| is_ext4_possible()) else { return };
    let (dir, outside) = (scratch(), Outside::new());
    for (seed, words) in [(0, ["--animals", "slow-flush"]), (1, ["--animals", "lying"])] {
        let run = || {
            let mut command = Command::new("timeout");
            command.args(["120", env!("CARGO_BIN_EXE_vellum-zoo"), "judge", "--sound", "2"]);
            command.args(words).args(["--seconds", "1", "--dir"]).arg(dir.path());
            command.arg("--doctor").arg(&doctor).env("TMPDIR", dir.path());
            command.output().unwrap()
        };
        let (output, swapped) = outside.swapped(dir.path(), &NAMES, seed, run);
        outside.assert_untouched();
        let said = String::from_utf8_lossy(&output.stderr);
        let code = output.status.code().unwrap();
        assert_ne!(code, ENDED_BY_TIMEOUT, "a plant was waited for: {said}");
        assert!(matches!(code, 0..=2), "{code}: {said}");
        assert!(swapped > 0 && !is_mounted(dir.path()), "swapped {swapped} times");
    }
}

#[test]
fn a_link_is_neither_a_medium_nor_a_mount_point() {
    if !is_ext4_possible() {
        return;
    }
    let (dir, outside) = (scratch(), scratch());
    let disks = dir.path().join("vellum-disks");
    fs::create_dir_all(disks.join("at")).unwrap();
    let kept = outside.path().join("kept");
    for content in [None, Some(vec![0; 64 << 20])] {
        if let Some(content) = &content {
            fs::write(&kept, content).unwrap();
        }
        symlink(&kept, disks.join("image")).unwrap();
        let output = shown(dir.path());
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert_eq!(fs::read(&kept).ok(), content, "{said}");
        fs::remove_file(disks.join("image")).unwrap();
    }
    fs::remove_dir(disks.join("at")).unwrap();
    symlink(outside.path(), disks.join("at")).unwrap();
    let output = shown(dir.path());
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("cannot mount at"), "{said}");
}
