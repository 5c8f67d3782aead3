//! Records by their positions, from the newest back, and as an iterator.

use std::sync::atomic::{AtomicBool, Ordering};

use proptest::prelude::*;
use vellum::{ErrorKind, Fill, Layout, Log, Lsn, Options, OwnedRecord, Tuning};

use crate::support::{
    LAYOUTS, Over, Read, memory_scratch, payload, place, read_all, scratch, small,
};

fn append(log: &Log, seed: u64, len: usize) -> Read {
    let bytes = payload(log.layout(), seed, len);
    (log.append(&bytes).unwrap(), bytes)
}

/// Everything, read from the end.
fn backwards(log: &Log, before: Lsn) -> Vec<Read> {
    let records = log.backwards(before).unwrap().map(Result::unwrap);
    let mut all: Vec<Read> = records.map(|record| (record.lsn, record.payload)).collect();
    all.reverse();
    all
}

#[test]
fn a_record_is_read_by_the_position_that_append_returned() {
    for layout in LAYOUTS {
        let dir = scratch();
        let log = small(layout).open(place(&dir)).unwrap();
        let view = Options::default().read_only(true).open(place(&dir)).unwrap();
        let lens = [1, 40, 4000, 4095, 4096, 4097, 9000, 100_000, 3];
        let all: Vec<Read> = (0..).zip(lens).map(|(seed, len)| append(&log, seed, len)).collect();
        for (lsn, bytes) in all.iter().rev() {
            for log in [&log, &view] {
                let record = log.read_at(*lsn).unwrap();
                assert_eq!((record.lsn, &record.payload), (*lsn, bytes));
            }
        }
    }
}

#[test]
fn a_position_without_a_record_is_out_of_range() {
    for layout in LAYOUTS {
        let dir = scratch();
        let log = small(layout).open(place(&dir)).unwrap();
        let (first, _) = append(&log, 1, 100);
        drop(log.reserve(50).unwrap());
        let (last, _) = append(&log, 2, 100);
        let unpublished = log.reserve(8).unwrap();
        let mut wrong = vec![Lsn::ZERO, unpublished.lsn(), log.tail(), Lsn::MAX];
        if layout == Layout::Framed {
            // Inside of a record, and a pad.
            wrong.extend([8, 16, 112].map(|offset| Lsn::new(first.get() + offset)));
        } else {
            wrong.push(Lsn::new(first.get() + 50));
        }
        for lsn in wrong {
            let error = log.read_at(lsn).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::OutOfRange, "{lsn}: {error}");
        }
        drop(unpublished);
        log.trim(last).unwrap();
        assert_eq!(log.read_at(first).unwrap_err().kind(), ErrorKind::Trimmed);
    }
}

#[test]
fn a_reader_goes_to_any_record_and_on_from_there() {
    for layout in LAYOUTS {
        let dir = scratch();
        let log = small(layout).open(place(&dir)).unwrap();
        let view = Options::default().read_only(true).open(place(&dir)).unwrap();
        let lens = [1, 40, 4000, 4095, 4096, 4097, 9000, 100_000, 3, 300_000, 7];
        let all: Vec<Read> = (0..).zip(lens).map(|(seed, len)| append(&log, seed, len)).collect();
        for log in [&log, &view] {
            let mut reader = log.reader(Lsn::ZERO).unwrap();
            for index in [9, 0, 5, 10, 3, 7, 7, 1, 8] {
                reader.seek(all[index].0).unwrap();
                for (lsn, bytes) in &all[index..] {
                    let record = reader.next().unwrap().unwrap();
                    assert_eq!((record.lsn, record.payload), (*lsn, &bytes[..]));
                }
                assert!(reader.next().unwrap().is_none());
            }
            reader.seek(Lsn::ZERO).unwrap();
            assert_eq!(reader.position(), all[0].0);
        }
    }
}

/// How many files of a directory this process has open to read.
fn open_files(dir: &std::path::Path) -> usize {
    let open = std::fs::read_dir("/proc/self/fd").unwrap().flatten();
    let paths = open.filter_map(|entry| std::fs::read_link(entry.path()).ok());
    paths.filter(|path| path.parent() == Some(dir)).count()
}

