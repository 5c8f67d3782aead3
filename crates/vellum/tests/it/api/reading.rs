//! Readers: where they start, how they continue, and how they wait.

use std::time::Duration;

use vellum::{ErrorKind, Layout, Lsn, Options};

use crate::support::child::{self, Child};
use crate::support::{LAYOUTS, PATIENCE, payloads, place, scratch, small};

#[test]
fn next_is_none_at_the_end_and_goes_on_when_there_is_more() {
    for layout in LAYOUTS {
        let dir = scratch();
        let log = small(layout).open(place(&dir)).unwrap();
        let mut reader = log.reader(Lsn::ZERO).unwrap();
        for index in 0..500 {
            assert_eq!(reader.next().unwrap(), None);
            assert_eq!(reader.next().unwrap(), None);
            let line = format!("record {index}\n");
            let lsn = log.append(line.as_bytes()).unwrap();
            let record = reader.next().unwrap().unwrap();
            assert_eq!((record.lsn, record.payload), (lsn, line.as_bytes()));
            assert!(reader.position() > lsn);
        }
    }
}

#[test]
fn a_reader_that_starts_at_the_end_sees_only_what_comes_later() {
    for layout in LAYOUTS {
        let dir = scratch();
        let log = small(layout).open(place(&dir)).unwrap();
        log.append(b"old\n").unwrap();
        let mut reader = log.reader(log.published()).unwrap();
        assert_eq!(reader.next().unwrap(), None);
        log.append(b"new\n").unwrap();
        assert_eq!(reader.next().unwrap().unwrap().payload, b"new\n");
    }
}

#[test]
fn a_position_beyond_the_end_is_out_of_range() {
    for layout in LAYOUTS {
        let dir = scratch();
        let log = small(layout).open(place(&dir)).unwrap();
        log.append(b"record\n").unwrap();
        for beyond in [log.tail().get() + 1, Lsn::MAX.get(), u64::MAX] {
            let error = log.reader(Lsn::new(beyond)).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::OutOfRange);
            assert!(error.to_string().contains(&beyond.to_string()), "{error}");
        }
    }
}

#[test]
fn a_reader_started_where_no_record_starts_is_out_of_range() {
    let dir = scratch();
    let log = small(Layout::Framed).open(place(&dir)).unwrap();
    let lsn = log.append(&[7; 100]).unwrap();
    log.append(b"next").unwrap();
    for inside in [1, 4, 8, 16, 50] {
        let from = Lsn::new(lsn.get() + inside);
        let kind = match log.reader(from) {
            Ok(mut reader) => reader.next().unwrap_err().kind(),
            Err(error) => error.kind(),
        };
        assert_eq!(kind, ErrorKind::OutOfRange, "{inside} bytes into a record");
    }
}

#[test]
fn a_reader_outlives_its_log_and_may_change_threads() {
    for layout in LAYOUTS {
        let dir = scratch();
        let log = small(layout).open(place(&dir)).unwrap();
        log.append(b"record\n").unwrap();
        let mut reader = log.reader(Lsn::ZERO).unwrap();
        drop(log);
        let read = move || reader.next().unwrap().unwrap().payload.to_vec();
        assert_eq!(std::thread::spawn(read).join().unwrap(), b"record\n");
    }
}

#[test]
fn follow_gives_up_after_its_timeout_and_not_before() {
    let dir = scratch();
    let log = small(Layout::Framed).open(place(&dir)).unwrap();
    let mut reader = log.reader(Lsn::ZERO).unwrap();
    let timeout = Duration::from_millis(50);
    let start = std::time::Instant::now();
    assert_eq!(reader.follow(Some(timeout)).unwrap(), None);
    assert!(start.elapsed() >= timeout);
    assert_eq!(reader.follow(Some(Duration::ZERO)).unwrap(), None);
    log.append(b"there").unwrap();
    assert_eq!(reader.follow(Some(Duration::ZERO)).unwrap().unwrap().payload, b"there");
}

#[test]
fn follow_takes_any_timeout_however_long() {
    let dir = scratch();
    let log = small(Layout::Framed).open(place(&dir)).unwrap();
    log.append(b"first").unwrap();
    let mut reader = log.reader(Lsn::ZERO).unwrap();
    assert!(reader.follow(Some(Duration::MAX)).unwrap().is_some());
    std::thread::scope(|scope| {
        scope.spawn(|| log.append(b"second").unwrap());
        assert!(reader.follow(Some(Duration::MAX)).unwrap().is_some());
    });
}

