//! A log that is restored from shipped pieces holds the same records at the same positions.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use vellum::ship::{FileName, LogShape, RestoreOptions, Restorer};
use vellum::stat::RecoveryReason;
use vellum::{ErrorKind, Layout, Lsn, Options, Tuning};
use vellum_testing::cache::{cached_pages, forget};
use vellum_testing::kernel::where_it_fails;

use super::{Shipped, append, restore, ship, write};
use crate::durable::kinds;
use crate::support::child::{self, Child};
use crate::support::{LAYOUTS, Read, assert_holds, place, read_all, scratch, skip, small};

/// How many pages of the three oldest segments are cached, of 1 MiB each.
fn cached(dir: &Path) -> Vec<usize> {
    cached_pages(dir, 700_000).into_iter().map(|(_, pages)| pages).take(3).collect()
}

#[test]
fn shipping_and_restoring_leave_the_page_cache_as_it_was() {
    for layout in LAYOUTS {
        let dir = scratch();
        let (path, copy) = (place(&dir), dir.path().join("copy"));
        let options = small(layout).tuning(Tuning::new().segment_capacity_bytes(1 << 20));
        let log = options.open(&path).unwrap();
        append(&log, 500, 0, 40_000);
        log.sync().unwrap();
        drop(log);
        let log = options.open(&path).unwrap();
        let shipper = log.ship().elect().unwrap().unwrap();
        let hot = cached(&path);
        let shipped = ship(&shipper, shipper.begin(), 1 << 20);
        assert!(hot.iter().all(|pages| *pages > 0) && cached(&path) == hot, "{layout}: {hot:?}");
        forget(&path, 700_000);
        if cached(&path) != [0; 3] {
            skip("shipping and the page cache", "this filesystem keeps its files in memory");
            return;
        }
        ship(&shipper, shipper.begin(), 1 << 20);
        assert_eq!(cached(&path), [0; 3], "{layout}, shipped");
        restore(&log.ship().shape().unwrap(), shipper.begin(), &shipped, &copy).unwrap();
        assert_eq!(cached(&copy), [0; 3], "{layout}, restored");
    }
}

/// Names of the segments of a log.
fn segments(dir: &Path) -> BTreeSet<String> {
    let names = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().file_name());
    let names = names.map(|name| name.into_string().unwrap());
    names.filter(|name| name.ends_with(".log") || name.ends_with(".seg")).collect()
}

#[test]
fn a_restored_log_has_the_same_records_at_the_same_positions() {
    for options in kinds() {
        for (longest, len) in [(300, 1000), (300, 1 << 20), (40_000, 700), (40_000, 1 << 20)] {
            let dir = scratch();
            let (path, copy) = (place(&dir), dir.path().join("copy"));
            let log = options.clone().open(&path).unwrap();
            let mut expected = append(&log, 60, 0, longest);
            log.sync().unwrap();
            expected.extend(append(&log, 60, 100, longest));
            log.sync().unwrap();
            let shipper = log.ship().elect().unwrap().unwrap();
            let shipped = ship(&shipper, shipper.begin(), len);
            let end =
                restore(&log.ship().shape().unwrap(), shipper.begin(), &shipped, &copy).unwrap();
            assert_eq!(end, log.durable());
            let restored = Options::default().open(&copy).unwrap();
            assert_holds(&restored, &expected);
            assert_eq!((restored.begin(), restored.id()), (log.begin(), log.id()));
            assert_eq!(restored.recovery().unwrap().cut_bytes, 0);
            if log.layout() == Layout::Text {
                assert_eq!(segments(&copy), segments(&path));
                assert!(copy.join("current").exists());
            }
            // It is a log like any other.
            let more = append(&restored, 60, 200, longest);
            restored.sync().unwrap();
            assert_holds(&restored, &[expected, more].concat());
        }
    }
}

#[test]
fn a_log_is_restored_from_where_it_begins() {
    let dir = scratch();
    let (path, copy) = (place(&dir), dir.path().join("copy"));
    let log = small(Layout::Framed).open(&path).unwrap();
    let records = append(&log, 300, 0, 100);
    log.sync().unwrap();
    // Inside of a segment, and of a batch.
    let begin = records[200].0;
    log.trim(begin).unwrap();
    let shipper = log.ship().elect().unwrap().unwrap();
    assert_eq!(shipper.begin(), begin);
    let shipped = ship(&shipper, begin, 1 << 20);
    restore(&log.ship().shape().unwrap(), begin, &shipped, &copy).unwrap();
    let restored = Options::default().open(&copy).unwrap();
    assert_holds(&restored, &records[200..]);
}

