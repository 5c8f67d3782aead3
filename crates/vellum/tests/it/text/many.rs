//! Many processes that rotate all the time and are killed: every acknowledged line is there once,
//! whole, and in the order of its writer.

use std::collections::HashMap;
use std::path::Path;

use vellum::{Fill, Log, Options, Tuning};

use super::{assert_orderly, rotating};
use crate::support::child::{self, Child};
use crate::support::{FILLS, Numbers, assert_sound, concatenated, payloads, place, scratch};

const WRITERS: usize = 4;
const ROUNDS: usize = 24;

/// Appends lines that tell writer, number and length, saying which were acknowledged.
pub(crate) fn append_numbered_lines(arguments: &[String]) {
    let log = Options::default().open(&arguments[0]).unwrap();
    let mut numbers = Numbers::new(arguments[1].len() as u64 + u64::from(std::process::id()));
    for number in 0.. {
        let len = 40 + numbers.below(400) as usize;
        let head = format!("{} {number} {len} ", arguments[1]);
        let line = format!("{head:x<len$}\n");
        log.append(line.as_bytes()).unwrap();
        if number % 200 == 199 {
            log.rotate().unwrap();
        }
        if number % 20 == 0 {
            child::say(&number.to_string());
        }
    }
}

/// Lets writers come and go by force; returns the highest number each said.
fn campaign(path: &Path, seed: u64) -> HashMap<String, u64> {
    let mut numbers = Numbers::new(seed);
    let mut acknowledged = HashMap::new();
    let start = |name: &str| Child::start("append numbered lines", &[path.to_str().unwrap(), name]);
    let mut writers: Vec<(String, Child)> = Vec::new();
    for round in 0..ROUNDS {
        while writers.len() < WRITERS {
            let name = format!("w{round}.{}", writers.len());
            writers.push((name.clone(), start(&name)));
        }
        let at = numbers.below(WRITERS as u64) as usize;
        for _ in 0..=numbers.below(12) {
            let (name, writer) = &mut writers[at];
            let heard = writer.hears().unwrap_or_else(|| panic!("{name} died by itself"));
            acknowledged.insert(name.clone(), heard.parse().unwrap());
        }
        let (_, writer) = writers.swap_remove(at);
        writer.kill();
    }
    for (_, writer) in writers {
        writer.kill();
    }
    acknowledged
}

/// Every line is whole, in the order of its writer, and none that was acknowledged is missing.
fn check(log: &Log, acknowledged: &HashMap<String, u64>) {
    let ends = check_order(log, |_| Some(0));
    for (writer, number) in acknowledged {
        assert!(ends.get(writer) > Some(number), "{writer} was told that {number} is there");
    }
}

/// Every line is whole, and each writer's follow one another from the number that `start` has for
/// its first line. Returns the number behind the last of each writer.
fn check_order(log: &Log, start: impl Fn(u64) -> Option<u64>) -> HashMap<String, u64> {
    let mut next: HashMap<String, u64> = HashMap::new();
    for line in payloads(log) {
        let text = String::from_utf8(line).unwrap();
        if text.starts_with('~') || text == "\n" {
            continue;
        }
        let mut words = text.split(' ');
        let mut word = || words.next().unwrap().to_string();
        let (writer, number, len) = (word(), word(), word());
        assert_eq!(text.len(), len.parse::<usize>().unwrap() + 1, "torn: {text}");
        let number = number.parse::<u64>().unwrap();
        let expected = next.entry(writer).or_insert(start(number).unwrap_or(number));
        assert_eq!(number, *expected, "lost, doubled or moved: {text}");
        *expected += 1;
    }
    next
}

#[test]
fn nothing_is_lost_when_processes_that_rotate_are_killed() {
    for (fill, seed) in FILLS.into_iter().zip(1..) {
        let dir = scratch();
        let options =
            rotating(8000).tuning(Tuning::new().fill(fill).segment_capacity_bytes(16 << 10));
        let log = options.open(place(&dir)).unwrap();
        let acknowledged = campaign(&place(&dir), seed);
        // A process that notices pads what the dead left.
        drop(Options::default().open(place(&dir)).unwrap());
        check(&log, &acknowledged);
        assert_sound(&log);
        drop(log);
        assert_orderly(&place(&dir));
        let text = concatenated(&place(&dir));
        let log = Options::default().open(place(&dir)).unwrap();
        assert!(payloads(&log).concat() == text);
        check_again_without_control(log, &place(&dir), &acknowledged, fill);
    }
}

fn check_again_without_control(
    log: Log,
    path: &Path,
    acknowledged: &HashMap<String, u64>,
    fill: Fill,
) {
    let before = payloads(&log);
    drop(log);
    std::fs::remove_file(path.join("control")).unwrap();
    let log = Options::default().open(path).unwrap();
    assert!(payloads(&log) == before, "{fill}: from the files alone");
    check(&log, acknowledged);
}

#[test]
fn what_is_kept_has_no_gap_when_those_who_remove_and_compress_are_killed() {
    let dir = scratch();
    let options =
        rotating(8000).tuning(Tuning::new().segment_capacity_bytes(16 << 10)).retain_files(40);
    let options = if cfg!(feature = "zstd") { options.compress(true) } else { options };
    let log = options.open(place(&dir)).unwrap();
    let acknowledged = campaign(&place(&dir), 7);
    drop(Options::default().open(place(&dir)).unwrap());
    let ends = check_order(&log, |_| None);
    // Files that are kept hold the last lines of the last writers.
    let told = |(writer, end): (&String, &u64)| {
        let number = acknowledged.get(writer).copied().unwrap_or(0);
        assert!(*end > number, "{writer} was told that {number} is there");
    };
    ends.iter().for_each(told);
    assert!(!ends.is_empty());
    assert_sound(&log);
    let before = payloads(&log);
    drop(log);
    std::fs::remove_file(place(&dir).join("control")).unwrap();
    let log = Options::default().open(place(&dir)).unwrap();
    let after = payloads(&log);
    // Opening may remove a file more, if its remover was killed.
    assert!(before.ends_with(&after), "from the files alone");
    log.append(b"x\n").unwrap();
    assert!(log.stat().unwrap().segments.len() <= 41);
}
