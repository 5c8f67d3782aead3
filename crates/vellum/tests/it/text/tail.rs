//! The bytes behind the end of the newest file: as few as can be.

use std::fs;
use std::time::Instant;

use vellum::{Fill, Layout, Options, Preallocate, Tuning};

use super::line;
use crate::support::{payload, place, scratch, segment_files, until};

fn zeros_behind(log: &std::path::Path) -> usize {
    let files = segment_files(log);
    let bytes = fs::read(files.last().unwrap()).unwrap();
    bytes.iter().rev().take_while(|byte| **byte == 0).count()
}

#[test]
fn files_written_by_system_call_have_no_zeros_behind_their_text() {
    for preallocate in
        [Preallocate::Auto, Preallocate::Off, Preallocate::Sparse, Preallocate::Fallocate]
    {
        let dir = scratch();
        let options =
            Options::mapped_text().tuning(Tuning::new().segment_capacity_bytes(256 << 10));
        let log = options
            .tuning(Tuning::new().fill(Fill::Pwrite).preallocate(preallocate))
            .open(place(&dir))
            .unwrap();
        for number in 0..20 {
            let len = if number % 5 == 0 { 60_000 } else { 100 };
            log.append(&line(number, len)).unwrap();
            assert_eq!(zeros_behind(&place(&dir)), 0, "{preallocate}");
        }
    }
}

#[test]
fn a_log_that_is_written_slowly_has_few_zeros_behind_its_text() {
    let dir = scratch();
    let log =
        Options::mapped_text().tuning(Tuning::new().fill(Fill::Mapped)).open(place(&dir)).unwrap();
    // As fast as it goes first, so that there is something to fall back from.
    (0..20_000).for_each(|number| log.append(&line(number, 200)).map(drop).unwrap());
    let fast = zeros_behind(&place(&dir));
    let mut slow = fast;
    for number in 0.. {
        let since = Instant::now();
        until("a moment has passed", || (since.elapsed().as_millis() > 10).then_some(()));
        log.append(&line(number, 16_000)).unwrap();
        slow = zeros_behind(&place(&dir));
        // The zeros that were written ahead when it was fast are used up first.
        if number * 16_000 > fast + (64 << 10) {
            break;
        }
    }
    assert!(slow <= 32 << 10, "{slow} zeros, {fast} before");
}

#[test]
fn zeros_behind_a_mapped_text_log_are_bounded() {
    let dir = scratch();
    let log =
        Options::mapped_text().tuning(Tuning::new().fill(Fill::Mapped)).open(place(&dir)).unwrap();
    log.append(&line(0, 100)).unwrap();
    assert!(zeros_behind(&place(&dir)) <= 32 << 10, "a log that is begun");
    for number in 1..200 {
        let len = [100, 5000, 100_000, 200_000][number % 4];
        log.append(&payload(Layout::Text, number as u64, len)).unwrap();
        // At any speed: the window, rounded up.
        assert!(zeros_behind(&place(&dir)) <= 2 << 20);
    }
}
