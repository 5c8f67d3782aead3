//! Every byte of a small log, flipped in turn; files that are too short.

use std::fs::File;
use std::os::unix::fs::FileExt;

use vellum::{ErrorKind, Layout, Log, Lsn, Tuning};

use crate::support::{Read, assert_holds, payload, place, read_all, scratch, segment_files, small};

/// Bytes of the file before the log's own, and how many of them mean something.
const HEADER_LEN: u64 = 4096;
const HEADER_USED: u64 = 48;

/// A log with records, a batch and abandoned space, and which bytes of its file mean something.
fn motley_log(log: &Log) -> (Vec<Read>, Vec<u64>) {
    let first = log.tail();
    log.append(b"").unwrap();
    log.append(b"seven b").unwrap();
    drop(log.reserve(20).unwrap());
    let pad = (log.tail().get() - 32)..(log.tail().get() - 24);
    let batch_header = log.tail().get()..log.tail().get() + 8;
    let mut batch = log.batch();
    batch.push(b"one").unwrap();
    batch.push(&payload(Layout::Framed, 1, 33)).unwrap();
    batch.append().unwrap();
    log.append(&payload(Layout::Framed, 2, 64)).unwrap();
    let all = read_all(log);
    let frames = all.iter().map(|(lsn, bytes)| lsn.get()..lsn.get() + 8 + bytes.len() as u64);
    let positions = frames.flatten().chain(pad).chain(batch_header);
    let offsets = positions.map(|lsn| lsn - first.get() + HEADER_LEN);
    let used = (0..HEADER_USED).chain(offsets).collect();
    (all, used)
}

#[test]
fn verify_finds_every_flipped_byte_and_nobody_reads_a_wrong_one() {
    let dir = scratch();
    let log = small(Layout::Framed).open(place(&dir)).unwrap();
    let (all, used) = motley_log(&log);
    let begin = log.begin();
    let file =
        File::options().read(true).write(true).open(&segment_files(&place(&dir))[0]).unwrap();
    let end = HEADER_LEN + log.published().get() - begin.get();
    for offset in (0..64).chain(HEADER_LEN - 8..end) {
        for flip in [0x01, 0x80, 0xff] {
            let mut byte = [0];
            file.read_exact_at(&mut byte, offset).unwrap();
            file.write_all_at(&[byte[0] ^ flip], offset).unwrap();
            let damage = log.verify().unwrap().damage;
            let is_used = used.contains(&offset);
            assert_eq!(!damage.is_empty(), is_used, "byte {offset} ^ {flip:#x}: {damage:?}");
            assert!(damage.iter().all(|damage| damage.offset <= offset));
            check_reading(&log, &all, offset >= HEADER_LEN && is_used);
            file.write_all_at(&byte, offset).unwrap();
        }
    }
    assert_holds(&log, &all);
}

/// Reads up to an error and, from behind it, the rest; nothing but what was appended may be seen.
fn check_reading(log: &Log, all: &[Read], is_damaged: bool) {
    let mut errors = 0;
    for (index, (from, _)) in all.iter().enumerate() {
        let mut reader = match log.reader(*from) {
            Ok(reader) => reader,
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::OutOfRange, "{error}");
                errors += 1;
                continue;
            }
        };
        for (lsn, bytes) in &all[index..] {
            match reader.next() {
                Ok(record) => {
                    let record = record.expect("the end is not reached");
                    assert_eq!((record.lsn, record.payload), (*lsn, bytes.as_slice()));
                }
                Err(error) => {
                    let kind = error.kind();
                    assert!(matches!(kind, ErrorKind::Corrupt | ErrorKind::OutOfRange), "{error}");
                    errors += 1;
                    break;
                }
            }
        }
    }
    assert_eq!(errors > 0, is_damaged);
}

#[test]
fn damage_of_one_record_is_one_finding_and_the_others_are_counted() {
    let dir = scratch();
    let log = small(Layout::Framed).open(place(&dir)).unwrap();
    let append = |index| {
        let bytes = payload(Layout::Framed, index, 100);
        (log.append(&bytes).unwrap(), bytes)
    };
    let all: Vec<Read> = (0..100).map(append).collect();
    let files = segment_files(&place(&dir));
    let victim = all[50].0;
    let index = ((victim.get() - log.begin().get()) / 4096) as usize;
    let offset = HEADER_LEN + victim.get() % 4096 + 20;
    let file = File::options().write(true).open(&files[index]).unwrap();
    file.write_all_at(b"scratch", offset).unwrap();
    let report = log.verify().unwrap();
    assert_eq!((report.damage.len(), report.records), (1, 99));
    let damage = &report.damage[0];
    assert_eq!((damage.lsn, &damage.path), (victim, &files[index]));
    assert_eq!(damage.offset, offset - 20);
    let mut reader = log.reader(Lsn::ZERO).unwrap();
    (0..50).for_each(|_| assert!(reader.next().unwrap().is_some()));
    let error = reader.next().unwrap_err();
    assert_eq!((error.kind(), error.lsn()), (ErrorKind::Corrupt, Some(victim)));
    assert_eq!(error.path(), Some(files[index].as_path()));
    assert!(error.to_string().contains(&(offset - 20).to_string()), "{error}");
}

#[test]
fn a_segment_that_was_cut_is_an_error_for_readers() {
    for layout in crate::support::LAYOUTS {
        for len in [0, 10, 4096, 5000] {
            let dir = scratch();
            let options = small(layout).tuning(Tuning::new().segment_capacity_bytes(64 << 10));
            let log = options.open(place(&dir)).unwrap();
            for index in 0..100 {
                log.append(&payload(layout, index, 99)).unwrap();
            }
            let file = segment_files(&place(&dir))[0].clone();
            File::options().write(true).open(&file).unwrap().set_len(len).unwrap();
            let mut reader = log.reader(Lsn::ZERO).unwrap();
            let error = loop {
                match reader.next() {
                    Ok(record) => {
                        assert!(record.is_some(), "the end is not reached: {layout} {len}")
                    }
                    Err(error) => break error,
                }
            };
            assert_eq!(error.kind(), ErrorKind::Corrupt, "{layout} {len}");
            assert!(!log.verify().unwrap().damage.is_empty(), "{layout} {len}");
        }
    }
}
