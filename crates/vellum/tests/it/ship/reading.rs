//! Only durable records are read for shipping, and they are verified.

use std::fs::File;
use std::os::unix::fs::FileExt;

use vellum::{ErrorKind, Layout, Lsn, Options, Tuning};

use super::{append, ship};
use crate::durable::kinds;
use crate::support::{LAYOUTS, place, scratch, small};

#[test]
fn nothing_is_shipped_before_it_is_durable() {
    for options in kinds() {
        let dir = scratch();
        let log = options.open(place(&dir)).unwrap();
        let shipper = log.ship().elect().unwrap().unwrap();
        append(&log, 100, 0, 300);
        let (before, durable) = (log.durable(), shipper.durable().unwrap());
        let is_staged = log.stat().unwrap().fill == vellum::Fill::Staged;
        // The shipper commits records without a commit; a staged log has a committing writer.
        assert_eq!(durable == before, is_staged);
        assert!(is_staged || durable == log.published());
        append(&log, 1, 0, 300);
        let beyond = Lsn::new(durable.get() + 8);
        let mut buf = [0; 100];
        assert_eq!(shipper.read(beyond, &mut buf).unwrap_err().kind(), ErrorKind::OutOfRange);
        assert_eq!(shipper.set_shipped(beyond).unwrap_err().kind(), ErrorKind::OutOfRange);
        assert_eq!(shipper.read(durable, &mut buf).unwrap().len, 0);
    }
}

#[test]
fn reading_may_start_at_the_end_of_any_piece() {
    for options in kinds() {
        let dir = scratch();
        let log = options.open(place(&dir)).unwrap();
        append(&log, 60, 0, 40_000);
        log.sync().unwrap();
        let shipper = log.ship().elect().unwrap().unwrap();
        let all = ship(&shipper, shipper.begin(), 900);
        let bytes = |from: Lsn, shipper| {
            let rest = ship(shipper, from, 1 << 20);
            rest.into_iter().flat_map(|(_, _, bytes)| bytes).collect::<Vec<u8>>()
        };
        for (index, (start, ..)) in all.iter().enumerate().step_by(17) {
            let expected: Vec<u8> = all[index..].iter().flat_map(|piece| piece.2.clone()).collect();
            assert!(bytes(*start, &shipper) == expected, "from {start}");
        }
    }
}

#[test]
fn a_bad_disk_does_not_become_a_bad_backup() {
    for len in [500, 1 << 20] {
        let dir = scratch();
        let log = small(Layout::Framed).open(place(&dir)).unwrap();
        let records = append(&log, 200, 0, 1000);
        log.sync().unwrap();
        let bad = records[77].0;
        let path = place(&dir).join(format!("{:016x}.seg", bad.get() / 4096 * 4096));
        let file = File::options().read(true).write(true).open(path).unwrap();
        let offset = 4096 + bad.get() % 4096 + 8;
        let mut byte = [0];
        file.read_exact_at(&mut byte, offset).unwrap();
        file.write_all_at(&[byte[0] ^ 4], offset).unwrap();
        let shipper = log.ship().elect().unwrap().unwrap();
        let (mut at, mut buf) = (shipper.begin(), vec![0; len]);
        let error = loop {
            assert!(at < log.durable(), "the damage is found");
            match shipper.read(at, &mut buf) {
                Ok(piece) => at = piece.next,
                Err(error) => break error,
            }
        };
        assert!(at <= bad, "nothing behind the damage was given out");
        assert_eq!((error.kind(), error.lsn()), (ErrorKind::Corrupt, Some(bad)), "{error}");
    }
}

#[test]
fn a_record_of_many_megabytes_is_read_in_pieces() {
    let dir = scratch();
    let log = Options::default()
        .tuning(Tuning::new().segment_capacity_bytes(1 << 20))
        .open(place(&dir))
        .unwrap();
    log.append(b"before").unwrap();
    let long = log.append(&vec![7; 5 << 20]).unwrap();
    log.append(b"after").unwrap();
    let shipper = log.ship().elect().unwrap().unwrap();
    let all = ship(&shipper, shipper.begin(), 300_000);
    let whole: Vec<Lsn> = all.iter().filter(|piece| piece.1.is_whole).map(|p| p.1.next).collect();
    // The short record, the rest of its segment, and then all at once.
    assert_eq!(whole, [Lsn::new((1 << 20) + 16), long, log.durable()]);
    assert_eq!(
        all.iter().map(|piece| piece.2.len()).sum::<usize>() as u64,
        log.durable().get() - log.begin().get()
    );
}

#[test]
fn what_was_removed_before_it_was_shipped_is_told() {
    for layout in LAYOUTS {
        let dir = scratch();
        let log = small(layout).open(place(&dir)).unwrap();
        let records = append(&log, 300, 0, 100);
        log.sync().unwrap();
        let shipper = log.ship().elect().unwrap().unwrap();
        let from = shipper.begin();
        log.trim(records[250].0).unwrap();
        let error = shipper.read(from, &mut [0; 100]).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Trimmed);
        assert!(shipper.begin() > from);
        shipper.set_gap(from, shipper.begin()).unwrap();
        assert_eq!(log.ship().state().unwrap().gap, Some((from, shipper.begin())));
        ship(&shipper, shipper.begin(), 1 << 20);
    }
}

#[test]
fn a_file_that_somebody_removed_is_told() {
    let dir = scratch();
    let log = small(Layout::Text).open(place(&dir)).unwrap();
    append(&log, 300, 0, 100);
    log.sync().unwrap();
    let second = log.stat().unwrap().segments[1].path.clone();
    std::fs::remove_file(second).unwrap();
    let shipper = log.ship().elect().unwrap().unwrap();
    let lost: Vec<_> = ship(&shipper, shipper.begin(), 1 << 20)
        .into_iter()
        .filter(|(_, piece, _)| piece.segment.is_lost)
        .collect();
    assert_eq!(lost.len(), 1);
    let (start, piece, _) = &lost[0];
    assert_eq!((*start, piece.next), (piece.segment.start, piece.segment.end));
}
