//! `vellum prepare`, `checkpoint`, `truncate` and `repair`.

use std::fs;

use serde_json::Value;

use super::support::{Place, Ran, flip, run};

/// `vellum <command> <options> <log> <word>`.
fn with(place: &Place, command: &str, options: &[&str], word: &str) -> Ran {
    let log = place.log();
    let words = [command].into_iter().chain(options.iter().copied());
    run(&words.chain([log.to_str().unwrap(), word]).collect::<Vec<_>>(), b"")
}

fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

/// The one line of talk of a command that ended well and printed nothing.
#[track_caller]
fn talk(ran: &Ran) -> &str {
    assert_eq!((ran.code, ran.stdout.len()), (0, 0), "{}", ran.stderr);
    assert_eq!(ran.stderr.lines().count(), 1);
    &ran.stderr
}

#[test]
fn none_of_them_makes_a_log() {
    let place = Place::new();
    for (command, word) in [("checkpoint", "1"), ("truncate", "1")] {
        assert!(with(&place, command, &[], word).complaint(1).contains("no log"), "{command}");
    }
    for command in ["prepare", "checkpoint"] {
        assert!(place.run(command, &[], b"").complaint(1).contains("no log"), "{command}");
    }
    let copy = place.dir().join("copy");
    with(&place, "repair", &[], copy.to_str().unwrap()).complaint(1);
    assert_eq!(fs::read_dir(place.dir()).unwrap().count(), 0);
}

#[test]
fn what_was_prepared_is_told() {
    let place = Place::new();
    place.append(&[], b"one\n");
    let ran = place.run("prepare", &["--segments", "2"], b"");
    assert!(talk(&ran).ends_with("made ready\n"), "{}", ran.stderr);
    let text = place.run("prepare", &["--json", "--segments", "2"], b"").good();
    assert_eq!(json(&text)["segments_made"], 0, "they are there already");
}

#[test]
fn prepared_segments_are_ready_before_records_need_them() {
    let place = Place::new();
    place.append(&["--commit", "end", "--segment-bytes", "64KiB"], b"one\n");
    let before = place.stat()["prepared_segments"].as_u64().unwrap();
    let text = place.run("prepare", &["--json", "--segments", "4"], b"").good();
    assert_eq!(json(&text)["segments_made"].as_u64(), Some(4 - before));
    let stat = place.stat();
    assert_eq!(stat["prepared_segments"], 4);
    let ready = |segment: &&Value| segment["state"] == "prepared";
    for segment in stat["segments"].as_array().unwrap().iter().filter(ready) {
        assert!(segment["allocated_bytes"].as_u64() >= Some(64 << 10), "{segment}");
    }
    assert!(place.run("stat", &[], b"").good().contains("4 segments ahead"));
}

#[test]
fn the_ways_to_commit_are_timed_once_for_a_device() {
    let place = Place::new();
    place.append(&["--commit", "end", "--segment-bytes", "64KiB"], b"one\n");
    assert_eq!(place.stat()["commit_path"]["origin"], "default");
    let never = json(&place.run("prepare", &["--json", "--measure", "never"], b"").good());
    assert!(never["commit_path"].is_null());
    let first = json(&place.run("prepare", &["--json"], b"").good());
    let found = place.stat();
    assert_eq!(found["commit_path"]["path"], first["commit_path"]);
    assert_eq!(found["commit_path"]["origin"], "measured");
    assert!(place.run("stat", &[], b"").good().contains("measurement on this device"));
    let again = json(&place.run("prepare", &["--json"], b"").good());
    assert!(again["commit_path"].is_null(), "{again}");
}

