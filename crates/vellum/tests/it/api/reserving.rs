//! Reservations that are filled in place, and batches that appear all or none.

use std::io::Write;

use vellum::{ErrorKind, Fill, Layout, Log, Lsn, Tuning};

use crate::support::{
    FILLS, LAYOUTS, assert_holds, assert_sound, payload, payloads, place, read_all, read_from,
    scratch, small,
};

const SIZES: [usize; 9] = [1, 7, 100, 4087, 4088, 4089, 4096, 10_000, 100_000];

#[test]
fn a_reservation_is_filled_in_place_rewritten_and_published() {
    for layout in LAYOUTS {
        for fill in FILLS {
            let dir = scratch();
            let log = small(layout).tuning(Tuning::new().fill(fill)).open(place(&dir)).unwrap();
            let mut expected = Vec::new();
            for (seed, size) in SIZES.into_iter().enumerate() {
                let bytes = payload(layout, seed as u64, size);
                let mut reservation = log.reserve(size).unwrap();
                let lsn = reservation.lsn();
                let placeholder = vec![b'x'; size / 2];
                reservation.write_all(&placeholder).unwrap();
                assert_eq!(reservation.remaining(), size - size / 2);
                reservation.write_all(&bytes[size / 2..]).unwrap();
                reservation.rewrite(0, &bytes[..size / 2]).unwrap();
                assert_eq!(reservation.publish().unwrap(), lsn);
                expected.push((lsn, bytes));
            }
            assert_holds(&log, &expected);
        }
    }
}

#[test]
fn a_record_may_be_written_byte_by_byte() {
    for layout in LAYOUTS {
        for fill in FILLS {
            let dir = scratch();
            let log = small(layout).tuning(Tuning::new().fill(fill)).open(place(&dir)).unwrap();
            let bytes = payload(layout, 1, 5000);
            let mut reservation = log.reserve(bytes.len()).unwrap();
            let lsn = reservation.lsn();
            for byte in &bytes {
                assert_eq!(reservation.write(&[*byte]).unwrap(), 1);
            }
            reservation.publish().unwrap();
            assert_holds(&log, &[(lsn, bytes)]);
        }
    }
}

#[test]
fn an_empty_reservation_is_an_empty_record_in_a_framed_log_alone() {
    let dir = scratch();
    let log = small(Layout::Framed).open(place(&dir)).unwrap();
    let lsn = log.reserve(0).unwrap().publish().unwrap();
    assert_holds(&log, &[(lsn, vec![])]);
    let dir = scratch();
    let log = small(Layout::Text).open(place(&dir)).unwrap();
    assert_eq!(log.reserve(0).unwrap_err().kind(), ErrorKind::InvalidOption);
}

#[test]
fn a_full_reservation_takes_no_more_bytes_wherever_it_ends() {
    for layout in LAYOUTS {
        for fill in FILLS {
            // The second size ends exactly with the segment.
            for size in [100, if layout == Layout::Framed { 4088 } else { 4096 }] {
                let dir = scratch();
                let log = small(layout).tuning(Tuning::new().fill(fill)).open(place(&dir)).unwrap();
                let bytes = payload(layout, 1, size);
                let mut reservation = log.reserve(size).unwrap();
                let lsn = reservation.lsn();
                reservation.write_all(&bytes).unwrap();
                assert_eq!(reservation.write(b"more").unwrap(), 0, "{layout} {fill} {size}");
                assert_eq!(reservation.write(b"").unwrap(), 0);
                reservation.rewrite(size, b"").unwrap();
                reservation.publish().unwrap();
                assert_holds(&log, &[(lsn, bytes)]);
            }
        }
    }
}

/// The rest of a reservation in a text log: marker lines.
fn is_marker(line: &[u8]) -> bool {
    line == b"\n" || line.first() == Some(&b'~')
}

#[test]
fn a_dropped_reservation_is_passed_over() {
    for layout in LAYOUTS {
        for fill in FILLS {
            let dir = scratch();
            let log = small(layout).tuning(Tuning::new().fill(fill)).open(place(&dir)).unwrap();
            let mut expected = Vec::new();
            for (seed, size) in SIZES.into_iter().enumerate() {
                let mut reservation = log.reserve(size).unwrap();
                reservation.write_all(&vec![b'x'; size * 2 / 3]).unwrap();
                drop(reservation);
                let bytes = payload(layout, seed as u64, 50);
                expected.push((log.append(&bytes).unwrap(), bytes));
            }
            let mut found = read_all(&log);
            if layout == Layout::Text {
                assert!(found.iter().any(|(_, line)| line.starts_with(b"~ vellum: ")));
                found.retain(|(_, line)| !is_marker(line));
            }
            assert_eq!(found, expected);
            assert_sound(&log);
        }
    }
}

#[test]
fn an_underfilled_publish_is_an_error_and_abandons_the_record() {
    for layout in LAYOUTS {
        let dir = scratch();
        let log = small(layout).open(place(&dir)).unwrap();
        let mut reservation = log.reserve(10).unwrap();
        reservation.write_all(b"123456789").unwrap();
        let lsn = reservation.lsn();
        let error = reservation.publish().unwrap_err();
        assert_eq!((error.kind(), error.lsn()), (ErrorKind::Abandoned, Some(lsn)));
        assert!(error.to_string().contains("9 of 10"), "{error}");
        assert_eq!(log.published(), log.tail());
        let found: Vec<_> = payloads(&log).into_iter().filter(|line| !is_marker(line)).collect();
        assert!(found.is_empty(), "{found:?}");
    }
}

