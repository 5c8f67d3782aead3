//! `vellum bench append --saturate` and `vellum bench all`, small.

use std::fs;

use super::schema::results;
use super::support::{Place, rows, run};

#[test]
fn saturation_is_told_record_by_record_and_nothing_is_left() {
    let place = Place::new();
    let dir = place.dir().to_str().unwrap();
    let small = ["--seconds", "1", "--bytes-max", "4M", "--keep", "64M", "--processes", "2"];
    let rest = ["--ways", "write,vellum-framed", "--json", "-", "--dir", dir];
    let ran = run(&[&["bench", "append", "--saturate"], &small[..], &rest].concat(), b"");
    let report = results(&ran.good());
    assert_eq!(report["suite"], "saturate");
    let rows = rows(&report);
    assert_eq!(rows.len(), 2);
    for row in rows {
        assert_eq!(row["verified"], true, "{row}");
        let metrics = &row["metrics"];
        for name in ["p99", "longest stop", "memory, at most", "disk"] {
            assert!(metrics[name].is_object(), "{name}: {row}");
        }
        assert_eq!(row["series"].as_object().unwrap().len(), 4);
    }
    assert_eq!(fs::read_dir(place.dir()).unwrap().count(), 0);
}

#[test]
fn what_makes_no_sense_is_a_usage_error() {
    let place = Place::new();
    let dir = place.dir().to_str().unwrap();
    for options in [["--bytes", "8"], ["--keep", "1K"]] {
        let saturate = ["bench", "append", "--saturate", "--dir", dir];
        run(&[&saturate, &options[..]].concat(), b"").complaint(2);
    }
    let wrong: [&[&str]; 3] = [
        &["--seconds", "1"],
        &["--saturate", "--records", "5"],
        &["--saturate", "--processes", "1,2"],
    ];
    for options in wrong {
        assert_eq!(run(&[&["bench", "append", "--dir", dir], options].concat(), b"").code, 2);
    }
}

#[test]
fn all_suites_are_refused_at_once_where_there_is_no_directory() {
    let ran = run(&["bench", "all", "--quick", "--dir", "/nonexistent"], b"");
    assert!(ran.complaint(1).contains("/nonexistent: No such file"));
}
