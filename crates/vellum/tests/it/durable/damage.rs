//! Damage that a crash explains is cut; damage that none explains is an error, and nothing is lost.

use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::Path;

use vellum::{ErrorKind, Layout, Lsn, Options, Tuning};

use super::seals::flip;
use super::{after_power_cut, in_another_boot, staged};
use crate::support::{
    Read, assert_holds, assert_sound, copy_log, memory_scratch, payload, place, read_all,
    read_from, segment_files,
};

fn small() -> Options {
    staged().tuning(Tuning::new().segment_capacity_bytes(4096))
}

/// A log with a few commits over two segments, closed with an uncommitted record.
fn closed_log(place: &Path) -> Vec<Read> {
    let log = small().open(place).unwrap();
    for seed in 0..8 {
        let lsn = log.append(&payload(Layout::Framed, seed, 400 + 50 * seed as usize)).unwrap();
        if seed % 2 == 0 {
            log.commit(lsn).unwrap();
        }
    }
    read_all(&log)
}

// Of okaywal, raft-engine and raft-wal, each loses or falsifies committed entries here, silently.
#[test]
fn no_flipped_byte_of_a_closed_log_loses_a_record_in_silence() {
    let dir = memory_scratch();
    let expected = closed_log(&place(&dir));
    in_another_boot(&place(&dir));
    let copy = memory_scratch();
    copy_log(&place(&dir), &place(&copy));
    for file in segment_files(&place(&dir)) {
        let name = file.file_name().unwrap();
        let good = fs::read(&file).unwrap();
        // A header has few bytes, and behind the end of the log is nothing.
        let data_end = 4096 + good[4096..].iter().rposition(|byte| *byte != 0).unwrap_or(0) + 64;
        for offset in (0..64).chain(4096..data_end.min(good.len())) {
            let mut bad = good.clone();
            bad[offset] ^= 0x10;
            let _ = fs::remove_dir_all(place(&copy));
            copy_log(&place(&dir), &place(&copy));
            fs::write(place(&copy).join(name), &bad).unwrap();
            check(&place(&copy), &expected, &format!("{name:?} byte {offset}"));
        }
    }
}

fn check(place: &Path, expected: &[Read], what: &str) {
    let log = match Options::default().open(place) {
        Ok(log) => log,
        Err(error) => {
            assert_eq!(error.kind(), ErrorKind::Corrupt, "{what}: {error}");
            assert!(error.path().is_some(), "{what}: {error}");
            return;
        }
    };
    let mut reader = log.reader(Lsn::ZERO).unwrap();
    for (index, (lsn, payload)) in expected.iter().enumerate() {
        match reader.next() {
            Ok(Some(record)) => {
                assert!(record.lsn == *lsn && record.payload == payload, "{what}: {index}");
            }
            Ok(None) => panic!("{what}: silently shorter at record {index}"),
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::Corrupt, "{what}: {error}");
                return;
            }
        }
    }
    assert!(reader.next().unwrap().is_none(), "{what}: nothing is invented");
}

#[test]
fn a_torn_tail_is_cut_and_reported_and_never_comes_back() {
    let dir = memory_scratch();
    let log = staged().open(place(&dir)).unwrap();
    let mut expected: Vec<Read> = Vec::new();
    for seed in 0..6 {
        let bytes = payload(Layout::Framed, seed, 1000);
        expected.push((log.append_durable(&bytes).unwrap(), bytes));
    }
    // All records of the last batch but the first sector of it arrived.
    let whole = expected.len();
    let batch: Vec<Read> = (10..14)
        .map(|seed| {
            let bytes = payload(Layout::Framed, seed, 1000);
            (log.append(&bytes).unwrap(), bytes)
        })
        .collect();
    log.sync().unwrap();
    let copy = after_power_cut(&place(&dir));
    let file = segment_files(&place(&copy))[0].clone();
    let offset = 4096 + batch[1].0.get() - log.begin().get();
    let file = File::options().read(true).write(true).open(file).unwrap();
    file.write_all_at(&[0; 512], offset.next_multiple_of(512)).unwrap();
    expected.extend(batch);
    let recovered = Options::default().open(place(&copy)).unwrap();
    let torn = offset.next_multiple_of(512) - 4096 + log.begin().get();
    let left = expected.iter().filter(|read| read.0.get() + 1008 <= torn).count();
    assert!(left >= whole);
    assert_holds(&recovered, &expected[..left]);
    assert!(recovered.recovery().unwrap().cut_bytes > 0, "{:?}", recovered.recovery());
    // The same records again: behind them are those that were cut, if they were left there.
    for read in &expected[left..left + 1] {
        assert_eq!(recovered.append_durable(&read.1).unwrap(), read.0);
    }
    let again = after_power_cut(&place(&copy));
    assert_holds(&Options::default().open(place(&again)).unwrap(), &expected[..left + 1]);
}

