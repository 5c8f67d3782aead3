//! The records that a cursor keeps, and how its reader learns of removed ones.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use vellum::{CursorHold, ErrorKind, Layout, Lsn, Options};

use super::{append, only, rest};
use crate::support::{LAYOUTS, Over, assert_sound, place, scratch, segment_files, small, until};

#[test]
fn trim_stops_before_a_cursor_that_holds() {
    for layout in LAYOUTS {
        let dir = scratch();
        let log = small(layout).open(place(&dir)).unwrap();
        let all = append(&log, 300, 0);
        let free = log.cursor("free", all[10].0).unwrap();
        let cursor = log.cursor("holds", all[100].0).unwrap();
        cursor.hold(CursorHold::new()).unwrap();
        let report = log.trim(all[50].0).unwrap();
        assert_eq!((report.begin, report.held_at), (all[50].0, None));
        let report = log.trim(all[200].0).unwrap();
        assert_eq!((report.begin, report.held_at), (all[100].0, Some(all[100].0)));
        assert_eq!(rest(&cursor).len(), 200);
        assert_eq!(free.reader().unwrap_err().kind(), ErrorKind::Trimmed);
        cursor.commit(all[150].0).unwrap();
        assert_eq!(log.trim(all[200].0).unwrap().begin, all[150].0);
        // It has no owner, and still holds in the next process.
        drop((cursor, free, log));
        let log = Options::default().open(place(&dir)).unwrap();
        assert_eq!(log.trim(all[200].0).unwrap().held_at, Some(all[150].0));
        log.cursor("holds", Lsn::ZERO).unwrap().unhold().unwrap();
        let report = log.trim(all[200].0).unwrap();
        assert_eq!((report.begin, report.held_at), (all[200].0, None));
        assert_sound(&log);
    }
}

#[test]
fn a_removed_cursor_holds_nothing() {
    let dir = scratch();
    let log = small(Layout::Framed).open(place(&dir)).unwrap();
    let all = append(&log, 100, 0);
    let cursor = log.cursor("x", Lsn::ZERO).unwrap();
    cursor.hold(CursorHold::new()).unwrap();
    assert_eq!(log.trim(all[50].0).unwrap().begin, all[0].0);
    cursor.remove().unwrap();
    assert_eq!(log.trim(all[50].0).unwrap().begin, all[50].0);
}

#[test]
fn no_hold_where_records_were_removed_already() {
    for layout in LAYOUTS {
        let dir = scratch();
        let log = small(layout).open(place(&dir)).unwrap();
        let all = append(&log, 100, 0);
        let cursor = log.cursor("x", Lsn::ZERO).unwrap();
        log.trim(all[50].0).unwrap();
        assert_eq!(cursor.hold(CursorHold::new()).unwrap_err().kind(), ErrorKind::Trimmed);
        assert_eq!(cursor.set(all[49].0).unwrap_err().kind(), ErrorKind::Trimmed);
        let made = log.cursor("y", all[49].0);
        assert_eq!(made.unwrap_err().kind(), ErrorKind::Trimmed);
        cursor.set(all[50].0).unwrap();
        cursor.hold(CursorHold::new()).unwrap();
        assert_eq!(log.trim(all[60].0).unwrap().begin, all[50].0);
    }
}

#[test]
fn beyond_its_limit_a_cursor_is_overrun_and_its_reader_is_told() {
    for layout in LAYOUTS {
        let dir = scratch();
        let log = small(layout).open(place(&dir)).unwrap();
        let all = append(&log, 300, 0);
        let cursor = log.cursor("x", Lsn::ZERO).unwrap();
        cursor.hold(CursorHold::new().max_bytes(10_000)).unwrap();
        assert_eq!(only(&log).hold, Some(CursorHold::new().max_bytes(10_000)));
        let report = log.trim(log.published()).unwrap();
        let kept = log.published().get() - report.begin.get();
        assert!((10_000 - 2 * 4096..=10_000).contains(&kept), "{kept} bytes are kept");
        assert_eq!(report.held_at, Some(report.begin));
        let missing = report.begin.get() - all[0].0.get();
        let stat = only(&log);
        assert_eq!((stat.missing_bytes, stat.overruns), (missing, 0));
        let error = cursor.reader().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Trimmed);
        // A reader that was further learns of less.
        cursor.commit(all[10].0).unwrap();
        let gap = cursor.skip_overrun().unwrap().expect("a gap");
        assert_eq!((gap.from, gap.to), (all[10].0, report.begin));
        assert_eq!(gap.bytes_max, report.begin.get() - all[10].0.get());
        assert!(gap.reason.contains("cursor x"), "{gap}");
        assert_eq!(cursor.skip_overrun().unwrap(), None);
        let stat = only(&log);
        assert_eq!((stat.missing_bytes, stat.overruns), (0, 1));
        assert_eq!(stat.overrun_bytes, gap.bytes_max);
        assert!(stat.overrun_at.is_some());
        assert_eq!(rest(&cursor)[0], report.begin);
    }
}