#[test]
fn a_way_to_commit_that_is_chosen_is_stored_as_it_is() {
    let place = Place::new();
    place.append(&["--commit", "end", "--segment-bytes", "64KiB"], b"one\n");
    let ran = place.run("prepare", &["--commit-path", "fdatasync/4096/1"], b"");
    assert!(ran.stderr.contains("commits go by fdatasync/4096/1"), "{}", ran.stderr);
    let stat = place.stat();
    assert_eq!(stat["commit_path"]["origin"], "chosen");
    assert_eq!(stat["commit_path"]["write"], "fdatasync");
    let wrong = place.run("prepare", &["--commit-path", "fdatasync/4097/1"], b"");
    assert!(wrong.code == 2 && wrong.stderr.contains("dsync/4096/2"), "{}", wrong.stderr);
    place.append(&["--commit", "end"], b"two\n");
    assert_eq!(place.run("cat", &[], b"").good(), "one\ntwo\n");
}

#[test]
fn what_would_fill_the_disk_is_refused() {
    let place = Place::new();
    place.append(&["--segment-bytes", "1GiB", "--preallocate", "off"], b"one\n");
    let before = place.files().len();
    let ran = place.run("prepare", &["--segments", "1000000"], b"");
    let complaint = ran.complaint(1);
    assert!(complaint.contains("a tenth of the disk") && complaint.contains("--force"));
    assert_eq!(place.files().len(), before);
}

#[test]
fn prepared_segments_are_given_back_on_demand() {
    let place = Place::new();
    place.append(&["--commit", "end", "--segment-bytes", "64KiB"], b"one\n");
    place.run("prepare", &["--segments", "20", "--force"], b"");
    assert_eq!(place.stat()["prepared_segments"], 20);
    let ran = place.run("prepare", &["--release"], b"");
    assert!(talk(&ran).ends_with("segments given back\n"), "{}", ran.stderr);
    assert!(place.stat()["prepared_segments"].as_u64() < Some(3));
    let text = place.run("prepare", &["--release", "--json"], b"").good();
    assert_eq!(json(&text)["segments_made"], 0);
    assert_eq!(place.run("prepare", &["--release", "--force"], b"").code, 2);
    place.append(&[], b"two\n");
    assert_eq!(place.run("cat", &[], b"").good(), "one\ntwo\n");
}

#[test]
fn a_new_log_has_no_checkpoint() {
    let place = Place::new();
    place.append(&[], b"one\n");
    assert_eq!(place.run("checkpoint", &[], b"").good(), "0\n");
    assert_eq!(json(&place.run("checkpoint", &["--json"], b"").good())["checkpoint"], 0);
    assert_eq!(place.stat()["checkpoint"], 0);
    let text = place.run("stat", &[], b"").good();
    assert!(text.lines().any(|line| line.split_whitespace().eq(["checkpoint", "none"])), "{text}");
}

#[test]
fn a_checkpoint_is_kept_with_the_log() {
    let place = Place::new();
    let told = place.append(&["--commit", "every"], b"one\ntwo\nthree\n");
    let lsn = told[1].to_string();
    let ran = with(&place, "checkpoint", &[], &lsn);
    assert!(talk(&ran).contains(&lsn), "{}", ran.stderr);
    assert_eq!(place.run("checkpoint", &[], b"").good(), lsn.clone() + "\n");
    assert_eq!(place.stat()["checkpoint"], told[1]);
    let next = told[2].to_string();
    assert_eq!(json(&with(&place, "checkpoint", &["--json"], &next).good())["checkpoint"], told[2]);
    for wrong in [told[1] + 8, told[0] + 1, 1, 0, 99_999_999_999] {
        let ran = with(&place, "checkpoint", &[], &wrong.to_string());
        assert!(ran.complaint(2).contains(&format!("{wrong} is no checkpoint")), "{ran:?}");
    }
    assert_eq!(place.run("checkpoint", &[], b"").good(), next + "\n");
    let end = place.stat()["published"].to_string();
    for right in [end.as_str(), &lsn] {
        assert!(talk(&with(&place, "checkpoint", &[], right)).contains(right));
        assert_eq!(place.run("checkpoint", &[], b"").good(), format!("{right}\n"));
    }
}