#[test]
fn recovery_is_the_same_when_done_again_and_works_without_a_control_file() {
    let dir = memory_scratch();
    let expected = closed_log(&place(&dir));
    fs::remove_file(place(&dir).join("control")).unwrap();
    for _ in 0..3 {
        let log = Options::default().open(place(&dir)).unwrap();
        assert_holds(&log, &expected);
        drop(log);
        in_another_boot(&place(&dir));
    }
}

#[test]
fn repair_saves_what_is_readable_into_a_new_log_and_leaves_the_old_one_alone() {
    let dir = memory_scratch();
    let expected = closed_log(&place(&dir));
    let victim = &expected[3];
    let files = segment_files(&place(&dir));
    let file = File::options().write(true).open(&files[0]).unwrap();
    file.write_all_at(b"rotten", 4096 + 20 + victim.0.get() - expected[0].0.get()).unwrap();
    let before: Vec<_> = files.iter().map(|file| fs::read(file).unwrap()).collect();
    let target = dir.path().join("saved");
    let report = vellum::repair(place(&dir), &target).unwrap();
    assert_eq!(report.records, expected.len() as u64 - 1);
    assert_eq!(report.damage.len(), 1, "{report:?}");
    assert_eq!(report.damage[0].lsn, victim.0);
    let saved = Options::default().open(&target).unwrap();
    let wanted: Vec<_> = expected.iter().filter(|read| *read != victim).map(|r| &r.1).collect();
    let found = read_from(&saved, Lsn::ZERO).unwrap();
    assert!(found.iter().map(|read| &read.1).eq(wanted));
    assert_sound(&saved);
    assert_eq!(before, files.iter().map(|file| fs::read(file).unwrap()).collect::<Vec<_>>());
    let error = vellum::repair(place(&dir), &target).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::AlreadyExists);
}

// The next repair said that there is a log already, and opening it named a restore.
#[test]
fn a_repair_that_was_killed_is_named_by_the_next_one() {
    let dir = memory_scratch();
    closed_log(&place(&dir));
    let target = dir.path().join("saved");
    vellum::repair(place(&dir), &target).unwrap();
    // As it was before the last step.
    fs::rename(target.join("geometry"), target.join("restoring")).unwrap();
    ["control", "lock"].iter().for_each(|name| fs::remove_file(target.join(name)).unwrap());
    for error in [
        vellum::repair(place(&dir), &target).unwrap_err(),
        Options::default().open(&target).unwrap_err(),
    ] {
        let said = error.to_string();
        assert!(said.contains("repair") && said.contains("remove the directory"), "{said}");
    }
    fs::remove_dir_all(&target).unwrap();
    vellum::repair(place(&dir), &target).unwrap();
}

#[test]
fn repair_needs_one_of_the_two_files_that_describe_the_log() {
    let dir = memory_scratch();
    let expected = closed_log(&place(&dir));
    let damages: [fn(&Path); 2] =
        [|file| fs::remove_file(file).unwrap(), |file| fs::write(file, b"rotten").unwrap()];
    for (index, damage) in damages.iter().enumerate() {
        for name in ["geometry", "control"] {
            let copy = memory_scratch();
            copy_log(&place(&dir), &place(&copy));
            damage(&place(&copy).join(name));
            let report = vellum::repair(place(&copy), copy.path().join("saved")).unwrap();
            assert_eq!(report.records, expected.len() as u64, "{name} {index}: {report:?}");
        }
        let copy = memory_scratch();
        copy_log(&place(&dir), &place(&copy));
        ["geometry", "control"].iter().for_each(|name| damage(&place(&copy).join(name)));
        let error = vellum::repair(place(&copy), copy.path().join("saved")).unwrap_err();
        let kinds = [ErrorKind::Corrupt, ErrorKind::Incompatible];
        assert!(kinds.contains(&error.kind()), "{index}: {error}");
        assert!(!copy.path().join("saved").exists());
    }
}

