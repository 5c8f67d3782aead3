//! `vellum bench commit`, small.

use std::fs;
use std::process::Stdio;
use std::time::{Duration, Instant};

use serde_json::Value;

use super::support::{Place, Ran, Running, key, number, run, vellum};

fn bench(place: &Place, options: &[&str]) -> Ran {
    let dir = place.dir().to_str().unwrap();
    let small = ["bench", "commit", "--dir", dir, "--rounds", "1", "--slice-ms", "10"];
    run(&[&small, options].concat(), b"")
}

#[test]
fn lists_are_combined_and_nothing_is_left() {
    let place = Place::new();
    let lists = ["--bytes", "256,4K", "--threads", "1,2", "--processes", "1,2"];
    let rest = ["--cases", "bare-overwrite,direct-dsync", "--json", "-"];
    let json = bench(&place, &[&lists[..], &rest].concat()).good();
    let report: Value = serde_json::from_str(&json).unwrap();
    assert_eq!((&report["suite"], &report["rounds"]), (&"commit".into(), &1.into()));
    let cases = report["cases"].as_array().unwrap();
    let cells: Vec<_> = cases
        .iter()
        .filter(|case| key(case, "case") == "bare-overwrite")
        .map(|case| (number(case, "bytes"), number(case, "processes"), number(case, "threads")))
        .collect();
    let four = |bytes| [(bytes, 1, 1), (bytes, 1, 2), (bytes, 2, 1), (bytes, 2, 2)];
    assert_eq!(cells, [four(256), four(4096)].concat());
    assert_eq!(cases.len(), 2 * cells.len());
    assert!(cases.iter().all(|case| !key(case, "filesystem").is_empty()));
    assert_eq!(fs::read_dir(place.dir()).unwrap().count(), 0);
}

#[test]
fn the_log_of_the_house_runs_prepared_or_not() {
    let place = Place::new();
    let one = ["--bytes", "256", "--threads", "2", "--cases", "vellum"];
    let prepared = |options: &[&str]| -> Vec<String> {
        let json = bench(&place, &[&one[..], &["--json", "-"], options].concat()).good();
        let report: Value = serde_json::from_str(&json).unwrap();
        let cases = report["cases"].as_array().unwrap().iter();
        cases.map(|case| key(case, "prepared")).collect()
    };
    assert_eq!(prepared(&[]), ["yes", "no"]);
    assert_eq!(prepared(&["--prepared", "no"]), ["no"]);
    let table = bench(&place, &one).good();
    assert!(table.contains("256 B, 2 threads") && table.contains("no ratios"), "{table}");
}

#[test]
fn what_makes_no_sense_is_a_usage_error() {
    let place = Place::new();
    for options in [["--threads", "0"], ["--bytes", "8"], ["--cases", "magic"]] {
        bench(&place, &options).complaint(2);
    }
    for options in [["--prepared", "maybe"], ["--rounds", "0"], ["--fs", "ntfs"]] {
        assert_eq!(bench(&place, &options).code, 2);
    }
}

/// Filesystems made for a run: what keeps this machine from having them, if anything does.
fn scratch_is_missing(place: &Place) -> Option<String> {
    let try_it = ["--fs", "ext4", "--bytes", "256", "--threads", "1", "--cases", "bare-append"];
    let dir = place.dir().to_str().unwrap();
    let small = ["bench", "commit", "--rounds", "1", "--slice-ms", "1", "--json", "-"];
    let mut command = vellum();
    let output = command.env("TMPDIR", dir).args(small).args(try_it).output().unwrap();
    let report = String::from_utf8(output.stdout).unwrap();
    let ran = output.status.success() && report.contains("loop device in memory");
    (!ran).then(|| String::from_utf8_lossy(&output.stderr).into_owned() + &report)
}

/// Has a loop device an image that process `id` made?
fn has_loop_device(id: u32) -> bool {
    let name = format!("ext4-{id}.image");
    let devices = fs::read_dir("/sys/block").unwrap().map(|entry| entry.unwrap().path());
    devices
        .filter_map(|device| fs::read_to_string(device.join("loop/backing_file")).ok())
        .any(|image| image.contains(&name))
}

#[test]
fn a_run_that_is_killed_leaves_no_mount_and_no_device() {
    let place = Place::new();
    if let Some(reason) = scratch_is_missing(&place) {
        return eprintln!("left out: {reason}");
    }
    let mut command = vellum();
    command.env("TMPDIR", place.dir()).stderr(Stdio::null());
    command.args(["bench", "commit", "--fs", "ext4", "--slice-ms", "60000", "--bytes", "256"]);
    let mut running = Running::start(&mut command);
    let until = |what: &dyn Fn() -> bool| {
        let begun = Instant::now();
        while !what() {
            assert!(begun.elapsed() < Duration::from_secs(60), "it takes too long");
            std::thread::sleep(Duration::from_millis(10));
        }
    };
    let id = running.child.id();
    until(&|| has_loop_device(id));
    running.child.kill().unwrap();
    running.child.wait().unwrap();
    until(&|| !has_loop_device(id));
    until(&|| fs::read_dir(place.dir()).unwrap().count() == 0);
    let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap();
    assert!(!mounts.contains(place.dir().to_str().unwrap()), "{mounts}");
}