#[test]
fn a_dry_run_counts_and_changes_nothing() {
    for layout in ["framed", "text"] {
        let place = Place::new();
        let told = place.append(&["--layout", layout], b"one\ntwo\nthree\n");
        let from = told[1].to_string();
        let files = place.files();
        let ran = with(&place, "truncate", &["--dry-run"], &from);
        assert!(talk(&ran).contains("2 records of"), "{}", ran.stderr);
        let report = json(&with(&place, "truncate", &["--dry-run", "--json"], &from).good());
        assert_eq!((&report["records"], &report["from"]), (&2.into(), &told[1].into()));
        assert_eq!(report["end"], place.stat()["published"]);
        assert!(files == place.files());
    }
}

#[test]
fn what_the_log_does_not_hold_cannot_be_dropped() {
    let place = Place::new();
    let told = place.append(&["--segment-bytes", "4KiB"], &b"record\n".repeat(600));
    place.run("trim", &["--before", &told[400].to_string()], b"");
    for from in [0, 1, told[399], 1 << 40] {
        for options in [&["--dry-run"][..], &[]] {
            let ran = with(&place, "truncate", options, &from.to_string());
            assert!(ran.complaint(1).contains(&format!("cannot truncate from {from}")), "{ran:?}");
        }
    }
    let inside = (told[500] + 8).to_string();
    with(&place, "truncate", &["--dry-run"], &inside).complaint(1);
    assert_eq!(place.run("cat", &[], b"").good().lines().count(), 200);
}

#[test]
fn truncating_drops_the_newest_part_and_the_log_goes_on() {
    for options in [&["--commit", "end"][..], &["--layout", "text"], &[]] {
        let place = Place::new();
        let options = [options, &["--segment-bytes", "4KiB"]].concat();
        let told = place.append(&options, &b"record\n".repeat(2000));
        let from = told[300].to_string();
        let ran = with(&place, "truncate", &[], &from);
        assert!(talk(&ran).contains(&format!("the log ends at {from}")), "{}", ran.stderr);
        // Closing a log that commits may leave a seal there.
        let dropped = told[300]..told[310];
        assert!(dropped.contains(&place.stat()["published"].as_u64().unwrap()));
        assert!(dropped.contains(&place.append(&[], b"new\n")[0]));
        let text = place.run("cat", &[], b"").good();
        assert_eq!((text.lines().count(), text.lines().last()), (301, Some("new")));
        assert_eq!(place.run("verify", &[], b"").code, 0);
        let json = json(&with(&place, "truncate", &["--json"], &from).good());
        assert_eq!((&json["from"], &json["dry_run"]), (&told[300].into(), &false.into()));
    }
}

#[test]
fn a_trim_gives_back_as_much_of_the_disk_as_is_asked_for() {
    let left = |options: &[&str]| {
        let place = Place::new();
        let input = [&[b'x'; 8 << 10][..], b"\n"].concat().repeat(100);
        place.append(&["--commit", "end", "--segment-bytes", "64KiB"], &input);
        let end = place.stat()["published"].to_string();
        let words = [&["--before", &end], options].concat();
        place.run("trim", &words, b"").complaint(0);
        place.stat()["disk_bytes"].as_u64().unwrap()
    };
    assert!(left(&["--spare-segments-max", "0"]) + (2 << 16) <= left(&[]));
}

#[test]
fn what_goes_of_a_text_log_is_told_in_bytes_of_text() {
    let place = Place::new();
    let told = place.append(&["--rotate-bytes", "4K"], &b"a line\n".repeat(2000));
    let from = told[500].to_string();
    let json = |options: &[&str]| json(&with(&place, "truncate", options, &from).good());
    assert_eq!(json(&["--dry-run", "--json"])["bytes"], 1500 * 7);
    assert_eq!(json(&["--json"])["bytes"], 1500 * 7);
    assert_eq!(json(&["--json"])["bytes"], 0);
}