/// Rounds of question and answer. That a follower is woken, and does not just look again after a
/// while, only the kernel can tell: `vellum-testkit/tests/system_calls.rs` asks it.
const ROUNDS: usize = 200;

#[test]
fn followers_answer_each_other_between_threads() {
    for layout in LAYOUTS {
        let dir = scratch();
        let (asked, answered) = (dir.path().join("asked"), place(&dir));
        let questions = small(layout).open(&asked).unwrap();
        let answers = small(layout).open(&answered).unwrap();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let mut reader = questions.reader(Lsn::ZERO).unwrap();
                for _ in 0..ROUNDS {
                    let question = reader.follow(Some(PATIENCE)).unwrap().expect("in time");
                    answers.append(question.payload).unwrap();
                }
            });
            let mut reader = answers.reader(Lsn::ZERO).unwrap();
            for round in 0..ROUNDS {
                let question = format!("{round}\n");
                questions.append(question.as_bytes()).unwrap();
                let answer = reader.follow(Some(PATIENCE)).unwrap().expect("in time");
                assert_eq!(answer.payload, question.as_bytes());
            }
        });
    }
}

/// Answers what it reads in one log with a record in another.
pub(crate) fn echo(arguments: &[String]) {
    let questions = Options::default().open(&arguments[0]).unwrap();
    let answers = Options::default().open(&arguments[1]).unwrap();
    let mut reader = questions.reader(Lsn::ZERO).unwrap();
    for _ in 0..ROUNDS {
        let question = reader.follow(Some(PATIENCE)).unwrap().expect("in time");
        answers.append(question.payload).unwrap();
    }
    child::say("done");
}

#[test]
fn followers_answer_each_other_between_processes() {
    for layout in LAYOUTS {
        let dir = scratch();
        let (asked, answered) = (dir.path().join("asked"), place(&dir));
        let questions = small(layout).open(&asked).unwrap();
        let answers = small(layout).open(&answered).unwrap();
        let arguments = [asked.to_str().unwrap(), answered.to_str().unwrap()];
        let mut other = Child::start("echo", &arguments);
        let mut reader = answers.reader(Lsn::ZERO).unwrap();
        for round in 0..ROUNDS {
            let question = format!("{round}\n");
            questions.append(question.as_bytes()).unwrap();
            let answer = reader.follow(Some(PATIENCE)).unwrap().expect("in time");
            assert_eq!(answer.payload, question.as_bytes());
        }
        other.expect("done");
        other.finish_well();
    }
}

#[test]
fn a_read_only_log_follows_a_writer_and_refuses_to_write() {
    for layout in LAYOUTS {
        let dir = scratch();
        let log = small(layout).open(place(&dir)).unwrap();
        let view = Options::default().read_only(true).open(place(&dir)).unwrap();
        let mut reader = view.reader(Lsn::ZERO).unwrap();
        for index in 0..50 {
            let line = format!("{index}\n");
            let lsn = log.append(line.as_bytes()).unwrap();
            let record = reader.follow(Some(PATIENCE)).unwrap().unwrap();
            assert_eq!((record.lsn, record.payload), (lsn, line.as_bytes()));
        }
        assert_eq!(view.append(b"no\n").unwrap_err().kind(), ErrorKind::ReadOnly);
        assert_eq!(view.reserve(5).unwrap_err().kind(), ErrorKind::ReadOnly);
        assert_eq!(view.trim(log.published()).unwrap_err().kind(), ErrorKind::ReadOnly);
        assert_eq!(view.stat().unwrap().participants.len(), 1, "a reader is none");
        assert_eq!(payloads(&view), payloads(&log));
        assert!(view.verify().unwrap().damage.is_empty());
    }
}

#[test]
fn the_published_end_never_goes_back_while_threads_append() {
    let dir = scratch();
    let log = Options::default().open(place(&dir)).unwrap();
    std::thread::scope(|scope| {
        let append = || {
            for _ in 0..30_000 {
                log.append(b"record").unwrap();
            }
        };
        let writers = [scope.spawn(append), scope.spawn(append), scope.spawn(append)];
        let (mut seen, mut went_back) = (Lsn::ZERO, 0);
        while !writers.iter().all(|writer| writer.is_finished()) {
            let published = log.published();
            went_back += u32::from(published < seen);
            seen = seen.max(published);
        }
        assert_eq!(went_back, 0, "times that the published end went back");
    });
}

