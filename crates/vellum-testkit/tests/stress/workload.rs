//! Appending, and the check afterwards.

use std::collections::BTreeSet;
use std::fs;
use std::io::Read;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Resource, Rlimit, prlimit};
use vellum::Layout;

use super::support::{Place, Running, closed_pipe, found, numbers, run, set, stress};

#[test]
fn every_record_is_acknowledged_once_and_found_by_every_check() {
    for options in [
        "--bytes 100-3000",
        "--threads 3 --processes 2",
        "--layout text --threads 2",
        "--layout text --processes 2 --fill pwrite --segment-bytes 64KiB",
        "--commit 7 --threads 2 --preallocate off --fill mapped",
        "--commit 1000 --seed 18446744073709551615",
        "--follow",
        "--follow --fill mapped --commit 7",
    ] {
        let place = Place::new();
        let words: Vec<&str> = options.split(' ').chain(["--records", "500"]).collect();
        let told = place.stress(&words).good();
        assert!(told.lines().all(|line| line.starts_with("ACK ")), "{options}: {told}");
        assert!(set(numbers(&told, "ACK ")).into_iter().eq(0..500), "{options}: {told}");
        for _ in 0..3 {
            assert!(found(&place).into_iter().eq(0..500), "{options}");
        }
    }
}

#[test]
fn commits_decide_what_is_told_together() {
    let told = |commit: &str| {
        let place = Place::new();
        let told = place.stress(&["--records", "10", "--commit", commit]).good();
        assert!(found(&place).into_iter().eq(0..10));
        told
    };
    assert_eq!(told("4"), "ACK 0-3\nACK 4-7\nACK 8-9\n");
    assert_eq!(told("every").lines().count(), 10);
    assert_eq!(told("none"), "");
}

#[test]
fn the_seed_decides_every_byte() {
    let bytes = |seed: &str| {
        let place = Place::new();
        place.stress(&["--records", "50", "--seed", seed]).good();
        place.records()
    };
    assert!(bytes("7") == bytes("7"));
    assert!(bytes("7") != bytes("8"));
}

fn trims(options: &str) {
    let place = Place::new();
    let words = "--records 600 --bytes 200-300 --segment-bytes 4KiB --trim-every 40";
    let words: Vec<&str> = words.split(' ').chain(options.split(' ')).collect();
    let told = place.stress(&words).good();
    let dropped = set(numbers(&told, "DROP "));
    assert!(dropped.len() > 100 && set(numbers(&told, "ACK ")).into_iter().eq(0..600));
    let found = found(&place);
    assert!(found.is_disjoint(&dropped) && found.len() + dropped.len() == 600, "{options}");
    assert!(place.begin() > 4096, "it was trimmed");
}

#[test]
fn what_is_trimmed_was_announced_and_nothing_else_is_missing() {
    trims("--fill pwrite");
    trims("--layout text --commit 3");
}

#[test]
fn others_append_while_one_trims() {
    trims("--threads 3");
    trims("--layout text --processes 2 --threads 2");
}

#[test]
fn batches_checkpoints_and_prepared_segments_lose_no_number() {
    for options in ["--checkpoint-every 10 --threads 2", "--layout text --processes 2"] {
        let place = Place::new();
        let words = "--records 203 --batch 4 --commit 5 --prepare-every 7 --segment-bytes 16KiB ";
        let words: Vec<&str> = words.split_whitespace().chain(options.split(' ')).collect();
        let told = place.stress(&words).good();
        assert!(set(numbers(&told, "ACK ")).into_iter().eq(0..203), "{options}");
        assert!(found(&place).into_iter().eq(0..203), "{options}");
    }
}

#[test]
fn what_retention_removes_was_announced_and_two_checks_remove_nothing_else() {
    for options in [
        "--retain-files 5",
        "--retain-files 9 --threads 3 --processes 2 --compress",
        "--retain-files 9 --threads 3 --processes 2 --compress=gzip",
        "--retain-files 12 --threads 3 --fill pwrite --commit 7",
    ] {
        let place = Place::new();
        let words = "--layout text --rotate-bytes 4KiB --bytes 200-300 --records 900 ";
        let words: Vec<&str> = words.split_whitespace().chain(options.split(' ')).collect();
        let told = place.stress(&words).good();
        // Each writer announces all that may go: never the file that is written, and with 9 files
        // and 6 writers no more than one file before it is safe.
        let dropped: BTreeSet<u64> = numbers(&told, "DROP ").into_iter().collect();
        assert!(set(numbers(&told, "ACK ")).into_iter().eq(0..900), "{options}");
        assert!(dropped.len() > 600 && dropped.len() < 900, "{options}: {}", dropped.len());
        for _ in 0..2 {
            let kept = found(&place);
            assert!(kept.len() < 500, "{options}: {} are still there", kept.len());
            let missing = (0..900).filter(|number| !kept.contains(number));
            assert!(missing.collect::<BTreeSet<_>>().is_subset(&dropped), "{options}");
        }
    }
}

