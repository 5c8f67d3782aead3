//! Framed logs that remove their oldest segments by themselves.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::{Duration, Instant};

use vellum::{CursorHold, ErrorKind, Fill, Layout, Log, Lsn, Options, Tuning};

use crate::durable::in_another_boot;
use crate::support::crc::crc32c;
use crate::support::{
    FILLS, assert_sound, payload, payloads, place, read_all, scratch, segment_files, small, until,
};

const KEPT: u64 = 16384;

fn append(log: &Log, count: u64, len: usize) -> Vec<Lsn> {
    (0..count).map(|seed| log.append(&payload(Layout::Framed, seed, len)).unwrap()).collect()
}

fn kept_bytes(log: &Log) -> u64 {
    log.tail().get() - log.begin().get()
}

#[test]
fn so_many_bytes_are_kept_in_whole_segments() {
    for fill in FILLS {
        let dir = scratch();
        let log = small(Layout::Framed)
            .tuning(Tuning::new().fill(fill))
            .retain_bytes(KEPT)
            .open(place(&dir))
            .unwrap();
        let all = append(&log, 1000, 80);
        let kept = kept_bytes(&log);
        assert!((KEPT - 4096..=KEPT + 4096).contains(&kept), "{kept} bytes are kept");
        let found = read_all(&log);
        assert_eq!(found.first().unwrap().0, log.begin(), "the log begins with a record");
        assert!(all.ends_with(&found.iter().map(|(lsn, _)| *lsn).collect::<Vec<_>>()));
        assert_eq!(log.reader(all[0]).unwrap_err().kind(), ErrorKind::Trimmed);
        let stat = log.stat().unwrap();
        assert_eq!(stat.policy.retain_bytes, Some(KEPT));
        assert_eq!(stat.removed.by_bytes.bytes, stat.removed.by_bytes.files * 4096);
        assert!(stat.removed.by_bytes.files > 10);
        assert_sound(&log);
        // It is stored, and the next opener follows it or changes it.
        drop(log);
        in_another_boot(&place(&dir));
        let log = Options::default().open(place(&dir)).unwrap();
        append(&log, 500, 80);
        assert!(kept_bytes(&log) <= KEPT + 4096);
        drop(log);
        let log = Options::default().retain_bytes(4096).open(place(&dir)).unwrap();
        assert!(kept_bytes(&log) <= 2 * 4096, "an opener with another policy tidies");
        drop(log);
        let log = Options::default().retain_bytes(0).open(place(&dir)).unwrap();
        append(&log, 500, 80);
        assert!(kept_bytes(&log) > 10 * 4096);
        assert_sound(&log);
    }
}

#[test]
fn nothing_goes_from_the_checkpoint_on_nor_what_a_cursor_holds() {
    for fill in FILLS {
        let dir = scratch();
        let log = small(Layout::Framed)
            .tuning(Tuning::new().fill(fill))
            .retain_bytes(KEPT)
            .open(place(&dir))
            .unwrap();
        let first = append(&log, 200, 80);
        log.checkpoint().set(first[60]).unwrap();
        append(&log, 500, 80);
        assert!(log.begin() <= first[60]);
        assert!(log.reader(first[60]).is_ok());
        let cursor = log.cursor("x", first[160]).unwrap();
        cursor.hold(CursorHold::new()).unwrap();
        log.checkpoint().set(log.tail()).unwrap();
        append(&log, 500, 80);
        assert!(log.begin() > first[60] && log.begin() <= first[160]);
        cursor.unhold().unwrap();
        append(&log, 200, 80);
        log.checkpoint().set(log.published()).unwrap();
        append(&log, 200, 80);
        assert!(kept_bytes(&log) < 20 * 4096);
        assert_sound(&log);
    }
}

#[test]
fn a_segment_is_kept_for_so_long_after_its_last_record() {
    for fill in [Fill::Mapped, Fill::Pwrite, Fill::Staged] {
        let dir = scratch();
        let options = small(Layout::Framed)
            .tuning(Tuning::new().fill(fill))
            .retain_age(Duration::from_secs(2));
        let log = options.open(place(&dir)).unwrap();
        let started = Instant::now();
        let young = append(&log, 300, 80);
        log.sync().unwrap();
        if started.elapsed() < Duration::from_secs(1) {
            assert_eq!(log.begin(), young[0], "all of them are young");
        }
        until("the first segments are old", || {
            append(&log, 60, 80);
            log.sync().unwrap();
            (log.begin() > young[200]).then_some(())
        });
        assert!(log.stat().unwrap().removed.by_age.files > 2);
        assert_eq!(read_all(&log)[0].0, log.begin());
        assert_sound(&log);
        drop(log);
        in_another_boot(&place(&dir));
        let log = Options::default().open(place(&dir)).unwrap();
        assert_eq!(log.stat().unwrap().policy.retain_age, Some(Duration::from_secs(2)));
        assert_sound(&log);
    }
}

