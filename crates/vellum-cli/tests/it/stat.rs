//! `vellum stat`.

use std::ffi::OsStr;
use std::fs;
use std::path::Path;

use serde_json::Value;

use super::support::{Place, Running, run, vellum};

#[test]
fn json_has_every_key() {
    let place = Place::new();
    let told = place.append(&["--segment-bytes", "4KiB"], "x\n".repeat(600).as_bytes());
    let stat = place.stat();
    assert_eq!(stat["begin"], told[0]);
    assert_eq!(stat["published"], stat["tail"]);
    assert!(stat["published"].as_u64() > told.last().copied());
    for (key, value) in [("layout", "framed"), ("preallocate", "auto")] {
        assert_eq!(stat[key], value);
    }
    assert_eq!(stat["can_sync_name"], true);
    for key in ["filesystem", "preallocate_reason", "fill", "fill_reason"] {
        assert!(stat[key].as_str().is_some_and(|text| !text.is_empty()), "{key}");
    }
    for key in [
        "durable",
        "prepared_end",
        "repairs",
        "repaired_bytes",
        "dropped",
        "segment_capacity_bytes",
    ] {
        assert!(stat[key].is_u64(), "{key}");
    }
    for key in ["checkpoint", "prepared_segments"] {
        assert!(stat[key].is_u64(), "{key}");
    }
    assert!(stat["poison"].is_null());
    let commits = &stat["commits"];
    for key in ["commits", "syncs", "synced_bytes"] {
        assert_eq!(commits[key], 0, "{key}");
    }
    assert_eq!(commits["sync_micros"].as_array().unwrap().len(), 24);
    for key in ["commits_per_sync", "sync_micros_p50", "sync_micros_p99"] {
        assert!(commits.as_object().unwrap()[key].is_null(), "{key}");
    }
    assert!(stat["held_back_by"].is_null());
    assert_eq!(stat["participants"].as_array().unwrap().len(), 0);
    assert_eq!(stat["holds"].as_array().unwrap().len(), 0);
    let segments = stat["segments"].as_array().unwrap();
    assert_eq!(segments.len(), place.segments().len());
    for (segment, path) in segments.iter().zip(place.segments()) {
        assert_eq!(segment["path"], path.to_str().unwrap());
        for key in ["first_lsn", "end_lsn", "file_bytes", "allocated_bytes"] {
            assert!(segment[key].is_u64(), "{key}");
        }
    }
    assert_eq!(segments[0]["state"], "sealed");
    assert!(segments.iter().any(|segment| segment["state"] == "active"));
}

#[test]
fn people_are_told_bytes_and_times_and_positions_on_demand() {
    let place = Place::new();
    place.append(&["--layout", "text"], b"one\n");
    let plain = place.run("stat", &[], b"").good();
    let with_positions = place.run("stat", &["--positions"], b"").good();
    let published = place.stat()["published"].to_string();
    for (text, has_positions) in [(&plain, false), (&with_positions, true)] {
        for word in ["durable", "text", "active", "commits", "nobody is attached"] {
            assert!(text.contains(word), "{word} in {text}");
        }
        for word in ["begin  ", "tail  ", "first lsn", &published] {
            assert_eq!(text.contains(word), has_positions, "{word} in {text}");
        }
        assert!(text.lines().all(|line| line.chars().count() <= 100), "{text}");
    }
    for words in ["on disk in 1 file", " s ago", "all but the newest 4 B"] {
        assert!(plain.contains(words), "{words} in {plain}");
    }
}

#[test]
fn who_watches_is_told_what_came_since() {
    let place = Place::new();
    place.append(&["--layout", "text"], b"one\n");
    let mut json = place.start("stat", &["--watch", "--json"]);
    let mut text = place.start("stat", &["-w"]);
    let mut next = || serde_json::from_str::<Value>(&json.line()).unwrap();
    assert!(next()["rates"].is_null());
    place.append(&[], b"two\n");
    let rates = std::iter::repeat_with(|| next()["rates"].clone());
    let came = rates.take(60).any(|rates| rates["appended_bytes"].as_u64() > Some(0));
    assert!(came, "what was appended is told once");
    let told = std::iter::repeat_with(|| text.line());
    assert!(told.take(300).any(|line| line.contains("last second") && line.contains("appended")));
}

/// The value of a sample without labels of its own.
fn sample(scrape: &prometheus_parse::Scrape, name: &str) -> prometheus_parse::Value {
    let named = |sample: &&prometheus_parse::Sample| sample.metric == name;
    scrape.samples.iter().find(named).unwrap_or_else(|| panic!("{name}")).value.clone()
}

