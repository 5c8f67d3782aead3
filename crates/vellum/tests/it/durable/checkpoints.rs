//! The mark that a user keeps with the log.

use std::time::Duration;

use vellum::{ErrorKind, Lsn, Options};

use super::seals::flip;
use super::{after_power_cut, kinds, staged};
use crate::support::{place, read_all, scratch};

#[test]
fn a_checkpoint_survives_power_cuts_closing_and_trimming() {
    for options in kinds().into_iter().take(3) {
        let dir = scratch();
        let log = options.open(place(&dir)).unwrap();
        assert_eq!(log.checkpoint().lsn(), Lsn::ZERO);
        let lsns: Vec<_> = (0..100).map(|_| log.append(&[5; 600]).unwrap()).collect();
        log.checkpoint().set(lsns[70]).unwrap();
        assert_eq!(log.checkpoint().lsn(), lsns[70]);
        assert!(log.durable() > lsns[99], "everything before it is committed too");
        log.trim(lsns[60]).unwrap();
        let copy = after_power_cut(&place(&dir));
        let recovered = Options::default().open(place(&copy)).unwrap();
        assert_eq!(recovered.checkpoint().lsn(), lsns[70]);
        assert!(recovered.begin() <= lsns[60]);
        assert_eq!(read_all(&recovered).last().unwrap().0, lsns[99]);
        drop(log);
        assert_eq!(Options::default().open(place(&dir)).unwrap().checkpoint().lsn(), lsns[70]);
    }
}

/// The commit record with a new checkpoint may arrive, and not the records in front of it.
#[test]
fn a_checkpoint_whose_record_a_power_cut_has_taken_is_the_one_before() {
    for options in kinds().into_iter().take(3) {
        let dir = scratch();
        let log = options.open(place(&dir)).unwrap();
        let first = log.append(&[5; 600]).unwrap();
        log.checkpoint().set(first).unwrap();
        let second = log.append(&[5; 600]).unwrap();
        let third = log.append(&[5; 600]).unwrap();
        log.checkpoint().set(third).unwrap();
        for (lost, checkpoint) in [(second, first), (third, first), (Lsn::MAX, third)] {
            let copy = after_power_cut(&place(&dir));
            if lost != Lsn::MAX {
                flip(&place(&copy), 16384, lost);
            }
            let recovered = Options::default().open(place(&copy)).unwrap();
            assert_eq!(recovered.checkpoint().lsn(), checkpoint);
        }
    }
}

/// Truncating drops the commit record that carries the checkpoint, and not the checkpoint.
#[test]
fn a_checkpoint_survives_that_its_commit_record_is_truncated() {
    for options in kinds().into_iter().take(3) {
        let dir = scratch();
        let log = options.open(place(&dir)).unwrap();
        let lsns: Vec<_> = (0..10).map(|_| log.append(&[5; 600]).unwrap()).collect();
        log.checkpoint().set(lsns[1]).unwrap();
        log.checkpoint().set(lsns[3]).unwrap();
        let after_cut = |from| {
            log.truncate(from).unwrap();
            let copy = after_power_cut(&place(&dir));
            let recovered = Options::default().open(place(&copy)).unwrap();
            let found = (recovered.checkpoint().lsn(), log.checkpoint().lsn());
            // It is opened once more, in one boot more.
            let again = after_power_cut(&place(&copy));
            let again = Options::default().open(place(&again)).unwrap();
            assert_eq!(again.checkpoint().lsn(), found.0);
            found
        };
        assert_eq!(after_cut(lsns[6]), (lsns[3], lsns[3]));
        // A checkpoint in the part that was cut off is gone.
        assert_eq!(after_cut(lsns[2]), (lsns[2], lsns[2]));
        let next = log.append(&[5; 600]).unwrap();
        log.checkpoint().set(next).unwrap();
        let copy = after_power_cut(&place(&dir));
        let recovered = Options::default().open(place(&copy)).unwrap();
        assert_eq!(recovered.checkpoint().lsn(), next, "a newer one counts");
    }
}

/// A trim may remove every segment with a commit record, and not the checkpoint.
#[test]
fn a_checkpoint_survives_that_its_commit_record_is_trimmed() {
    for options in kinds().into_iter().take(3) {
        let dir = scratch();
        let log = options.open(place(&dir)).unwrap();
        let first = log.append(&[5; 600]).unwrap();
        log.checkpoint().set(first).unwrap();
        let lsns: Vec<_> = (0..100).map(|_| log.append(&[5; 600]).unwrap()).collect();
        log.trim(lsns[90]).unwrap();
        let copy = after_power_cut(&place(&dir));
        let recovered = Options::default().open(place(&copy)).unwrap();
        assert_eq!(recovered.checkpoint().lsn(), first);
    }
}

/// The commit record ends where its segment does, and the trim begins there.
#[test]
fn a_checkpoint_survives_a_trim_to_the_end_of_its_commit_record() {
    const RECORD_LEN: u64 = 32;
    let dir = scratch();
    let log = staged().open(place(&dir)).unwrap();
    let first = log.append(&[5; 600]).unwrap();
    log.checkpoint().set(first).unwrap();
    let rest = 16384 - log.tail().get() % 16384;
    log.append_durable(&vec![5; (rest - RECORD_LEN - 8) as usize]).unwrap();
    assert_eq!(log.tail().get() % 16384, 0, "the commit record is the last of its segment");
    let next = log.append(&[5; 600]).unwrap();
    log.trim(next).unwrap();
    let copy = after_power_cut(&place(&dir));
    let recovered = Options::default().open(place(&copy)).unwrap();
    assert_eq!(recovered.checkpoint().lsn(), first);
}

/// Nothing is published behind a reservation; a record that was appended there is covered all the
/// same.
#[test]
fn a_checkpoint_covers_every_record_whose_append_has_returned() {
    let dir = scratch();
    let log = staged().timeout(Duration::from_millis(50)).open(place(&dir)).unwrap();
    let first = log.append(b"first").unwrap();
    let held = log.reserve(3).unwrap();
    let behind = log.append(b"behind").unwrap();
    assert!(log.published() <= behind);
    // Another thread: the one that holds the reservation would wait for itself.
    let in_vain = std::thread::scope(|scope| scope.spawn(|| log.checkpoint().set(first)).join());
    assert_eq!(in_vain.unwrap().unwrap_err().kind(), ErrorKind::TimedOut);
    assert_eq!(log.checkpoint().lsn(), Lsn::ZERO);
    drop(held);
    log.checkpoint().set(first).unwrap();
    assert!(log.durable() > behind);
}

#[test]
fn a_checkpoint_outside_of_the_log_or_in_a_text_log_is_refused() {
    let dir = scratch();
    let log = staged().open(place(&dir)).unwrap();
    for lsn in [Lsn::new(1), Lsn::new(log.tail().get() + 8), Lsn::MAX] {
        assert_eq!(log.checkpoint().set(lsn).unwrap_err().kind(), ErrorKind::OutOfRange);
    }
    let dir = scratch();
    let text = Options::mapped_text().open(place(&dir)).unwrap();
    assert_eq!(text.checkpoint().set(text.tail()).unwrap_err().kind(), ErrorKind::Unsupported);
}