#[test]
fn a_run_that_cannot_announce_what_goes_is_refused() {
    for (options, reason) in [
        ("--layout text --retain-files 7 --threads 3 --processes 2", "has to be 8 or more"),
        ("--layout text --retain-files 7 --rotate-bytes 999 --bytes 1-1000", "no record may be"),
        ("--layout text --retain-files 7 --segment-bytes 4KiB --bytes 1-4097", "no record may be"),
    ] {
        let place = Place::new();
        let ran = place.stress(&options.split(' ').collect::<Vec<_>>());
        assert!(ran.code != 0 && ran.stderr.contains(reason), "{}", ran.stderr);
        assert!(!place.log().exists());
    }
}

/// Starts a run that is far from done, and waits until it has acknowledged something.
fn begun(place: &Place, options: &str) -> (Running, String) {
    let words: Vec<&str> = options.split(' ').chain(["--records", "10000000"]).collect();
    let mut running = place.start(&words);
    let mut told = String::new();
    for _ in 0..300 {
        told += &running.line();
    }
    (running, told)
}

/// Its output until no process can print any more.
fn rest(running: &mut Running) -> String {
    let mut rest = String::new();
    running.stdout.read_to_string(&mut rest).unwrap();
    rest
}

#[test]
fn whatever_was_acknowledged_survives_the_death_of_all_processes() {
    for options in [
        "--threads 3",
        "--processes 3 --threads 2",
        "--layout text --processes 2",
        "--follow --processes 3 --threads 2",
        "--follow --layout text --processes 2",
    ] {
        let place = Place::new();
        let (mut running, told) = begun(&place, options);
        let children = children(&running);
        running.child.kill().unwrap();
        running.child.wait().unwrap();
        children.iter().for_each(|child| assert_dies(child));
        let told = told + &rest(&mut running);
        let acknowledged = acknowledged(&told, options);
        assert!(acknowledged.len() >= 50);
        assert!(acknowledged.is_subset(&found(&place)), "{options}");
        assert!(acknowledged.is_subset(&found(&place)), "{options}");
    }
}

/// The acknowledged numbers: by each writer once, or by several readers.
fn acknowledged(told: &str, options: &str) -> BTreeSet<u64> {
    match options.contains("--follow") {
        true => numbers(told, "ACK ").into_iter().collect(),
        false => set(numbers(told, "ACK ")),
    }
}

/// Waits until a process is gone; one that stays is killed.
#[track_caller]
fn assert_dies(pid: &str) {
    let begin = Instant::now();
    // A process that was not reaped is dead too.
    let lives = || {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat"));
        stat.is_ok_and(|stat| !stat.contains(") Z ") && !stat.contains(") X "))
    };
    while lives() && begin.elapsed() < Duration::from_secs(5) {
        thread::sleep(Duration::from_millis(5));
    }
    let survived = lives() && Command::new("kill").args(["-9", pid]).status().is_ok();
    assert!(!survived, "process {pid} outlived the one that started it");
}

/// The processes that `running` has started.
fn children(running: &Running) -> Vec<String> {
    let pid = running.child.id();
    let children = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap();
    children.split_whitespace().map(str::to_string).collect()
}

#[test]
fn a_process_that_is_killed_leaves_the_others_at_work() {
    assert_others_go_on(&[]);
}

#[test]
fn durable_readers_of_the_others_go_on_when_a_process_is_killed() {
    assert_others_go_on(&["--follow"]);
}

fn assert_others_go_on(options: &[&str]) {
    let place = Place::new();
    let mut command = stress();
    command.args(["--processes", "3", "--records", "20000", "--bytes", "20"]).args(options);
    let mut running = Running::start(command.arg(place.log()).stderr(Stdio::piped()));
    let mut told = running.line();
    let victim = &children(&running)[1];
    assert!(Command::new("kill").args(["-9", victim]).status().unwrap().success());
    told += &rest(&mut running);
    let mut stderr = String::new();
    running.child.stderr.take().unwrap().read_to_string(&mut stderr).unwrap();
    assert_eq!(running.child.wait().unwrap().code(), Some(1));
    assert!(stderr.starts_with("vellum-stress: process 1 died"), "{stderr}");
    assert_eq!(stderr.lines().count(), 1);
    let acknowledged = acknowledged(&told, &options.concat());
    let survivors = acknowledged.iter().filter(|number| *number % 3 != 1).count();
    assert_eq!(survivors, 20_000 - 20_000 / 3 - 1);
    assert!(acknowledged.is_subset(&found(&place)));
}

/// From now on `pid` can make no file longer than 4 KiB.
fn limit(pid: i32) {
    let limit = Rlimit { current: Some(4096), maximum: Some(4096) };
    prlimit(Pid::from_raw(pid), Resource::Fsize, limit).unwrap();
}

