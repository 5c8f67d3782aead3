//! `vellum demo`, small.

use std::fs;
use std::process::Stdio;

use super::support::{Place, Ran, run, vellum};

fn demo(place: &Place, options: &[&str]) -> Ran {
    let dir = place.dir().to_str().unwrap();
    let records = ["demo", "--records", "3000", dir];
    run(&[&records[..], options].concat(), b"")
}

#[test]
fn every_acknowledged_record_is_found_though_a_writer_is_killed() {
    for layout in ["framed", "text"] {
        let place = Place::new();
        let ran = demo(&place, &["--no-bench", "--layout", layout]);
        assert_eq!(ran.code, 0, "{}", ran.stderr);
        assert!(ran.stderr.contains("1 half record"), "{}", ran.stderr);
        let log = place.dir().join("log");
        assert!(ran.stderr.contains(&format!("vellum cat {}", log.display())), "{}", ran.stderr);
        let left = if layout == "text" { 2 } else { 1 };
        assert_eq!(fs::read_dir(place.dir()).unwrap().count(), left, "the log, and a link to it");
        let text = ran.text();
        let rows: Vec<Vec<&str>> =
            text.lines().map(|line| line.split_whitespace().collect()).collect();
        let whole: Vec<_> = rows.iter().filter(|row| row.get(3) == Some(&"3000")).collect();
        assert_eq!(whole.len(), 3, "{text}");
        let killed = rows.iter().find(|row| row.contains(&"SIGKILL")).unwrap();
        assert_eq!(killed[2..4], ["1500", "1500"], "{text}");
        let end: Vec<&str> = text.lines().rev().take(3).collect();
        assert!(end[2].starts_with("Of 10500 acknowledged records of 4 processes every one"));
        assert!(end[1].starts_with("Writer 2 was killed in the middle of record 1501"));

        let log = log.to_str().unwrap();
        let cat = run(&["cat", log], b"").good();
        let marks = usize::from(layout == "text");
        assert_eq!(cat.lines().count(), 10_500 + 1 + marks, "records, the last, a filler");
        assert_eq!(run(&["verify", log], b"").code, 0);
    }
}

#[test]
fn ways_of_appending_are_compared_at_the_end() {
    let place = Place::new();
    let output = vellum()
        .args(["demo", "--records", "500", "--writers", "2"])
        .env("TMPDIR", place.dir())
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(0), "{text}");
    for way in ["vellum-framed", "vellum-text", "write", "writev", "stdio"] {
        assert!(text.lines().any(|line| line.trim_start().starts_with(&format!("{way} "))));
    }
    let last = text.lines().last().unwrap();
    assert!(last.contains("times as fast here as write"), "{last}");
    assert!(text.lines().all(|line| line.chars().count() <= 100), "{text}");
    assert_eq!(fs::read_dir(place.dir()).unwrap().count(), 0, "nothing is left");
}

#[test]
fn a_log_that_is_there_is_left_alone() {
    let place = Place::new();
    assert_eq!(demo(&place, &["--no-bench"]).code, 0);
    let log = place.dir().join("log");
    let before = run(&["cat", log.to_str().unwrap()], b"").stdout;
    assert!(demo(&place, &["--no-bench"]).complaint(1).contains("already"));
    assert!(run(&["cat", log.to_str().unwrap()], b"").stdout == before);
}

#[test]
fn a_directory_goes_when_its_owner_does_whatever_its_name_is() {
    let place = Place::new();
    let (kept, renamed) = (place.dir().join("vellum-test-x"), place.dir().join("y"));
    fs::create_dir_all(kept.join("deep")).unwrap();
    fs::write(kept.join("deep/file"), "x").unwrap();
    let mut keeper = vellum();
    keeper.args(["internal", "keeper"]).stdin(Stdio::piped());
    // The directory is its standard output.
    let mut keeper = keeper.stdout(fs::File::open(&kept).unwrap()).spawn().unwrap();
    fs::rename(&kept, &renamed).unwrap();
    fs::create_dir(&kept).unwrap();
    drop(keeper.stdin.take());
    assert_eq!(keeper.wait().unwrap().code(), Some(0));
    assert!(!renamed.exists() && kept.exists());
}

#[test]
fn a_keeper_without_a_directory_removes_nothing() {
    run(&["internal", "keeper"], b"").complaint(1);
}