#[test]
fn what_was_not_yet_written_cannot_be_rewritten() {
    let dir = scratch();
    let log = small(Layout::Framed).open(place(&dir)).unwrap();
    let mut reservation = log.reserve(10).unwrap();
    reservation.write_all(b"12345").unwrap();
    for (offset, bytes) in [(0, b"123456".as_slice()), (5, b"1"), (6, b""), (usize::MAX, b"1")] {
        assert_eq!(reservation.rewrite(offset, bytes).unwrap_err().kind(), ErrorKind::OutOfRange);
    }
}

#[test]
fn nothing_behind_a_reservation_is_visible_before_it_is_published() {
    for layout in LAYOUTS {
        let dir = scratch();
        let log = small(layout).open(place(&dir)).unwrap();
        let first = (log.append(b"first\n").unwrap(), b"first\n".to_vec());
        let mut reservation = log.reserve(7).unwrap();
        let third = (log.append(b"third\n").unwrap(), b"third\n".to_vec());
        assert_eq!(read_all(&log), std::slice::from_ref(&first));
        assert!(log.published() < log.tail());
        reservation.write_all(b"second\n").unwrap();
        assert_eq!(read_all(&log), std::slice::from_ref(&first));
        let second = (reservation.publish().unwrap(), b"second\n".to_vec());
        assert_holds(&log, &[first, second, third]);
    }
}

/// Appends a batch; returns the records that must be read.
fn append_batch(log: &Log, sizes: &[usize], seed: u64) -> (Lsn, Vec<Vec<u8>>) {
    let mut batch = log.batch();
    let mut expected = Vec::new();
    for (index, size) in sizes.iter().enumerate() {
        let bytes = payload(log.layout(), seed + index as u64, *size);
        batch.push(&bytes).unwrap();
        expected.push(bytes);
    }
    assert_eq!(batch.len(), sizes.len() as u64);
    (batch.append().unwrap(), expected)
}

#[test]
fn a_batch_comes_back_record_by_record_from_any_place_inside() {
    for layout in LAYOUTS {
        for fill in FILLS {
            let dir = scratch();
            let log = small(layout).tuning(Tuning::new().fill(fill)).open(place(&dir)).unwrap();
            log.append(b"before\n").unwrap();
            let (first, mut expected) = append_batch(&log, &[0, 1, 100, 8, 700], 0);
            let (second, more) = append_batch(&log, &[3000, 0, 9000, 5, 4088], 10);
            expected.extend(more);
            let found = read_from(&log, first).unwrap();
            assert!(found.iter().map(|read| &read.1).eq(&expected));
            assert!(found.iter().any(|read| read.0 == second));
            for (index, (lsn, _)) in found.iter().enumerate() {
                assert_eq!(read_from(&log, *lsn).unwrap(), found[index..]);
            }
            let report = log.verify().unwrap();
            assert_eq!(report.batches, if layout == Layout::Framed { 2 } else { 0 });
            assert_sound(&log);
        }
    }
}

#[test]
fn a_batch_without_records_is_refused_and_a_dropped_one_leaves_nothing() {
    for layout in LAYOUTS {
        let dir = scratch();
        let log = small(layout).open(place(&dir)).unwrap();
        assert!(log.batch().is_empty());
        assert_eq!(log.batch().append().unwrap_err().kind(), ErrorKind::InvalidOption);
        let mut batch = log.batch();
        batch.push(b"never\n").unwrap();
        drop(batch);
        assert_holds(&log, &[]);
        assert_eq!(log.tail(), log.begin());
    }
}

#[test]
fn a_reader_sees_all_of_a_batch_or_nothing() {
    for layout in LAYOUTS {
        let dir = scratch();
        let options = vellum::internal::options(layout).tuning(Tuning::new().fill(Fill::Mapped));
        let log = options
            .tuning(Tuning::new().segment_capacity_bytes(64 << 10))
            .open(place(&dir))
            .unwrap();
        std::thread::scope(|scope| {
            let writer = |seed: u64| {
                let log = &log;
                move || {
                    for round in 0..200 {
                        let mut batch = log.batch();
                        for index in 0..5 {
                            batch.push(format!("{seed} {round} {index}\n").as_bytes()).unwrap();
                        }
                        batch.append().unwrap();
                    }
                }
            };
            let writers = [scope.spawn(writer(1)), scope.spawn(writer(2))];
            while !writers.iter().all(|writer| writer.is_finished()) {
                let seen = payloads(&log);
                assert!(seen.len().is_multiple_of(5), "{} records", seen.len());
            }
        });
        let seen = payloads(&log);
        assert_eq!(seen.len(), 2000);
        for batch in seen.chunks(5) {
            let text = String::from_utf8(batch.concat()).unwrap();
            let heads: Vec<_> = text.lines().map(|line| line.rsplit_once(' ').unwrap()).collect();
            assert!(heads.iter().all(|head| head.0 == heads[0].0), "nothing between: {text}");
            assert!(heads.iter().map(|head| head.1).eq(["0", "1", "2", "3", "4"]), "{text}");
        }
    }
}
