//! The chain: a hash that covers everything before a position.

use std::fmt;

use sha2::{Digest, Sha256};

/// A SHA-256.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Hash(pub [u8; 32]);

/// The SHA-256 of bytes.
pub fn hash(bytes: &[u8]) -> Hash {
    Hash(Sha256::digest(bytes).into())
}

impl Hash {
    /// The first eight bytes, as they stand in the name of an object.
    pub fn prefix(&self) -> u64 {
        let [a, b, c, d, e, f, g, h, ..] = self.0;
        u64::from_be_bytes([a, b, c, d, e, f, g, h])
    }
}

impl fmt::Display for Hash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Hash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.prefix())
    }
}

/// What one chunk or gap adds to the chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Link {
    /// Its first position.
    pub start: u64,
    /// The position behind it.
    pub end: u64,
    /// The time in the name of the file that begins here, in nanoseconds since 1970; of a log
    /// without such names 0. Absent where no segment begins.
    pub file: Option<u64>,
    /// The SHA-256 of the bytes; of a gap zeros.
    pub content: Hash,
}

impl Link {
    /// The chain behind this link.
    pub fn after(&self, before: Hash) -> Hash {
        let mut sha = Sha256::new();
        sha.update(before.0);
        sha.update(self.start.to_le_bytes());
        sha.update(self.end.to_le_bytes());
        sha.update(u64::from(self.file.is_some()).to_le_bytes());
        sha.update(self.file.unwrap_or_default().to_le_bytes());
        sha.update(self.content.0);
        Hash(sha.finalize().into())
    }
}