#[test]
fn prometheus_reads_the_numbers() {
    use prometheus_parse::Value::{Counter, Gauge, Histogram, Untyped};
    let place = Place::new();
    place.append(&["--commit", "every"], b"one\ntwo\n");
    place.append(&[], b"three\n");
    let text = place.run("stat", &["--prometheus"], b"").good();
    let scrape = prometheus_parse::Scrape::parse(text.lines().map(|line| Ok(line.into()))).unwrap();
    let number = |name: &str| match sample(&scrape, name) {
        // The parser knows no type of the sum and the count of a histogram.
        Counter(number) | Gauge(number) | Untyped(number) => number,
        other => panic!("{name} is {other:?}"),
    };
    let stat = place.stat();
    assert_eq!(number("vellum_records_total"), 3.0);
    assert_eq!(number("vellum_record_bytes_total"), 3.0 * 16.0);
    assert_eq!(number("vellum_commits_total"), stat["commits"]["commits"].as_f64().unwrap());
    assert_eq!(number("vellum_poisoned"), 0.0);
    let Histogram(buckets) = sample(&scrape, "vellum_sync_seconds") else { panic!("{text}") };
    let syncs = stat["commits"]["syncs"].as_f64().unwrap();
    assert_eq!(buckets.last().map(|bucket| bucket.count), Some(syncs), "all are below infinity");
    assert_eq!(number("vellum_sync_seconds_count"), syncs);
    let sum = stat["commits"]["sync_micros_sum"].as_f64().unwrap() / 1e6;
    assert!((number("vellum_sync_seconds_sum") - sum).abs() < 1e-9);
    let log = place.log().display().to_string();
    for sample in &scrape.samples {
        assert_eq!(sample.labels.get("log"), Some(log.as_str()), "{sample:?}");
    }
    let durable = scrape.samples.iter().find(|s| s.labels.get("which") == Some("durable")).unwrap();
    assert!(matches!(durable.value, Gauge(lsn) if lsn == stat["durable"].as_f64().unwrap()));
}

#[test]
fn how_the_log_is_shipped_is_told() {
    use vellum::ship::{ShipFault, ShipStatus};
    use vellum::{Lsn, Options};
    let place = Place::new();
    place.append(&["--commit", "every"], b"one\ntwo\n");
    assert!(place.stat()["ship"].is_null());
    let page = || place.run("stat", &["--prometheus"], b"").good();
    assert!(!page().contains("vellum_ship"));
    let log = Options::default().open(place.log()).unwrap();
    let shipper = log.ship().elect().unwrap().unwrap();
    let durable = shipper.durable().unwrap();
    shipper.set_shipped(Lsn::new(durable.get() - 16)).unwrap();
    shipper.set_status(ShipStatus::Retrying, Some((ShipFault::Throttled, 503))).unwrap();
    let ship = place.stat()["ship"].clone();
    assert_eq!((&ship["status"], &ship["fault"]), (&"retrying".into(), &"throttled".into()));
    assert_eq!((&ship["fault_number"], &ship["lag_bytes"]), (&503.into(), &16.into()));
    assert_eq!(ship["pid"], std::process::id());
    let text = place.run("stat", &[], b"").good();
    assert!(text.contains("retrying by process"), "{text}");
    let lag = page()
        .lines()
        .any(|line| line.starts_with("vellum_ship_lag_bytes{") && line.ends_with(" 16"));
    assert!(lag, "{}", page());
}

#[test]
fn a_participant_is_listed_while_it_lives() {
    let place = Place::new();
    let mut running = place.start("append", &["--ack"]);
    running.feed(b"one\n");
    running.line();
    let stat = place.stat();
    let participant = &stat["participants"][0];
    assert_eq!(participant["pid"], running.child.id());
    assert_eq!((&participant["alive"], &participant["stopped"]), (&true.into(), &false.into()));
    assert_eq!(participant["in_flight"].as_array().unwrap().len(), 0);
}

/// A writer with half a record in flight, after three whole ones.
pub(super) fn half_way(place: &Place) -> Running {
    half_way_in(&place.log())
}

/// The same in the log at this path.
pub(super) fn half_way_in(log: &Path) -> Running {
    run(&[OsStr::new("append"), log.as_os_str()], b"").good();
    let mut command = vellum();
    command.args(["internal", "demo-writer", "--writer", "1", "--records", "9"]);
    let mut writer = Running::start(command.args(["--stop-after", "3"]).arg(log));
    assert_eq!(writer.report(), 0, "ready");
    writer.feed(b"!");
    for _ in 0..3 {
        assert!(writer.report() > 0);
    }
    assert_eq!(writer.report(), u64::MAX, "in the middle");
    writer
}

