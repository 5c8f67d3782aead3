//! `vellum append` that commits.

use std::io::Write;
use std::process::Stdio;
use std::thread;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use vellum_testing::until;

use super::support::{Place, Running, closed_pipe, run, vellum};

const SOON: Duration = Duration::from_millis(200);
const SOME_DAY: Duration = Duration::from_secs(20);

/// Whether it says something before `timeout` is over.
fn says_something(running: &Running, timeout: Duration) -> bool {
    let timeout = Timespec::try_from(timeout).unwrap();
    let stdout = running.stdout.as_ref().unwrap();
    assert!(stdout.buffer().is_empty());
    poll(&mut [PollFd::new(stdout.get_ref(), PollFlags::IN)], Some(&timeout)).unwrap() > 0
}

fn position(line: &str) -> u64 {
    line.trim_end().parse().unwrap()
}

#[test]
fn records_come_back_and_are_acknowledged_whenever_they_are_committed() {
    for options in [
        &["--commit", "every"][..],
        &["--commit", "end"],
        &["--commit", "none"],
        &["--commit-interval", "1"],
        &["--commit", "every", "--commit-interval", "1"],
        &["--commit", "every", "--layout", "text"],
        &["--commit", "end", "--fill", "pwrite"],
    ] {
        let place = Place::new();
        let told = place.append(options, b"one\ntwo\nthree\n");
        assert_eq!(told.len(), 3, "{options:?}");
        let from = told[1].to_string();
        let records = place.run("cat", &["--from", &from], b"").good();
        assert_eq!(records, "two\nthree\n", "{options:?}");
    }
}

#[test]
fn every_record_is_acknowledged_before_the_next_is_read() {
    let place = Place::new();
    let mut running = place.start("append", &["--ack", "--commit", "every"]);
    for record in ["one\n", "two\n"] {
        running.feed(record.as_bytes());
        let from = position(&running.line()).to_string();
        assert_eq!(place.run("cat", &["--from", &from], b"").good(), record);
    }
}

#[test]
fn at_the_end_means_not_before() {
    let place = Place::new();
    let mut running = place.start("append", &["--ack", "--commit", "end"]);
    running.feed(b"one\ntwo\n");
    until("both are appended", || {
        (place.run("cat", &[], b"").stdout == b"one\ntwo\n").then_some(())
    });
    assert!(!says_something(&running, SOON));
    drop(running.child.stdin.take());
    assert!(position(&running.line()) < position(&running.line()));
    assert!(running.child.wait().unwrap().success());
}

#[test]
fn an_interval_commits_though_nothing_more_comes() {
    let place = Place::new();
    let mut running = place.start("append", &["--ack", "--commit-interval", "400"]);
    for input in [&b"one\ntwo\nha"[..], b"lf\n"] {
        let fed_at = Instant::now();
        running.feed(input);
        assert!(says_something(&running, SOME_DAY));
        for _ in 0..input.iter().filter(|byte| **byte == b'\n').count() {
            position(&running.line());
        }
        let waited = fed_at.elapsed();
        assert!(waited >= Duration::from_millis(390), "{waited:?}: together, when one is due");
    }
    assert!(!says_something(&running, SOON));
    assert_eq!(place.run("cat", &[], b"").good(), "one\ntwo\nhalf\n");
}

#[test]
fn an_interval_commits_while_records_keep_coming() {
    let place = Place::new();
    let mut running = place.start("append", &["--ack", "--commit-interval", "100"]);
    let mut stdin = running.child.stdin.take().unwrap();
    // Faster than they are appended, until no reader is left.
    let feeder = thread::spawn(move || while stdin.write_all(&b"one\n".repeat(16384)).is_ok() {});
    let has_committed = says_something(&running, Duration::from_secs(5));
    drop(running);
    feeder.join().unwrap();
    assert!(has_committed);
}

#[test]
fn a_new_log_is_made_for_commits_unless_told_otherwise() {
    for (options, fill) in [
        ("--commit every", "staged"),
        ("--commit end", "staged"),
        ("--commit-interval 9", "staged"),
        ("--commit every --fill pwrite", "pwrite"),
        ("--commit every --layout text --fill mapped", "mapped"),
    ] {
        let place = Place::new();
        place.append(&options.split(' ').collect::<Vec<_>>(), b"one\n");
        assert_eq!(place.stat()["fill"], fill, "{options}");
    }
    let place = Place::new();
    place.append(&["--commit", "none"], b"one\n");
    assert!(place.stat()["fill"] != "staged");
}

#[test]
fn an_existing_log_is_joined_as_it_is() {
    let place = Place::new();
    place.append(&["--fill", "pwrite", "--segment-bytes", "8KiB"], b"one\n");
    place.append(&["--commit", "every"], b"two\n");
    assert_eq!(place.run("cat", &[], b"").good(), "one\ntwo\n");
    assert_eq!(place.stat()["fill"], "pwrite");
}

#[test]
fn nobody_listening_is_no_failure() {
    for options in [["--commit", "end"], ["--commit-interval", "1"]] {
        let place = Place::new();
        let mut command = vellum();
        command.args(["append", "--ack"]).args(options).arg(place.log());
        command.stdin(Stdio::piped()).stdout(closed_pipe()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut stdin = child.stdin.take().unwrap();
        stdin.write_all(b"one\n").unwrap();
        if options[0] == "--commit" {
            drop(stdin);
        }
        // With an interval it ends while it waits for input.
        let output = child.wait_with_output().unwrap();
        assert_eq!((output.status.code(), output.stderr.len()), (Some(0), 0), "{options:?}");
    }
}

#[test]
fn contradictions_are_usage_errors() {
    for options in ["--commit none --commit-interval 5", "--commit-interval 0", "--commit often"] {
        let place = Place::new();
        let log = place.log();
        let words = ["append"].into_iter().chain(options.split(' ')).chain(log.to_str());
        let ran = run(&words.collect::<Vec<_>>(), b"one\n");
        assert_eq!((ran.code, ran.stdout.len()), (2, 0), "{options}: {}", ran.stderr);
        assert!(!place.log().exists());
    }
}

#[test]
fn stat_tells_what_was_committed() {
    let place = Place::new();
    place.append(&["--fill", "staged"], b"");
    for (options, expected) in [("every", 3..=5), ("end", 1..=3)] {
        let before = place.stat()["commits"]["commits"].as_u64().unwrap();
        let told = place.append(&["--commit", options], b"two\nthree\nfour\n");
        let stat = place.stat();
        assert!(stat["durable"].as_u64() > told.last().copied(), "{options}");
        let counts = &stat["commits"];
        // Closing commits too.
        let commits = counts["commits"].as_u64().unwrap() - before;
        assert!(expected.contains(&commits), "{options}: {commits}");
        let syncs = counts["syncs"].as_u64().unwrap();
        let by_time = counts["sync_micros"].as_array().unwrap();
        assert_eq!(by_time.iter().map(|count| count.as_u64().unwrap()).sum::<u64>(), syncs);
        assert!(syncs > 0 && counts["synced_bytes"].as_u64() > Some(0));
        assert!(counts["sync_micros_p50"].as_u64() <= counts["sync_micros_p99"].as_u64());
    }
    let text = place.run("stat", &[], b"").good();
    assert!(text.contains("a sync") && text.contains("p99 < "), "{text}");
    assert!(text.lines().all(|line| line.chars().count() <= 100), "{text}");
}
