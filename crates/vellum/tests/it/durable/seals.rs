//! Every batch of a framed log ends with a seal, so that damage is never taken for a torn end.

use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use vellum::{ErrorKind, Log, Lsn, Options, Tuning};

use super::{after_power_cut, kinds, staged};
use crate::support::{Over, place, read_from, scratch, segment_files};

/// Bytes of a seal's payload; no record in these tests is as long.
const SEAL_PAYLOAD_LEN: u32 = 24;
const HEADER_LEN: u64 = 4096;

/// How many seals a framed log has.
fn seals(log: &Path) -> u64 {
    segment_files(log).iter().map(|file| seals_in(&fs::read(file).unwrap())).sum()
}

fn seals_in(file: &[u8]) -> u64 {
    let (mut offset, mut count) = (HEADER_LEN as usize, 0);
    while let Some(header) = file.get(offset..offset + 8) {
        let len = u32::from_le_bytes(header[..4].try_into().unwrap());
        if header == [0; 8] {
            break;
        }
        count += u64::from(len == SEAL_PAYLOAD_LEN);
        offset += (8 + len as usize).next_multiple_of(8);
    }
    count
}

/// Flips a bit of the record at `lsn` in a log of one segment size.
pub(crate) fn flip(log: &Path, capacity: u64, lsn: Lsn) {
    let first = lsn.get() / capacity;
    let oldest = fs::read(&segment_files(log)[0]).unwrap();
    assert!(oldest.len() as u64 > HEADER_LEN && first >= 1, "positions start at a capacity");
    let file = &segment_files(log)[first as usize - 1];
    let file = File::options().read(true).write(true).open(file).unwrap();
    let offset = HEADER_LEN + lsn.get() % capacity + 20;
    let mut byte = [0];
    file.read_exact_at(&mut byte, offset).unwrap();
    file.write_all_at(&[byte[0] ^ 4], offset).unwrap();
}

/// Asserts that a damaged log says where it is damaged.
fn assert_damage_is_told(log: &Path, lsn: Lsn) {
    let found = Options::default().open(log).and_then(|log| read_from(&log, Lsn::ZERO));
    let error = found.map(|records| records.len()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}");
    assert_eq!(error.lsn(), Some(lsn), "{error}");
    assert!(error.path().is_some(), "{error}");
}

/// Commits while eight threads append without a pause; returns the committed positions.
fn commit_beside_writers(log: &Log) -> Vec<Lsn> {
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let _over = Over(&is_over);
        for thread in 0..8 {
            let is_over = &is_over;
            scope.spawn(move || {
                while !is_over.load(Ordering::Relaxed) {
                    log.append(&[thread; 100]).unwrap();
                }
            });
        }
        (0..25).map(|_| log.append_durable(&[9; 60]).unwrap()).collect()
    })
}

#[test]
fn batches_end_with_a_seal_while_others_append_without_a_pause() {
    for options in kinds().into_iter().take(3) {
        let capacity = 16 << 20;
        let dir = scratch();
        let log = options
            .tuning(Tuning::new().segment_capacity_bytes(capacity))
            .open(place(&dir))
            .unwrap();
        let committed = commit_beside_writers(&log);
        let batches = log.stat().unwrap().commits.syncs;
        log.sync().unwrap();
        let copy = after_power_cut(&place(&dir));
        let seals = seals(&place(&copy));
        // A writer that the machine does not let run for long costs one or two.
        assert!(seals * 3 > batches, "{seals} seals for {batches} batches");
        let victim = committed[committed.len() - 3];
        flip(&place(&copy), capacity, victim);
        assert_damage_is_told(&place(&copy), victim);
    }
}

#[test]
fn a_long_batch_is_vouched_for_at_once() {
    for options in kinds().into_iter().skip(1).take(2) {
        let capacity = 64 << 20;
        let dir = scratch();
        let log = options
            .tuning(Tuning::new().segment_capacity_bytes(capacity))
            .open(place(&dir))
            .unwrap();
        let lsns: Vec<Lsn> = (0..180).map(|_| log.append(&[3; 100_000]).unwrap()).collect();
        log.sync().unwrap();
        let copy = after_power_cut(&place(&dir));
        flip(&place(&copy), capacity, lsns[90]);
        assert_damage_is_told(&place(&copy), lsns[90]);
    }
}