#[test]
fn a_reader_that_goes_to_and_fro_keeps_few_files_open_and_none_that_are_trimmed() {
    for layout in LAYOUTS {
        let dir = scratch();
        let log = small(layout).open(place(&dir)).unwrap();
        let all: Vec<Read> = (0..60).map(|seed| append(&log, seed, 3000)).collect();
        let view = Options::default().read_only(true).open(place(&dir)).unwrap();
        let before = open_files(&place(&dir));
        let mut reader = view.reader(Lsn::ZERO).unwrap();
        for index in (0..60).chain((0..60).rev()) {
            reader.seek(all[index].0).unwrap();
            assert_eq!(reader.next().unwrap().unwrap().payload, all[index].1);
            assert!(open_files(&place(&dir)) <= before + 4);
        }
        log.trim(all[50].0).unwrap();
        let mine = open_files(&place(&dir));
        reader.seek(all[55].0).unwrap();
        assert!(open_files(&place(&dir)) < mine, "what was trimmed took space");
    }
}

#[test]
fn single_records_keep_few_files_open_and_none_that_are_trimmed() {
    for layout in LAYOUTS {
        let dir = scratch();
        let log = small(layout).open(place(&dir)).unwrap();
        let all: Vec<Read> = (0..60).map(|seed| append(&log, seed, 3000)).collect();
        let view = Options::default().read_only(true).open(place(&dir)).unwrap();
        for log in [&log, &view] {
            let before = open_files(&place(&dir));
            for (lsn, bytes) in all.iter().chain(all.iter().rev()) {
                assert_eq!(&log.read_at(*lsn).unwrap().payload, bytes);
                assert!(open_files(&place(&dir)) <= before + 4);
            }
        }
        drop(view);
        let closed = log.stat().unwrap().segments.len();
        log.trim(all[50].0).unwrap();
        assert!(log.stat().unwrap().segments.len() < closed);
        let deleted = std::fs::read_dir("/proc/self/fd").unwrap().flatten().filter(|entry| {
            let path = std::fs::read_link(entry.path()).unwrap_or_default();
            path.starts_with(place(&dir)) && path.to_string_lossy().ends_with(" (deleted)")
        });
        assert_eq!(deleted.count(), 0, "what was trimmed takes no space");
    }
}

#[test]
fn a_single_record_after_a_truncation_is_the_one_that_is_there_now() {
    for layout in LAYOUTS {
        let dir = scratch();
        let log = small(layout).open(place(&dir)).unwrap();
        let view = Options::default().read_only(true).open(place(&dir)).unwrap();
        for round in 0..5_u64 {
            let append = |seed| append(&log, 1000 * round + seed, 1000);
            let all: Vec<Read> = (0..300).map(append).collect();
            for log in [&log, &view] {
                for (lsn, bytes) in [&all[20], &all[299], &all[150]] {
                    assert_eq!(&log.read_at(*lsn).unwrap().payload, bytes);
                }
            }
            log.truncate(all[10].0).unwrap();
            for log in [&log, &view] {
                let kind = log.read_at(all[299].0).unwrap_err().kind();
                assert_eq!(kind, ErrorKind::OutOfRange);
            }
        }
    }
}

#[test]
fn single_records_are_read_by_many_threads_while_the_log_is_trimmed() {
    for layout in LAYOUTS {
        let dir = memory_scratch();
        let log = small(layout).open(place(&dir)).unwrap();
        let view = Options::default().read_only(true).open(place(&dir)).unwrap();
        let all: Vec<Read> = (0..600).map(|seed| append(&log, seed, 1000)).collect();
        let read = |log: &Log| {
            for round in 0..3 {
                for index in (0..600).map(|index| (index * 7 + round) % 600) {
                    let (lsn, bytes) = &all[index];
                    match log.read_at(*lsn) {
                        Ok(record) => assert!(&record.payload == bytes, "{lsn}"),
                        Err(error) => {
                            assert_eq!(error.kind(), ErrorKind::Trimmed, "{error}");
                            assert!(*lsn < log.begin());
                        }
                    }
                }
            }
        };
        std::thread::scope(|scope| {
            for log in [&log, &view, &log, &view] {
                scope.spawn(move || read(log));
            }
            for index in (0..500).step_by(25) {
                log.trim(all[index].0).unwrap();
                append(&log, 0, 1000);
            }
        });
    }
}

