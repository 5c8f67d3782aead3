//! The policy of a text log as it is in the geometry file, behind the geometry.
//!
//! Written later than the log and changed at any time, so it has a mark and a check of its own,
//! and is with the geometry in one sector.

use zerocopy::little_endian::{U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::policy::Policy;
use crate::sys::checksum;

const MAGIC: [u8; 8] = *b"VELLUMPO";
/// A policy as it is in the file.
#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
struct PolicyBlock {
    magic: [u8; 8],
    /// CRC32C of the block with this field zero.
    check: U32,
    /// 0 for none, 1 for zstd, 2 for gzip.
    compression: U32,
    /// The others of `Policy::to_numbers`.
    numbers: [U64; 6],
}

const _: () = assert!(size_of::<PolicyBlock>() == 64);

#[doc(hidden)]
impl Policy {
    /// The block as it is in the file.
    pub fn to_bytes(self) -> Vec<u8> {
        let [numbers @ .., compression] = self.to_numbers();
        let mut block = PolicyBlock {
            magic: MAGIC,
            check: U32::ZERO,
            compression: U32::new(compression as u32),
            numbers: numbers.map(U64::new),
        };
        block.check = U32::new(checksum::crc32c(block.as_bytes()));
        block.as_bytes().to_vec()
    }

    /// Reads a block; `None` where there is none, or a damaged one: a limit that no program set
    /// must never remove a file.
    pub fn parse(bytes: &[u8]) -> Option<Policy> {
        let (block, _) = PolicyBlock::read_from_prefix(bytes).ok()?;
        let unchecked = PolicyBlock { check: U32::ZERO, ..block };
        if block.magic != MAGIC || checksum::crc32c(unchecked.as_bytes()) != block.check.get() {
            return None;
        }
        let [bytes, every, offset, retained, age, files] = block.numbers.map(U64::get);
        let compression = block.compression.get().into();
        Some(Policy::from_numbers([bytes, every, offset, retained, age, files, compression]))
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::Compression;

    #[test]
    fn a_policy_comes_back_as_it_was_written_and_a_damaged_one_not_at_all() {
        let policy = Policy {
            rotate_bytes: Some(1 << 20),
            rotate_every: Some(Duration::from_secs(3600)),
            retain_files: Some(0),
            compression: Compression::Gzip,
            ..Policy::default()
        };
        for policy in [policy, Policy::default()] {
            assert_eq!(Policy::parse(&policy.to_bytes()), Some(policy));
        }
        for bit in 0..policy.to_bytes().len() * 8 {
            let mut bytes = policy.to_bytes();
            bytes[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(Policy::parse(&bytes), None, "bit {bit}");
        }
        assert_eq!(Policy::parse(&[]), None);
    }
}
