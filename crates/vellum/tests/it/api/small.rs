//! How much of a disk a log takes.

use vellum::{Options, Preallocate, Tuning};

use crate::support::{FILLS, LAYOUTS, payloads, place, scratch, taken};

/// The bytes that a log may take beside its records.
const BESIDE: u64 = 1 << 20;

#[test]
fn a_small_log_takes_little_of_the_disk() {
    for (layout, fill) in LAYOUTS.into_iter().flat_map(|layout| FILLS.map(|fill| (layout, fill))) {
        let dir = scratch();
        let log = vellum::internal::options(layout)
            .tuning(Tuning::new().fill(fill))
            .open(place(&dir))
            .unwrap();
        log.append(b"five\n").unwrap();
        // The zeros ahead of the tail too.
        assert!(taken(&place(&dir)) < 3 * BESIDE, "{layout} {fill}: {}", taken(&place(&dir)));
        // Longer than a mapped record, and than the first step.
        let long = [b"x".repeat((5 << 20) - 1), b"\n".to_vec()].concat();
        log.append(&long).unwrap();
        drop(log);
        let len = 5 + long.len() as u64;
        assert!(taken(&place(&dir)) < len + BESIDE, "{layout} {fill}: {}", taken(&place(&dir)));
        let log = Options::default().open(place(&dir)).unwrap();
        log.append(b"more\n").unwrap();
        assert_eq!(payloads(&log), [b"five\n".to_vec(), long, b"more\n".to_vec()]);
    }
}

#[test]
fn what_is_prepared_on_purpose_is_there_whole_and_stays() {
    const CAPACITY: u64 = 4 << 20;
    for preallocate in [Preallocate::Auto, Preallocate::Fallocate] {
        let dir = scratch();
        let options = Options::events().tuning(Tuning::new().preallocate(preallocate));
        let log = options
            .tuning(Tuning::new().segment_capacity_bytes(CAPACITY))
            .open(place(&dir))
            .unwrap();
        log.append(b"one").unwrap();
        log.prepare(2).unwrap();
        drop(log);
        assert!(taken(&place(&dir)) >= 2 * CAPACITY, "{preallocate:?}");
        let log = Options::default().open(place(&dir)).unwrap();
        for _ in 0..(CAPACITY / 100_000 + 1) {
            log.append(&[1; 100_000]).unwrap();
        }
        // The first of them is in use now.
        drop(log);
        assert!(taken(&place(&dir)) >= 3 * CAPACITY - BESIDE, "{preallocate:?}");
    }
}