#[test]
fn a_file_that_goes_under_single_records_is_noticed() {
    for layout in LAYOUTS {
        let dir = scratch();
        let log = small(layout).open(place(&dir)).unwrap();
        let all: Vec<Read> = (0..300).map(|seed| append(&log, seed, 1000)).collect();
        let view = Options::default().read_only(true).open(place(&dir)).unwrap();
        let (lsn, bytes) = &all[2];
        let segment = log.stat().unwrap().segments[0].path.clone();
        assert_eq!(&view.read_at(*lsn).unwrap().payload, bytes);
        let whole = std::fs::read(&segment).unwrap();
        std::fs::write(&segment, b"").unwrap();
        view.read_at(*lsn).unwrap_err();
        // Another file with its name: the open one does not count.
        std::fs::remove_file(&segment).unwrap();
        std::fs::write(&segment, &whole).unwrap();
        assert_eq!(&view.read_at(*lsn).unwrap().payload, bytes);
    }
}

#[test]
fn a_reader_that_cannot_go_somewhere_stays_where_it_was() {
    for layout in LAYOUTS {
        let dir = scratch();
        let log = small(layout).open(place(&dir)).unwrap();
        let all: Vec<Read> = (0..200).map(|seed| append(&log, seed, 1000)).collect();
        let mut reader = log.reader(all[7].0).unwrap();
        let mut wrong = vec![Lsn::MAX, Lsn::new(log.tail().get() + 8)];
        if layout == Layout::Framed {
            wrong.push(Lsn::new(all[100].0.get() + 8));
        }
        for lsn in wrong {
            assert_eq!(reader.seek(lsn).unwrap_err().kind(), ErrorKind::OutOfRange);
        }
        assert_eq!(reader.next().unwrap().unwrap().lsn, all[7].0);
        log.trim(all[150].0).unwrap();
        assert_eq!(reader.seek(all[149].0).unwrap_err().kind(), ErrorKind::Trimmed);
        reader.seek(all[150].0).unwrap();
        assert_eq!(reader.next().unwrap().unwrap().payload, all[150].1);
    }
}

#[test]
fn a_reader_that_goes_on_after_a_truncation_reads_what_is_there_now() {
    for layout in LAYOUTS {
        let dir = scratch();
        let log = small(layout).open(place(&dir)).unwrap();
        let view = Options::default().read_only(true).open(place(&dir)).unwrap();
        let old: Vec<Read> = (0..300).map(|seed| append(&log, seed, 1000)).collect();
        let mut readers = [&log, &view].map(|log| log.reader(old[299].0).unwrap());
        // Their files are open, and their content is in memory.
        readers.iter_mut().for_each(|reader| assert!(reader.next().unwrap().is_some()));
        log.truncate(old[10].0).unwrap();
        let new: Vec<Read> = (1000..1289).map(|seed| append(&log, seed, 1000)).collect();
        let (last, bytes) = new.last().unwrap();
        for reader in &mut readers {
            reader.seek(*last).unwrap();
            assert_eq!(reader.next().unwrap().unwrap().payload, bytes);
        }
    }
}

#[test]
fn a_reader_that_begins_while_the_log_is_truncated_keeps_no_file_that_goes() {
    let dir = memory_scratch();
    let log = small(Layout::Framed).open(place(&dir)).unwrap();
    let view = Options::default().read_only(true).open(place(&dir)).unwrap();
    for round in 0..6 {
        let from = log.tail();
        let fill = |seed: u64| (0..2000).map(|at| append(&log, seed + at, 1000)).collect();
        let old: Vec<Read> = fill(round * 10_000);
        // The newest files go first, so its own stays for a while.
        let at = old[20].0;
        let is_over = AtomicBool::new(false);
        let readers = std::thread::scope(|scope| {
            let begin = || {
                let mut readers = Vec::new();
                while !is_over.load(Ordering::SeqCst) {
                    for log in [&log, &view] {
                        let Ok(mut reader) = log.reader(at) else { continue };
                        let _ = reader.next();
                        if readers.len() < 200 {
                            readers.push(reader);
                        }
                    }
                }
                readers
            };
            let begun = scope.spawn(begin);
            let over = Over(&is_over);
            log.truncate(from).unwrap();
            drop(over);
            begun.join().unwrap()
        });
        let new: Vec<Read> = fill(round * 10_000 + 5000);
        assert_eq!(new[20].0, at);
        for mut reader in readers {
            reader.seek(at).unwrap();
            assert!(reader.next().unwrap().unwrap().payload == new[20].1, "of what is gone");
        }
    }
}