#[test]
fn whoever_holds_the_published_end_back_is_named_and_the_log_goes_on_without_the_dead() {
    let place = Place::new();
    let mut writer = half_way(&place);
    let pid = writer.child.id();
    place.append(&[], b"behind\n");
    let stat = place.stat();
    assert_eq!(stat["held_back_by"]["pid"], pid);
    assert_eq!(stat["participants"][0]["in_flight"][0]["first_lsn"], stat["published"]);
    let hold = &stat["holds"][0];
    assert_eq!((&hold["what"], &hold["pid"]), (&"append".into(), &pid.into()));
    assert_eq!((&hold["first_lsn"], &hold["state"]), (&stat["published"], &"sleeping".into()));
    assert!(hold["waited_us"].is_null(), "nobody waits");
    let text = place.run("stat", &[], b"").good();
    assert!(text.contains(&format!("by process {pid}, which is busy")), "{text}");
    assert!(text.contains("append in flight"), "{text}");
    assert_eq!(place.run("cat", &[], b"").good().lines().count(), 3);

    writer.child.kill().unwrap();
    writer.child.wait().unwrap();
    assert_eq!(place.stat()["participants"][0]["alive"], false);
    let text = place.run("stat", &[], b"").good();
    assert!(text.contains(&format!("by process {pid}, which died")), "{text}");
    assert!(text.contains("readers skip it"), "{text}");
    assert!(place.run("cat", &[], b"").good().ends_with("\nbehind\n"));

    place.append(&[], b"");
    let text = place.run("cat", &[], b"").good();
    assert_eq!(text.lines().last(), Some("behind"));
    let stat = place.stat();
    assert_eq!((&stat["repairs"], &stat["held_back_by"]), (&1.into(), &().into()));
}

#[test]
fn a_stopped_holder_is_named_with_what_would_help_and_for_how_long_others_wait() {
    let place = Place::new();
    let writer = half_way(&place);
    let pid = writer.child.id();
    let kill = |signal: &str| {
        let status = std::process::Command::new("kill").args([signal, &pid.to_string()]).status();
        assert!(status.unwrap().success());
    };
    place.append(&[], b"behind\n");
    kill("-STOP");
    let mut waiter = place.start("append", &["--commit", "every"]);
    waiter.feed(b"waits\n");
    let has_waited =
        |hold: &Value| hold["state"] == "stopped" && hold["waited_us"].as_u64() > Some(0);
    let holds = std::iter::repeat_with(|| place.stat()["holds"][0].clone());
    let hold = holds.take(3000).find(has_waited).expect("who commits waits");
    assert_eq!((&hold["what"], &hold["pid"]), (&"append".into(), &pid.into()));
    let text = place.run("stat", &[], b"").good();
    let given_up = place.run("append", &["--commit", "every", "--timeout", "100"], b"never\n");
    let complaint = given_up.complaint(1);
    assert!(
        complaint.contains(&format!("is held by process {pid}, which is stopped")),
        "{complaint}"
    );
    let text = text.replace('\n', " ");
    for part in [
        format!("is held by process {pid}, which is stopped; others have waited for "),
        format!("kill -CONT {pid} has it go on"),
    ] {
        assert!(text.contains(&part), "{text}");
    }
    let ran = place.run("cat", &[], b"");
    assert_eq!(ran.code, 4, "{ran:?}");
    assert!(ran.stderr.contains("which is stopped"), "{}", ran.stderr);
    kill("-CONT");
}

#[test]
fn a_follower_goes_past_a_writer_that_dies() {
    let place = Place::new();
    let mut writer = half_way(&place);
    let mut follower = place.start("cat", &["-f"]);
    for _ in 0..3 {
        follower.line();
    }
    place.append(&[], b"behind\n");
    writer.child.kill().unwrap();
    writer.child.wait().unwrap();
    assert_eq!(follower.line(), "behind\n");
}

#[test]
fn styles_are_for_terminals_or_on_demand() {
    let place = Place::new();
    place.append(&[], b"one\n");
    let escapes = |variable: &str| {
        let output = vellum().arg("stat").arg(place.log()).env(variable, "1").output().unwrap();
        output.stdout.contains(&0x1b)
    };
    assert!(escapes("CLICOLOR_FORCE"));
    assert!(!escapes("NO_COLOR") && !escapes("UNRELATED"));
    // The command line counts more than the environment.
    let escapes = |variable: &str, when: &str| {
        let mut command = vellum();
        command.args(["stat", "--color", when]).arg(place.log()).env(variable, "1");
        command.output().unwrap().stdout.contains(&0x1b)
    };
    assert!(escapes("NO_COLOR", "always") && !escapes("CLICOLOR_FORCE", "never"));
    assert!(escapes("CLICOLOR_FORCE", "auto") && !escapes("UNRELATED", "auto"));
}

#[test]
fn what_is_no_log_is_one_line_of_complaint() {
    let place = Place::new();
    for command in ["stat", "verify", "cat"] {
        assert!(place.run(command, &[], b"").complaint(1).contains("no log"));
        assert!(run(&[command, "/etc/passwd"], b"").complaint(1).contains("not a log"));
    }
}

