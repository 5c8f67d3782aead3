//! Commits by threads and processes, and the rest of uncommitted records.

use std::io::Write as _;
use std::sync::Barrier;
use std::time::Duration;

use vellum::{ErrorKind, Fill, Layout, Log, Lsn, Options, Tuning};

use super::{after_power_cut, kinds, staged};
use crate::support::child::{Child, hear, say};
use crate::support::{
    Read, assert_holds, assert_sound, memory_scratch, payload, payloads, place, read_all, scratch,
};

/// Long enough for a commit that waits for no writer.
const SHORT: Duration = Duration::from_millis(300);

fn append(log: &Log, seed: u64, len: usize) -> Read {
    let bytes = payload(log.layout(), seed, len);
    (log.append(&bytes).unwrap(), bytes)
}

#[test]
fn what_is_committed_is_in_the_files_when_commit_returns() {
    for options in kinds() {
        let dir = scratch();
        let log = options.open(place(&dir)).unwrap();
        let mut expected = Vec::new();
        for (seed, len) in [1, 100, 4096, 9000, 17_000, 50_000, 3, 511, 512].into_iter().enumerate()
        {
            expected.push(append(&log, seed as u64, len));
            if seed % 2 == 0 {
                let lsn = expected.last().unwrap().0;
                log.commit(lsn).unwrap();
                assert!(log.durable() > lsn);
                assert!(log.durable() <= log.published());
                let copy = after_power_cut(&place(&dir));
                let recovered = Options::default().open(place(&copy)).unwrap();
                assert_holds(&recovered, &expected);
            }
        }
        assert_holds(&log, &expected);
        drop(log);
        assert_holds(&Options::default().open(place(&dir)).unwrap(), &expected);
    }
}

#[test]
fn staged_records_are_not_in_the_files_before_they_are_committed() {
    let dir = scratch();
    let log = staged().open(place(&dir)).unwrap();
    let first = append(&log, 1, 100);
    log.commit(first.0).unwrap();
    append(&log, 2, 100);
    let copy = after_power_cut(&place(&dir));
    let recovered = Options::default().open(place(&copy)).unwrap();
    assert_holds(&recovered, &[first]);
    let recovery = recovered.recovery().unwrap();
    assert_eq!((recovery.end, recovery.cut_bytes), (recovered.tail(), 0));
}

#[test]
fn sync_covers_every_record_and_says_up_to_where() {
    for options in kinds() {
        let dir = scratch();
        let log = options.open(place(&dir)).unwrap();
        assert_eq!(log.sync().unwrap(), log.begin(), "nothing to do");
        let (lsn, _) = append(&log, 1, 1000);
        let tail = log.tail();
        assert!(log.sync().unwrap() >= tail);
        assert!(log.durable() > lsn);
    }
}

/// A writer that is stopped between reserving and publishing holds back what others see. A record
/// behind it, whose `append` has returned, is durable when `sync` returns, or `sync` fails.
#[test]
fn sync_waits_for_a_writer_in_front_of_a_record_that_was_appended() {
    for options in kinds() {
        let dir = scratch();
        let log = options.timeout(SHORT).open(place(&dir)).unwrap();
        let (held, stay) = (Barrier::new(2), Barrier::new(2));
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let mut reserved = log.reserve(10).unwrap();
                reserved.write_all(b"123456789\n").unwrap();
                held.wait();
                stay.wait();
                reserved.publish().unwrap();
                held.wait();
            });
            held.wait();
            let (lsn, _) = append(&log, 1, 1000);
            let (synced, durable) = (log.sync(), log.durable());
            stay.wait();
            held.wait();
            let error = synced.expect_err("a record that was appended is not durable");
            assert_eq!(error.kind(), ErrorKind::TimedOut, "{error}");
            assert!(durable <= lsn && log.sync().unwrap() > lsn);
        });
    }
}