/// Recovery looks for seals in pieces of a mebibyte.
#[test]
fn a_seal_is_found_where_it_lies_across_two_pieces() {
    let capacity = 4 << 20;
    for options in kinds().into_iter().take(3) {
        for before in (8..=24).step_by(8) {
            let dir = scratch();
            let log = options
                .clone()
                .tuning(Tuning::new().segment_capacity_bytes(capacity))
                .open(place(&dir))
                .unwrap();
            let first = log.append_durable(&[3; 100]).unwrap();
            let start = capacity + (1 << 20) - before;
            let len = start - log.published().get() - 8;
            log.append_durable(&vec![3; len as usize]).unwrap();
            assert!(log.published().get() > start + before, "a seal lies across");
            let copy = after_power_cut(&place(&dir));
            flip(&place(&copy), capacity, first);
            assert_damage_is_told(&place(&copy), first);
        }
    }
}

#[test]
fn what_a_power_cut_cost_is_told_to_the_byte() {
    let capacity = 16 << 20;
    for fill in kinds().into_iter().take(3) {
        let dir = scratch();
        let log =
            fill.tuning(Tuning::new().segment_capacity_bytes(capacity)).open(place(&dir)).unwrap();
        let lsns: Vec<Lsn> = (0..1400).map(|_| log.append(&[3; 10_000]).unwrap()).collect();
        let end = log.sync().unwrap();
        let copy = after_power_cut(&place(&dir));
        // Two holes, with more than a few mebibytes between them.
        flip(&place(&copy), capacity, lsns[5]);
        flip(&place(&copy), capacity, lsns[1200]);
        let recovered = Options::default().open(place(&copy)).unwrap();
        let recovery = recovered.recovery().unwrap();
        assert_eq!(recovery.end, lsns[5]);
        assert_eq!(recovery.cut_bytes, end.get() - lsns[5].get());
    }
}

#[test]
fn a_checkpoint_is_durable_at_the_end_of_a_segment_too() {
    for options in [staged(), kinds()[1].clone(), kinds()[2].clone()] {
        for left in [8, 16, 24] {
            let dir = scratch();
            let log = options.clone().open(place(&dir)).unwrap();
            // 8 bytes of header, and the rest that is to be left.
            let lsn = log.append(&vec![5; 16384 - 8 - left]).unwrap();
            log.checkpoint().set(lsn).unwrap();
            let taken = log.published().get() - lsn.get();
            assert!(taken < 2 * 16384, "{taken} bytes: the seal begins the next segment");
            let copy = after_power_cut(&place(&dir));
            let recovered = Options::default().open(place(&copy)).unwrap();
            assert_eq!(recovered.checkpoint().lsn(), lsn, "{left} bytes left");
            crate::support::assert_sound(&recovered);
            drop(log);
            assert_eq!(Options::default().open(place(&dir)).unwrap().checkpoint().lsn(), lsn);
        }
    }
}

#[test]
fn a_reservation_that_is_held_holds_no_commit_up_that_does_not_need_it() {
    for options in kinds().into_iter().take(3) {
        let dir = scratch();
        let log = options.open(place(&dir)).unwrap();
        let lsn = log.append(b"before").unwrap();
        let held = log.reserve(50).unwrap();
        log.commit(lsn).unwrap();
        assert!(log.durable() > lsn);
        assert!(log.append(b"behind").is_ok());
        drop(held);
        log.sync().unwrap();
        assert_eq!(log.durable(), log.published());
    }
}

#[test]
fn closing_a_log_to_which_nothing_came_writes_no_seal() {
    for options in kinds() {
        let dir = scratch();
        let log = options.open(place(&dir)).unwrap();
        log.append_durable(b"one\n").unwrap();
        drop(log);
        let close = || options.open(place(&dir)).unwrap().published();
        let end = close();
        assert_eq!((close(), close()), (end, end), "{options:?}");
        let log = options.open(place(&dir)).unwrap();
        log.append(b"two\n").unwrap();
        drop(log);
        assert_eq!(read_from(&options.open(place(&dir)).unwrap(), Lsn::ZERO).unwrap().len(), 2);
        assert!(close() > end, "{options:?}");
    }
}
