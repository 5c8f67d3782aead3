//! The check, with or without a look at the checksums.

use std::path::Path;

use super::{CheckMode, HEADER_LEN, checksum, record, segment_name, segments};

/// Prints the records that a recovery would take for good, and which of those are not.
pub fn check(mode: CheckMode, dir: &Path) -> anyhow::Result<()> {
    for first in segments(dir)? {
        let bytes = std::fs::read(dir.join(segment_name(first)))?;
        let (mut rest, mut number) = (&bytes[..], first);
        while let Some(found) = believed(mode, rest, number) {
            if found != record(number) {
                println!("BAD record {number}");
            }
            rest = &rest[found.len()..];
            number += 1;
        }
        if number > first {
            println!("{first}-{}", number - 1);
        }
    }
    Ok(())
}

/// The bytes of the record at the beginning of `bytes`, if it is taken for that number.
fn believed(mode: CheckMode, bytes: &[u8], number: u64) -> Option<&[u8]> {
    let header = bytes.get(..HEADER_LEN)?;
    let len = u32::from_le_bytes(header[8..12].try_into().ok()?) as usize;
    let sum = u32::from_le_bytes(header[12..16].try_into().ok()?);
    let record = bytes.get(..HEADER_LEN + len)?;
    let is_it = header[..8] == number.to_le_bytes();
    let is_whole = mode == CheckMode::Unchecked || checksum(record) == sum;
    (is_it && is_whole).then_some(record)
}
