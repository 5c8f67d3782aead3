//! The mark that a user keeps with the log.

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

/// The commit record with a new checkpoint may arrive, and not what lies in front of it.
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
