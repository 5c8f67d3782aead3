//! Dropping the oldest part, and continuing afterwards.

use std::sync::atomic::{AtomicUsize, Ordering};

use vellum::{ErrorKind, Layout, Log, Lsn, Preallocate, Tuning};

use crate::support::{
    FILLS, LAYOUTS, Read, assert_holds, assert_sound, payload, place, read_all, scratch,
    segment_files, small,
};

fn append_many(log: &Log, count: u64, seed: u64) -> Vec<Read> {
    let append = |index| {
        let bytes = payload(log.layout(), seed + index, 60 + (index % 50) as usize);
        (log.append(&bytes).unwrap(), bytes)
    };
    (0..count).map(append).collect()
}

#[test]
fn trim_moves_the_beginning_and_removes_whole_segments() {
    for layout in LAYOUTS {
        let dir = scratch();
        let log = small(layout).open(place(&dir)).unwrap();
        let all = append_many(&log, 300, 0);
        let files = segment_files(&place(&dir)).len();
        let report = log.trim(all[150].0).unwrap();
        assert_eq!((report.begin, log.begin()), (all[150].0, all[150].0));
        assert!(report.segments_removed > 0);
        let left = segment_files(&place(&dir)).len();
        assert_eq!(files - left, report.segments_removed as usize);
        assert_holds(&log, &all[150..]);
        let stat = log.stat().unwrap();
        assert!(stat.segments.iter().all(|s| s.end_lsn >= s.first_lsn));
        assert!(stat.segments[0].first_lsn.get() + 4096 > all[150].0.get(), "no more is kept");
    }
}

#[test]
fn a_position_before_the_beginning_changes_nothing() {
    for layout in LAYOUTS {
        let dir = scratch();
        let log = small(layout).open(place(&dir)).unwrap();
        let all = append_many(&log, 100, 0);
        log.trim(all[50].0).unwrap();
        for before in [Lsn::ZERO, Lsn::new(1), all[0].0, all[49].0, all[50].0] {
            let report = log.trim(before).unwrap();
            assert_eq!((report.begin, report.segments_removed), (all[50].0, 0));
        }
        assert_holds(&log, &all[50..]);
    }
}

#[test]
fn what_is_not_published_cannot_be_trimmed() {
    for layout in LAYOUTS {
        let dir = scratch();
        let log = small(layout).open(place(&dir)).unwrap();
        let all = append_many(&log, 50, 0);
        for beyond in [log.published().get() + 1, Lsn::MAX.get(), u64::MAX] {
            let error = log.trim(Lsn::new(beyond)).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::OutOfRange);
        }
        let reservation = log.reserve(10).unwrap();
        let held = reservation.lsn();
        let behind = log.append(b"behind\n").unwrap();
        assert_eq!(log.trim(behind).unwrap_err().kind(), ErrorKind::OutOfRange);
        log.trim(held).unwrap();
        assert!(read_all(&log).is_empty());
        drop(reservation);
        assert!(read_all(&log).iter().any(|read| read.0 == behind));
        assert!(all.iter().all(|read| read.0 < log.begin()));
    }
}

#[test]
fn a_position_inside_of_a_record_never_leaves_a_log_that_cannot_be_read() {
    for inside in [1, 4, 8, 40] {
        let dir = scratch();
        let log = small(Layout::Framed).open(place(&dir)).unwrap();
        let all = append_many(&log, 100, 0);
        let position = Lsn::new(all[50].0.get() + inside);
        match log.trim(position) {
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::OutOfRange);
                assert_holds(&log, &all);
            }
            // Rounding to a record is as good.
            Ok(report) => {
                let kept: Vec<_> = all.iter().filter(|read| read.0 >= report.begin).collect();
                assert!(kept.len() == 50 || kept.len() == 49, "{} records are kept", kept.len());
                assert!(read_all(&log).iter().eq(kept), "{inside} bytes into a record");
            }
        }
    }
}

