//! `vellum bench write`, small.

use std::fs;

use super::schema::results;
use super::support::{Place, Ran, rows, run};

/// The smallest file, one round.
fn bench(place: &Place, options: &[&str]) -> Ran {
    let dir = place.dir().to_str().unwrap();
    let common = ["bench", "write", "--dir", dir, "--rounds", "1", "--bytes", "1M"];
    run(&[&common, options].concat(), b"")
}

#[test]
fn json_has_the_promised_shape_and_nothing_is_left() {
    let place = Place::new();
    let options =
        ["--quick", "--threads", "2", "--chunks", "64K", "--states", "emptied", "--json", "-"];
    let report = results(&bench(&place, &options).good());
    assert_eq!((&report["suite"], &report["rounds"]), (&"write".into(), &1.into()));
    let cases = rows(&report);
    for table in ["create", "mmap", "simple", "parallel"] {
        assert!(cases.iter().any(|case| case["table"] == table), "{table}");
    }
    for case in cases {
        assert_eq!(case["verified"] == true, case["skipped"].is_null(), "{case}");
        let numbers = case["metrics"].as_object().unwrap().len();
        assert_eq!(numbers > 0, case["verified"] == true, "{case}");
        assert!(case["failed"].is_null(), "{case}");
    }
    assert_eq!(fs::read_dir(place.dir()).unwrap().count(), 0);
}

#[test]
fn the_table_tells_speeds_and_ratios() {
    let place = Place::new();
    let ways = "files,vellum-parallel sync";
    let options = ["--tables", "parallel", "--threads", "2", "--states", "emptied", "--ways", ways];
    let table = bench(&place, &options).good();
    assert!(table.contains("vellum-parallel sync") && table.contains("GB/s"), "{table}");
    assert!(table.contains("/ files"), "{table}");
    assert!(table.lines().all(|line| line.chars().count() <= 100), "{table}");
}

#[test]
fn what_makes_no_sense_is_a_usage_error() {
    let place = Place::new();
    for wrong in [["--chunks", "1000"], ["--threads", "0"], ["--ways", "fly"]] {
        bench(&place, &wrong).complaint(2);
    }
    assert_eq!(bench(&place, &["--tables", "magic"]).code, 2);
}