/// A thread would wait for itself for ever.
#[test]
fn a_thread_cannot_commit_behind_its_own_reservation() {
    for options in kinds() {
        let dir = scratch();
        let log = options.open(place(&dir)).unwrap();
        let (before, _) = append(&log, 1, 100);
        let reserved = log.reserve(10).unwrap();
        let (lsn, _) = append(&log, 2, 100);
        log.commit(before).unwrap();
        for refused in [log.commit(lsn), log.sync().map(drop)] {
            let error = refused.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Busy, "{error}");
            assert_eq!(error.lsn(), Some(reserved.lsn()), "{error}");
        }
        drop(reserved);
        log.commit(lsn).unwrap();
        assert!(log.sync().unwrap() > lsn);
    }
}

#[test]
fn a_position_beyond_the_end_cannot_be_committed_and_a_reader_commits_nothing() {
    let dir = scratch();
    let log = staged().open(place(&dir)).unwrap();
    let lsn = log.append(b"one").unwrap();
    assert_eq!(log.commit(log.tail()).unwrap_err().kind(), ErrorKind::OutOfRange);
    assert_eq!(log.commit(Lsn::MAX).unwrap_err().kind(), ErrorKind::OutOfRange);
    let reader = Options::default().read_only(true).open(place(&dir)).unwrap();
    assert_eq!(payloads(&reader), [b"one"], "read from the stage");
    assert_eq!(reader.commit(lsn).unwrap_err().kind(), ErrorKind::ReadOnly);
    log.commit(lsn).unwrap();
    reader.commit(lsn).unwrap();
}

#[test]
fn threads_that_commit_at_once_have_all_their_records_durable() {
    for options in kinds() {
        let dir = scratch();
        let log = options.open(place(&dir)).unwrap();
        let start = Barrier::new(8);
        std::thread::scope(|scope| {
            for thread in 0..8 {
                let (log, start) = (&log, &start);
                scope.spawn(move || {
                    start.wait();
                    for turn in 0..40 {
                        let bytes = payload(log.layout(), thread * 1000 + turn, 300);
                        let lsn = log.append_durable(&bytes).unwrap();
                        assert!(log.durable() > lsn);
                    }
                });
            }
        });
        let commits = log.stat().unwrap().commits;
        // A record may have become durable with another's before its own commit was called. How
        // few syncs there are at least: `vellum-testkit/tests/system_calls.rs`.
        assert!(commits.commits <= 320 && commits.syncs < 320, "{commits:?}");
        assert_eq!(commits.sync_micros.iter().sum::<u64>(), commits.syncs);
        assert_eq!(read_all(&log).len(), 320);
        assert_sound(&log);
        let copy = after_power_cut(&place(&dir));
        assert_eq!(payloads(&Options::default().open(place(&copy)).unwrap()).len(), 320);
    }
}

/// Appends durably until it is told to end; says each position once it is durable.
pub(crate) fn committer(arguments: &[String]) {
    let log = Options::default().open(&arguments[0]).unwrap();
    let seed: u64 = arguments[1].parse().unwrap();
    say("ready");
    for turn in 0..u64::MAX {
        let bytes = payload(log.layout(), seed + turn, 200);
        let lsn = log.append_durable(&bytes).unwrap();
        say(&format!("{lsn} {}", seed + turn));
    }
}

#[test]
fn a_committer_that_is_killed_costs_the_others_a_delay_and_no_record() {
    for options in kinds().into_iter().take(3) {
        let dir = scratch();
        let log = options.open(place(&dir)).unwrap();
        let place = place(&dir);
        for round in 0..12u64 {
            let seed = (round + 1) * 1_000_000;
            let mut child =
                Child::start("committer", &[place.to_str().unwrap(), &seed.to_string()]);
            child.expect("ready");
            let mut acknowledged = Vec::new();
            for turn in 0..20 {
                let (lsn, bytes) = append(&log, round * 100 + turn, 50);
                log.commit(lsn).unwrap();
                acknowledged.push((lsn, bytes));
                let heard = child.hears().unwrap();
                let (lsn, seed) = heard.split_once(' ').unwrap();
                let bytes = payload(log.layout(), seed.parse().unwrap(), 200);
                acknowledged.push((Lsn::new(lsn.parse().unwrap()), bytes));
            }
            child.kill();
            let (lsn, bytes) = append(&log, 7, 50);
            log.commit(lsn).unwrap();
            acknowledged.push((lsn, bytes));
            let copy = after_power_cut(&place);
            let recovered = Options::default().open(super::place(&copy)).unwrap();
            let found = read_all(&recovered);
            for read in &acknowledged {
                assert!(found.contains(read), "round {round}: {} is missing", read.0);
            }
            assert_sound(&recovered);
        }
    }
}

