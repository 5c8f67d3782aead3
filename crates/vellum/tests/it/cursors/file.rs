//! The file of the cursors: torn, damaged, missing, copied, of another log.

use std::fs;
use std::os::unix::fs::FileExt;
use std::path::Path;

use vellum::{CursorHold, ErrorKind, Layout, Lsn, Options, Tuning};

use super::{append, only, rest};
use crate::support::mount::Mount;
use crate::support::{LAYOUTS, copy_log, place, scratch, segment_files, small};

/// Where the images of the first cursor are.
const FIRST: u64 = 4096;
const IMAGE: u64 = 512;

/// Flips a bit in an image of the first cursor.
fn damage(log: &Path, image: u64) {
    let file = fs::File::options().read(true).write(true).open(log.join("cursors")).unwrap();
    let mut byte = [0];
    file.read_exact_at(&mut byte, FIRST + image * IMAGE + 17).unwrap();
    file.write_all_at(&[byte[0] ^ 4], FIRST + image * IMAGE + 17).unwrap();
}

#[test]
fn a_torn_image_leaves_the_cursor_at_the_commit_before() {
    let dir = scratch();
    let log = small(Layout::Framed).open(place(&dir)).unwrap();
    let all = append(&log, 20, 0);
    let cursor = log.cursor("x", Lsn::ZERO).unwrap();
    // Made: images 1 and 2. So commits go to the first half, to the second, to the first.
    for (index, half) in [(5, 0), (6, 1), (7, 0)] {
        cursor.commit(all[index].0).unwrap();
        let torn = scratch();
        copy_log(&place(&dir), &place(&torn));
        damage(&place(&torn), half);
        let log = Options::default().open(place(&torn)).unwrap();
        let before = if index == 5 { 0 } else { index - 1 };
        let cursor = log.cursor("x", Lsn::ZERO).unwrap();
        assert_eq!(cursor.position().unwrap(), all[before].0);
        cursor.commit(all[index].0).unwrap();
        assert_eq!(cursor.position().unwrap(), all[index].0);
    }
}

#[test]
fn one_damaged_sector_neither_loses_a_new_cursor_nor_brings_a_removed_one_back() {
    for half in [0, 1] {
        let dir = scratch();
        let log = small(Layout::Framed).open(place(&dir)).unwrap();
        append(&log, 20, 0);
        let cursor = log.cursor("x", Lsn::ZERO).unwrap();
        let copy = scratch();
        copy_log(&place(&dir), &place(&copy));
        damage(&place(&copy), half);
        assert_eq!(Options::default().open(place(&copy)).unwrap().cursors().unwrap().len(), 1);
        cursor.remove().unwrap();
        damage(&place(&dir), half);
        assert_eq!(log.cursors().unwrap(), []);
    }
}

#[test]
fn nothing_is_removed_while_the_cursors_cannot_be_read() {
    for layout in LAYOUTS {
        let dir = scratch();
        let mut options = small(layout);
        if layout == Layout::Text {
            options = options.rotate_bytes(1000).retain_files(1);
        }
        let log = options.open(place(&dir)).unwrap();
        let all = append(&log, 10, 0);
        log.cursor("x", Lsn::ZERO).unwrap().hold(CursorHold::new()).unwrap();
        damage(&place(&dir), 0);
        damage(&place(&dir), 1);
        append(&log, 100, 10);
        assert_eq!(log.trim(log.published()).unwrap_err().kind(), ErrorKind::Corrupt);
        assert_eq!(log.begin(), all[0].0);
        assert!(segment_files(&place(&dir)).len() > 3);
        let stat = log.stat().unwrap();
        assert!(stat.cursors.is_empty() && stat.cursors_fault.unwrap().contains("damaged"));
        // The remedy in the error helps.
        fs::remove_file(place(&dir).join("cursors")).unwrap();
        log.trim(log.published()).unwrap();
        assert_eq!(log.stat().unwrap().cursors_fault, None);
        assert_eq!(log.cursor("x", Lsn::ZERO).unwrap().position().unwrap(), log.begin());
    }
}

