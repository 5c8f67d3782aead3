//! `examples/wal.rs`: a map whose process is killed at any moment.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::thread;

use vellum::{Lsn, Options, Tuning};

use super::{as_after_power_cut, once_unlocked};
use crate::support::child::{self, Child};
use crate::support::{Numbers, memory_scratch, scratch};

#[path = "../../../examples/wal.rs"]
#[allow(dead_code, reason = "the example has a main function of its own")]
mod wal;

use wal::Map;

const THREADS: u64 = 3;
const ROUNDS: u64 = 40;

/// A log so small that most kills find a checkpoint close by.
fn options() -> Options {
    Options::wal().tuning(Tuning::new().segment_capacity_bytes(16384).checkpoint_after_bytes(8192))
}

fn open(dir: &Path) -> wal::Result<Map> {
    once_unlocked(|| Map::open(dir, &options()), |error| error.is::<rustix::io::Errno>())
}

/// A role: several threads commit transactions, and say each that is durable.
pub(super) fn worker(arguments: &[String]) {
    let map = open(arguments[0].as_ref()).unwrap();
    thread::scope(|scope| {
        for number in 0..THREADS {
            let say = move |count| child::say(&format!("{number} {count}"));
            let map = &map;
            scope.spawn(move || wal::count(map, number, u64::MAX, say).unwrap());
        }
    });
}

/// The keys that one thread's first transactions leave.
fn after(thread: u64, count: u64) -> BTreeMap<String, Option<String>> {
    (1..=count).flat_map(|number| wal::transaction(thread, number)).collect()
}

/// Checks that the map holds each thread's transactions up to one that is not older than the
/// acknowledged one, and returns up to which.
fn check(dir: &Path, acknowledged: &[u64]) -> Vec<u64> {
    let map = open(dir).unwrap();
    let count_of =
        |thread| map.get(&wal::counter(thread)).map_or(0, |count| count.parse().unwrap());
    let counts: Vec<u64> = (0..THREADS).map(count_of).collect();
    for (thread, count) in (0..).zip(&counts) {
        let least = acknowledged[thread as usize];
        assert!((least..=least + 1).contains(count), "{count} is there, {least} were acknowledged");
        for (key, value) in after(thread, *count) {
            assert_eq!(map.get(&key), value, "{key} after {count}");
        }
    }
    counts
}

#[test]
fn a_killed_map_has_what_it_acknowledged_and_nothing_by_halves() {
    let dir = scratch();
    let mut numbers = Numbers::new(14);
    let mut acknowledged = vec![0; THREADS as usize];
    for _ in 0..ROUNDS {
        let mut child = Child::start("map", &[dir.path().to_str().unwrap()]);
        for _ in 0..numbers.next() % 300 {
            note(&mut acknowledged, &child.hears().expect("it goes on until it is killed"));
        }
        for line in child.kill_and_hear() {
            note(&mut acknowledged, &line);
        }
        let copy = memory_scratch();
        as_after_power_cut(dir.path(), copy.path());
        check(copy.path(), &acknowledged);
        acknowledged = check(dir.path(), &acknowledged);
    }
    let log = options().open(dir.path().join("log")).unwrap();
    assert!(acknowledged.iter().sum::<u64>() > ROUNDS * 20, "{acknowledged:?}");
    assert!(
        log.checkpoint().lsn() >= log.begin() && log.begin().get() > 16384 * 4,
        "it was trimmed"
    );
}

fn note(acknowledged: &mut [u64], line: &str) {
    let (thread, count) = line.split_once(' ').unwrap();
    let place = &mut acknowledged[thread.parse::<usize>().unwrap()];
    *place = count.parse::<u64>().unwrap().max(*place);
}

#[test]
fn a_lost_or_damaged_snapshot_is_an_error_and_no_empty_map() {
    let dir = scratch();
    let map = open(dir.path()).unwrap();
    map.commit(&[("key".into(), Some("value".into()))]).unwrap();
    map.checkpoint().unwrap();
    let second = Map::open(dir.path(), &options()).err().expect("it is in use");
    assert!(second.to_string().contains("for itself alone"), "{second}");
    drop(map);
    let snapshot = dir.path().join("snapshot");
    let mut bytes = fs::read(&snapshot).unwrap();
    fs::remove_file(&snapshot).unwrap();
    let missing = open(dir.path()).err().expect("it is missing");
    assert!(missing.to_string().contains("snapshot is missing"), "{missing}");
    *bytes.last_mut().unwrap() ^= 1;
    fs::write(&snapshot, &bytes).unwrap();
    let damaged = open(dir.path()).err().expect("it is damaged");
    assert!(damaged.to_string().contains("damaged"), "{damaged}");
    *bytes.last_mut().unwrap() ^= 1;
    fs::write(&snapshot, &bytes).unwrap();
    assert_eq!(open(dir.path()).unwrap().get("key").as_deref(), Some("value"));
}

#[test]
fn a_repaired_map_lacks_no_change_in_silence() {
    let dir = scratch();
    let map = open(dir.path()).unwrap();
    for key in ["one", "two", "three"] {
        map.commit(&[(key.into(), Some("value".into()))]).unwrap();
    }
    drop(map);
    let log = options().open(dir.path().join("log")).unwrap();
    let second = log.reader(Lsn::ZERO).unwrap().into_iter().nth(1).unwrap().unwrap().lsn;
    let capacity = log.stat().unwrap().segment_capacity_bytes;
    drop(log);
    for is_damaged in [false, true] {
        if is_damaged {
            crate::durable::seals::flip(&dir.path().join("log"), capacity, second);
        }
        let other = scratch();
        vellum::repair(dir.path().join("log"), other.path().join("log")).unwrap();
        match open(other.path()) {
            Ok(map) => assert!(!is_damaged && map.get("two").as_deref() == Some("value")),
            Err(error) => assert!(is_damaged && error.to_string().contains("lost"), "{error}"),
        }
    }
}