#[test]
fn a_log_is_restored_up_to_the_end_of_any_piece() {
    for options in kinds() {
        let dir = scratch();
        let log = options.open(place(&dir)).unwrap();
        let records = append(&log, 100, 0, 3000);
        log.sync().unwrap();
        let shipper = log.ship().elect().unwrap().unwrap();
        let (shape, begin) = (log.ship().shape().unwrap(), shipper.begin());
        let shipped = ship(&shipper, begin, 2000);
        for (count, (_, piece, _)) in shipped.iter().enumerate().step_by(7) {
            let copy = dir.path().join(count.to_string());
            restore(&shape, begin, &shipped[..=count].to_vec(), &copy).unwrap();
            let restored = Options::default().open(&copy).unwrap();
            let found = read_all(&restored);
            let is_text = log.layout() == Layout::Text;
            // A line that is cut gets its end.
            let whole = if is_text && !piece.is_whole { found.len() - 1 } else { found.len() };
            assert_eq!(found[..whole], records[..whole]);
            let is_cut = restored.recovery().unwrap().cut_bytes > 0;
            assert!(!(piece.is_whole && is_cut), "{piece:?} {:?}", restored.recovery());
            if piece.is_whole && !is_text {
                let expected = records.iter().filter(|(lsn, _)| *lsn < piece.next).count();
                assert_eq!(found.len(), expected);
            }
        }
    }
}

#[test]
fn positions_of_the_log_mean_the_same_in_the_restored_one() {
    for layout in LAYOUTS {
        let dir = scratch();
        let copy = dir.path().join("copy");
        let log = small(layout).open(place(&dir)).unwrap();
        let before = append(&log, 50, 0, 100);
        log.sync().unwrap();
        let stored = log.position(before[20].0).unwrap();
        let shape = log.ship().shape().unwrap();
        // Later than the shape was taken.
        let after = append(&log, 50, 50, 100);
        log.sync().unwrap();
        let later = log.position(after[20].0).unwrap();
        let shipper = log.ship().elect().unwrap().unwrap();
        let shipped = ship(&shipper, shipper.begin(), 4096);
        restore(
            &LogShape::from_bytes(&shape.to_bytes()).unwrap(),
            shipper.begin(),
            &shipped,
            &copy,
        )
        .unwrap();
        let restored = Options::default().open(&copy).unwrap();
        assert_eq!(restored.reader_at(stored).unwrap().position(), before[20].0);
        assert_eq!(restored.reader_at(later).unwrap_err().kind(), ErrorKind::Rewound);
        // And those of the restored log mean nothing in the one that it is from.
        let theirs = restored.position(before[20].0).unwrap();
        assert_eq!(log.reader_at(theirs).unwrap_err().kind(), ErrorKind::Rewound);
        assert_eq!(restored.recovery().unwrap().reason, RecoveryReason::ControlLost);
        // Another history, from an earlier position on.
        let cut = dir.path().join("cut");
        restore(&shape.cut_at(before[10].0), shipper.begin(), &shipped, &cut).unwrap();
        let cut = Options::default().open(&cut).unwrap();
        assert_eq!(cut.reader_at(stored).unwrap_err().kind(), ErrorKind::Rewound);
    }
}

/// The records of a small log at `path`, its shape, and its pieces of `len` bytes.
fn shipped_records(layout: Layout, path: &Path, len: usize) -> (Vec<Read>, LogShape, Shipped) {
    let log = small(layout).open(path).unwrap();
    let records = append(&log, 600, 0, 100);
    log.sync().unwrap();
    let shipper = log.ship().elect().unwrap().unwrap();
    (records, log.ship().shape().unwrap(), ship(&shipper, shipper.begin(), len))
}

