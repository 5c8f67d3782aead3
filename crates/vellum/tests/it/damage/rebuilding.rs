//! Logs after the death of all processes at once and the loss of the control file: crash images.
//!
//! An image is a copy of the files of a log in use, without the control file: it has only the
//! segments of that moment.

use std::fs::{self, File};
use std::io::Write;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use tempfile::TempDir;
use vellum::{Fill, Layout, Log, Lsn, Options, Preallocate, Tuning};

use crate::support::{
    FILLS, LAYOUTS, Read, assert_sound, copy_log, payload, place, read_all, scratch, segment_files,
    small,
};

fn image(dir: &TempDir) -> PathBuf {
    let image = dir.path().join("image");
    let _ = fs::remove_dir_all(&image);
    copy_log(&place(dir), &image);
    fs::remove_file(image.join("control")).unwrap();
    image
}

fn append(log: &Log, seed: u64, len: usize) -> Read {
    let bytes = payload(log.layout(), seed, len);
    (log.append(&bytes).unwrap(), bytes)
}

/// Everything but the markers of a text log.
fn records(log: &Log) -> Vec<Read> {
    let mut all = read_all(log);
    if log.layout() == Layout::Text {
        all.retain(|(_, line)| line != b"\n" && line.first() != Some(&b'~'));
    }
    all
}

/// Opens an image and asserts that exactly `expected` is in it, that it continues, and that the
/// same comes out when the control file is lost once more.
#[track_caller]
fn assert_recovers(image: &Path, expected: &[Read], case: &str) {
    let lsns = |reads: &[Read]| reads.iter().map(|read| read.0.get()).collect::<Vec<_>>();
    let log = Options::default().open(image).unwrap();
    let found = records(&log);
    assert_eq!(lsns(&found), lsns(expected), "{case}: positions");
    assert!(found == expected, "{case}: bytes");
    assert_sound(&log);
    let after = append(&log, 999, 50);
    let expected = [expected, &[after]].concat();
    assert!(records(&log) == expected, "{case}: goes on");
    drop(log);
    fs::remove_file(image.join("control")).unwrap();
    let log = Options::default().open(image).unwrap();
    assert!(records(&log) == expected, "{case}: once more from the segments");
    assert_sound(&log);
}

#[test]
fn what_lies_behind_an_unfinished_record_is_kept_however_far_behind() {
    for layout in LAYOUTS {
        for fill in FILLS {
            for (held, behind) in [(100, 1), (100, 3), (100, 60), (9000, 5), (9000, 60), (3000, 60)]
            {
                let case = format!("{layout} {fill} {held} {behind}");
                let dir = scratch();
                let log = small(layout).tuning(Tuning::new().fill(fill)).open(place(&dir)).unwrap();
                let mut expected: Vec<Read> = (0..5).map(|seed| append(&log, seed, 300)).collect();
                let mut reservation = log.reserve(held).unwrap();
                expected.extend((5..5 + behind).map(|seed| append(&log, seed, 300)));
                assert_recovers(&image(&dir), &expected, &format!("{case}, empty"));
                reservation.write_all(&vec![b'x'; held / 2]).unwrap();
                if layout == Layout::Framed {
                    assert_recovers(&image(&dir), &expected, &format!("{case}, half"));
                }
            }
        }
    }
}

/// Text is searched in pieces of a mebibyte.
#[test]
fn an_unfinished_line_deep_in_a_long_file_hides_nothing() {
    let dir = scratch();
    let options = Options::mapped_text().tuning(Tuning::new().segment_capacity_bytes(4 << 20));
    let log = options.open(place(&dir)).unwrap();
    let mut expected: Vec<Read> = (0..15).map(|seed| append(&log, seed, 100_000)).collect();
    let _reservation = log.reserve(1000).unwrap();
    expected.extend((15..25).map(|seed| append(&log, seed, 100_000)));
    assert_recovers(&image(&dir), &expected, "2.5 MB");
}

#[test]
fn an_unfinished_record_leaves_no_nul_in_a_text_log() {
    for fill in FILLS {
        for behind in [1, 60] {
            let dir = scratch();
            let log =
                small(Layout::Text).tuning(Tuning::new().fill(fill)).open(place(&dir)).unwrap();
            append(&log, 0, 300);
            let mut reservation = log.reserve(200).unwrap();
            reservation.write_all(b"half a li").unwrap();
            (1..1 + behind).for_each(|seed| drop(append(&log, seed, 300)));
            let image = image(&dir);
            drop(Options::default().open(&image).unwrap());
            let text = crate::support::concatenated(&image);
            assert!(!text.contains(&0), "{fill} {behind}");
        }
    }
}

