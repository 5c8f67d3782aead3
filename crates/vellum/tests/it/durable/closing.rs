//! Clones of a log, and closing it with an answer.

use std::fs;

use vellum::{ErrorKind, Layout, Log, Lsn, Options};
use vellum_testing::kernel::where_it_fails;

use super::{after_power_cut, kinds, staged};
use crate::support::{fork, in_own_process, payloads, place, read_all, scratch, segment_files};

/// A record of a log that is staged, in which nothing is durable.
fn uncommitted(log: &Log) -> Lsn {
    let lsn = log.append(&[b'a'; 900]).unwrap();
    assert!(log.durable() <= lsn);
    lsn
}

#[test]
fn a_clone_is_the_same_log_and_the_last_one_closes_it() {
    for options in kinds() {
        let dir = scratch();
        let log = options.open(place(&dir)).unwrap();
        let clones: Vec<Log> = (0..3).map(|_| log.clone()).collect();
        std::thread::scope(|scope| {
            for clone in clones {
                scope.spawn(move || clone.append(b"by a clone\n").unwrap());
            }
        });
        log.append(b"by the first\n").unwrap();
        assert_eq!(log.stat().unwrap().participants.len(), 1, "all are one participant");
        let is_text = log.layout() == Layout::Text;
        let last = log.clone();
        drop(log);
        let records = payloads(&last);
        assert_eq!(records.len(), 4, "a clone that goes leaves the log to the others");
        drop(last);
        if is_text {
            let file = segment_files(&place(&dir)).pop().unwrap();
            assert_eq!(fs::read(file).unwrap(), records.concat(), "the last one cuts the file");
        }
    }
}

#[test]
fn closing_a_staged_log_makes_all_of_it_durable() {
    let dir = scratch();
    let log = staged().open(place(&dir)).unwrap();
    uncommitted(&log);
    let expected = read_all(&log);
    log.close().unwrap();
    let copy = after_power_cut(&place(&dir));
    assert_eq!(read_all(&Options::default().open(place(&copy)).unwrap()), expected);
}

#[test]
fn a_commit_that_fails_at_closing_is_told() {
    let dir = scratch();
    let log = staged().open(place(&dir)).unwrap();
    let lsn = uncommitted(&log);
    let error = where_it_fails(libc::SYS_pwrite64, libc::EIO, || log.close().unwrap_err());
    assert_eq!(error.raw_os_error(), Some(libc::EIO), "{error}");
    // The process has left the log all the same, and the record is in it.
    let log = Options::default().open(place(&dir)).unwrap();
    assert_eq!(log.read_at(lsn).unwrap().payload.len(), 900);
    log.commit(lsn).unwrap();
    log.close().unwrap();
}

#[test]
fn closing_a_poisoned_log_does_not_look_like_success() {
    let dir = scratch();
    let log = staged().open(place(&dir)).unwrap();
    let lsn = uncommitted(&log);
    let fails = |log: &Log| where_it_fails(libc::SYS_pwrite64, libc::EIO, || log.commit(lsn));
    fails(&log).unwrap_err();
    assert_eq!(log.close().unwrap_err().kind(), ErrorKind::Poisoned);
}

#[test]
fn a_log_that_is_held_open_is_not_closed() {
    let dir = scratch();
    let log = Options::wal().open(place(&dir)).unwrap();
    log.append_durable(b"a record").unwrap();
    type Holder = fn(&Log) -> Box<dyn Send>;
    let holders: [Holder; 4] = [
        |log| Box::new(log.clone()),
        |log| Box::new(log.reader(Lsn::ZERO).unwrap()),
        |log| Box::new(log.committer().unwrap()),
        |log| Box::new(log.cursor("a", Lsn::ZERO).unwrap()),
    ];
    for holder in holders {
        let held = holder(&log);
        let error = log.clone().close().unwrap_err();
        assert_eq!((error.kind(), error.path()), (ErrorKind::Busy, Some(&*place(&dir))));
        drop(held);
    }
    // The one owner is still here, until the last handle goes.
    let reader = log.reader(Lsn::ZERO).unwrap();
    assert_eq!(log.close().unwrap_err().kind(), ErrorKind::Busy);
    assert_eq!(Options::wal().open(place(&dir)).unwrap_err().kind(), ErrorKind::InUse);
    drop(reader);
    Options::wal().open(place(&dir)).unwrap().close().unwrap();
}

#[test]
fn one_of_many_that_close_at_once_closes() {
    for _ in 0..50 {
        let dir = scratch();
        let log = staged().open(place(&dir)).unwrap();
        let closers: Vec<_> = (0..4)
            .map(|_| log.clone())
            .map(|log| std::thread::spawn(move || log.close().is_ok()))
            .collect();
        let first = log.close().is_ok();
        let closed = closers.into_iter().filter_map(|closer| closer.join().ok());
        assert_eq!(closed.filter(|is_closed| *is_closed).count() + usize::from(first), 1);
    }
}

#[test]
fn a_forked_child_closes_its_copy_alone() {
    in_own_process(|| {
        let dir = scratch();
        let mut log = Some(staged().open(place(&dir)).unwrap());
        for appends in [false, true] {
            let child = fork::fork(|| {
                let log = log.take().unwrap();
                if appends {
                    log.append(b"by the child").unwrap();
                }
                i32::from(log.close().is_err())
            });
            assert_eq!(fork::wait_patiently(child), Some(0), "appends: {appends}");
        }
        let log = log.unwrap();
        log.append_durable(b"by the parent").unwrap();
        assert_eq!(payloads(&log), [b"by the child".as_slice(), b"by the parent"]);
        log.close().unwrap();
    });
}
