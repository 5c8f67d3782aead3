//! `vellum bench sync`, small.

use std::fs;

use super::schema::results;
use super::support::{Place, Ran, key, number, rows, run};

fn bench(place: &Place, options: &[&str]) -> Ran {
    let dir = place.dir().to_str().unwrap();
    run(&[&["bench", "sync", "--dir", dir, "--rounds", "1"], options].concat(), b"")
}

#[test]
fn json_has_the_promised_shape_and_nothing_is_left() {
    let place = Place::new();
    let json = bench(&place, &["--bytes", "64K", "--big", "1M", "--json", "-"]).good();
    let report = results(&json);
    assert_eq!((&report["suite"], &report["rounds"]), (&"sync".into(), &1.into()));
    let cases = rows(&report);
    assert_eq!(cases.len(), 18);
    for case in &cases {
        assert_eq!(case["verified"] == true, case["skipped"].is_null(), "{case}");
        assert_eq!(case["verified"] == true, case["metrics"]["time"]["median"].is_number());
    }
    assert_eq!((key(cases[0], "case").as_str(), number(cases[0], "syncs")), ("growing", 16));
    assert_eq!(
        (key(cases[17], "case").as_str(), number(cases[17], "bytes")),
        ("one-sync", 1 << 20)
    );
    assert_eq!(fs::read_dir(place.dir()).unwrap().count(), 0);
}

#[test]
fn the_table_tells_times_and_ratios() {
    let place = Place::new();
    let table = bench(&place, &["--bytes", "64K", "--cases", "growing,overwrite"]).good();
    assert!(table.contains("time against") && table.contains("overwrite"), "{table}");
    assert!(table.lines().all(|line| line.chars().count() <= 100), "{table}");
}

#[test]
fn what_makes_no_sense_is_a_usage_error() {
    let place = Place::new();
    bench(&place, &["--bytes", "5000"]).complaint(2);
    assert_eq!(bench(&place, &["--cases", "magic"]).code, 2);
}