#[test]
fn a_text_segment_that_was_not_yet_cut_when_all_died_shows_no_nul() {
    let dir = scratch();
    let log = small(Layout::Text)
        .tuning(Tuning::new().preallocate(Preallocate::Off))
        .open(place(&dir))
        .unwrap();
    let expected: Vec<Read> = (0..30).map(|seed| append(&log, seed, 300)).collect();
    let image = image(&dir);
    // The writer reserves across the boundary first, and cuts the file then.
    let sealed = &segment_files(&image)[0];
    assert!(sealed.metadata().unwrap().len() < 4096);
    File::options().write(true).open(sealed).unwrap().set_len(4096).unwrap();
    assert_recovers(&image, &expected, "not yet cut");
}

#[test]
fn the_end_of_a_framed_segment_that_was_not_yet_padded_hides_nothing() {
    for fill in FILLS {
        for preallocate in [Preallocate::Auto, Preallocate::Off] {
            let dir = scratch();
            let options =
                small(Layout::Framed).tuning(Tuning::new().fill(fill).preallocate(preallocate));
            let log = options.open(place(&dir)).unwrap();
            let expected: Vec<Read> = (0..30).map(|seed| append(&log, seed, 300)).collect();
            let image = image(&dir);
            let sealed = &segment_files(&image)[0];
            let mut in_first = expected.iter().filter(|read| read.0.get() < 2 * 4096);
            let end = in_first.next_back().unwrap().0.get() - 4096 + 312;
            let file = File::options().write(true).open(sealed).unwrap();
            if preallocate == Preallocate::Off {
                file.set_len(4096 + end).unwrap();
            } else {
                file.write_all_at(&vec![0; 4096 - end as usize], 4096 + end).unwrap();
            }
            assert_recovers(&image, &expected, &format!("{fill} {preallocate}"));
        }
    }
}

#[test]
fn a_batch_of_which_a_part_is_missing_disappears_as_a_whole() {
    for fill in FILLS {
        for lens in [[10, 20, 30, 40], [2000, 2000, 2000, 2000]] {
            for missing in 0..4 {
                let case = format!("{fill} {lens:?}, from record {missing} on");
                let dir = scratch();
                let log = small(Layout::Framed)
                    .tuning(Tuning::new().fill(fill))
                    .open(place(&dir))
                    .unwrap();
                let before = append(&log, 1, 100);
                let mut batch = log.batch();
                lens.iter().for_each(|len| batch.push(&vec![b'b'; *len]).unwrap());
                batch.append().unwrap();
                let lost = read_all(&log)[1 + missing].0;
                let image = image(&dir);
                wipe_from(&image, lost);
                let log = Options::default().open(&image).unwrap();
                let found = read_all(&log);
                assert!(found == [before], "{case}: {} records are seen", found.len());
                assert_sound(&log);
            }
        }
    }
}

/// Puts zeros from a position to the end of the log.
fn wipe_from(image: &Path, from: Lsn) {
    for (index, path) in segment_files(image).iter().enumerate() {
        let first = 4096 * (index as u64 + 1);
        let offset = from.get().saturating_sub(first);
        if offset < 4096 {
            let file = File::options().write(true).open(path).unwrap();
            file.write_all_at(&vec![0; 4096 - offset as usize], 4096 + offset).unwrap();
        }
    }
}

#[test]
fn records_behind_a_long_torn_one_are_kept_whatever_it_held() {
    // Numbers that look like the lengths of records, wherever one looks.
    let words: Vec<u8> =
        (0..250_000u32).flat_map(|index| (60_000 + index % 7).to_le_bytes()).collect();
    for fill in [Fill::Mapped, Fill::Pwrite] {
        let dir = scratch();
        let options =
            Options::default().tuning(Tuning::new().segment_capacity_bytes(4 << 20).fill(fill));
        let log = options.open(place(&dir)).unwrap();
        let before = append(&log, 1, 100);
        let torn = log.append(&words).unwrap();
        let after: Vec<Read> = (2..20).map(|seed| append(&log, seed, 300)).collect();
        let image = image(&dir);
        let file = File::options().write(true).open(&segment_files(&image)[0]).unwrap();
        let offset = 4096 + torn.get() - (4 << 20) + words.len() as u64 - 100;
        file.write_all_at(&[0; 50], offset).unwrap();
        let expected = [vec![before], after].concat();
        assert_recovers(&image, &expected, &format!("{fill}"));
    }
}
