//! However a run of `vellum bench` ends, nothing of it is left: no file, no loop device, no mount.

use std::collections::BTreeSet;
use std::fs;
use std::io::{self, Write};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use serde_json::Value;

use super::support::{Place, Running, rows, vellum, with_default_signals};

/// Suites that would run for a minute at least.
const SUITES: [&[&str]; 7] = [
    &["append", "--setting", "2x50000000x16", "--ways", "vellum-framed"],
    &["append", "--saturate", "--seconds", "600", "--keep", "64M", "--ways", "vellum-text"],
    &["commit", "--slice-ms", "60000", "--bytes", "256", "--threads", "2", "--cases", "vellum"],
    &["sync", "--bytes", "64M", "--cases", "growing"],
    &["write", "--tables", "simple", "--bytes", "64M", "--chunks", "4K", "--rounds", "1000"],
    &["image", "--states", "metadata", "--bytes", "64M", "--seconds", "600"],
    &["image", "--states", QEMU, "--bytes", "64M", "--seconds", "600"],
];
/// A server of another program has the image open.
const QEMU: &str = "qcow2-full";

/// Those that can be run here.
fn suites() -> impl Iterator<Item = &'static &'static [&'static str]> {
    let found = Command::new("qemu-nbd").arg("--version").stdout(Stdio::null()).status();
    let has_qemu = found.is_ok_and(|status| status.success());
    if !has_qemu {
        vellum_testing::missing::skip("qemu-nbd is missing");
    }
    SUITES.iter().filter(move |suite| has_qemu || !suite.contains(&QEMU))
}

/// The reason why this machine cannot make filesystems for a run, if there is one.
fn missing() -> Option<String> {
    let place = Place::new();
    let mut command = vellum();
    command.env("TMPDIR", place.dir());
    let output = command.args(["bench", "sync", "--fs", "ext4", "--cases", "one-sync"]).output();
    let output = output.unwrap();
    (!output.status.success()).then(|| String::from_utf8_lossy(&output.stderr).into_owned())
}

/// The images that process `id` made and a loop device still has.
fn has_loop_device(id: u32) -> bool {
    let name = format!("ext4-{id}.image");
    let devices = fs::read_dir("/sys/block").unwrap().map(|entry| entry.unwrap().path());
    devices
        .filter_map(|device| fs::read_to_string(device.join("loop/backing_file")).ok())
        .any(|image| image.contains(&name))
}

