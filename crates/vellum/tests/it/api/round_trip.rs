//! All records come out as they went in: sizes, boundaries, parts, and every valid combination of
//! options.

use std::io::IoSlice;

use vellum::{ErrorKind, Fill, Layout, Log, Lsn, Options, Preallocate, Tuning};

use crate::support::{
    FILLS, LAYOUTS, Read, assert_holds, payload, place, read_all, read_from, scratch, small,
};

const SIZES: [usize; 12] =
    [0, 1, 7, 8, 100, 4095, 4096, (8 << 10) - 1, 8 << 10, (8 << 10) + 1, 64 << 10, 1 << 20];

const PREALLOCATES: [Preallocate; 6] = [
    Preallocate::Auto,
    Preallocate::Off,
    Preallocate::Sparse,
    Preallocate::Fallocate,
    Preallocate::Zeros,
    Preallocate::Recycle,
];

/// Appends one record of each size; returns the records that must be read.
fn append_sizes(log: &Log, sizes: &[usize], seed: u64) -> Vec<Read> {
    let append = |(index, size): (usize, &usize)| {
        let bytes = payload(log.layout(), seed + index as u64, *size);
        (log.append(&bytes).unwrap(), bytes)
    };
    sizes.iter().enumerate().map(append).collect()
}

#[test]
fn records_of_every_size_come_back_as_they_were_appended() {
    for layout in LAYOUTS {
        for fill in FILLS {
            for capacity in [4096, 12288, 64 << 10, 4 << 20] {
                let dir = scratch();
                let options = vellum::internal::options(layout)
                    .tuning(Tuning::new().fill(fill).segment_capacity_bytes(capacity));
                let log = options.open(place(&dir)).unwrap();
                let mut expected = append_sizes(&log, &SIZES, 0);
                expected.extend(append_sizes(&log, &SIZES, 100));
                assert_holds(&log, &expected);
                assert_eq!(log.published(), log.tail());
            }
        }
    }
}

#[test]
fn positions_grow_and_each_is_a_place_to_read_from() {
    for layout in LAYOUTS {
        let dir = scratch();
        let log = small(layout).open(place(&dir)).unwrap();
        let expected = append_sizes(&log, &SIZES, 0);
        assert!(expected.windows(2).all(|pair| pair[0].0 < pair[1].0));
        assert!(expected[0].0 > Lsn::ZERO, "no record stands at 0");
        for (index, (lsn, _)) in expected.iter().enumerate() {
            assert!(read_from(&log, *lsn).unwrap() == expected[index..], "from record {index}");
        }
        let mut reader = log.reader(Lsn::ZERO).unwrap();
        for next in expected.iter().skip(1).map(|read| read.0) {
            let next_lsn = reader.next().unwrap().unwrap().next_lsn;
            assert!(next_lsn <= next);
            assert_eq!(read_from(&log, next_lsn).unwrap()[0].0, next, "from the next position");
        }
    }
}

#[test]
fn records_that_end_at_around_and_across_a_segment_boundary_come_back() {
    let around = [0, 1, 7, 8, 9, 15, 16, 17, 23, 24, 25];
    for layout in LAYOUTS {
        for fill in FILLS {
            for room in around {
                let dir = scratch();
                let log = small(layout).tuning(Tuning::new().fill(fill)).open(place(&dir)).unwrap();
                // Leaves `room` bytes at the end of the segment (framed: rounded down to 8).
                let mut expected = append_sizes(&log, &[4096 - 8 - room], 1);
                expected.extend(append_sizes(&log, &around, 10));
                expected.extend(append_sizes(&log, &[4096 - 8, 4096 - 9, 4096, 4097], 30));
                assert_holds(&log, &expected);
            }
        }
    }
}

#[test]
fn a_record_much_longer_than_a_segment_comes_back() {
    for layout in LAYOUTS {
        for fill in FILLS {
            let dir = scratch();
            let log = small(layout).tuning(Tuning::new().fill(fill)).open(place(&dir)).unwrap();
            let expected = append_sizes(&log, &[10, 300_000, 20, 4096 * 5 - 8, 4096 * 5, 30], 0);
            assert_holds(&log, &expected);
            drop(log);
            assert_holds(&Options::default().open(place(&dir)).unwrap(), &expected);
        }
    }
}

#[test]
fn parts_are_appended_as_one_record() {
    let counts = [1, 3, 8, 9, 20, 2000];
    for layout in LAYOUTS {
        for (fill, len) in [(Fill::Mapped, 3), (Fill::Mapped, 1000), (Fill::Pwrite, 10)] {
            let dir = scratch();
            let options = vellum::internal::options(layout)
                .tuning(Tuning::new().fill(fill).segment_capacity_bytes(1 << 20));
            let log = options.open(place(&dir)).unwrap();
            let mut expected = Vec::new();
            for count in counts {
                let whole = payload(layout, count as u64, count * len);
                let mut parts: Vec<&[u8]> = whole.chunks(len).collect();
                parts.insert(count / 2, &[]);
                parts.insert(0, &[]);
                let parts: Vec<_> = parts.into_iter().map(IoSlice::new).collect();
                expected.push((log.append_vectored(&parts).unwrap(), whole));
            }
            assert_holds(&log, &expected);
        }
    }
}

