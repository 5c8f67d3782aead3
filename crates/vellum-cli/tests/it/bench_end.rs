//! However a run of `vellum bench` ends, nothing of it is left: no file, no loop device, no mount.

use std::fs;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process_group};

use super::support::{Place, Running, vellum};

/// Suites that would go on for a minute at least.
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
        vellum_skip::skip("qemu-nbd is missing");
    }
    SUITES.iter().filter(move |suite| has_qemu || !suite.contains(&QEMU))
}

/// What keeps this machine from making filesystems for a run, if anything does.
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

fn until(what: &str, done: impl Fn() -> bool) {
    let begun = Instant::now();
    while !done() {
        assert!(begun.elapsed() < Duration::from_secs(60), "{what} takes too long");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Starts a suite on a filesystem made for it, ends it by `signal` once it measures, and looks for
/// what is left.
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

/// Shells start what runs behind them with the interrupt ignored, and its children inherit that.
fn with_default_signals(command: &Command) -> Command {
    let mut with = Command::new("env");
    with.arg("--default-signal=INT").arg(command.get_program()).stdin(Stdio::null());
    with
}

/// Has the process forked one that measures? The keeper is another program's start, with words of
/// its own.
fn has_grandchild(id: u32) -> bool {
    let children = fs::read_to_string(format!("/proc/{id}/task/{id}/children")).unwrap_or_default();
    let words = |child: &str| fs::read(format!("/proc/{child}/cmdline")).unwrap_or_default();
    let is_keeper = |words: &[u8]| words.split(|byte| *byte == 0).any(|word| word == b"keeper");
    children.split_whitespace().map(words).any(|words| !words.is_empty() && !is_keeper(&words))
}

#[test]
fn a_run_that_is_killed_leaves_nothing() {
    if let Some(reason) = missing() {
        return vellum_skip::skip(reason);
    }
    suites().for_each(|suite| end_by(Signal::KILL, suite));
}

#[test]
fn a_run_that_is_interrupted_from_the_keyboard_leaves_nothing() {
    if let Some(reason) = missing() {
        return vellum_skip::skip(reason);
    }
    suites().for_each(|suite| end_by(Signal::INT, suite));
}
