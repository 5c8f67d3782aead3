//! The header that every object begins with.

use super::body::BadObject;
use super::chain::{
    FILE_BEGINS, FILE_CONTINUES, FILE_HAS_TIME, FileMark, Hash, Link, file_of, file_words,
};
use super::key::Key;

/// The length of a header.
pub const HEADER_BYTES: usize = 256;

const MAGIC: [u8; 8] = *b"VELLUMSH";
const VERSION: u32 = 1;
const CRC_AT: usize = HEADER_BYTES - 4;

const ZSTD: u32 = 1;
const KNOWN_FLAGS: u32 = ZSTD | FILE_BEGINS | FILE_HAS_TIME | FILE_CONTINUES;

/// The kind of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Kind {
    /// Bytes of the log.
    Chunk = 1,
    /// Positions whose bytes were lost before they were shipped.
    Gap = 2,
    /// The end of a generation.
    Seal = 3,
    /// The bytes of several chunks.
    Merged = 4,
    /// Says that a generation has ended, before anything of it is deleted.
    Closed = 5,
    /// Says which log this is.
    Log = 6,
}

impl Kind {
    fn of(byte: u8) -> Option<Kind> {
        let all = [Kind::Chunk, Kind::Gap, Kind::Seal, Kind::Merged, Kind::Closed, Kind::Log];
        all.into_iter().find(|kind| *kind as u8 == byte)
    }
}

/// The header of an object. Numbers are little endian; `docs/shipping.md` has their places.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Header {
    /// The kind of the object.
    pub kind: Kind,
    /// Whether the body is compressed.
    pub zstd: bool,
    /// The generation it belongs to.
    pub generation: u32,
    /// The log's id.
    pub log_id: [u8; 16],
    /// Its first position. Of a seal, a closed marker: the end of the generation.
    pub start: u64,
    /// The position behind it.
    pub end: u64,
    /// The length of the body as it is stored.
    pub stored_bytes: u64,
    /// The number of bytes of the log that it holds: fewer than positions if a file of a text log
    /// ends in it.
    pub raw_bytes: u64,
    /// The number by which the owner of the generation knows itself.
    pub nonce: u128,
    /// When it was made, in nanoseconds since 1970. It says nothing about order.
    pub time: u64,
    /// The file that begins here; absent where none begins.
    pub file: Option<FileMark>,
    /// Of a seal: the position at which the next generation begins.
    pub fork: u64,
    /// Of a merged object: the number of its marks.
    pub marks: u32,
    /// Of a merged object: the CRC-32C of its marks, whose times nothing else covers.
    pub marks_crc: u32,
    /// The chain before it.
    pub before: Hash,
    /// The chain behind it.
    pub after: Hash,
    /// The SHA-256 of the bytes of the log that it holds.
    pub content: Hash,
}

impl Header {
    /// A header of this kind for these positions, on a chain. The caller that stores it fills in
    /// the log's id, the time and the length.
    pub fn draft(kind: Kind, generation: u32, before: Hash, link: Link) -> Header {
        Header {
            kind,
            zstd: false,
            generation,
            log_id: [0; 16],
            start: link.start,
            end: link.end,
            stored_bytes: 0,
            raw_bytes: 0,
            nonce: 0,
            time: 0,
            file: link.file,
            fork: 0,
            marks: 0,
            marks_crc: 0,
            before,
            after: link.after(before),
            content: link.content,
        }
    }

    /// Its link, if it is one link of the chain.
    pub fn link(&self) -> Link {
        Link { start: self.start, end: self.end, file: self.file, content: self.content }
    }

    /// The name that the object must have.
    pub fn key(&self) -> Option<Key> {
        let Header { generation, start, end, .. } = *self;
        let chain = self.before.prefix();
        match self.kind {
            Kind::Chunk | Kind::Gap | Kind::Seal => Some(Key::Link { generation, start, chain }),
            Kind::Merged => Some(Key::Merged { generation, start, end, chain }),
            Kind::Closed => Some(Key::Closed(generation)),
            Kind::Log => None,
        }
    }

