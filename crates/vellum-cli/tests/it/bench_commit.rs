//! `vellum bench commit`, small.

use std::fs;

use super::schema::results;
use super::support::{Place, Ran, key, number, rows, run};

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
    let report = results(&json);
    assert_eq!((&report["suite"], &report["rounds"]), (&"commit".into(), &1.into()));
    let cases = rows(&report);
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
        let report = results(&json);
        let cases = rows(&report).into_iter();
        cases.map(|case| key(case, "prepared")).collect()
    };
    assert_eq!(prepared(&[]), ["yes", "no"]);
    assert_eq!(prepared(&["--prepared", "no"]), ["no"]);
    let table = bench(&place, &one).good();
    assert!(
        table.contains("records of 256 B")
            && table.contains("threads 2")
            && table.contains("no ratios"),
        "{table}"
    );
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