#[test]
fn no_parts_are_an_empty_record_in_a_framed_log_and_nothing_in_a_text_log() {
    for fill in FILLS {
        let dir = scratch();
        let log = small(Layout::Framed).tuning(Tuning::new().fill(fill)).open(place(&dir)).unwrap();
        let lsn = log.append_vectored(&[]).unwrap();
        let second = log.append_vectored(&[IoSlice::new(b"")]).unwrap();
        assert_holds(&log, &[(lsn, vec![]), (second, vec![])]);
        let dir = scratch();
        let log = small(Layout::Text).tuning(Tuning::new().fill(fill)).open(place(&dir)).unwrap();
        assert_eq!(log.append_vectored(&[]).unwrap(), log.tail());
        assert_holds(&log, &[]);
    }
}

#[test]
fn a_record_of_4_gib_is_refused_and_nothing_is_reserved() {
    for layout in LAYOUTS {
        let dir = scratch();
        let log = small(layout).open(place(&dir)).unwrap();
        let tail = log.tail();
        let part = vec![0; 64 << 20];
        let parts = vec![IoSlice::new(&part); 64];
        let error = log.append_vectored(&parts).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::RecordTooLarge);
        assert!(error.to_string().contains("4294967296"), "{error}");
        assert_eq!(log.reserve(1 << 32).unwrap_err().kind(), ErrorKind::RecordTooLarge);
        assert_eq!(log.tail(), tail);
    }
}

fn is_valid(layout: Layout, fill: Fill, preallocate: Preallocate) -> bool {
    let is_plain = !matches!(preallocate, Preallocate::Recycle | Preallocate::Zeros);
    (layout == Layout::Framed || is_plain)
        && !(fill == Fill::Mapped && preallocate == Preallocate::Sparse)
}

/// Every valid combination: append, trim, close, open again, append, read.
fn every_combination(capacity: u64) {
    for layout in LAYOUTS {
        for fill in FILLS {
            for preallocate in PREALLOCATES.into_iter().filter(|p| is_valid(layout, fill, *p)) {
                let options = vellum::internal::options(layout).tuning(
                    Tuning::new()
                        .fill(fill)
                        .preallocate(preallocate)
                        .segment_capacity_bytes(capacity),
                );
                println!("{layout} {fill} {preallocate} {capacity}");
                keeps_its_records(&options);
            }
        }
    }
}

fn keeps_its_records(options: &Options) {
    let dir = scratch();
    let sizes = [100, 3000, 0, 9000, 5, 20_000, 100];
    let mut expected = Vec::new();
    for life in 0..4 {
        let log = options.open(place(&dir)).unwrap();
        assert_holds(&log, &expected);
        expected.extend(append_sizes(&log, &sizes, life * 10));
        assert_holds(&log, &expected);
        let stat = log.stat().unwrap();
        let capacity = stat.segment_capacity_bytes;
        assert!(
            stat.prepared_end.get() <= stat.tail.get().next_multiple_of(capacity) + capacity,
            "never more than one prepared segment beyond the data"
        );
        log.trim(expected[3].0).unwrap();
        expected.drain(..3);
        assert_holds(&log, &expected);
    }
}

#[test]
fn every_valid_combination_of_options_keeps_its_records_in_small_segments() {
    every_combination(4096);
}

#[test]
fn every_valid_combination_of_options_keeps_its_records_in_larger_segments() {
    every_combination(256 << 10);
}

#[test]
fn combinations_that_cannot_be_are_refused() {
    for layout in LAYOUTS {
        for fill in FILLS {
            for preallocate in PREALLOCATES.into_iter().filter(|p| !is_valid(layout, fill, *p)) {
                let dir = scratch();
                let options = vellum::internal::options(layout)
                    .tuning(Tuning::new().fill(fill).preallocate(preallocate));
                let error = options.open(place(&dir)).unwrap_err();
                assert_eq!(error.kind(), ErrorKind::InvalidOption);
                assert!(!place(&dir).exists(), "nothing is made");
            }
        }
    }
}

#[test]
fn recycled_files_are_used_again_and_never_show_their_old_bytes() {
    for fill in FILLS {
        let dir = scratch();
        let options = small(Layout::Framed)
            .tuning(Tuning::new().fill(fill).preallocate(Preallocate::Recycle));
        let log = options.open(place(&dir)).unwrap();
        let mut all = append_sizes(&log, &[64; 200], 0);
        let mut spares = 0;
        for round in 1..20 {
            log.trim(log.published()).unwrap();
            spares += usize::from(log.stat().unwrap().segments.iter().any(|s| {
                s.path.ends_with("spare") || s.state == vellum::stat::SegmentState::Spare
            }));
            // Long records leave old frames in place behind their padding.
            let fresh = append_sizes(&log, &[64, 700, 0, 8, 2000, 64], round * 100);
            assert!(fresh[0].0 > all.last().unwrap().0, "positions never repeat");
            assert_holds(&log, &fresh);
            all = fresh;
        }
        assert!(spares > 0, "trimmed segments are kept");
        drop(log);
        assert_eq!(read_all(&options.open(place(&dir)).unwrap()), all);
        std::fs::remove_file(place(&dir).join("control")).unwrap();
        assert_holds(&options.open(place(&dir)).unwrap(), &all);
    }
}
