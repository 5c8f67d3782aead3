//! The file of the next segment, which is made bit by bit while the one before it fills.

use std::fs;
use std::path::{Path, PathBuf};

use vellum::{ErrorKind, Fill, Log, Options, Tuning};

use crate::support::mount::Mount;
use crate::support::{assert_sound, read_all};

const CAPACITY: u64 = 8 << 20;
/// The space that is made ready ahead of the tail.
const WINDOW: u64 = 1 << 20;
const RECORD: [u8; 4000] = [7; 4000];

fn open(mount: &Mount) -> Log {
    let options = Options::wal()
        .exclusive(false)
        .tuning(Tuning::new().fill(Fill::Staged).segment_capacity_bytes(CAPACITY));
    options.open(mount.path().join("log")).unwrap()
}

fn begun(mount: &Mount) -> PathBuf {
    mount.path().join("log/segment.new")
}

fn len(path: &Path) -> u64 {
    fs::metadata(path).map_or(0, |found| found.len())
}

/// Appends until so much of the segment that is written is used or ready; returns how many records.
fn fill_to(log: &Log, part: u64) -> usize {
    let end = log.tail().get() / CAPACITY * CAPACITY + part - WINDOW;
    let mut count = 0;
    while log.tail().get() < end {
        let lsn = log.append(&RECORD).unwrap();
        count += 1;
        if count % 100 == 0 {
            // The stage has no room for all of it.
            log.commit(lsn).unwrap();
        }
    }
    count
}

#[test]
fn the_next_segment_is_made_bit_by_bit_and_what_is_begun_goes_with_the_last_process() {
    let Some(mount) = Mount::ext4("the_next_segment_is_made_bit_by_bit", 100) else { return };
    let log = open(&mount);
    let mut count = fill_to(&log, CAPACITY / 4);
    assert!(count > 0 && !begun(&mount).exists(), "a log that is hardly used takes no more");
    let mut lens = Vec::new();
    for eighths in 3..=7 {
        count += fill_to(&log, eighths * CAPACITY / 8);
        lens.push(len(&begun(&mount)));
    }
    assert!(lens.is_sorted() && 0 < lens[0] && lens[0] < lens[2], "{lens:?}");
    assert_eq!(lens[4], CAPACITY + 4096, "it is whole before it is needed: {lens:?}");
    count += fill_to(&log, 2 * CAPACITY + CAPACITY * 3 / 4);
    log.sync().unwrap();
    assert!(begun(&mount).exists());
    drop(log);
    assert!(!begun(&mount).exists());
    let log = open(&mount);
    assert_eq!(read_all(&log).len(), count);
    assert_sound(&log);
}

#[test]
fn what_the_dead_have_begun_is_gone_on_with_or_replaced() {
    let Some(mount) = Mount::ext4("what_the_dead_have_begun", 100) else { return };
    for (left, is_like_ours) in
        [(123 << 12, true), (777, true), (CAPACITY + 8192, true), (9, false)]
    {
        let log = open(&mount);
        fs::write(begun(&mount), vec![0x5a; left as usize]).unwrap();
        if is_like_ours {
            let ours = fs::metadata(mount.path().join("log/control")).unwrap().permissions();
            fs::set_permissions(begun(&mount), ours).unwrap();
        }
        let count = fill_to(&log, 3 * CAPACITY);
        log.sync().unwrap();
        drop(log);
        let log = open(&mount);
        assert_eq!(read_all(&log).len(), count);
        assert_sound(&log);
        drop(log);
        fs::remove_dir_all(mount.path().join("log")).unwrap();
    }
}

#[test]
fn where_the_next_segment_has_no_room_nothing_is_begun_and_this_one_is_used_up() {
    let Some(mount) = Mount::ext4("the_next_segment_has_no_room", 100) else { return };
    let log = open(&mount);
    let ballast = mount.path().join("ballast");
    let free = rustix::fs::statfs(mount.path()).unwrap();
    let free = free.f_bavail * free.f_bsize as u64;
    let mut count = fill_to(&log, CAPACITY / 2);
    assert!(begun(&mount).exists());
    // The stage takes half of that.
    fs::write(&ballast, vec![1; (free - 2 * CAPACITY) as usize]).unwrap();
    count += fill_to(&log, CAPACITY);
    assert!(!begun(&mount).exists(), "what was begun is given back");
    let error = loop {
        match log.append(&RECORD) {
            Ok(_) => count += 1,
            Err(error) => break error,
        }
    };
    assert_eq!(error.kind(), ErrorKind::NoSpace, "{error}");
    assert!(count as u64 > CAPACITY / 4200, "{count}");
    fs::remove_file(ballast).unwrap();
    log.append(&RECORD).unwrap();
    log.sync().unwrap();
    assert_eq!(read_all(&log).len(), count + 1);
    assert_sound(&log);
}
