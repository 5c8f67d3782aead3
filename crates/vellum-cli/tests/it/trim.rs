//! `vellum trim`.

use serde_json::Value;

use super::support::Place;

#[test]
fn the_oldest_part_goes_with_its_files() {
    let place = Place::new();
    let told = place.append(&["--segment-bytes", "4KiB"], "record\n".repeat(1000).as_bytes());
    let files = place.segments().len();
    let before = told[700].to_string();
    let ran = place.run("trim", &["--before", &before], b"");
    assert_eq!((ran.code, ran.stdout.len()), (0, 0));
    assert!(ran.stderr.contains(&format!("begins at {before}")), "{}", ran.stderr);
    let removed = files - place.segments().len();
    assert!(removed > 0 && ran.stderr.contains(&format!("{removed} segments")), "{}", ran.stderr);
    assert_eq!(place.run("cat", &[], b"").good().lines().count(), 300);
    assert_eq!(place.stat()["begin"], told[700]);
    let old = told[0].to_string();
    assert!(place.run("cat", &["--from", &old], b"").complaint(1).contains("trimmed"));
}

#[test]
fn json_tells_what_was_done() {
    let place = Place::new();
    let told = place.append(&[], b"one\ntwo\n");
    let text = place.run("trim", &["--json", "--before", &told[1].to_string()], b"").good();
    let report: Value = serde_json::from_str(&text).unwrap();
    assert_eq!((&report["begin"], &report["segments_removed"]), (&told[1].into(), &0.into()));
}

#[test]
fn what_is_not_published_cannot_be_trimmed() {
    let place = Place::new();
    place.append(&[], b"one\n");
    place.run("trim", &["--before", "9999999999"], b"").complaint(1);
    assert_eq!(place.run("cat", &[], b"").good(), "one\n");
}

#[test]
fn no_log_is_made_to_trim_it() {
    let place = Place::new();
    assert!(place.run("trim", &["--before", "1"], b"").complaint(1).contains("no log"));
    assert!(!place.log().exists());
}
