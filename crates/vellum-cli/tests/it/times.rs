//! Records of a time: `--since`, `--until`, and what `--json` says of envelopes.

use std::fs;
use std::io::Write;
use std::process::{Command, Stdio};
use std::time::{Duration, SystemTime};

use serde_json::Value;

use super::support::Place;

/// This moment, as a command line takes it.
fn now() -> String {
    moment(SystemTime::now())
}

fn moment(time: SystemTime) -> String {
    let since = time.duration_since(SystemTime::UNIX_EPOCH).unwrap();
    format!("@{}.{:09}", since.as_secs(), since.subsec_nanos())
}

/// A log of three records, and the moments before each and behind the last.
fn three(place: &Place) -> [String; 4] {
    ["one\n", "two\n", "three\n", ""].map(|line| {
        let before = now();
        place.append(&["--envelope"], line.as_bytes());
        before
    })
}

#[test]
fn since_and_until_print_exactly_the_records_of_a_time() {
    let place = Place::new();
    let [first, second, third, end] = &three(&place);
    let cat = |options: &[&str]| place.run("cat", options, b"").good();
    assert_eq!(cat(&["--since", first]), "one\ntwo\nthree\n");
    assert_eq!(cat(&["--since", second]), "two\nthree\n");
    assert_eq!(cat(&["--since", second, "--until", third]), "two\n");
    assert_eq!(cat(&["--until", third]), "one\ntwo\n");
    assert_eq!(cat(&["--since", end]), "");
    assert_eq!(cat(&["--until", first]), "");
    assert_eq!(cat(&["--since", "1h ago", "--until", "now"]), "one\ntwo\nthree\n");
    assert_eq!(cat(&["--since", "1970-01-01", "--until", "1970-01-02"]), "");
    let tail = |options: &[&str]| place.run("tail", options, b"").good();
    assert_eq!(tail(&["--since", third]), "three\n");
    assert_eq!(tail(&["--since", "10 min ago", "--durable"]), "");
    let mut running = place.start("tail", &["--since", second, "--follow"]);
    assert_eq!([running.line(), running.line()], ["two\n", "three\n"]);
    place.append(&[], b"four\n");
    assert_eq!(running.line(), "four\n");
}

#[test]
fn json_has_time_and_writer_where_they_are_known() {
    let place = Place::new();
    let before = SystemTime::now();
    place.append(&["--envelope"], b"one\ntwo\n");
    let text = place.run("cat", &["--json"], b"").good();
    let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let time = lines[0]["time"].as_str().unwrap();
    assert_eq!((time.len(), &time[19..20], &time[29..]), (30, ".", "Z"), "{time}");
    // A printed time selects the same record again, to the nanosecond.
    assert_eq!(place.run("cat", &["--since", time], b"").good(), "one\ntwo\n");
    assert_eq!(place.run("cat", &["--until", time], b"").good(), "");
    let back = Duration::from_secs(1);
    assert_eq!(place.run("cat", &["--until", &moment(before - back)], b"").good(), "");
    let writer = lines[0]["writer"].as_str().unwrap();
    let (random, pid) = writer.split_once('-').unwrap();
    assert!(random.len() == 8 && pid.parse::<u32>().is_ok(), "{writer}");
    assert_eq!(lines[1]["writer"], writer);
    assert_eq!(place.stat()["envelope"], true);

    let plain = Place::new();
    plain.append(&[], b"one\n");
    let line: Value = serde_json::from_str(&plain.run("cat", &["--json"], b"").good()).unwrap();
    assert!(line.get("time").is_none() && line.get("writer").is_none(), "{line}");
    assert_eq!(plain.stat()["envelope"], false);
}