#[test]
fn a_gap_is_no_damage() {
    for layout in LAYOUTS {
        let dir = scratch();
        let copy = dir.path().join("copy");
        let (records, shape, shipped) = shipped_records(layout, &place(&dir), 1 << 20);
        let begin = shipped[0].0;
        let mut restorer = Restorer::create(&copy, &shape, begin, &RestoreOptions::new()).unwrap();
        let (before, after) = (shipped[..2].to_vec(), shipped[5..].to_vec());
        write(&mut restorer, &shape, &before).unwrap();
        restorer.gap(after[0].0).unwrap();
        write(&mut restorer, &shape, &after).unwrap();
        restorer.finish().unwrap();
        let restored = Options::default().open(&copy).unwrap();
        let gone = before[1].1.next..after[0].0;
        let kept: Vec<_> = records.into_iter().filter(|(lsn, _)| !gone.contains(lsn)).collect();
        if layout == Layout::Framed {
            assert_holds(&restored, &kept);
            continue;
        }
        let mut reader = restored.reader(Lsn::ZERO).unwrap();
        reader.skip_damage(true);
        let mut found = Vec::new();
        while let Some(record) = reader.next().unwrap() {
            found.push((record.lsn, record.payload.to_vec()));
        }
        assert_eq!(found, kept);
        assert_eq!(reader.take_gaps().len(), 1);
    }
}

// A restore that was killed behind a gap and resumed did not know of the gap.
#[test]
fn a_gap_outlives_a_restore_that_was_killed_behind_it() {
    for layout in LAYOUTS {
        let dir = scratch();
        let (_, shape, shipped) = shipped_records(layout, &place(&dir), 1 << 20);
        let (begin, options) = (shipped[0].0, RestoreOptions::new());
        let (before, after) = (shipped[..2].to_vec(), shipped[5..].to_vec());
        for written in 0..after.len() {
            let copy = dir.path().join(written.to_string());
            let mut restorer = Restorer::create(&copy, &shape, begin, &options).unwrap();
            write(&mut restorer, &shape, &before).unwrap();
            let lost = (restorer.position(), after[0].0);
            restorer.gap(lost.1).unwrap();
            write(&mut restorer, &shape, &after[..written].to_vec()).unwrap();
            drop(restorer);
            let mut restorer = Restorer::resume(&copy, &shape, &options).unwrap();
            write(&mut restorer, &shape, &before).unwrap();
            if restorer.position() < lost.1 {
                restorer.gap(lost.1).unwrap();
            }
            write(&mut restorer, &shape, &after).unwrap();
            restorer.finish().unwrap();
            let stat = Options::default().open(&copy).unwrap().stat().unwrap();
            assert_eq!(stat.lost, Some(lost), "{layout}, killed behind {written} pieces");
        }
    }
}

#[test]
fn rules_of_retention_do_not_remove_what_was_just_restored() {
    let dir = scratch();
    let log = small(Layout::Text).retain_files(1).rotate_bytes(1000).open(place(&dir)).unwrap();
    let cursor = log.cursor("all", Lsn::ZERO).unwrap();
    cursor.hold(vellum::CursorHold::new()).unwrap();
    let records = append(&log, 100, 0, 100);
    log.sync().unwrap();
    let shipper = log.ship().elect().unwrap().unwrap();
    let shipped = ship(&shipper, shipper.begin(), 1 << 20);
    let (shape, begin) = (log.ship().shape().unwrap(), shipper.begin());
    for keeps_retention in [false, true] {
        let copy = dir.path().join(keeps_retention.to_string());
        let mut options = RestoreOptions::new();
        options.keeps_retention = keeps_retention;
        let mut restorer = Restorer::create(&copy, &shape, begin, &options).unwrap();
        write(&mut restorer, &shape, &shipped).unwrap();
        restorer.finish().unwrap();
        let restored = Options::default().open(&copy).unwrap();
        assert_eq!(read_all(&restored).len() == records.len(), !keeps_retention);
        let policy = restored.stat().unwrap().policy;
        assert_eq!(policy.rotate_bytes, Some(1000));
    }
}

