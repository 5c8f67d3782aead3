//! The policy belongs to the log: it is stored with it, and every process follows it.

use std::fs;
use std::time::Duration;

use vellum::{ErrorKind, Layout, Log, Options, Tuning};

use super::{append_lines, assert_orderly, lens, line, rotating};
use crate::support::child::{self, Child};
use crate::support::{place, scratch, segment_files, small};

#[test]
fn a_policy_is_stored_and_what_is_left_alone_stays() {
    let dir = scratch();
    let day = Duration::from_secs(86_400);
    let options = rotating(5000).rotate_every(day).retain_files(7).retain_bytes(1 << 20);
    let policy = options.open(place(&dir)).unwrap().stat().unwrap().policy;
    assert_eq!((policy.rotate_bytes, policy.rotate_every), (Some(5000), Some(day)));
    for loses_control in [false, true] {
        if loses_control {
            // The log has no file yet: the geometry alone tells that there is one.
            let log = Options::default().open(place(&dir)).unwrap();
            log.append(&line(1, 50)).unwrap();
            drop(log);
            fs::remove_file(place(&dir).join("control")).unwrap();
        }
        let log = Options::default().open(place(&dir)).unwrap();
        assert_eq!(log.stat().unwrap().policy, policy);
        let reader = Options::default().read_only(true).open(place(&dir)).unwrap();
        assert_eq!(reader.stat().unwrap().policy, policy);
    }
    let options = Options::default().rotate_every(Duration::ZERO).retain_files(u64::MAX);
    let changed = options.open(place(&dir)).unwrap().stat().unwrap().policy;
    assert_eq!((changed.rotate_every, changed.retain_files), (None, None));
    assert_eq!((changed.rotate_bytes, changed.retain_bytes), (Some(5000), Some(1 << 20)));
    assert_eq!(Options::default().open(place(&dir)).unwrap().stat().unwrap().policy, changed);
}

#[test]
fn the_capacity_leaves_room_for_another_policy() {
    for (bytes, capacity) in
        [(1, 16 << 20), (10_000_000, 160_002_048), (1 << 30, 1 << 30), (u64::MAX, 1 << 30)]
    {
        let dir = scratch();
        let log = rotating(bytes).open(place(&dir)).unwrap();
        assert_eq!(log.stat().unwrap().segment_capacity_bytes, capacity, "{bytes}");
    }
    let dir = scratch();
    let log = rotating(1 << 20)
        .tuning(Tuning::new().segment_capacity_bytes(8192))
        .open(place(&dir))
        .unwrap();
    append_lines(&log, 0..10, 4096);
    drop(log);
    assert_eq!(lens(&place(&dir)), [8192; 5], "a file is never longer than a segment");
}

/// Appends one line for each that it hears.
pub(crate) fn follow_the_policy_of_another(arguments: &[String]) {
    let log = Options::default().open(&arguments[0]).unwrap();
    child::say("open");
    while let Some(number) = child::hear() {
        log.append(&line(number.parse().unwrap(), 100)).unwrap();
        child::say("appended");
    }
}

#[test]
fn who_changes_the_policy_changes_it_for_those_who_have_the_log_open() {
    let dir = scratch();
    let path = place(&dir);
    let first = rotating(100_000).open(&path).unwrap();
    let mut child = Child::start("follow the policy of another", &[path.to_str().unwrap()]);
    child.expect("open");
    let mut append = |number: usize| {
        first.append(&line(number, 100)).unwrap();
        child.tell(&number.to_string());
        child.expect("appended");
    };
    append(0);
    let second = Options::default().rotate_bytes(200).open(&path).unwrap();
    (1..4).for_each(&mut append);
    assert_eq!(lens(&path)[..3], [200, 200, 200]);
    let third = Options::default().rotate_bytes(0).open(&path).unwrap();
    (4..8).for_each(&mut append);
    assert_orderly(&path);
    child.finish_well();
    drop((first, second, third));
    assert_eq!(lens(&path), [200, 200, 200, 1000]);
}

#[test]
fn a_policy_is_refused_where_it_means_nothing() {
    let refused = |options: Options, log: &std::path::Path| {
        let error: vellum::Error = options.open(log).map(|_: Log| ()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidOption, "{error}");
        error.to_string()
    };
    let dir = scratch();
    assert!(refused(Options::default().rotate_bytes(5), &place(&dir)).contains("framed"));
    drop(small(Layout::Framed).open(place(&dir)).unwrap());
    assert!(refused(Options::default().retain_files(5), &place(&dir)).contains("framed"));
    let dir = scratch();
    drop(rotating(1000).open(place(&dir)).unwrap());
    refused(Options::default().rotate_every(Duration::from_millis(10)), &place(&dir));
    for bytes in [5, 1000] {
        let reading = Options::default().read_only(true).rotate_bytes(bytes);
        let stat = reading.open(place(&dir)).unwrap().stat().unwrap();
        assert_eq!(stat.policy.rotate_bytes, Some(1000), "a reader changes nothing");
    }
    if !cfg!(feature = "zstd") {
        assert!(refused(Options::default().compress(true), &place(&dir)).contains("zstd"));
    }
    assert!(segment_files(&place(&dir)).is_empty());
}

#[test]
fn a_damaged_policy_is_none_and_removes_nothing() {
    let dir = scratch();
    let log = rotating(1000).open(place(&dir)).unwrap();
    log.append(&line(1, 50)).unwrap();
    drop(log);
    let geometry = place(&dir).join("geometry");
    let mut bytes = fs::read(&geometry).unwrap();
    bytes[100] ^= 1;
    fs::write(&geometry, bytes).unwrap();
    fs::remove_file(place(&dir).join("control")).unwrap();
    let log = Options::default().open(place(&dir)).unwrap();
    assert_eq!(log.stat().unwrap().policy, vellum::stat::Policy::default());
}