#[test]
fn a_batch_returns_the_position_of_each_record() {
    for layout in LAYOUTS {
        let dir = scratch();
        let log = small(layout).open(place(&dir)).unwrap();
        append(&log, 9, 77);
        for count in [1, 3, 200] {
            let all: Vec<_> = (0..count).map(|seed| payload(layout, seed, 60)).collect();
            let mut batch = log.batch();
            all.iter().for_each(|bytes| batch.push(bytes).unwrap());
            let lsns = batch.append_each().unwrap();
            assert_eq!(lsns.len() as u64, count);
            for (lsn, bytes) in lsns.iter().zip(&all) {
                assert_eq!(&log.read_at(*lsn).unwrap().payload, bytes);
            }
        }
        let error = log.batch().append_each().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidOption);
    }
}

#[test]
fn records_of_an_iterator_are_their_owners_and_change_threads() {
    for layout in LAYOUTS {
        let dir = scratch();
        let log = small(layout).open(place(&dir)).unwrap();
        let expected: Vec<Read> = (0..300).map(|seed| append(&log, seed, 50)).collect();
        let records = log.reader(Lsn::ZERO).unwrap().into_iter();
        let collect = move || records.collect::<vellum::Result<Vec<OwnedRecord>>>().unwrap();
        let found = std::thread::spawn(collect).join().unwrap();
        let found: Vec<Read> = found.into_iter().map(|r| (r.lsn, r.payload)).collect();
        assert_eq!(found, expected);

        let mut records = log.reader(log.published()).unwrap().into_iter();
        assert!(records.next().is_none());
        let (lsn, _) = append(&log, 1, 50);
        assert_eq!(records.next().unwrap().unwrap().lsn, lsn, "it continues");
        assert_eq!(records.into_reader().position(), log.published());
    }
}

#[test]
fn an_iterator_is_over_after_an_error() {
    for layout in LAYOUTS {
        let dir = scratch();
        let log = small(layout).open(place(&dir)).unwrap();
        (0..100).for_each(|seed| drop(append(&log, seed, 500)));
        let mut records = log.reader(Lsn::ZERO).unwrap().into_iter();
        log.trim(log.published()).unwrap();
        assert_eq!(records.next().unwrap().unwrap_err().kind(), ErrorKind::Trimmed);
        assert!(records.next().is_none());
        let mut back = log.backwards(log.published()).unwrap();
        assert!(back.next().is_none() && back.next().is_none());
    }
}

#[test]
fn an_empty_log_has_no_last_record() {
    for layout in LAYOUTS {
        let dir = scratch();
        let log = small(layout).open(place(&dir)).unwrap();
        assert_eq!(log.backwards(Lsn::MAX).unwrap().next().transpose().unwrap(), None);
        let (lsn, bytes) = append(&log, 1, 30);
        drop(log.reserve(70).unwrap());
        let last = log.backwards(Lsn::MAX).unwrap().next().transpose().unwrap().unwrap();
        if layout == Layout::Framed {
            assert_eq!((last.lsn, last.payload), (lsn, bytes), "a pad is no record");
        }
        log.trim(log.published()).unwrap();
        assert_eq!(log.backwards(Lsn::MAX).unwrap().next().transpose().unwrap(), None);
    }
}

#[test]
fn the_durable_part_is_read_backwards_from_its_end() {
    for layout in LAYOUTS {
        let dir = scratch();
        let log = small(layout).open(place(&dir)).unwrap();
        let committed: Vec<Read> = (0..50).map(|seed| append(&log, seed, 200)).collect();
        log.sync().unwrap();
        (50..90).for_each(|seed| drop(append(&log, seed, 200)));
        assert_eq!(backwards(&log, log.durable()), committed);
        assert_eq!(backwards(&log, committed[20].0), committed[..20]);
    }
}