#[test]
fn an_error_is_one_line_and_nothing_is_acknowledged_beyond_it() {
    for options in ["--threads 3", "--processes 3 --threads 2"] {
        let place = Place::new();
        let mut command = stress();
        command.args(["--records", "10000000", "--layout", "text"]);
        command.args(["--segment-bytes", "64KiB"]).args(options.split(' ')).arg(place.log());
        let mut running = Running::start(command.stderr(Stdio::piped()));
        let mut told = running.line();
        children(&running).iter().for_each(|child| limit(child.parse().unwrap()));
        limit(running.child.id() as i32);
        told += &rest(&mut running);
        let mut stderr = String::new();
        running.child.stderr.take().unwrap().read_to_string(&mut stderr).unwrap();
        assert_eq!(running.child.wait().unwrap().code(), Some(1));
        assert_eq!(stderr.lines().count(), 1, "{stderr}");
        let (number, reason) =
            stderr.strip_prefix("vellum-stress: record ").unwrap().split_once(' ').unwrap();
        assert!(reason.starts_with("was not appended: cannot "), "{stderr}");
        let acknowledged = set(numbers(&told, "ACK "));
        assert!(!acknowledged.contains(&number.parse().unwrap()));
        assert!(acknowledged.is_subset(&found(&place)), "{options}");
    }
}

#[test]
fn a_run_goes_on_with_what_is_there() {
    for options in ["--threads 2", "--processes 3 --layout text", "--commit none"] {
        let place = Place::new();
        let run = |records: &str| {
            let words: Vec<&str> = options.split(' ').chain(["--records", records]).collect();
            place.stress(&words).good()
        };
        run("31");
        assert!(found(&place).into_iter().eq(0..31), "{options}");
        let told = set(numbers(&run("80"), "ACK "));
        assert!(options == "--commit none" || told.into_iter().eq(31..80), "{options}");
        assert!(found(&place).into_iter().eq(0..80), "{options}");
        assert_eq!(run("80"), "", "all are there");
        assert!(found(&place).into_iter().eq(0..80), "{options}");
    }
}

#[test]
fn a_trimmed_log_is_resumed() {
    let place = Place::new();
    let words = "--bytes 100 --segment-bytes 4KiB --trim-every 50 --fill pwrite";
    let words: Vec<&str> = words.split(' ').collect();
    let told = ["1000", "1500"].map(|records| {
        let words = [&words[..], &["--records", records]].concat();
        place.stress(&words).good()
    });
    let told = told.concat();
    assert!(set(numbers(&told, "ACK ")).into_iter().eq(0..1500));
    let dropped = set(numbers(&told, "DROP "));
    assert!(dropped.len() > 1000 && found(&place).is_disjoint(&dropped));
}

#[test]
fn a_cursor_stops_the_trims() {
    for layout in ["framed", "text"] {
        let place = Place::new();
        let words = "--records 600 --bytes 100 --segment-bytes 4KiB --trim-every 50 --cursor";
        let words: Vec<&str> = words.split(' ').chain(["--layout", layout]).collect();
        let told = place.stress(&words).good();
        let dropped = set(numbers(&told, "DROP "));
        assert!(dropped.len() > 300);
        let kept: BTreeSet<u64> = (0..600).filter(|number| !dropped.contains(number)).collect();
        assert_eq!(found(&place), kept, "{layout}");
    }
}

#[test]
fn a_log_of_another_run_is_refused() {
    let place = Place::new();
    place.stress(&["--records", "9", "--seed", "5"]).good();
    for options in [["--seed", "6", "--threads", "1"], ["--seed", "5", "--threads", "2"]] {
        let ran = place.stress(&options);
        assert!(ran.complaint(1).contains("it holds records of 1 writer with seed 5"), "{ran:?}");
    }
    let place = Place::new();
    place.append(Layout::Framed, &["not one of them".into()]);
    let ran = place.stress(&[]);
    assert!(ran.complaint(1).starts_with("cannot go on with "), "{ran:?}");
    assert_eq!(place.records().len(), 1, "nothing was added");
}

#[test]
fn nobody_listening_is_no_failure() {
    let place = Place::new();
    let log = place.log().to_str().unwrap().to_string();
    for options in ["--threads 2", "--processes 2", "--check"] {
        let mut command = stress();
        command.args(options.split(' ')).arg(&log).stdout(closed_pipe());
        let output = command.output().unwrap();
        assert_eq!((output.status.code(), output.stderr.len()), (Some(0), 0), "{options}");
        if options == "--threads 2" {
            fs::remove_dir_all(place.log()).unwrap();
        }
    }
}

#[test]
fn a_wrong_command_line_is_a_usage_error() {
    for options in [
        "--check --records 5",
        "--check --layout text",
        "--bytes 9-8",
        "--commit 0",
        "--commit all",
        "--threads 0",
        "--trim-every 0",
    ] {
        let words: Vec<&str> = options.split(' ').chain(["x"]).collect();
        assert_eq!(run(stress().args(words)).code, 2, "{options}");
    }
    let place = Place::new();
    place.append(Layout::Framed, &[]);
    place.stress(&["--layout", "text"]).complaint(2);
}