#[test]
fn retention_and_compression_stop_before_a_cursor_that_holds() {
    let dir = scratch();
    let options = Options::mapped_text().rotate_bytes(1000).retain_files(1);
    #[cfg(feature = "zstd")]
    let options = options.compress(true);
    let log = options.open(place(&dir)).unwrap();
    let all = append(&log, 5, 0);
    let cursor = log.cursor("x", all[2].0).unwrap();
    cursor.hold(CursorHold::new()).unwrap();
    append(&log, 200, 10);
    assert_eq!(log.begin(), all[0].0, "the file of the cursor is there");
    assert_eq!(rest(&cursor).len(), 203);
    let files = segment_files(&place(&dir));
    assert!(files.len() > 10, "{files:?}");
    cursor.unhold().unwrap();
    append(&log, 20, 500);
    assert!(segment_files(&place(&dir)).len() <= 2);
    assert_eq!(cursor.reader().unwrap_err().kind(), ErrorKind::Trimmed);
    // A limit in bytes counts files.
    cursor.skip_overrun().unwrap().expect("a gap");
    cursor.hold(CursorHold::new().max_bytes(5000)).unwrap();
    append(&log, 200, 1000);
    let kept = only(&log).lag_bytes;
    assert!((3000..=6000).contains(&kept), "{kept} bytes are kept");
    assert_sound(&log);
}

#[test]
fn a_cursor_holds_nothing_that_is_too_old() {
    let framed = small(Layout::Framed).retain_bytes(1);
    for options in [
        Options::mapped_text().rotate_bytes(200).retain_files(0),
        framed.clone().envelope(true),
        // The segments of this one note the time themselves.
        framed.retain_age(Duration::from_secs(86_400)),
    ] {
        let dir = scratch();
        let log = options.open(place(&dir)).unwrap();
        let cursor = log.cursor("x", Lsn::ZERO).unwrap();
        cursor.hold(CursorHold::new().max_age(Duration::from_secs(2))).unwrap();
        let many = if log.layout() == Layout::Text { 20 } else { 400 };
        append(&log, many, 0);
        assert!(segment_files(&place(&dir)).len() > 5, "all of them are young");
        assert_eq!(log.begin(), cursor.position().unwrap());
        let mut seed = 1000;
        until("the first file is old", || {
            append(&log, many / 5, seed);
            seed += 100;
            (log.begin() > cursor.position().unwrap()).then_some(())
        });
        assert!(cursor.skip_overrun().unwrap().is_some());
    }
}

#[test]
fn a_limit_of_age_needs_a_log_that_knows_ages() {
    let dir = scratch();
    let log = small(Layout::Framed).open(place(&dir)).unwrap();
    let cursor = log.cursor("x", Lsn::ZERO).unwrap();
    let error = cursor.hold(CursorHold::new().max_age(Duration::from_secs(9))).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported);
    assert!(error.to_string().contains("envelopes"), "{error}");
}

#[test]
fn envelopes_tell_how_old_the_oldest_record_behind_a_cursor_is() {
    let dir = scratch();
    let log = small(Layout::Framed).envelope(true).open(place(&dir)).unwrap();
    let lsns: Vec<Lsn> = append(&log, 3, 0).iter().map(|read| read.0).collect();
    let cursor = log.cursor("x", lsns[1]).unwrap();
    assert!(only(&log).lag_time.unwrap() < Duration::from_secs(60));
    cursor.commit(log.published()).unwrap();
    assert_eq!(only(&log).lag_time, Some(Duration::ZERO));
}

/// A thread trims all it can while another one sets a cursor back and has it hold.
#[test]
fn no_record_is_removed_in_front_of_a_cursor_that_is_set_at_that_moment() {
    for layout in LAYOUTS {
        let dir = scratch();
        let log = small(layout).open(place(&dir)).unwrap();
        let cursor = log.cursor("x", Lsn::ZERO).unwrap();
        let is_over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !is_over.load(Ordering::Relaxed) {
                    log.trim(log.published()).unwrap();
                }
            });
            let _over = Over(&is_over);
            for round in 0..150 {
                append(&log, 3, round);
                // The trimmer may be first.
                let set = cursor.set(Lsn::ZERO).and_then(|()| cursor.hold(CursorHold::new()));
                if let Err(error) = &set {
                    assert_eq!(error.kind(), ErrorKind::Trimmed);
                    continue;
                }
                let position = cursor.position().unwrap();
                append(&log, 20, round);
                let begin = log.begin();
                assert!(
                    begin <= position,
                    "the log begins at {begin}, the cursor is at {position}"
                );
                cursor.unhold().unwrap();
            }
        });
    }
}
