//! The work of threads of the program for appends: an append syncs nothing, and writes no more than
//! its windows of zeros.

use libc::EIO;
use vellum::{Committer, Fill, Log, OnStageFull, Options, SegmentKeeper, Tuning};
use vellum_testing::counts::moved_bytes;
use vellum_testing::kernel::where_it_fails;

use crate::support::{assert_sound, place, read_all, scratch, until};

const CAPACITY: u64 = 16 << 20;
/// How often an append asks for help, at least.
const ASKS_EVERY: u64 = 1 << 20;

/// Bytes that an append writes at most: of two windows and one that it ends in.
const WRITTEN_MAX: u64 = 3 << 20;

/// A thread that helps, for as long as this lives.
#[expect(dead_code, reason = "each is held")]
enum Helper {
    Keeper(SegmentKeeper),
    Committer(Committer),
}

fn keeper(log: &Log) -> Helper {
    Helper::Keeper(log.keep_prepared(1).unwrap())
}

fn committer(log: &Log) -> Helper {
    Helper::Committer(log.committer().unwrap())
}

/// A log in which an append that would have to commit fails.
fn open(path: &std::path::Path) -> Log {
    let tuning = Tuning::new()
        .fill(Fill::Staged)
        .segment_capacity_bytes(CAPACITY)
        .staged_segments_max(2)
        .on_stage_full(OnStageFull::Error);
    Options::wal().exclusive(false).tuning(tuning).open(path).unwrap()
}

/// Bytes that this thread has written by system calls, where the kernel counts them.
fn written() -> Option<u64> {
    moved_bytes().map(|(_, written)| written)
}

/// Waits until the helper has done what it was asked for.
fn keep_pace(log: &Log) {
    let half = CAPACITY / 2 + 2 * ASKS_EVERY;
    until("half a stage is committed, and the next segment there", || {
        let stat = log.stat().unwrap();
        let (tail, used) = (stat.tail.get(), stat.tail.get() % CAPACITY);
        let is_committed = tail.saturating_sub(log.durable().get()) < half;
        let is_made = used < half || stat.prepared_end.get() > tail - used + CAPACITY;
        (is_committed && is_made).then_some(())
    });
}

/// Appends three segments' worth of records, and half a segment more.
fn fill(log: &Log, record: &[u8]) -> u64 {
    let end = log.tail().get() + 3 * CAPACITY + CAPACITY / 2;
    let (mut count, mut paced) = (0, log.tail().get());
    while log.tail().get() < end {
        let before = written();
        log.append(record).unwrap();
        let bytes = before.and_then(|before| Some(written()? - before));
        assert!(bytes.is_none_or(|bytes| bytes <= WRITTEN_MAX), "{bytes:?}");
        count += 1;
        if log.tail().get() >= paced + ASKS_EVERY {
            paced = log.tail().get();
            keep_pace(log);
        }
    }
    count
}

#[test]
fn where_a_thread_helps_an_append_syncs_nothing_and_writes_no_stage() {
    for helper in [keeper, committer] {
        for len in [4000, 35_000, 64 << 10] {
            let dir = scratch();
            let log = open(&place(&dir));
            let helper = helper(&log);
            let record = vec![7; len];
            let (count, written) = where_it_fails(libc::SYS_fsync, EIO, || {
                where_it_fails(libc::SYS_fdatasync, EIO, || {
                    let before = written();
                    let count = fill(&log, &record);
                    (count, before.and_then(|before| Some(written()? - before)))
                })
            });
            // The windows of zeros of the stage, up to a segment ahead, and no more.
            let most = count * len as u64 + 2 * CAPACITY;
            assert!(written.is_none_or(|bytes| bytes < most), "{len}: {written:?}, {most}");
            drop(helper);
            log.sync().unwrap();
            assert_eq!(read_all(&log).len() as u64, count);
            assert_sound(&log);
        }
    }
}

#[test]
fn a_thread_that_helps_ends_with_its_handle_and_others_go_on() {
    let dir = scratch();
    let log = open(&place(&dir));
    for _ in 0..3 {
        let (keeper, committer) = (keeper(&log), committer(&log));
        fill(&log, &[1; 30_000]);
        drop(keeper);
        fill(&log, &[2; 30_000]);
        drop(committer);
        // Without help it is for the program to commit.
        log.sync().unwrap();
    }
    assert_sound(&log);
}

#[test]
fn what_a_keeper_has_made_ends_what_the_policy_does_not_keep() {
    let dir = scratch();
    let options = super::staged().retain_bytes(64 << 10);
    let log = options.open(place(&dir)).unwrap();
    let begin = log.begin();
    let keeper = log.keep_prepared(2).unwrap();
    for _ in 0..16 {
        for _ in 0..16 {
            log.append_durable(&[1; 900]).unwrap();
        }
        until("segments are ready", || {
            let stat = log.stat().unwrap();
            (stat.prepared_end.get() - stat.tail.get() >= 2 * 16384).then_some(())
        });
    }
    drop(keeper);
    assert!(log.begin() > begin);
    assert_sound(&log);
}