fn until(what: &str, mut done: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !done() {
        assert!(begun.elapsed() < Duration::from_secs(60), "{what} takes too long");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Starts a suite on a filesystem made for it, ends it by `signal` once it measures, and looks for
/// leftover files.
fn end_by(signal: Signal, suite: &[&str]) {
    let place = Place::new();
    let mut command = with_default_signals(&vellum());
    command.env("TMPDIR", place.dir()).stderr(Stdio::null());
    command.arg("bench").args(suite).args(["--fs", "ext4"]);
    // As a shell does with a command, so that the keyboard reaches it and its children.
    command.process_group(0);
    let mut running = Running::start(&mut command);
    let id = running.child.id();
    until("the device", || has_loop_device(id));
    until("a writing child", || suite[0] == "commit" || has_grandchild(id));
    if signal == Signal::INT {
        kill_process_group(Pid::from_child(&running.child), signal).unwrap();
    } else {
        // Its children are killed by the kernel.
        running.child.kill().unwrap();
    }
    running.child.wait().unwrap();
    until("the end of the device", || !has_loop_device(id));
    until("the end of the files", || fs::read_dir(place.dir()).unwrap().count() == 0);
    let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap();
    assert!(!mounts.contains(place.dir().to_str().unwrap()), "{mounts}");
}

/// Has the process forked one that measures? The keeper is another program's start, with words of
/// its own; until it has them it looks like the process itself, which takes signals only then.
fn has_grandchild(id: u32) -> bool {
    let children = fs::read_to_string(format!("/proc/{id}/task/{id}/children")).unwrap_or_default();
    let words = |child: &str| fs::read(format!("/proc/{child}/cmdline")).unwrap_or_default();
    let is_keeper = |words: &Vec<u8>| words.split(|byte| *byte == 0).any(|word| word == b"keeper");
    let words = children.split_whitespace().map(words).filter(|words| !words.is_empty());
    let (keepers, others): (Vec<_>, Vec<_>) = words.partition(is_keeper);
    !keepers.is_empty() && !others.is_empty()
}

#[test]
fn a_run_that_is_killed_leaves_nothing() {
    if let Some(reason) = missing() {
        return vellum_testing::missing::skip(reason);
    }
    suites().for_each(|suite| end_by(Signal::KILL, suite));
}

#[test]
fn a_run_that_is_interrupted_from_the_keyboard_leaves_nothing() {
    if let Some(reason) = missing() {
        return vellum_testing::missing::skip(reason);
    }
    suites().for_each(|suite| end_by(Signal::INT, suite));
}

/// A measurement of a thousand short rounds, in `dir`.
fn many_rounds(dir: &Path) -> Command {
    let mut command = with_default_signals(&vellum());
    command.args(["bench", "append", "--setting", "1x200000x10,1x10x10", "--ways", "write"]);
    command.args(["--rounds", "1000", "--dir"]).arg(dir).process_group(0);
    command
}

/// Waits until some rounds are over: the warm-up starts two processes, and each round starts one.
fn wait_for_rounds(id: u32) {
    let mut seen = BTreeSet::new();
    until("some rounds", || {
        let children = fs::read_to_string(format!("/proc/{id}/task/{id}/children"));
        seen.extend(children.unwrap_or_default().split_whitespace().map(String::from));
        seen.len() >= 8
    });
}

/// The rounds that a run was interrupted after, and those that it should have had.
fn rounds(said: &str) -> [u64; 2] {
    let line =
        said.lines().find_map(|line| line.strip_prefix("vellum: append: interrupted after "));
    let rounds = line.and_then(|line| line.strip_suffix(" rounds")).expect(said);
    let (finished, planned) = rounds.split_once(" of ").expect(said);
    [finished, planned].map(|count| count.parse().unwrap())
}

#[test]
fn the_rounds_before_an_interrupt_are_reported() {
    for signal in [Signal::INT, Signal::TERM] {
        let place = Place::new();
        let (dir, file) = (place.dir().join("dir"), place.dir().join("part.json"));
        fs::create_dir(&dir).unwrap();
        let mut command = many_rounds(&dir);
        command.arg("--json").arg(&file).stdout(Stdio::piped()).stderr(Stdio::piped());
        let running = command.spawn().unwrap();
        wait_for_rounds(running.id());
        match signal {
            Signal::INT => kill_process_group(Pid::from_child(&running), signal).unwrap(),
            _ => kill_process(Pid::from_child(&running), signal).unwrap(),
        }
        let output = running.wait_with_output().unwrap();
        assert_eq!(output.status.signal(), Some(signal.as_raw()), "{output:?}");
        let said = String::from_utf8(output.stderr).unwrap();
        let [finished, planned] = rounds(&said);
        assert!((1..1000).contains(&finished) && planned == 2000, "{said}");
        let table = String::from_utf8(output.stdout).unwrap();
        let note = format!("interrupted after {finished} of 2000 rounds");
        assert!(table.contains("ns/record") && table.contains(&note), "{table}");
        let report: Value = serde_json::from_slice(&fs::read(&file).unwrap()).unwrap();
        let [case] = rows(&report)[..] else { panic!("{report}") };
        assert!(case["failed"].is_null() && case["skipped"].is_null(), "{case}");
        let samples = case["metrics"]["time"]["samples"].as_array().unwrap();
        assert_eq!(samples.len() as u64, finished, "{case}");
        until("the end of the files", || fs::read_dir(&dir).unwrap().count() == 0);
    }
}

#[test]
fn an_interrupt_before_the_first_round_is_over_leaves_one_line() {
    let place = Place::new();
    let mut command = with_default_signals(&vellum());
    command.args(["bench", "append", "--setting", "2x50000000x16", "--ways", "vellum-framed"]);
    command.arg("--dir").arg(place.dir()).arg("--json").arg(place.dir().join("part.json"));
    command.process_group(0).stdout(Stdio::piped()).stderr(Stdio::piped());
    let running = command.spawn().unwrap();
    until("a writing child", || has_grandchild(running.id()));
    kill_process_group(Pid::from_child(&running), Signal::INT).unwrap();
    let output = running.wait_with_output().unwrap();
    assert_eq!(output.status.signal(), Some(Signal::INT.as_raw()), "{output:?}");
    let said = String::from_utf8(output.stderr).unwrap();
    // A run that takes a minute says how far it has come.
    let said: Vec<&str> = said.lines().filter(|line| !line.contains(" % after ")).collect();
    assert_eq!(said, ["vellum: append: interrupted before the first round was over"]);
    assert!(output.stdout.is_empty(), "{:?}", output.stdout);
    until("the end of the files", || fs::read_dir(place.dir()).unwrap().count() == 0);
}

#[test]
fn a_second_interrupt_ends_a_run_at_once() {
    let place = Place::new();
    // The report has no reader.
    let (_reader, mut full) = io::pipe().unwrap();
    rustix::io::ioctl_fionbio(&full, true).unwrap();
    while full.write(&[0; 4096]).is_ok() {}
    while full.write(&[0]).is_ok() {}
    rustix::io::ioctl_fionbio(&full, false).unwrap();
    let mut command = many_rounds(place.dir());
    let mut running = command.stdout(full).spawn().unwrap();
    wait_for_rounds(running.id());
    let group = Pid::from_child(&running);
    until("the end of the run", || {
        let _ = kill_process_group(group, Signal::INT);
        running.try_wait().unwrap().is_some()
    });
    assert_eq!(running.wait().unwrap().signal(), Some(Signal::INT.as_raw()));
    until("the end of the files", || fs::read_dir(place.dir()).unwrap().count() == 0);
}

#[test]
fn a_run_of_all_suites_ends_with_the_one_that_is_interrupted() {
    let place = Place::new();
    let mut command = with_default_signals(&vellum());
    command.args(["bench", "all", "--quick", "--dir"]).arg(place.dir()).process_group(0);
    let running = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    wait_for_rounds(running.id());
    kill_process_group(Pid::from_child(&running), Signal::INT).unwrap();
    let output = running.wait_with_output().unwrap();
    assert_eq!(output.status.signal(), Some(Signal::INT.as_raw()), "{output:?}");
    let said = String::from_utf8(output.stderr).unwrap();
    let told: Vec<&str> = said.lines().filter(|line| line.contains("interrupted")).collect();
    assert_eq!(told.len(), 1, "{said}");
    assert!(told[0].starts_with("vellum: append: interrupted "), "{said}");
    until("the end of the files", || fs::read_dir(place.dir()).unwrap().count() == 0);
}
