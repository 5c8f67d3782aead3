//! The short form of `judge`: one animal, one sound disk.

use std::path::PathBuf;
use std::process::{Command, Output};

use serde_json::Value;

use super::command::{is_ext4_possible, is_mounted};

/// The doctor that was built beside the command, if it was.
pub(crate) fn doctor() -> Option<PathBuf> {
    let path = PathBuf::from(env!("CARGO_BIN_EXE_vellum-zoo")).with_file_name("vellum-doctor");
    if path.exists() {
        return Some(path);
    }
    vellum_testing::missing::skip("vellum-doctor was not built");
    None
}

fn judge(words: &[&str]) -> Output {
    let mut command = Command::new("timeout");
    command.args(["120", env!("CARGO_BIN_EXE_vellum-zoo"), "judge"]).args(words);
    command.output().unwrap()
}

#[test]
fn one_animal_and_one_sound_disk_are_judged_and_nothing_remains() {
    let Some(doctor) = doctor().filter(|_| is_ext4_possible()) else { return };
    let dir = tempfile::tempdir().unwrap();
    let path = |name| dir.path().join(name).to_str().unwrap().to_owned();
    let (json, files) = (path("judged.json"), path("files"));
    std::fs::create_dir(&files).unwrap();
    let words = ["--animals", "slow-flush", "--sound", "1", "--seconds", "2", "--quick"];
    let places = ["--json", &json, "--dir", &files, "--doctor", doctor.to_str().unwrap()];
    let output = judge(&[&words[..], &places[..]].concat());
    let said = String::from_utf8_lossy(&output.stderr);
    let judged = std::fs::read(&json).unwrap_or_else(|error| panic!("{error}: {said}"));
    let judged: Value = serde_json::from_slice(&judged).unwrap();
    let animal = &judged["animals"][0];
    assert_eq!(
        (&animal["disk"], &animal["expected"]),
        (&"slow-flush".into(), &"slow-flush".into())
    );
    assert!(animal["named"].as_str().unwrap().contains("slow-flush"), "{judged}");
    assert!(animal["line"].as_str().unwrap().contains("etcd --wal-dir"), "{judged}");
    assert!(animal["figures"].as_str().unwrap().starts_with("a commit takes "), "{judged}");
    let sound = &judged["sound"][0];
    assert_eq!(sound["disk"], "ext4 in memory");
    let is_well = [animal, sound].iter().all(|row| row["right"] == true && row["as_told"] == true);
    assert_eq!(output.status.code(), Some(i32::from(!is_well)), "{judged}");
    assert_eq!(std::fs::read_dir(&files).unwrap().count(), 0);
    assert!(!is_mounted(dir.path()));
}

#[test]
fn a_disk_by_chance_is_judged_and_a_sound_one_behind_it() {
    let Some(doctor) = doctor().filter(|_| is_ext4_possible()) else { return };
    let dir = tempfile::tempdir().unwrap();
    let path = |name| dir.path().join(name).to_str().unwrap().to_owned();
    let (json, files) = (path("judged.json"), path("files"));
    std::fs::create_dir(&files).unwrap();
    let words = ["--random", "7", "--count", "1", "--seconds", "3"];
    let places = ["--json", &json, "--dir", &files, "--doctor", doctor.to_str().unwrap()];
    let output = judge(&[&words[..], &places[..]].concat());
    let said = String::from_utf8_lossy(&output.stderr);
    let judged = std::fs::read(&json).unwrap_or_else(|error| panic!("{error}: {said}"));
    let judged: Value = serde_json::from_slice(&judged).unwrap();
    let disks = judged["disks"].as_array().unwrap();
    let sound: Vec<&Value> = disks.iter().map(|disk| &disk["sound"]).collect();
    assert_eq!(sound, [false, true], "{judged}");
    for disk in disks {
        for program in ["etcd", "postgres", "sqlite", "vellum"] {
            assert!(disk["verdicts"][program].is_string(), "{disk}");
            assert!(!disk["truth"][program].as_array().unwrap().is_empty(), "{disk}");
        }
    }
    let told = String::from_utf8(output.stdout).unwrap();
    assert!(told.lines().last().unwrap().contains(" of 1 verdicts right, "), "{told}");
    assert!(told.contains(disks[0]["disk"].as_str().unwrap()), "{told}");
    let is_well = judged["totals"]["well"].as_bool().unwrap();
    assert_eq!(output.status.code(), Some(i32::from(!is_well)), "{judged}");
    assert_eq!(std::fs::read_dir(&files).unwrap().count(), 0);
    assert!(!is_mounted(dir.path()));
}

#[test]
fn an_animal_that_has_no_exam_is_refused() {
    let output = judge(&["--animals", "sound"]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("nothing is asked of \"sound\"; there are slow-flush, "), "{said}");
}
