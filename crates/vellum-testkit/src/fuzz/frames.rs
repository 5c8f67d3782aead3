//! As much of the format as is needed to tell what recovery owes; written from its description and
//! not with the library's code.

use super::golden::{CAPACITY, Files};

/// Bytes of a framed segment file before the log's own.
pub(crate) const HEADER_LEN: u64 = 4096;
/// Bytes of a frame before its payload.
pub(crate) const HEAD_LEN: u64 = 8;
/// Bytes of a seal with its header.
pub(crate) const SEAL_LEN: usize = 32;

const BATCH_MARK: u32 = 0x7f4a_7c15;
const SEAL_MARK: u32 = 0x94d0_49bb;

fn seed(secret: u64, lsn: u64, length: u32) -> u32 {
    let mixed = (lsn ^ secret).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed >> 32) as u32 ^ mixed as u32 ^ length.rotate_left(16)
}

/// The first position of the segment file with this name.
pub(crate) fn first_of(name: &str) -> Option<u64> {
    let first = u64::from_str_radix(name.strip_suffix(".seg")?, 16).ok();
    first.filter(|first| *first < 1 << 54)
}

/// The name of the segment file that starts at `first`.
pub(crate) fn name_of(first: u64) -> String {
    format!("{first:016x}.seg")
}

/// A seal for position `lsn`.
pub(crate) fn seal(secret: u64, lsn: u64, words: [u64; 3]) -> [u8; SEAL_LEN] {
    let mut frame = [0; SEAL_LEN];
    for (word, bytes) in words.iter().zip(frame[8..].chunks_exact_mut(8)) {
        bytes.copy_from_slice(&word.to_le_bytes());
    }
    let check = crc32c::crc32c_append(seed(secret, lsn, 24), &frame[8..]) ^ SEAL_MARK;
    frame[0] = 24;
    frame[4..8].copy_from_slice(&check.to_le_bytes());
    frame
}

/// The furthest position that a seal calls durable.
pub(crate) fn newest_durable(files: &Files, secret: u64) -> u64 {
    let mut newest = 0;
    for (lsn, bytes) in positions(files) {
        let Some(frame) = bytes.get(..SEAL_LEN).filter(|frame| frame[0] == 24) else { continue };
        let word = |index: usize| u64::from_le_bytes(frame[index..index + 8].try_into().unwrap());
        if *frame == seal(secret, lsn, [word(8), word(16), word(24)]) {
            newest = newest.max(word(8));
        }
    }
    newest
}

/// Where batches begin and end.
pub(crate) fn batches(files: &Files, secret: u64) -> Vec<(u64, u64)> {
    let mut batches = Vec::new();
    for (lsn, bytes) in positions(files) {
        let Some(head) = bytes.get(..8) else { continue };
        let length = u32::from_le_bytes(head[..4].try_into().unwrap());
        let check = u32::from_le_bytes(head[4..].try_into().unwrap());
        if length > 0 && check == seed(secret, lsn, length) ^ BATCH_MARK {
            batches.push((lsn, lsn + HEAD_LEN + u64::from(length)));
        }
    }
    batches
}

/// Every position at which a frame may be, and the bytes from there to the end of its file.
fn positions(files: &Files) -> impl Iterator<Item = (u64, &[u8])> {
    let segments = files.iter().filter_map(|(name, bytes)| Some((first_of(name)?, bytes)));
    segments.flat_map(|(first, bytes)| {
        let data = bytes.get(HEADER_LEN as usize..).unwrap_or_default();
        let data = &data[..data.len().min(CAPACITY as usize)];
        (0..data.len()).step_by(8).map(move |at| (first.wrapping_add(at as u64), &data[at..]))
    })
}

/// Makes the checksum at byte 12 right for the first `len` bytes.
pub(crate) fn reseal(header: &mut [u8], len: usize) {
    if header.len() >= len {
        header[12..16].fill(0);
        let check = crc32c::crc32c(&header[..len]);
        header[12..16].copy_from_slice(&check.to_le_bytes());
    }
}
