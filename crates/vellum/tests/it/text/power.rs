//! Text logs after a power cut: files as it leaves them, opened as if in another boot. Real power
//! cuts are for `vellum-powercut`.

use std::fs::{self, File};
use std::path::Path;

use vellum::{Lsn, Options, Tuning};

use super::{append_lines, assert_orderly, line, rotating};
use crate::durable::in_another_boot;
use crate::support::{FILLS, assert_sound, payloads, place, scratch, segment_files};

/// Cuts the last `len` bytes off the text of a file.
fn cut(path: &Path, len: u64) {
    let file = File::options().write(true).open(path).unwrap();
    file.set_len(file.metadata().unwrap().len() - len).unwrap();
}

#[test]
fn a_torn_line_is_ended_and_what_is_appended_then_is_a_line_of_its_own() {
    for fill in FILLS {
        let dir = scratch();
        let log = rotating(1000).tuning(Tuning::new().fill(fill)).open(place(&dir)).unwrap();
        let mut expected = append_lines(&log, 0..24, 100);
        drop(log);
        // In the middle and in the newest file.
        for (file, number) in [(1, 19), (2, 23)] {
            cut(&segment_files(&place(&dir))[file], 60);
            expected[number].truncate(40);
            expected[number].push(b'\n');
        }
        for _ in 0..2 {
            in_another_boot(&place(&dir));
            let log = Options::default().open(place(&dir)).unwrap();
            assert!(payloads(&log) == expected, "{fill}");
            expected.extend(append_lines(&log, 24..26, 100));
            assert!(payloads(&log) == expected, "{fill}");
            assert_sound(&log);
            assert_orderly(&place(&dir));
        }
    }
}

#[test]
fn a_torn_line_that_fills_its_file_is_ended_too() {
    for has_next in [false, true] {
        let dir = scratch();
        let options = Options::mapped_text().tuning(Tuning::new().segment_capacity_bytes(4096));
        let log = options.open(place(&dir)).unwrap();
        append_lines(&log, 0..2, 6000);
        drop(log);
        let files = segment_files(&place(&dir));
        assert_eq!(files.len(), 4, "each line goes over two files");
        File::create(&files[3]).unwrap();
        if !has_next {
            fs::remove_file(&files[3]).unwrap();
        }
        in_another_boot(&place(&dir));
        let log = Options::default().open(place(&dir)).unwrap();
        let mut torn = line(1, 6000);
        torn.truncate(4096);
        torn.push(b'\n');
        assert!(payloads(&log) == [line(0, 6000), torn.clone()]);
        append_lines(&log, 2..3, 100);
        assert!(payloads(&log) == [line(0, 6000), torn, line(2, 100)]);
        assert_orderly(&place(&dir));
    }
}

#[test]
fn files_without_text_go_and_the_log_goes_on_before_them() {
    let dir = scratch();
    let log = rotating(1000).open(place(&dir)).unwrap();
    let mut expected = append_lines(&log, 0..45, 100);
    drop(log);
    let files = segment_files(&place(&dir));
    for file in &files[2..] {
        File::create(file).unwrap();
    }
    cut(&files[1], 300);
    expected.truncate(17);
    in_another_boot(&place(&dir));
    let log = Options::default().open(place(&dir)).unwrap();
    assert_eq!(segment_files(&place(&dir)), files[..2]);
    assert_orderly(&place(&dir));
    expected.extend(append_lines(&log, 17..25, 100));
    assert!(payloads(&log) == expected);
    assert_eq!(segment_files(&place(&dir)).len(), 3);
    assert_orderly(&place(&dir));
}

#[cfg(feature = "zstd")]
#[test]
fn a_compressed_file_counts_whatever_the_plain_one_has_become() {
    for is_compressing in [true, false] {
        let dir = scratch();
        let log = rotating(1000).open(place(&dir)).unwrap();
        let mut expected = append_lines(&log, 0..25, 100);
        drop(log);
        let files = segment_files(&place(&dir));
        for file in &files[..2] {
            let whole = zstd::bulk::compress(&fs::read(file).unwrap(), 1).unwrap();
            fs::write(file.with_extension("log.zst"), &whole[..]).unwrap();
            cut(file, 350);
        }
        // The newest one never got its text.
        File::create(&files[2]).unwrap();
        expected.truncate(20);
        in_another_boot(&place(&dir));
        let log = Options::default().compress(is_compressing).open(place(&dir)).unwrap();
        assert!(payloads(&log) == expected, "{is_compressing}");
        assert_eq!(segment_files(&place(&dir)), files[2..]);
        expected.extend(append_lines(&log, 25..30, 100));
        assert!(payloads(&log) == expected, "{is_compressing}");
        assert_sound(&log);
    }
}

#[test]
fn a_file_that_retention_removed_and_a_power_cut_brings_back_is_removed_again() {
    for is_removing in [true, false] {
        let dir = scratch();
        let log = rotating(1000).open(place(&dir)).unwrap();
        append_lines(&log, 0..35, 100);
        drop(log);
        let retained = Options::default().retain_files(if is_removing { 1 } else { 3 });
        let files = segment_files(&place(&dir));
        let first = fs::read(&files[0]).unwrap();
        drop(retained.open(place(&dir)).unwrap());
        if is_removing {
            // Two have been removed, and the first comes back.
            fs::write(&files[0], first).unwrap();
        } else {
            // By a user, and not by retention: the files before it stay.
            fs::remove_file(&files[1]).unwrap();
        }
        in_another_boot(&place(&dir));
        let log = Options::default().open(place(&dir)).unwrap();
        if !is_removing {
            let gaps = log.stat().unwrap().gaps;
            assert_eq!(gaps.len(), 1);
            let mut reader = log.reader(Lsn::ZERO).unwrap();
            reader.skip_damage(true);
            let mut count = 0;
            while reader.next().unwrap().is_some() {
                count += 1;
            }
            assert_eq!((count, reader.take_gaps()), (25, gaps));
            continue;
        }
        assert_eq!(segment_files(&place(&dir)), files[2..]);
        assert!(payloads(&log).starts_with(&[line(20, 100)]));
        assert_sound(&log);
    }
}

#[test]
fn positions_of_lines_that_a_closed_file_has_lost_are_refused() {
    let dir = scratch();
    let log = rotating(1000).open(place(&dir)).unwrap();
    let mut taken = Vec::new();
    for number in 0..25 {
        let lsn = log.append(&line(number, 100)).unwrap();
        taken.push(log.position(lsn).unwrap());
    }
    drop(log);
    // Whole lines, so that nothing in the file tells.
    cut(&segment_files(&place(&dir))[1], 300);
    in_another_boot(&place(&dir));
    let log = Options::default().open(place(&dir)).unwrap();
    for (position, number) in taken.iter().zip(0..) {
        match log.reader_at(*position) {
            Ok(mut reader) => {
                assert_eq!(reader.next().unwrap().unwrap().payload, line(number, 100));
                assert!(!(17..20).contains(&number));
            }
            Err(error) => {
                assert!((17..20).contains(&number), "{number}");
                assert_eq!(error.kind(), vellum::ErrorKind::OutOfRange, "{error}");
            }
        }
    }
    // A reader that had come to the first of them continues behind.
    let mut reader = log.reader_at_next(taken[17]).unwrap();
    assert_eq!(reader.next().unwrap().unwrap().payload, line(20, 100));
    assert_eq!(log.reader_at_next(taken[18]).unwrap_err().kind(), vellum::ErrorKind::OutOfRange);
}
