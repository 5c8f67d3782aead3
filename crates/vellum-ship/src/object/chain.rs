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
    /// The first eight bytes, as they are in the name of an object.
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

/// The file that begins at a position: a segment, or a file of a text log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FileMark {
    /// The time in its name, in seconds since 1970; absent if the name has none.
    pub time: Option<u64>,
    /// Whether it continues a file that was full.
    pub is_continuation: bool,
}

/// The link that one chunk or gap adds to the chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Link {
    /// Its first position.
    pub start: u64,
    /// The position behind it.
    pub end: u64,
    /// The file that begins here; absent where none begins.
    pub file: Option<FileMark>,
    /// The SHA-256 of the bytes, which may be fewer than positions where a file of a text log ends;
    /// of a gap zeros.
    pub content: Hash,
}

impl Link {
    /// The chain behind this link.
    pub fn after(&self, before: Hash) -> Hash {
        let mut sha = Sha256::new();
        sha.update(before.0);
        sha.update(self.start.to_le_bytes());
        sha.update(self.end.to_le_bytes());
        let (flags, time) = file_words(self.file);
        sha.update(flags.to_le_bytes());
        sha.update(time.to_le_bytes());
        sha.update(self.content.0);
        Hash(sha.finalize().into())
    }
}

/// The flags and the time by which a file mark is stored.
pub(super) fn file_words(file: Option<FileMark>) -> (u32, u64) {
    let Some(mark) = file else { return (0, 0) };
    let named = if mark.time.is_some() { FILE_HAS_TIME } else { 0 };
    let continues = if mark.is_continuation { FILE_CONTINUES } else { 0 };
    (FILE_BEGINS | named | continues, mark.time.unwrap_or_default())
}

pub(super) const FILE_BEGINS: u32 = 2;
pub(super) const FILE_HAS_TIME: u32 = 4;
pub(super) const FILE_CONTINUES: u32 = 8;

/// The mark of these words.
pub(super) fn file_of(flags: u32, time: u64) -> Option<FileMark> {
    let mark = FileMark {
        time: (flags & FILE_HAS_TIME != 0).then_some(time),
        is_continuation: flags & FILE_CONTINUES != 0,
    };
    (flags & FILE_BEGINS != 0).then_some(mark)
}