    /// The bytes of the header.
    pub fn encode(&self) -> [u8; HEADER_BYTES] {
        let mut out = [0; HEADER_BYTES];
        let (file_flags, file_time) = file_words(self.file);
        let flags = file_flags | (u32::from(self.zstd) * ZSTD);
        let mut put = |at: usize, bytes: &[u8]| out[at..at + bytes.len()].copy_from_slice(bytes);
        put(0, &MAGIC);
        put(8, &VERSION.to_le_bytes());
        put(12, &[self.kind as u8]);
        put(16, &flags.to_le_bytes());
        put(20, &self.generation.to_le_bytes());
        put(24, &self.log_id);
        put(40, &self.start.to_le_bytes());
        put(48, &self.end.to_le_bytes());
        put(56, &self.stored_bytes.to_le_bytes());
        put(64, &self.nonce.to_le_bytes());
        put(80, &self.time.to_le_bytes());
        put(88, &file_time.to_le_bytes());
        put(96, &self.fork.to_le_bytes());
        put(104, &self.marks.to_le_bytes());
        put(108, &self.marks_crc.to_le_bytes());
        put(112, &self.raw_bytes.to_le_bytes());
        put(128, &self.before.0);
        put(160, &self.after.0);
        put(192, &self.content.0);
        let crc = crc32c::crc32c(&out[..CRC_AT]);
        out[CRC_AT..].copy_from_slice(&crc.to_le_bytes());
        out
    }

    /// The header at the beginning of an object. Refused: another magic or version, a wrong
    /// checksum, a flag or kind that this version does not know, an end before the start.
    pub fn decode(bytes: &[u8]) -> Result<Header, BadObject> {
        let bytes: &[u8; HEADER_BYTES] =
            bytes.get(..HEADER_BYTES).and_then(|b| b.try_into().ok()).ok_or(BadObject::Short)?;
        if bytes[..8] != MAGIC {
            return Err(BadObject::NotOurs);
        }
        let u32_at = |at: usize| u32::from_le_bytes(field(bytes, at));
        let u64_at = |at: usize| u64::from_le_bytes(field(bytes, at));
        if u32_at(8) != VERSION {
            return Err(BadObject::Version(u32_at(8)));
        }
        if crc32c::crc32c(&bytes[..CRC_AT]) != u32_at(CRC_AT) {
            return Err(BadObject::Checksum);
        }
        let flags = u32_at(16);
        if flags & !KNOWN_FLAGS != 0 {
            return Err(BadObject::Flags(flags));
        }
        let header = Header {
            kind: Kind::of(bytes[12]).ok_or(BadObject::Kind(bytes[12]))?,
            zstd: flags & ZSTD != 0,
            generation: u32_at(20),
            log_id: field(bytes, 24),
            start: u64_at(40),
            end: u64_at(48),
            stored_bytes: u64_at(56),
            raw_bytes: u64_at(112),
            nonce: u128::from_le_bytes(field(bytes, 64)),
            time: u64_at(80),
            file: file_of(flags, u64_at(88)),
            fork: u64_at(96),
            marks: u32_at(104),
            marks_crc: u32_at(108),
            before: Hash(field(bytes, 128)),
            after: Hash(field(bytes, 160)),
            content: Hash(field(bytes, 192)),
        };
        // Fields that this version does not know must be zero.
        match header.encode() == *bytes {
            true => header.checked(),
            false => Err(BadObject::Reserved),
        }
    }

    fn checked(self) -> Result<Header, BadObject> {
        let is_link = matches!(self.kind, Kind::Chunk | Kind::Gap);
        let has_range = is_link || self.kind == Kind::Merged;
        let length = self.end.checked_sub(self.start).ok_or(BadObject::Range)?;
        if has_range && (length == 0 || self.raw_bytes > length) {
            return Err(BadObject::Range);
        }
        if is_link && self.link().after(self.before) != self.after {
            return Err(BadObject::Chain);
        }
        Ok(self)
    }
}

fn field<const N: usize>(bytes: &[u8; HEADER_BYTES], at: usize) -> [u8; N] {
    let mut out = [0; N];
    out.copy_from_slice(&bytes[at..at + N]);
    out
}