/// Appends without committing, and waits to be killed.
pub(crate) fn stager(arguments: &[String]) {
    let log = Options::default().open(&arguments[0]).unwrap();
    for seed in 0..200 {
        let lsn = log.append(&payload(Layout::Framed, seed, 500)).unwrap();
        if seed == 50 {
            log.commit(lsn).unwrap();
        }
    }
    say("done");
    hear();
}

#[test]
fn staged_records_survive_the_death_of_every_process() {
    let dir = scratch();
    drop(staged().open(place(&dir)).unwrap());
    let mut child = Child::start("stager", &[place(&dir).to_str().unwrap()]);
    child.expect("done");
    child.kill();
    let wanted: Vec<_> = (0..200).map(|seed| payload(Layout::Framed, seed, 500)).collect();
    let reader = Options::default().read_only(true).open(place(&dir)).unwrap();
    assert!(payloads(&reader) == wanted);
    let log = Options::default().open(place(&dir)).unwrap();
    assert!(payloads(&log) == wanted);
    log.sync().unwrap();
    assert_eq!(log.durable(), log.published());
    let copy = after_power_cut(&place(&dir));
    assert!(payloads(&Options::default().open(place(&copy)).unwrap()) == wanted);
    drop(log);
    assert!(payloads(&Options::default().open(place(&dir)).unwrap()) == wanted);
}

#[test]
fn a_stage_that_is_lost_costs_what_was_not_committed() {
    let dir = scratch();
    let log = staged().open(place(&dir)).unwrap();
    drop(log);
    let mut child = Child::start("stager", &[place(&dir).to_str().unwrap()]);
    child.expect("done");
    let stage = staged().open(place(&dir)).unwrap().stat().unwrap().stage.unwrap();
    child.kill();
    std::fs::remove_file(stage).unwrap();
    let reader = Options::default().read_only(true).open(place(&dir)).unwrap();
    let seen = payloads(&reader);
    let log = Options::default().open(place(&dir)).unwrap();
    let found = payloads(&log);
    assert_eq!(seen, found);
    assert!(found.len() > 50 && found.len() < 200, "{}", found.len());
    let is_right =
        |(seed, bytes): (usize, &Vec<u8>)| *bytes == payload(Layout::Framed, seed as u64, 500);
    assert!(found.iter().enumerate().all(is_right));
}

#[test]
fn a_copy_of_a_log_in_use_has_a_stage_of_its_own() {
    let dir = scratch();
    let log = staged().open(place(&dir)).unwrap();
    let mut expected = vec![append(&log, 1, 100)];
    log.sync().unwrap();
    crate::support::copy_log(&place(&dir), &dir.path().join("copy"));
    let copy = Options::default().open(dir.path().join("copy")).unwrap();
    assert!(copy.stat().unwrap().stage.unwrap().starts_with(dir.path().join("copy")));
    assert_holds(&copy, &expected);
    append(&copy, 2, 100);
    drop(copy);
    expected.push(append(&log, 3, 100));
    assert_holds(&log, &expected);
}

#[test]
fn the_last_to_close_makes_everything_durable_and_leaves_no_stage() {
    let dir = scratch();
    let log = staged().open(place(&dir)).unwrap();
    let second = Options::default().open(place(&dir)).unwrap();
    let expected: Vec<_> = (0..30).map(|seed| append(&log, seed, 1000)).collect();
    let stage = log.stat().unwrap().stage.unwrap();
    drop(log);
    assert!(stage.exists());
    assert_holds(&second, &expected);
    drop(second);
    assert!(!stage.exists());
    let copy = after_power_cut(&place(&dir));
    let recovered = Options::default().open(place(&copy)).unwrap();
    assert_holds(&recovered, &expected);
    assert_holds(&Options::default().read_only(true).open(place(&dir)).unwrap(), &expected);
}