#[test]
fn damage_is_an_error_backwards_too_unless_it_is_skipped() {
    let dir = scratch();
    let log = small(Layout::Framed)
        .tuning(Tuning::new().segment_capacity_bytes(1 << 20))
        .open(place(&dir))
        .unwrap();
    let all: Vec<Read> = (0..100).map(|seed| append(&log, seed, 50)).collect();
    let file = crate::support::segment_files(&place(&dir)).remove(0);
    let damaged = all[40].0.get() - log.begin().get() + 4096 + 20;
    let file = std::fs::File::options().write(true).open(file).unwrap();
    std::os::unix::fs::FileExt::write_all_at(&file, b"damage", damaged).unwrap();
    let mut back = log.backwards(Lsn::MAX).unwrap();
    assert_eq!(back.next().unwrap().unwrap_err().kind(), ErrorKind::Corrupt);
    assert!(back.next().is_none());
    let mut back = log.backwards(Lsn::MAX).unwrap();
    back.skip_damage(true);
    let found: Vec<Lsn> = back.by_ref().map(|record| record.unwrap().lsn).collect();
    let kept = all.iter().rev().map(|read| read.0).filter(|lsn| *lsn != all[40].0);
    assert_eq!(found, kept.collect::<Vec<_>>());
    assert!(!back.take_gaps().is_empty());
}

#[derive(Clone, Debug)]
enum Step {
    Append(usize),
    Many(usize),
    Batch(usize),
    Abandon(usize),
    Commit,
    Rotate,
    Trim(usize),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => prop_oneof![1..300usize, 4000..5000usize, 60_000..200_000usize]
            .prop_map(Step::Append),
        3 => (1..3000usize).prop_map(Step::Many),
        2 => (1..99usize).prop_map(Step::Batch),
        2 => (1..9000usize).prop_map(Step::Abandon),
        3 => Just(Step::Commit),
        1 => Just(Step::Rotate),
        1 => (0..1000usize).prop_map(Step::Trim),
    ]
}

fn take(log: &Log, step: &Step, seed: u64) {
    match step {
        Step::Append(len) => drop(append(log, seed, *len)),
        Step::Many(count) => (0..*count).for_each(|n| drop(append(log, n as u64, n % 90 + 1))),
        Step::Batch(count) => {
            let mut batch = log.batch();
            (0..*count).for_each(|n| batch.push(&payload(log.layout(), seed, n * 9)).unwrap());
            batch.append().unwrap();
        }
        Step::Abandon(len) => drop(log.reserve(*len).unwrap()),
        Step::Commit => drop(log.sync().unwrap()),
        Step::Rotate if log.layout() == Layout::Text => log.rotate().unwrap(),
        Step::Rotate => {}
        Step::Trim(part) => {
            let all = read_all(log);
            if let Some((lsn, _)) = all.get(all.len() * part / 1000) {
                log.trim(*lsn).unwrap();
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 32, failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn backwards_is_forwards_from_the_other_end(
        kind in 0..8usize,
        capacity in prop_oneof![Just(4096u64), Just(1 << 17), Just(1 << 22)],
        steps in prop::collection::vec(step(), 1..25),
        before in 0..1000usize,
    ) {
        let (layout, fill, envelope) = [
            (Layout::Framed, Fill::Mapped, false),
            (Layout::Framed, Fill::Mapped, true),
            (Layout::Framed, Fill::Pwrite, false),
            (Layout::Framed, Fill::Pwrite, true),
            (Layout::Framed, Fill::Staged, false),
            (Layout::Framed, Fill::Staged, true),
            (Layout::Text, Fill::Mapped, false),
            (Layout::Text, Fill::Pwrite, false),
        ][kind];
        let dir = memory_scratch();
        let options = small(layout).tuning(Tuning::new().fill(fill).segment_capacity_bytes(capacity));
        let log = options.envelope(envelope).open(place(&dir)).unwrap();
        let view = Options::default().read_only(true).open(place(&dir)).unwrap();
        for (step, seed) in steps.iter().zip(0..) {
            take(&log, step, seed);
        }
        let all = read_all(&log);
        let (count, last) = (all.len() * before / 1000, all.last());
        for log in [&log, &view] {
            prop_assert!(backwards(log, log.published()) == all);
            let newest = log.backwards(Lsn::MAX).unwrap().next().transpose().unwrap();
            let newest = newest.map(|newest| (newest.lsn, newest.payload));
            prop_assert_eq!(newest.as_ref(), last);
            if let Some((lsn, _)) = all.get(count) {
                prop_assert!(backwards(log, *lsn) == all[..count]);
            }
        }
    }
}