#[test]
fn a_text_log_is_cut_at_the_files_of_a_time() {
    let place = Place::new();
    place.append(&["--layout", "text", "--segment-bytes", "4096"], b"first\n");
    let old = place.segments().remove(0);
    fs::rename(&old, place.log().join("20261121T000000Z-0000000000001000.log")).unwrap();
    for (day, first) in [(22, 8192), (23, 12288)] {
        let name = format!("202611{day}T000000Z-{first:016x}.log");
        fs::write(place.log().join(name), format!("day {day}\n")).unwrap();
    }
    fs::remove_file(place.log().join("control")).unwrap();
    let cat = |options: &[&str]| place.run("cat", options, b"").text();
    assert_eq!(cat(&[]), "first\nday 22\nday 23\n");
    assert_eq!(cat(&["--since", "2026-11-22"]), "day 22\nday 23\n");
    assert_eq!(cat(&["--since", "2026-11-22 15:00"]), "day 22\nday 23\n");
    assert_eq!(cat(&["--since", "2026-11-22", "--until", "2026-11-23"]), "day 22\n");
    assert_eq!(cat(&["--until", "2026-11-22T00:00:00Z"]), "first\n");
    assert_eq!(place.run("tail", &["--since", "2026-11-23"], b"").text(), "day 23\n");
}

/// Compresses a file as `gzip` does.
fn gzipped(text: &str) -> Vec<u8> {
    let mut gzip = Command::new("gzip");
    let mut gzip = gzip.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    gzip.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
    gzip.wait_with_output().unwrap().stdout
}

#[test]
fn files_of_a_later_time_are_not_read() {
    let text = "a line of yesterday\n".repeat(20);
    let zstd = zstd::bulk::compress(text.as_bytes(), 3).unwrap();
    for (ending, compressed) in [("log.zst", zstd), ("log.gz", gzipped(&text))] {
        let place = Place::new();
        place.append(&["--layout", "text", "--segment-bytes", "4096"], text.as_bytes());
        let own = place.segments().remove(0);
        fs::rename(&own, place.log().join("20261121T000000Z-0000000000001000.log")).unwrap();
        let name = |day: u64, end: &str| {
            place.log().join(format!("202611{day}T000000Z-{:016x}.{end}", (day - 20) << 12))
        };
        for day in 22..=25 {
            fs::write(name(day, ending), &compressed).unwrap();
        }
        fs::write(name(26, "log"), "newest\n").unwrap();
        fs::remove_file(place.log().join("control")).unwrap();
        place.append(&[], b"");
        for day in 23..=25 {
            fs::write(name(day, ending), "damaged").unwrap();
        }
        assert_eq!(place.run("cat", &[], b"").code, 3);
        assert_eq!(place.run("cat", &["--until", "2026-11-23"], b"").text(), text.repeat(2));
        assert_eq!(place.run("cat", &["--until", "2026-11-22"], b"").text(), text);
        let since = ["--since", "2026-11-22", "--until", "2026-11-23"];
        assert_eq!(place.run("cat", &since, b"").text(), text);
        assert_eq!(place.run("cat", &["--since", "2026-11-26"], b"").text(), "newest\n");
    }
}

#[test]
fn a_log_that_tells_no_times_says_so() {
    let place = Place::new();
    place.append(&[], b"one\n");
    for command in ["cat", "tail"] {
        let ran = place.run(command, &["--since", "1h ago"], b"");
        assert!(ran.complaint(1).contains("envelopes"), "{ran:?}");
    }
    let ran = place.run("cat", &["--since", "someday"], b"");
    assert_eq!(ran.code, 2, "{ran:?}");
    assert!(ran.stderr.contains("yesterday"), "{ran:?}");
    let ran = place.run("append", &["--envelope"], b"two\n");
    assert!(ran.complaint(2).contains("created with --envelope no"), "{ran:?}");
}

#[test]
fn cat_starts_where_a_cursor_could_be_set() {
    let place = Place::new();
    let told = place.append(&[], b"one\ntwo\nthree\n");
    let set = ["shipper", "--set", &told[1].to_string()].map(str::to_string);
    let log = place.log().to_str().unwrap().to_string();
    let words: Vec<String> = ["cursor".to_string(), log].into_iter().chain(set).collect();
    super::support::run(&words, b"").good();
    let cursors = place.run("cursor", &["--json"], b"").good();
    let cursors: Value = serde_json::from_str(&cursors).unwrap();
    let stored = cursors[0]["position"].as_str().unwrap();
    for (from, printed) in [
        (stored, "two\nthree\n"),
        ("begin", "one\ntwo\nthree\n"),
        ("0", "one\ntwo\nthree\n"),
        ("end", ""),
    ] {
        assert_eq!(place.run("cat", &["--from", from], b"").good(), printed, "{from}");
    }
    let other = stored.replace(&stored[..8], "00000000");
    place.run("cat", &["--from", &other], b"").complaint(1);
}

