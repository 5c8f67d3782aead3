//! `vellum advise`, with next to no time.

use std::{fs, thread};

use serde_json::Value;
use vellum_testing::kernel;

use super::support::{Place, Ran, rows, run};

/// Advice for logs, which is the quickest to be had.
fn advise(place: &Place, options: &[&str]) -> Ran {
    let dir = place.dir().to_str().unwrap();
    run(&[&["advise", dir, "--seconds", "1", "--for", "log"], options].concat(), b"")
}

fn parsed(json: &str) -> Value {
    serde_json::from_str(json).unwrap()
}

#[test]
fn the_recommendation_is_one_of_what_was_measured_and_not_slower() {
    let place = Place::new();
    let report = parsed(&advise(&place, &["--json", "-"]).good());
    assert_eq!(fs::read_dir(place.dir()).unwrap().count(), 0);
    assert_eq!(report["suite"], "advise");
    assert!(report["surroundings"]["filesystem"]["kind"].is_string());
    assert!(report["toml"].as_str().unwrap().contains("version = 1"));
    let advice = report["recommendations"].as_array().unwrap();
    assert_eq!((advice.len(), &advice[0]["purpose"]), (1, &"log".into()));
    let samples = |row: &Value| -> Vec<f64> {
        let samples = row["metrics"].as_object().unwrap().values().next();
        let samples = samples.and_then(|first| first["samples"].as_array());
        samples.into_iter().flatten().map(|sample| sample.as_f64().unwrap()).collect()
    };
    let rows = rows(&report);
    let is_chosen = |row: &&&Value| row["keys"]["way"] == advice[0]["way"];
    let chosen = samples(rows.iter().find(is_chosen).unwrap());
    assert_eq!(chosen.len(), 5);
    for row in rows {
        let mut ratios: Vec<f64> =
            samples(row).iter().zip(&chosen).map(|(other, chosen)| other / chosen).collect();
        ratios.sort_by(f64::total_cmp);
        let is_faster = ratios.first().is_some_and(|least| *least > 1.0) && ratios[2] >= 1.05;
        assert!(!is_faster, "{row} beats {}", advice[0]);
    }
}

#[test]
fn what_is_written_is_what_a_new_log_follows() {
    let place = Place::new();
    let text = advise(&place, &["--write"]).good();
    assert!(text.contains("For a log that processes share (log): "), "{text}");
    assert!(text.contains("Written to "), "{text}");
    assert!(text.lines().all(|line| line.chars().count() <= 100), "{text}");
    let toml = fs::read_to_string(place.dir().join("vellum.toml")).unwrap();
    assert!(toml.contains("Written by `vellum advise --write`"), "{toml}");
    place.append(&[], b"one\n");
    let fill = place.stat()["fill"].as_str().unwrap().to_string();
    let advised = toml.lines().find_map(|line| line.strip_prefix("fill = "));
    assert!(advised.is_none_or(|advised| advised.trim_matches('"') == fill), "{fill} {toml}");
    // Another run may replace what this one wrote.
    advise(&place, &["--write"]).good();
}

#[test]
fn every_command_that_makes_a_log_follows_the_nearest_file() {
    let place = Place::new();
    fs::write(place.dir().join("vellum.toml"), "[log]\nsegment_capacity_bytes = 8192\n").unwrap();
    for options in [&["--commit", "none"][..], &["--commit", "every", "--layout", "text"]] {
        place.append(options, b"a record\n");
        assert_eq!(place.stat()["segment_capacity_bytes"], 8192, "{options:?}");
        fs::remove_dir_all(place.log()).unwrap();
    }
    fs::write(place.dir().join("vellum.toml"), "[wal]\nsegment_capacity_bytes = 12288\n").unwrap();
    place.append(&["--commit", "every"], b"a record\n");
    assert_eq!(place.stat()["segment_capacity_bytes"], 12288);
}

#[test]
fn a_file_of_somebody_else_is_kept_and_nothing_is_measured() {
    let place = Place::new();
    let path = place.dir().join("vellum.toml");
    fs::write(&path, "# mine\n").unwrap();
    assert!(advise(&place, &["--write"]).complaint(2).contains("--force"));
    assert_eq!(fs::read_to_string(&path).unwrap(), "# mine\n");
    advise(&place, &["--write", "--force"]).good();
    assert!(fs::read_to_string(&path).unwrap().contains("version = 1"));
}

#[test]
fn without_write_nothing_is_written_and_the_content_is_shown() {
    let place = Place::new();
    let text = advise(&place, &[]).good();
    assert!(text.contains("vellum.toml with --write") && text.contains("  version = 1"), "{text}");
    assert_eq!(fs::read_dir(place.dir()).unwrap().count(), 0);
}

#[test]
fn memory_is_measured_too_and_warned_of() {
    let Ok(dir) = tempfile::tempdir_in("/dev/shm") else {
        return vellum_testing::missing::skip("there is no /dev/shm to write to");
    };
    let path = dir.path().to_str().unwrap();
    let json = run(&["advise", path, "--seconds", "1", "--for", "log", "--json", "-"], b"").good();
    let report = parsed(&json);
    if report["surroundings"]["filesystem"]["kind"] == "tmpfs" {
        assert_eq!(report["traps"][0]["severity"], "danger", "{json}");
    }
    assert!(report["recommendations"][0]["way"].is_string(), "{json}");
    assert_eq!(fs::read_dir(path).unwrap().count(), 0);
}

#[test]
fn what_the_kernel_only_says_that_it_has_done_does_not_work() {
    let place = Place::new();
    // The filter is for this thread, and for the processes that it starts.
    let report = thread::scope(|scope| {
        let filtered = scope.spawn(|| {
            kernel::ignore_advice();
            parsed(&advise(&place, &["--json", "-"]).good())
        });
        filtered.join().unwrap()
    });
    let features = report["surroundings"]["features"].as_array().unwrap();
    let populate = features.iter().find(|feature| feature["name"] == "MADV_POPULATE_WRITE");
    assert_eq!(populate.unwrap()["works"], false, "{features:?}");
}

#[test]
fn a_directory_that_is_not_there_is_named_once() {
    let ran = run(&["advise", "/nonexistent", "--quick"], b"");
    let complaint = ran.complaint(1);
    assert!(complaint.contains("/nonexistent: No such file") && !complaint.contains("vellum-"));
    let place = Place::new();
    assert_eq!(advise(&place, &["--for", "nothing"]).code, 2);
    assert_eq!(advise(&place, &["--force"]).code, 2);
}