#[test]
fn nothing_is_dropped_under_others() {
    let place = Place::new();
    let mut running = place.start("append", &["--ack"]);
    running.feed(b"one\ntwo\n");
    let lsn = running.line();
    running.line();
    with(&place, "truncate", &[], lsn.trim_end()).complaint(1);
    assert_eq!(place.run("cat", &[], b"").good(), "one\ntwo\n");
}

#[test]
fn truncating_in_the_middle_of_a_record_is_refused() {
    let place = Place::new();
    let told = place.append(&[], b"a record that is long enough\ntwo\n");
    with(&place, "truncate", &[], &(told[0] + 8).to_string()).complaint(1);
    assert_eq!(place.run("cat", &[], b"").good().lines().count(), 2);
}

#[test]
fn repair_saves_what_is_readable_and_names_what_is_not() {
    let place = Place::new();
    let told = place.append(&["--segment-bytes", "4KiB"], &b"record\n".repeat(900));
    let path = &place.segments()[1];
    let lsn = told.iter().copied().find(|lsn| lsn / 4096 == 2).unwrap() + 160;
    assert!(told.contains(&lsn));
    flip(path, 4096 + (lsn % 4096) as usize + 8);
    let files = place.files();
    let copies = ["copy", "json"].map(|name| place.dir().join(name));
    let copies = copies.each_ref().map(|path| path.to_str().unwrap());

    let ran = with(&place, "repair", &[], copies[0]);
    assert_eq!(ran.code, 3);
    assert!(ran.stderr.contains("899 records of"), "{}", ran.stderr);
    let text = ran.text();
    assert!(text.starts_with(path.to_str().unwrap()) && text.lines().count() == 1, "{text}");
    assert!(text.contains(&format!("lsn {lsn}: ")), "{text}");
    assert_eq!(run(&["cat", copies[0]], b"").good(), "record\n".repeat(899));

    let ran = with(&place, "repair", &["--json"], copies[1]);
    assert_eq!((ran.code, ran.stderr.as_str()), (3, ""));
    let report = json(&ran.text());
    assert_eq!((&report["records"], &report["damage"][0]["lsn"]), (&899.into(), &lsn.into()));

    with(&place, "repair", &[], copies[0]).complaint(1);
    assert_eq!(run(&["cat", copies[0]], b"").good(), "record\n".repeat(899));
    assert!(files == place.files(), "the damaged log stays as it is");
}

#[test]
fn a_good_log_is_saved_whole() {
    for layout in ["framed", "text"] {
        let place = Place::new();
        place.append(&["--layout", layout], b"one\ntwo\n");
        let copy = place.dir().join("copy");
        let copy = copy.to_str().unwrap();
        let ran = with(&place, "repair", &[], copy);
        assert!(talk(&ran).contains("2 records of"), "{}", ran.stderr);
        assert_eq!(run(&["cat", copy], b"").good(), "one\ntwo\n");
    }
}

#[test]
fn quiet_commands_say_nothing_of_what_they_did() {
    let place = Place::new();
    let told = place.append(&[], b"one\ntwo\nthree\n");
    let log = place.log().to_str().unwrap().to_string();
    let copy = place.dir().join("copy").to_str().unwrap().to_string();
    let [second, third] = [told[1].to_string(), told[2].to_string()];
    for words in [
        &["checkpoint", &log, &second][..],
        &["prepare", "--force", "--measure", "never", &log],
        &["prepare", "--release", &log],
        &["trim", &log, "--before", &second],
        &["truncate", &log, &third],
        &["verify", &log],
        &["repair", &log, &copy],
    ] {
        assert_eq!(run(&[words, &["--quiet"]].concat(), b"").good(), "", "{words:?}");
    }
    assert!(run(&["cat", &copy], b"").good().ends_with("two\n"));
    flip(&place.segments()[0], 4096 + 40);
    let ran = run(&["verify", "-q", &log], b"");
    assert_eq!((ran.code, ran.stdout.len(), ran.stderr.as_str()), (3, 0, ""));
    // Faults are reported.
    run(&["trim", "-q", "--before", "9999999999", &log], b"").complaint(1);
}