#[test]
fn lines_with_times_of_their_own_are_printed_by_them_in_local_time() {
    let place = Place::new();
    let lines = [
        "2098-11-20 10:00:00,123 one\n",
        "2098-11-20T09:30:00Z two\n",
        "  of two\n",
        "Traceback of two\n",
        "2098-11-20 11:00:00,000 three\n",
    ];
    place.append(&["--layout", "text"], lines.concat().as_bytes());
    let print = |command: &str, options: &[&str]| {
        let mut vellum = super::support::vellum();
        let ran = vellum.arg(command).args(options).arg(place.log());
        let output = ran.env("TZ", "Europe/Berlin").output().unwrap();
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    let all = lines.concat();
    assert_eq!(print("cat", &["--since", "2098-11-20"]), all);
    assert_eq!(print("cat", &["--since", "2098-11-20 10:15"]), lines[1..].concat());
    assert_eq!(print("tail", &["--since", "2098-11-20T10:00Z"]), lines[4]);
    let half = ["--since", "2098-11-20 10:30", "--until", "2098-11-20 11:00"];
    assert_eq!(print("cat", &half), lines[1..4].concat());
    assert_eq!(print("cat", &["--since", "-1h"]), all);
    assert_eq!(print("cat", &["--until", "today"]), "");
}

#[test]
fn spans_and_sizes_have_one_grammar() {
    let place = Place::new();
    let options = ["--timeout", "5s", "--commit-interval", "100ms", "--rotate-every", "daily"];
    let more = ["--retain-age", "14days", "--retain-bytes", "1.5G", "--rotate-bytes", "512K"];
    place.run("append", &[&options[..], &more].concat(), b"one\n").good();
    let policy = &place.stat()["policy"];
    assert_eq!(policy["retain_age_seconds"], 14 * 86_400);
    assert_eq!(policy["retain_bytes"], 3_u64 << 29);
    place.run("append", &["--timeout", "5000", "--commit-interval", "100"], b"two\n").good();
}

#[test]
fn lines_of_another_day_are_found_in_the_file_that_they_were_brought_to() {
    let place = Place::new();
    let old = |hour: u32| format!("2026-11-01 {hour:02}:00:00,123 INFO old\n");
    let lines: String = (8..=11).map(old).collect();
    place.append(&["--layout", "text"], lines.as_bytes());
    let cat = |options: &[&str]| place.run("cat", options, b"").good();
    let until = ["--until", "2026-11-01 10:30"];
    assert_eq!(cat(&until), [old(8), old(9), old(10)].concat());
    let both = ["--since", "2026-11-01 09:00", "--until", "2026-11-01 10:30"];
    assert_eq!(cat(&both), [old(9), old(10)].concat());
    place.run("rotate", &[], b"").good();
    place.append(&[], b"2026-11-27 10:00:00 new\n2026-11-01 07:00:00 older\n");
    assert_eq!(cat(&until), [&old(8), &old(9), &old(10), "2026-11-01 07:00:00 older\n"].concat());
}

#[test]
fn whole_files_are_printed_with_a_word_where_no_line_has_a_time() {
    let place = Place::new();
    place.append(&["--layout", "text"], b"no time here\n");
    let ran = place.run("cat", &["--since", "1h ago"], b"");
    assert_eq!((ran.code, &ran.stdout[..]), (0, &b"no time here\n"[..]));
    assert!(ran.stderr.contains("no line begins with a time"), "{ran:?}");
    // The name of the file is all that is known: the lines may be of any day.
    let ran = place.run("cat", &["--until", "2026-11-01"], b"");
    assert_eq!((ran.code, &ran.stdout[..]), (0, &b""[..]));
    assert!(ran.stderr.contains("files that are named by a later time were left out"), "{ran:?}");
}