/// Notes a time in the header of a closed segment, as retention does.
fn note_time(segment: &Path, seconds: u64) {
    let file = File::options().read(true).write(true).open(segment).unwrap();
    let mut sealed = [0; 24];
    // The log's secret, and the first position.
    file.read_exact_at(&mut sealed[..16], 16).unwrap();
    sealed[16..].copy_from_slice(&seconds.to_le_bytes());
    let check = crc32c(&sealed);
    file.write_all_at(&seconds.to_le_bytes(), 64).unwrap();
    file.write_all_at(&check.to_le_bytes(), 72).unwrap();
}

#[test]
fn a_time_before_the_clock_was_set_makes_no_segment_old() {
    let dir = scratch();
    let log = small(Layout::Framed).open(place(&dir)).unwrap();
    append(&log, 300, 80);
    drop(log);
    let segments = segment_files(&place(&dir));
    for segment in &segments {
        note_time(segment, 42);
    }
    let keeping = || {
        let log = Options::default().retain_age(Duration::from_secs(30 * 86_400));
        log.open(place(&dir)).unwrap()
    };
    assert_eq!(read_all(&keeping()).len(), 300);
    note_time(&segments[4], 1_751_328_000);
    let log = keeping();
    assert_eq!(log.begin(), read_all(&log)[0].0);
    assert_eq!(segment_files(&place(&dir)).len(), segments.len() - 4);
}

#[test]
fn a_staged_log_removes_what_is_durable_and_uses_the_files_again() {
    let dir = scratch();
    let options = Options::wal()
        .exclusive(false)
        .tuning(Tuning::new().segment_capacity_bytes(65536))
        .retain_bytes(3 * 65536);
    let log = options.tuning(Tuning::new().fill(Fill::Staged)).open(place(&dir)).unwrap();
    for _ in 0..60 {
        let last = *append(&log, 80, 200).last().unwrap();
        log.commit(last).unwrap();
    }
    assert!(kept_bytes(&log) <= 6 * 65536, "{} bytes are kept", kept_bytes(&log));
    let files = segment_files(&place(&dir)).len();
    assert!(files <= 8, "{files} files");
    assert_sound(&log);
    let end = log.durable();
    drop(log);
    in_another_boot(&place(&dir));
    let log = Options::default().open(place(&dir)).unwrap();
    assert!(log.published() >= end);
    assert_sound(&log);
}

#[test]
fn a_record_that_is_longer_than_a_segment_goes_as_a_whole() {
    let dir = scratch();
    let log = small(Layout::Framed).retain_bytes(KEPT).open(place(&dir)).unwrap();
    for round in 0..40 {
        append(&log, 1, 3000 * (round % 7 + 1));
        let found = read_all(&log);
        assert_eq!(found[0].0, log.begin());
        assert_sound(&log);
    }
    assert!(payloads(&log).len() < 20);
}

#[test]
fn other_rules_are_for_text_logs() {
    let dir = scratch();
    let refused = [
        Options::default().retain_files(1),
        Options::default().rotate_bytes(1000),
        Options::default().retain_bytes(1).compress(false),
    ];
    for options in refused {
        let error = options.open(place(&dir)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidOption);
        assert!(!error.to_string().contains("retain_bytes"), "{error}");
    }
    small(Layout::Framed).retain_bytes(KEPT).open(place(&dir)).unwrap();
    let reader = Options::default().read_only(true).retain_bytes(KEPT).open(place(&dir)).unwrap();
    assert_eq!(reader.stat().unwrap().policy.retain_bytes, Some(KEPT));
    let reader = Options::default().read_only(true).retain_bytes(1).open(place(&dir)).unwrap();
    assert_eq!(reader.stat().unwrap().policy.retain_bytes, Some(KEPT), "a reader changes nothing");
}
