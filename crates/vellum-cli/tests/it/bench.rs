//! `vellum bench`, small.

use std::fs;

use super::schema::results;
use super::support::{Place, Ran, key, number, rows, run};

fn bench(place: &Place, options: &[&str]) -> Ran {
    let dir = place.dir().to_str().unwrap();
    run(&[&["bench", "append", "--dir", dir, "--rounds", "1"], options].concat(), b"")
}

fn cases(json: &str) -> Vec<(String, u64, u64, u64)> {
    let report = results(json);
    assert_eq!((&report["suite"], &report["rounds"]), (&"append".into(), &1.into()));
    assert!(report["conditions"]["kernel"].is_string());
    let cases = rows(&report).into_iter();
    cases
        .map(|case| {
            assert_eq!(case["verified"], true);
            (
                key(case, "way"),
                number(case, "processes"),
                number(case, "records"),
                number(case, "bytes"),
            )
        })
        .collect()
}

#[test]
fn json_goes_where_it_is_sent_and_nothing_else_is_left() {
    let place = Place::new();
    let options = ["--setting", "2x50x10,1x60x20", "--ways", "write,vellum-framed"];
    let json = bench(&place, &[&options[..], &["--json", "-"]].concat()).good();
    let expected = [
        ("write".to_string(), 2, 50, 10),
        ("vellum-framed".into(), 2, 50, 10),
        ("write".into(), 1, 60, 20),
        ("vellum-framed".into(), 1, 60, 20),
    ];
    assert_eq!(cases(&json), expected);
    assert_eq!(fs::read_dir(place.dir()).unwrap().count(), 0);

    let file = place.dir().join("result.json");
    let table = bench(&place, &[&options[..], &["--json", file.to_str().unwrap()]].concat()).good();
    assert!(table.contains("2 processes × 50 records × 10 B"), "{table}");
    assert_eq!(cases(&fs::read_to_string(&file).unwrap()), expected);
    assert_eq!(fs::read_dir(place.dir()).unwrap().count(), 1);
}

#[test]
fn lists_are_combined() {
    let place = Place::new();
    let lists = ["--processes", "1,2", "--records", "40", "--bytes", "8,16"];
    let json = bench(&place, &[&lists[..], &["--ways", "write", "--json", "-"]].concat()).good();
    let settings: Vec<_> = cases(&json).into_iter().map(|(_, p, r, b)| (p, r, b)).collect();
    assert_eq!(settings, [(1, 40, 8), (1, 40, 16), (2, 40, 8), (2, 40, 16)]);
}

#[test]
fn what_lies_between_two_appends_is_told() {
    let place = Place::new();
    let options = ["--setting", "1x50x10", "--between-bytes", "64K", "--ways", "write"];
    let json = bench(&place, &[&options[..], &["--json", "-"]].concat()).good();
    let report = results(&json);
    assert_eq!(number(rows(&report)[0], "between bytes"), 65536);
    let table = bench(&place, &options).good();
    assert!(table.contains("1 processes × 50 records × 10 B, 64 KiB between appends"), "{table}");
    bench(&place, &["--between-bytes", "1G"]).complaint(2);
    assert_eq!(bench(&place, &["--saturate", "--between-bytes", "1K"]).code, 2);
}

#[test]
fn what_makes_no_sense_is_a_usage_error() {
    let place = Place::new();
    for options in [["--processes", "0"], ["--bytes", "0"], ["--ways", "write,write"]] {
        bench(&place, &options).complaint(2);
    }
    for options in [["--setting", "4x1"], ["--ways", "magic"]] {
        assert_eq!(bench(&place, &options).code, 2);
    }
    assert_eq!(bench(&place, &["--setting", "1x1x1", "--bytes", "1"]).code, 2);
}

#[test]
fn a_directory_that_is_not_there_is_named() {
    let ran = run(&["bench", "append", "--dir", "/nonexistent", "--quick"], b"");
    let complaint = ran.complaint(1);
    assert!(complaint.contains("/nonexistent: No such file") && !complaint.contains("vellum-"));
}

#[test]
fn a_result_that_cannot_be_written_is_told_before_the_run() {
    let place = Place::new();
    let run = ["--setting", "1x1x1", "--ways", "write", "--json", "/nonexistent/result.json"];
    let ran = bench(&place, &run);
    assert!(ran.complaint(1).contains("cannot write /nonexistent/result.json: No such file"));
}

#[test]
fn markdown_is_printed_or_written_beside_the_table() {
    let place = Place::new();
    let file = place.dir().join("result.md");
    let run = ["--setting", "1x50x10", "--ways", "write", "--markdown"];
    let table = bench(&place, &[&run[..], &[file.to_str().unwrap()]].concat()).good();
    assert!(table.contains("1 processes × 50 records × 10 B"), "{table}");
    for text in
        [fs::read_to_string(&file).unwrap(), bench(&place, &[&run[..], &["-"]].concat()).good()]
    {
        assert!(
            text.starts_with("# vellum bench append\n") && text.contains("| write |"),
            "{text}"
        );
    }
    let twice = bench(&place, &[&run[..], &["-", "--json", "-"]].concat());
    assert!(twice.complaint(2).contains("only one form"), "{twice:?}");
}