#[test]
fn a_reader_of_a_trimmed_position_is_told() {
    for layout in LAYOUTS {
        let dir = scratch();
        let log = small(layout).open(place(&dir)).unwrap();
        let all = append_many(&log, 300, 0);
        // One has not read yet, one has read ahead and is in the removed part.
        let mut fresh = log.reader(Lsn::ZERO).unwrap();
        let mut slow = log.reader(Lsn::ZERO).unwrap();
        slow.next().unwrap();
        log.trim(all[250].0).unwrap();
        let error = log.reader(all[100].0).unwrap_err();
        assert_eq!((error.kind(), error.lsn()), (ErrorKind::Trimmed, Some(all[100].0)));
        assert_eq!(fresh.next().unwrap_err().kind(), ErrorKind::Trimmed);
        // Records that were read ahead may still be shown, but nothing wrong, and never a gap
        // unmentioned.
        for read in &all[1..] {
            match slow.next() {
                Ok(record) => assert_eq!(record.unwrap().lsn, read.0),
                Err(error) => {
                    assert_eq!(error.kind(), ErrorKind::Trimmed);
                    break;
                }
            }
        }
    }
}

#[test]
fn positions_never_repeat_when_everything_is_trimmed_and_the_log_reopened() {
    for layout in LAYOUTS {
        for fill in FILLS {
            let dir = scratch();
            let options = small(layout).tuning(Tuning::new().fill(fill));
            let mut highest = Lsn::ZERO;
            for life in 0..8 {
                let log = options.open(place(&dir)).unwrap();
                assert!(log.begin() >= highest || life == 0);
                assert_holds(&log, &[]);
                let all = append_many(&log, 30 + life, life * 100);
                assert!(all[0].0 >= highest, "life {life}");
                assert_holds(&log, &all);
                highest = log.published();
                log.trim(highest).unwrap();
                assert_eq!((log.begin(), log.tail()), (highest, highest));
                assert_holds(&log, &[]);
            }
            assert!(segment_files(&place(&dir)).len() <= 2, "what is trimmed is gone");
        }
    }
}

#[test]
fn a_trimmed_log_begins_where_it_did_when_its_control_file_is_lost() {
    for fill in FILLS {
        // The last sizes end with the segment, where the beginning has no header to be noted in.
        for last in [100, 2000, 4088] {
            let dir = scratch();
            let options = small(Layout::Framed).tuning(Tuning::new().fill(fill));
            let log = options.open(place(&dir)).unwrap();
            append_many(&log, 50, 0);
            log.append(&vec![1; last]).unwrap();
            log.trim(log.published()).unwrap();
            let begin = log.begin();
            drop(log);
            std::fs::remove_file(place(&dir).join("control")).unwrap();
            let log = options.open(place(&dir)).unwrap();
            assert_eq!(log.begin(), begin, "{fill} {last}");
            assert_holds(&log, &[]);
            let after = append_many(&log, 3, 7);
            assert!(after[0].0 >= begin);
            assert_holds(&log, &after);
        }
    }
}

#[test]
fn trimming_beside_writers_readers_and_verifiers_harms_none_of_them() {
    for layout in LAYOUTS {
        let preallocates = [Preallocate::Auto, Preallocate::Recycle];
        for preallocate in preallocates.into_iter().take(1 + usize::from(layout == Layout::Framed))
        {
            let dir = scratch();
            let log = small(layout)
                .tuning(Tuning::new().preallocate(preallocate))
                .open(place(&dir))
                .unwrap();
            trim_beside_others(&log);
        }
    }
}

fn trim_beside_others(log: &Log) {
    let line = payload(log.layout(), 1, 99);
    let writing = AtomicUsize::new(2);
    let append = || {
        for _ in 0..4000 {
            log.append(&line).unwrap();
        }
        writing.fetch_sub(1, Ordering::Release);
    };
    let while_writing = |act: &dyn Fn()| {
        while writing.load(Ordering::Acquire) > 0 {
            act();
        }
    };
    std::thread::scope(|scope| {
        scope.spawn(append);
        scope.spawn(append);
        scope.spawn(|| while_writing(&|| read_until_trimmed(log)));
        scope.spawn(|| while_writing(&|| assert!(log.trim(log.published()).is_ok())));
        while_writing(&|| assert_sound(log));
    });
}

/// Reads from the beginning until that is trimmed away or the end is reached.
fn read_until_trimmed(log: &Log) {
    let mut reader = match log.reader(Lsn::ZERO) {
        Ok(reader) => reader,
        Err(error) => return assert_eq!(error.kind(), ErrorKind::Trimmed, "{error}"),
    };
    loop {
        match reader.next() {
            Ok(Some(record)) => assert_eq!(record.payload.len(), 99),
            Ok(None) => return,
            Err(error) => return assert_eq!(error.kind(), ErrorKind::Trimmed, "{error}"),
        }
    }
}