#[test]
fn a_segment_that_is_missing_is_noticed_wherever_it_was() {
    let dir = memory_scratch();
    closed_log(&place(&dir));
    let files = segment_files(&place(&dir));
    assert!(files.len() > 2);
    for missing in &files[..2] {
        let copy = memory_scratch();
        copy_log(&place(&dir), &place(&copy));
        let name = missing.file_name().unwrap();
        fs::remove_file(place(&copy).join(name)).unwrap();
        in_another_boot(&place(&copy));
        let error = Options::default().open(place(&copy)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Corrupt, "{name:?}: {error}");
        assert_eq!(error.path(), Some(place(&copy).join(name).as_path()));
    }
}

/// A repaired log keeps the position of each record, the checkpoint and a cursor, and says between
/// which positions records were left out.
#[test]
fn repair_leaves_records_checkpoint_and_cursors_where_they_are() {
    for lost in [&[4][..], &[4, 5], &[9], &[]] {
        let dir = memory_scratch();
        let log = small().open(place(&dir)).unwrap();
        let appended: Vec<Lsn> = (0..12).map(|byte| log.append(&[byte; 900]).unwrap()).collect();
        log.checkpoint().set(appended[9]).unwrap();
        let cursor = log.cursor("reader", Lsn::ZERO).unwrap();
        cursor.commit(appended[5]).unwrap();
        drop((cursor, log));
        for index in lost {
            flip(&place(&dir), 4096, appended[*index]);
        }
        let target = dir.path().join("saved");
        vellum::repair(place(&dir), &target).unwrap();
        let saved = small().open(&target).unwrap();
        for (index, lsn) in appended.iter().enumerate() {
            let found = saved.read_at(*lsn).map(|record| record.payload);
            match lost.contains(&index) {
                true => assert_eq!(found.unwrap_err().kind(), ErrorKind::OutOfRange, "{index}"),
                false => assert_eq!(found.unwrap(), [index as u8; 900], "{index}"),
            }
        }
        let is_there = !lost.contains(&9);
        assert_eq!(saved.checkpoint().lsn(), if is_there { appended[9] } else { Lsn::ZERO });
        let next = if lost.contains(&5) { appended[6] } else { appended[5] };
        let stat = saved.stat().unwrap();
        assert_eq!(stat.cursors[0].lsn.max(appended[5]), next, "{lost:?}");
        assert_eq!(stat.lost.map(|(from, _)| from), lost.first().map(|index| appended[*index]));
        assert_sound(&saved);
        assert!(saved.append(b"behind").unwrap() > appended[11]);
    }
}

/// The file of the newest records is gone, and the control file knows that they were acknowledged.
#[test]
fn repair_gives_out_no_position_that_was_acknowledged() {
    let dir = memory_scratch();
    let log = small().open(place(&dir)).unwrap();
    (0..30).for_each(|byte| assert!(log.append(&[byte; 900]).is_ok()));
    let last = log.append_durable(b"the last one").unwrap();
    drop(log);
    let gone = format!("{:016x}.seg", last.get() / 4096 * 4096);
    for file in segment_files(&place(&dir)) {
        if file.file_name().unwrap().to_str().unwrap() >= gone.as_str() {
            fs::remove_file(&file).unwrap();
        }
    }
    let target = dir.path().join("saved");
    let report = vellum::repair(place(&dir), &target).unwrap();
    assert_eq!(report.damage.len(), 1, "{report:?}");
    let saved = small().open(&target).unwrap();
    assert!(saved.append(b"new").unwrap() > last);
    assert!(saved.stat().unwrap().lost.is_some_and(|(_, end)| end > last));
    assert_sound(&saved);
}

/// A batch with a damaged record: the others are saved as records of their own.
#[test]
fn repair_saves_what_is_whole_of_a_batch() {
    let dir = memory_scratch();
    let log = small().open(place(&dir)).unwrap();
    let mut batch = log.batch();
    (0..30).for_each(|byte| batch.push(&[byte; 500]).unwrap());
    let appended = batch.append_each().unwrap();
    log.append_durable(b"behind").unwrap();
    drop(log);
    flip(&place(&dir), 4096, appended[12]);
    let target = dir.path().join("saved");
    assert_eq!(vellum::repair(place(&dir), &target).unwrap().records, 30);
    let saved = small().open(&target).unwrap();
    for (index, lsn) in appended.iter().enumerate() {
        let found = saved.read_at(*lsn).map(|record| record.payload == [index as u8; 500]);
        assert_eq!(found.ok(), (index != 12).then_some(true), "{index}");
    }
    assert_sound(&saved);
}