#[test]
fn a_log_is_told_by_its_id_and_its_newest_recovery() {
    let place = Place::new();
    place.append(&["--layout", "text"], b"one\n");
    let before = place.stat();
    assert!(before["log_id"].as_str().is_some_and(|id| id.len() == 32));
    assert_eq!(before["epoch"], 1);
    assert!(before["last_recovery"].is_null() && before["application_tag"].is_null());
    assert!(!place.run("stat", &[], b"").good().contains("recovered"));
    fs::remove_file(place.log().join("control")).unwrap();
    place.append(&[], b"two\n");
    let after = place.stat();
    assert_eq!(after["log_id"], before["log_id"]);
    assert!(after["epoch"].as_u64() > Some(1));
    let recovery = &after["last_recovery"];
    assert_eq!((&recovery["reason"], &recovery["cut_bytes"]), (&"control_lost".into(), &0.into()));
    assert!(recovery["seconds"].as_u64() > Some(0) && recovery["padded_bytes"].is_u64());
    assert_eq!(recovery["from"], before["published"]);
    assert_eq!(recovery["end"], before["published"]);
    let text = place.run("stat", &["--positions"], b"").good();
    for words in [after["log_id"].as_str().unwrap(), "epoch", "the control file was gone"] {
        assert!(text.contains(words), "{words} in {text}");
    }
    assert!(text.lines().all(|line| line.chars().count() <= 100), "{text}");
}

#[test]
fn bytes_are_those_of_records_and_of_the_disk() {
    let place = Place::new();
    let text = "a line of some length\n".repeat(20_000);
    place.run("append", &["--rotate-bytes", "100K"], text.as_bytes()).good();
    assert!(place.segments().len() > 3);
    let page = place.run("stat", &["--prometheus"], b"").good();
    let number = |name: &str| -> u64 {
        let line = page.lines().find(|line| line.starts_with(name)).unwrap();
        line.rsplit(' ').next().unwrap().parse().unwrap()
    };
    assert!(number("vellum_unsynced_bytes{") <= text.len() as u64, "{page}");
    let du =
        std::process::Command::new("du").args(["-s", "-B1"]).arg(place.log()).output().unwrap();
    let du = String::from_utf8(du.stdout).unwrap();
    let du: u64 = du.split_whitespace().next().unwrap().parse().unwrap();
    assert_eq!(number("vellum_disk_bytes{"), du);
    assert_eq!(place.stat()["kept_bytes"], text.len());
    let shown = place.run("stat", &["--positions"], b"").good();
    assert!(shown.contains("430 KiB since begin"), "{shown}");
}

#[test]
fn a_fault_of_the_cursors_hides_nothing_else_and_is_told() {
    use vellum::{Lsn, Options};
    let place = Place::new();
    place.append(&["--commit", "every"], b"one\ntwo\n");
    let log = Options::default().open(place.log()).unwrap();
    let shipper = log.ship().elect().unwrap().unwrap();
    shipper.hold(Lsn::ZERO, None).unwrap();
    shipper.set_shipped(Lsn::new(shipper.durable().unwrap().get() - 16)).unwrap();
    let page = || place.run("stat", &["--prometheus"], b"").good();
    let has = |page: &str, name: &str, value: &str| {
        let mut lines = page.lines().filter(|line| line.starts_with(&format!("{name}{{")));
        assert!(lines.any(|line| line.ends_with(&format!(" {value}"))), "{name} in {page}");
    };
    let names = |page: &str| -> Vec<String> {
        let lines = page.lines().filter(|line| line.starts_with("# TYPE vellum_"));
        lines.filter(|line| !line.contains("vellum_cursor_")).map(str::to_string).collect()
    };
    let good = page();
    has(&good, "vellum_cursors_fault", "0");
    fs::write(place.log().join("cursors"), "damaged").unwrap();
    let damaged = page();
    has(&damaged, "vellum_cursors_fault", "1");
    has(&damaged, "vellum_ship_lag_bytes", "16");
    assert_eq!(names(&damaged), names(&good));
    let stat = place.stat();
    assert_eq!(stat["ship"]["lag_bytes"], 16);
    assert!(stat["cursors_fault"].is_string() && stat["ship"]["held_from"].is_null());
}

#[test]
fn a_file_that_is_missing_is_told_to_prometheus_by_a_number() {
    let place = Place::new();
    place.append(&["--segment-bytes", "4KiB"], "x\n".repeat(600).as_bytes());
    fs::remove_file(&place.segments()[1]).unwrap();
    assert_eq!(place.run("stat", &[], b"").code, 3);
    let page = place.run("stat", &["--prometheus"], b"").good();
    let missing = page.lines().find(|line| line.starts_with("vellum_missing_files{")).unwrap();
    assert!(missing.ends_with(" 1"), "{missing}");
}
