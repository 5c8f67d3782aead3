//! Payloads whose check is by chance that of another kind of frame.
//!
//! One payload in 2^31 is such: one every few minutes at full speed. They are worked out here from
//! what `docs/format.md` says of checks.

use std::fs;
use std::io::Write;
use std::path::Path;

use vellum::{Log, Lsn, Options};

use crate::support::crc::bytes_between;
use crate::support::{Read, assert_holds, place, scratch, segment_files};

const PAD_MARK: u32 = 0x9e37_79b9;
const BATCH_MARK: u32 = 0x7f4a_7c15;
const MEMBER_MARK: u32 = 0xbf58_476d;
const HEADER_LEN: u64 = 8;

fn secret(log: &Path) -> u64 {
    let segment = fs::read(&segment_files(log)[0]).unwrap();
    u64::from_le_bytes(segment[16..24].try_into().unwrap())
}

/// Four bytes that, as a record with `mark` at `lsn`, have the check of a frame with `other`.
fn colliding(secret: u64, lsn: Lsn, mark: u32, other: u32) -> [u8; 4] {
    let mixed = (lsn.get() ^ secret).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let seed = (mixed >> 32) as u32 ^ mixed as u32 ^ 4_u32.rotate_left(16);
    bytes_between(seed, seed ^ other ^ mark)
}

/// Appends such records in every way there is, with others between.
fn append_colliding(log: &Log, secret: u64, other: u32, read: &mut Vec<Read>) {
    let single = |lsn| colliding(secret, lsn, 0, other);
    let bytes = single(log.tail());
    read.push((log.append(&bytes).unwrap(), bytes.to_vec()));
    read.push((log.append(b"between").unwrap(), b"between".to_vec()));
    let bytes = single(log.tail());
    let mut reservation = log.reserve(bytes.len()).unwrap();
    reservation.write_all(&bytes).unwrap();
    read.push((reservation.publish().unwrap(), bytes.to_vec()));
    read.push((log.append(b"between").unwrap(), b"between".to_vec()));
    let member = Lsn::new(log.tail().get() + HEADER_LEN);
    let bytes = colliding(secret, member, MEMBER_MARK, other);
    let mut batch = log.batch();
    batch.push(&bytes).unwrap();
    batch.push(b"another").unwrap();
    batch.append().unwrap();
    read.push((member, bytes.to_vec()));
    read.push((Lsn::new(member.get() + 2 * HEADER_LEN), b"another".to_vec()));
}

#[test]
fn a_record_whose_check_is_that_of_a_pad_or_a_batch_is_read() {
    let dir = scratch();
    let path = place(&dir);
    let log = Options::default().open(&path).unwrap();
    let first = log.append(b"first").unwrap();
    let mut expected = vec![(first, b"first".to_vec())];
    for other in [PAD_MARK, BATCH_MARK] {
        append_colliding(&log, secret(&path), other, &mut expected);
    }
    assert_holds(&log, &expected);
    drop(log);
    fs::remove_file(path.join("control")).unwrap();
    assert_holds(&Options::default().open(&path).unwrap(), &expected);
}