#[test]
fn batches_and_reservations_are_committed_whole() {
    let dir = scratch();
    let log = staged().open(place(&dir)).unwrap();
    let mut batch = log.batch();
    for seed in 0..50 {
        batch.push(&payload(Layout::Framed, seed, 700)).unwrap();
    }
    let first = batch.append().unwrap();
    log.commit(first).unwrap();
    assert_eq!(log.durable(), log.published(), "all of the batch, and the seal");
    let mut reserved = log.reserve(5000).unwrap();
    std::io::Write::write_all(&mut reserved, &[7; 5000]).unwrap();
    reserved.rewrite(100, b"changed").unwrap();
    let lsn = reserved.publish().unwrap();
    log.commit(lsn).unwrap();
    let copy = after_power_cut(&place(&dir));
    let recovered = Options::default().open(place(&copy)).unwrap();
    assert_eq!(payloads(&recovered).len(), 51);
    assert_holds(&recovered, &read_all(&log));
}

#[test]
fn a_staged_log_lives_on_any_filesystem_and_never_holds_text() {
    let dir = memory_scratch();
    let log = staged().open(place(&dir)).unwrap();
    let expected: Vec<_> = (0..100).map(|seed| append(&log, seed, 900)).collect();
    log.sync().unwrap();
    assert_holds(&log, &expected);
    let options = Options::mapped_text().tuning(Tuning::new().fill(Fill::Staged));
    let error = options.open(place(&scratch())).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidOption);
}

#[test]
fn readers_follow_while_records_are_committed_and_stages_are_used_again() {
    let dir = scratch();
    let log = staged().open(place(&dir)).unwrap();
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                let mut reader = log.reader(Lsn::ZERO).unwrap();
                let mut seed = 0;
                while seed < 2000 {
                    let record = reader.follow(None).unwrap().unwrap();
                    assert!(record.payload == payload(Layout::Framed, seed, 333), "{seed}");
                    seed += 1;
                    if seed == 1000 {
                        // From the beginning, out of the files.
                        let all = read_all(&log);
                        assert!(all.len() >= 1000);
                    }
                }
            });
        }
        for seed in 0..2000 {
            let (lsn, _) = append(&log, seed, 333);
            if seed % 7 == 0 {
                log.commit(lsn).unwrap();
            }
        }
    });
    assert_sound(&log);
}

#[test]
fn a_committer_tells_by_descriptors_when_records_are_durable() {
    let dir = scratch();
    let log = staged().open(place(&dir)).unwrap();
    let committer = log.committer().unwrap();
    let mut expected = Vec::new();
    let mut completions = Vec::new();
    for seed in 0..50 {
        expected.push(append(&log, seed, 200));
        completions.push(committer.submit(expected.last().unwrap().0).unwrap());
    }
    for completion in &completions {
        let descriptor = completion.descriptor().unwrap();
        let event = rustix::event::PollFd::new(&descriptor, rustix::event::PollFlags::IN);
        let timeout = rustix::event::Timespec { tv_sec: 40, tv_nsec: 0 };
        assert_eq!(rustix::event::poll(&mut [event], Some(&timeout)).unwrap(), 1);
        completion.outcome().unwrap().unwrap();
    }
    let commits = log.stat().unwrap().commits;
    // And those that the thread has made because half a segment was not durable.
    assert!(commits.commits >= 50, "those of a group count each: {commits:?}");
    assert_eq!(committer.submit(log.tail()).unwrap_err().kind(), ErrorKind::OutOfRange);
    drop(committer);
    let copy = after_power_cut(&place(&dir));
    assert_holds(&Options::default().open(super::place(&copy)).unwrap(), &expected);
}

#[test]
fn a_keeper_makes_the_segments_that_writers_would_have_to_make() {
    let dir = scratch();
    let log = staged().open(place(&dir)).unwrap();
    let keeper = log.keep_prepared(3).unwrap();
    for seed in 0..100 {
        let (lsn, _) = append(&log, seed, 1500);
        log.commit(lsn).unwrap();
    }
    crate::support::until("segments are ready", || {
        let stat = log.stat().unwrap();
        (stat.prepared_end.get() - stat.tail.get() >= 3 * 16384).then_some(())
    });
    drop(keeper);
}
