//! Reserve, fill, publish, and how far readers may read.

use std::cell::Cell;
use std::rc::Rc;

use super::{BEGIN, FILE_LEN, Place, explore, index, indices, join, make_log, start};
use crate::Lsn;
use crate::lsn::Range;
use crate::shared::primitive::Ordering;
use crate::shared::tail_word::{self, Grant, Rivals, TailWord};
use crate::shared::words::Words;

/// The words, the file, and facts that only the model knows.
#[derive(Default)]
pub(super) struct Log {
    pub(super) words: Words,
    pub(super) file: [Place; FILE_LEN],
    /// The last grant of each slot.
    pub(super) granted: [Cell<Option<Range>>; 4],
}

impl Log {
    pub(super) fn begin(slots: usize) -> Rc<Log> {
        let log = Log::default();
        make_log(&log.words, slots);
        Rc::new(log)
    }

    /// As `log::append::general`.
    pub(super) fn append(&self, slot: usize, len: u64) -> Grant {
        let grant = self.reserve(slot, len);
        self.file[indices(grant.range)].iter().for_each(Place::write);
        tail_word::publish(&self.words, slot);
        grant
    }

    pub(super) fn reserve(&self, slot: usize, len: u64) -> Grant {
        let words = &self.words;
        let limit = || tail_word::ready_end(words);
        let Ok(grant) = tail_word::reserve(words, slot, &Rivals::default(), limit, |_| len) else {
            panic!("the file has room for all")
        };
        // No step is between the exchange and this.
        self.granted[slot].set(Some(grant.range));
        grant
    }

    /// As a reader: everything before the published end is there.
    pub(super) fn read(&self) -> Lsn {
        let published = tail_word::published(&self.words);
        self.file[..index(published)].iter().for_each(Place::read);
        published
    }

    /// Looks `count` times how far it may read.
    fn read_times(&self, count: usize) {
        let mut seen = Lsn::new(BEGIN);
        for _ in 0..count {
            let published = self.read();
            assert!(published >= seen, "the published end went back");
            seen = published;
        }
    }
}

/// Each writer appends so many records; a reader looks `looks` times.
fn write_and_read(writers: usize, appends: usize, looks: usize) {
    let log = Log::begin(writers);
    let mut processes: Vec<_> = (0..writers)
        .map(|slot| {
            start(&log, move |log: &Log| {
                (0..appends).for_each(|append| _ = log.append(slot, 1 + (slot + append) as u64 % 2))
            })
        })
        .collect();
    processes.push(start(&log, move |log| log.read_times(looks)));
    join(processes);
    assert_eq!(log.read(), tail_word::tail(&log.words), "something is in flight");
}

#[test]
fn what_is_published_is_filled() {
    explore("append: 1 writer × 2, reader × 2", Some(3), || write_and_read(1, 2, 2));
    explore("append: 2 writers × 1, reader × 1", Some(3), || write_and_read(2, 1, 1));
    explore("append: 2 writers × 2, reader × 1", Some(1), || write_and_read(2, 2, 1));
}

#[test]
#[ignore = "takes minutes; run when the protocol is changed"]
fn what_is_published_is_filled_however_often_they_are_preempted() {
    explore("append: 2 writers × 2, reader × 1", Some(2), || write_and_read(2, 2, 1));
    explore("append: 2 writers × 1, reader × 1", Some(4), || write_and_read(2, 1, 1));
}

#[test]
fn three_writers_are_granted_what_nobody_else_is() {
    explore("append: 3 writers × 1", Some(2), || {
        let log = Log::begin(3);
        let appends = (0..3).map(|slot| start(&log, move |log: &Log| _ = log.append(slot, 1)));
        join(appends.collect::<Vec<_>>());
        assert_eq!(log.read(), Lsn::new(BEGIN + 3));
    });
}

/// As a writer of text, which waits until everything before its own record is there.
fn append_behind(log: &Log, slot: usize) {
    let grant = log.reserve(slot, 1);
    if tail_word::is_next(&log.words, grant)
        && let Some(before) = log.granted[grant.before].get()
        && before.end() == grant.range.start
    {
        log.file[indices(before)].iter().for_each(Place::read);
    }
    log.file[indices(grant.range)].iter().for_each(Place::write);
    tail_word::publish(&log.words, slot);
}

#[test]
fn what_stands_right_before_a_record_is_filled_if_it_is_said_to_be() {
    explore("append: 2 writers × 2, the one behind the other", Some(3), || {
        let log = Log::begin(2);
        let twice = |slot| move |log: &Log| (0..2).for_each(|_| append_behind(log, slot));
        join([0, 1].map(|slot| start(&log, twice(slot))));
    });
}

#[test]
fn who_reserves_up_to_ready_end_finds_it_ready() {
    explore("append: 1 prepares, 1 writes", None, || {
        let log = Log::default();
        make_log(&log.words, 1);
        log.words.ready_end.store(BEGIN, Ordering::Relaxed);
        let log = Rc::new(log);
        // As `segment::prepare`: zeros, then the word.
        let prepare = start(&log, |log: &Log| {
            log.file[..2].iter().for_each(Place::write);
            log.words.ready_end.store(BEGIN + 2, Ordering::Release);
        });
        let write = start(&log, |log: &Log| {
            let limit = || tail_word::ready_end(&log.words);
            if let Ok(grant) = tail_word::reserve(&log.words, 0, &Rivals::default(), limit, |_| 2) {
                log.file[indices(grant.range)].iter().for_each(Place::write);
                tail_word::publish(&log.words, 0);
            }
        });
        join([prepare, write]);
    });
}

/// The first writer has lost to the second, and its attempt is still in its slot.
fn begin_with_a_lost_attempt() -> Rc<Log> {
    let log = Log::begin(2);
    let words = &log.words;
    words.slots[0].len.store(2, Ordering::Relaxed);
    words.slots[0].start.store(BEGIN, Ordering::Relaxed);
    words.tail.store(TailWord::new(Lsn::new(BEGIN + 1), 1).to_word(), Ordering::Relaxed);
    log
}

#[test]
fn what_was_lost_is_not_taken_for_what_the_same_slot_is_granted_later() {
    explore("append: 1 lost, 2 writers × 1, reader × 1", Some(2), || {
        let log = begin_with_a_lost_attempt();
        let read = start(&log, |log: &Log| {
            assert!(log.read() > Lsn::new(BEGIN), "the published end went back");
        });
        let append = |slot| start(&log, move |log: &Log| _ = log.append(slot, 1));
        join([append(0), append(1)]);
        join([read]);
    });
}
