//! The numbers that a monitor collects.

use std::io::Write;
use std::thread;

use vellum::{Layout, Log, Options, Tuning};

use crate::support::child::Child;
use crate::support::{LAYOUTS, place, scratch};

/// Appends that each thread makes.
const ROUNDS: u64 = 100;

/// One record alone, one in place, three together; and one that comes to nothing.
fn append_five(log: &Log) {
    log.append(b"alone\n").unwrap();
    let mut reservation = log.reserve(6).unwrap();
    reservation.write_all(b"place\n").unwrap();
    reservation.publish().unwrap();
    drop(log.reserve(6).unwrap());
    let mut batch = log.batch();
    for record in [b"one\n", b"two\n", b"six\n"] {
        batch.push(record).unwrap();
    }
    batch.append().unwrap();
}

/// Does the same as a process of its own.
pub(crate) fn append_records(arguments: &[String]) {
    append_five(&Options::default().open(&arguments[0]).unwrap());
}

#[test]
fn every_record_is_counted_once_whichever_process_and_thread_appends_it() {
    for layout in LAYOUTS {
        let dir = scratch();
        let options =
            vellum::internal::options(layout).tuning(Tuning::new().segment_capacity_bytes(4096));
        let log = options.open(place(&dir)).unwrap();
        let work = || (0..ROUNDS).for_each(|_| append_five(&log));
        thread::scope(|scope| (0..3).for_each(|_| drop(scope.spawn(work))));
        Child::start("append records", &[place(&dir).to_str().unwrap()]).finish_well();
        let metrics = log.metrics();
        let records = 5 * (3 * ROUNDS + 1);
        assert_eq!(metrics.records, records, "{layout}");
        assert_eq!(metrics.records, log.stat().unwrap().records);
        if layout == Layout::Text {
            assert_eq!(metrics.record_bytes, records / 5 * 24);
        } else {
            // Alone, in place, and a frame around three.
            assert_eq!(metrics.record_bytes, records / 5 * (16 + 16 + 8 + 3 * 16));
        }
        let files = log.stat().unwrap().segments.len() as u64;
        assert_eq!(metrics.segments_made, files, "{layout}: nothing was removed");
        drop(log);
        let again = Options::default().open(place(&dir)).unwrap();
        assert_eq!(again.metrics().records, records, "{layout}: kept until a reboot");
    }
}

#[test]
fn what_waits_in_the_stage_is_counted_until_it_is_committed() {
    let dir = scratch();
    let log = Options::wal().exclusive(false).open(place(&dir)).unwrap();
    let lsn = log.append(&[7; 1000]).unwrap();
    assert!(log.metrics().staged_bytes >= 1000);
    log.commit(lsn).unwrap();
    let metrics = log.metrics();
    assert!(metrics.staged_bytes == 0, "{metrics:?}");
    assert_eq!(metrics.commits.syncs, metrics.commits.sync_micros.iter().sum::<u64>());
    assert!(metrics.commits.sync_micros_sum > 0);
}