/// A pad that becomes visible is no record: a reader that waits for one continues to wait.
#[test]
fn follow_waits_on_when_only_a_pad_was_published() {
    let dir = tempfile::tempdir().unwrap();
    let log = vellum::Options::default().open(dir.path().join("log")).unwrap();
    let mut reader = log.reader(vellum::Lsn::ZERO).unwrap();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            drop(log.reserve(10).unwrap());
            log.append(b"behind the pad").unwrap();
        });
        let timeout = Some(std::time::Duration::from_secs(20));
        let record = reader.follow(timeout).unwrap().expect("a record, and no time-out");
        assert_eq!(record.payload, b"behind the pad");
    });
}

#[test]
fn a_reader_that_stops_returns_what_starts_before_and_waits_for_nothing() {
    for layout in LAYOUTS {
        let dir = scratch();
        let log = small(layout).open(place(&dir)).unwrap();
        let mut places: Vec<Lsn> = Vec::new();
        for index in 0..300 {
            places.push(log.append(format!("record {index}\n").as_bytes()).unwrap());
            // An abandoned range is between the records and their ends.
            drop(log.reserve(40).unwrap());
        }
        places.push(log.published());
        let starts = payloads(&log).len();
        for stop in (0..places.len()).step_by(7) {
            for (end, count) in [(places[stop], stop), (Lsn::new(places[stop].get() - 1), stop)] {
                let mut reader = log.reader(Lsn::ZERO).unwrap();
                reader.stop_at(end);
                let mut found = 0;
                while let Some(record) = reader.follow(None).unwrap() {
                    assert!(record.lsn < end);
                    found += usize::from(record.payload.starts_with(b"record"));
                }
                assert_eq!(found, count, "{layout}, to {end}");
                assert!(reader.position() >= end && reader.next().unwrap().is_none());
                // It continues where it stopped.
                reader.stop_at(Lsn::MAX);
                while let Some(record) = reader.next().unwrap() {
                    found += usize::from(record.payload.starts_with(b"record"));
                }
                assert_eq!(found, 300, "{layout}, from {end}");
            }
        }
        let mut all = log.reader(Lsn::ZERO).unwrap();
        all.stop_at(log.published());
        assert_eq!(all.into_iter().count(), starts, "to the end");
    }
}

#[test]
fn a_reader_stops_before_what_it_has_read_ahead() {
    for layout in LAYOUTS {
        let dir = scratch();
        let log = small(layout).open(place(&dir)).unwrap();
        let places = [b"one\n", b"two\n", b"333\n"].map(|record| log.append(record).unwrap());
        let mut reader = log.reader(Lsn::ZERO).unwrap();
        assert_eq!(reader.next().unwrap().unwrap().lsn, places[0]);
        reader.stop_at(places[1]);
        assert!(reader.next().unwrap().is_none(), "{layout}");
        reader.stop_at(places[2]);
        assert_eq!(reader.next().unwrap().unwrap().lsn, places[1]);
        assert!(reader.next().unwrap().is_none(), "{layout}");
    }
}

#[test]
fn a_reader_that_stops_at_what_is_to_come_waits_for_it() {
    let dir = scratch();
    let log = small(Layout::Framed).open(place(&dir)).unwrap();
    let first = log.append(b"one").unwrap();
    let end = Lsn::new(log.published().get() + 1);
    let mut reader = log.reader(Lsn::ZERO).unwrap().durable();
    reader.stop_at(end);
    assert!(reader.next().unwrap().is_none());
    assert!(reader.position() < end, "the log has ended, and the reader has not");
    log.commit(first).unwrap();
    assert_eq!(reader.follow(None).unwrap().unwrap().lsn, first);
    let mut reader = reader.pollable().unwrap();
    let [second, third] = [b"two", b"333"].map(|record| log.append(record).unwrap());
    log.commit(third).unwrap();
    let found = std::iter::from_fn(|| reader.next().unwrap().map(|record| record.lsn));
    assert!(found.eq([second].into_iter().filter(|lsn| *lsn < end)));
    assert!(reader.position() >= end);
}