#[test]
fn what_no_log_can_be_is_refused() {
    let dir = scratch();
    let log = small(Layout::Framed).open(place(&dir)).unwrap();
    append(&log, 10, 0, 100);
    log.sync().unwrap();
    let (shape, begin) = (log.ship().shape().unwrap(), log.begin());
    let create = |to: &Path, begin| Restorer::create(to, &shape, begin, &RestoreOptions::new());
    let kind = |answer: vellum::Result<Restorer>| answer.unwrap_err().kind();
    assert_eq!(kind(create(&place(&dir), begin)), ErrorKind::AlreadyExists);
    let copy = dir.path().join("copy");
    for begin in [0, 1, 4096 + 1, u64::MAX] {
        assert_eq!(kind(create(&copy, Lsn::new(begin))), ErrorKind::InvalidOption);
    }
    assert!(!copy.exists());
    let mut restorer = create(&copy, begin).unwrap();
    assert_eq!(restorer.write(Lsn::new(8192), b"x").unwrap_err().kind(), ErrorKind::OutOfRange);
    let file = FileName::new(Lsn::new(8192), Some(0), false);
    assert_eq!(restorer.file(file).unwrap_err().kind(), ErrorKind::InvalidOption);
    assert_eq!(restorer.gap(Lsn::new(4097)).unwrap_err().kind(), ErrorKind::OutOfRange);
    // Nothing but the shape: an empty log.
    restorer.finish().unwrap();
    assert_holds(&Options::default().open(&copy).unwrap(), &[]);
    let bytes = shape.to_bytes();
    for bit in 0..bytes.len() * 8 {
        let mut bytes = bytes.clone();
        bytes[bit / 8] ^= 1 << (bit % 8);
        assert!(LogShape::from_bytes(&bytes).is_err(), "bit {bit}");
    }
    assert!(LogShape::from_bytes(&bytes[..1000]).is_err());
    assert_eq!(LogShape::from_bytes(&bytes).unwrap(), shape);
}

#[test]
fn a_segment_that_could_not_be_synced_is_restored_once_more() {
    for layout in LAYOUTS {
        let dir = scratch();
        let copy = dir.path().join("copy");
        let (records, shape, shipped) = shipped_records(layout, &place(&dir), 1000);
        let begin = shipped[0].0;
        let mut restorer = Restorer::create(&copy, &shape, begin, &RestoreOptions::new()).unwrap();
        let write_all = |restorer: &mut Restorer| write(restorer, &shape, &shipped);
        let error = where_it_fails(libc::SYS_fsync, libc::EIO, || write_all(&mut restorer));
        assert_eq!(error.unwrap_err().raw_os_error(), Some(libc::EIO));
        assert_eq!(restorer.position(), begin, "the first segment is not on the device");
        write_all(&mut restorer).unwrap();
        restorer.finish().unwrap();
        assert_holds(&Options::default().open(&copy).unwrap(), &records);
    }
}

/// Restores the log of the first argument into the second, and waits in the middle of it.
pub(crate) fn restore_until_killed(arguments: &[String]) {
    let [from, to, count] = arguments else { panic!("from where, to where, how much") };
    let log = Options::default().open(from).unwrap();
    let shipper = log.ship().elect().unwrap().unwrap();
    let shipped = ship(&shipper, shipper.begin(), 1000);
    let shape = log.ship().shape().unwrap();
    let mut restorer =
        Restorer::create(to, &shape, shipper.begin(), &RestoreOptions::new()).unwrap();
    let count = count.parse::<usize>().unwrap() * shipped.len() / 10;
    write(&mut restorer, &shape, &shipped[..count].to_vec()).unwrap();
    child::say("in the middle");
    child::hear();
}

#[test]
fn a_restore_that_was_killed_is_refused_and_resumed() {
    for options in kinds() {
        let dir = scratch();
        let path = place(&dir);
        let log = options.open(&path).unwrap();
        let records = append(&log, 200, 0, 1000);
        log.sync().unwrap();
        for count in [0, 5, 10] {
            let copy = dir.path().join(count.to_string());
            let arguments = [path.to_str().unwrap(), copy.to_str().unwrap(), &count.to_string()];
            let mut child = Child::start("restore until killed", &arguments);
            child.expect("in the middle");
            child.kill();
            for options in [Options::default(), Options::default().read_only(true)] {
                let error = options.open(&copy).unwrap_err();
                assert_eq!(error.kind(), ErrorKind::Busy, "{error}");
                assert!(error.to_string().contains("--resume"), "{error}");
            }
            let shipper = log.ship().elect().unwrap().unwrap();
            let shipped = ship(&shipper, shipper.begin(), 1000);
            let (shape, options) = (log.ship().shape().unwrap(), RestoreOptions::new());
            let mut restorer = Restorer::resume(&copy, &shape, &options).unwrap();
            assert_eq!(restorer.position() > shipper.begin(), count > 0);
            write(&mut restorer, &shape, &shipped).unwrap();
            restorer.finish().unwrap();
            assert_holds(&Options::default().open(&copy).unwrap(), &records);
            let again = Restorer::resume(&copy, &shape, &options);
            assert_eq!(again.unwrap_err().kind(), ErrorKind::NotFound);
        }
    }
}