#[test]
fn the_cursors_of_another_log_are_refused() {
    let (dir, other) = (scratch(), scratch());
    let log = small(Layout::Framed).open(place(&dir)).unwrap();
    log.cursor("x", Lsn::ZERO).unwrap();
    let stranger = small(Layout::Framed).open(place(&other)).unwrap();
    append(&stranger, 10, 0);
    fs::copy(place(&dir).join("cursors"), place(&other).join("cursors")).unwrap();
    assert_eq!(stranger.cursor("x", Lsn::ZERO).unwrap_err().kind(), ErrorKind::Incompatible);
    assert_eq!(stranger.trim(stranger.published()).unwrap_err().kind(), ErrorKind::Incompatible);
    // A new log has none, whatever was left in its directory.
    drop(log);
    for name in ["control", "geometry"] {
        fs::remove_file(place(&dir).join(name)).unwrap();
    }
    segment_files(&place(&dir)).iter().for_each(|file| fs::remove_file(file).unwrap());
    let log = small(Layout::Framed).open(place(&dir)).unwrap();
    assert_eq!(log.cursors().unwrap(), []);
}

#[test]
fn a_copy_has_the_cursors_and_not_their_owners() {
    for layout in LAYOUTS {
        let (dir, copy) = (scratch(), scratch());
        let log = small(layout).open(place(&dir)).unwrap();
        let all = append(&log, 20, 0);
        let cursor = log.cursor("x", all[7].0).unwrap();
        cursor.own().unwrap();
        cursor.hold(CursorHold::new()).unwrap();
        copy_log(&place(&dir), &place(&copy));
        let log = Options::default().open(place(&copy)).unwrap();
        let stat = only(&log);
        assert!(stat.hold.is_some() && !stat.is_owned);
        let copied = log.cursor("x", Lsn::ZERO).unwrap();
        assert_eq!(rest(&copied)[0], all[7].0);
        copied.own().unwrap();
        copied.commit(all[9].0).unwrap();
        assert_eq!(cursor.position().unwrap(), all[7].0);
    }
}

#[test]
fn a_maker_that_died_leaves_no_half_file() {
    let dir = scratch();
    let log = small(Layout::Framed).open(place(&dir)).unwrap();
    append(&log, 3, 0);
    fs::write(place(&dir).join("cursors.new"), b"VELLUMCU").unwrap();
    log.cursor("x", Lsn::ZERO).unwrap();
    assert!(!place(&dir).join("cursors.new").exists());
    assert_eq!(fs::metadata(place(&dir).join("cursors")).unwrap().len(), 135_168);
}

/// Takes all the space of a filesystem.
fn fill(dir: &Path) {
    use std::io::Write;
    let mut file = fs::File::create(dir.join("ballast")).unwrap();
    for len in [65536, 4096, 1] {
        while file.write_all(&vec![1; len]).is_ok() {}
    }
    let _ = file.sync_all();
}

#[test]
fn a_cursor_moves_on_a_full_disk_and_the_first_one_is_refused_there() {
    let name = "a_cursor_moves_on_a_full_disk_and_the_first_one_is_refused_there";
    let mounts = [Mount::ext4(name, 16), Mount::xfs(name)];
    for mount in mounts.into_iter().flatten() {
        let [first, second] = ["first", "second"].map(|log| {
            let options =
                Options::mapped_text().tuning(Tuning::new().segment_capacity_bytes(65536));
            let log = options.open(mount.path().join(log)).unwrap();
            append(&log, 20, 0);
            log.sync().unwrap();
            log
        });
        let cursor = first.cursor("x", Lsn::ZERO).unwrap();
        fill(mount.path());
        let mut reader = cursor.reader().unwrap();
        while let Some(record) = reader.next().unwrap() {
            let next = record.next_lsn;
            cursor.commit(next).unwrap();
        }
        assert_eq!(only(&first).lag_records, Some(0));
        cursor.hold(CursorHold::new()).unwrap();
        first.cursor("y", Lsn::ZERO).unwrap().remove().unwrap();
        assert_eq!(second.cursor("x", Lsn::ZERO).unwrap_err().kind(), ErrorKind::NoSpace);
        assert!(!second.path().join("cursors.new").exists());
        fs::remove_file(mount.path().join("ballast")).unwrap();
        second.cursor("x", Lsn::ZERO).unwrap();
    }
}
