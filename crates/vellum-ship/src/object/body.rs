//! Whole objects: making them, and taking them apart without trust.

use std::borrow::Cow;

use bytes::Bytes;

use super::chain::{Hash, hash};
use super::header::{HEADER_BYTES, Header, Kind};
use crate::pool::{self, Buffer};

/// The most bytes of a log in one chunk.
pub const CHUNK_BYTES_MAX: u64 = 16 << 20;

/// The most bytes of a log in one merged object.
pub const MERGED_BYTES_MAX: u64 = 64 << 20;

const MARK_BYTES: usize = 48;
/// One a second for two weeks, in one segment.
const MARKS_MAX: u32 = 1 << 20;

/// How many parts of a chunk are compressed to see whether it is worth it, and how long each is.
const SAMPLES: usize = 16;
const SAMPLE_BYTES: usize = 16 << 10;
const ZSTD_LEVEL: i32 = 3;

/// Why an object is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadObject {
    /// It ends too early.
    #[error("it is shorter than it says")]
    Short,
    /// It does not begin as objects do.
    #[error("it is not an object of Vellum")]
    NotOurs,
    /// A later version made it.
    #[error("it has the format version {0}, which this version does not know")]
    Version(u32),
    /// The checksum of the header does not fit.
    #[error("the checksum of its header does not fit")]
    Checksum,
    /// A flag that this version does not know.
    #[error("it has the flags {0:#x}, of which this version does not know all")]
    Flags(u32),
    /// A kind that this version does not know.
    #[error("it is of the kind {0}, which this version does not know")]
    Kind(u8),
    /// Bytes of the header that this version does not use are not zero.
    #[error("it uses a part of the header that this version does not know")]
    Reserved,
    /// Positions that cannot be.
    #[error("its positions contradict each other")]
    Range,
    /// The chain does not go through it.
    #[error("its chain hash does not fit its content")]
    Chain,
    /// The bytes are others than the header says.
    #[error("its bytes have another hash than its header says")]
    Content,
    /// More than an object may hold.
    #[error("it says that it holds more than an object may hold")]
    TooLarge,
}

/// The chain at the end of one chunk that a merged object replaces.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Mark {
    /// The position behind the chunk.
    pub end: u64,
    /// When the chunk was made, in nanoseconds since 1970.
    pub time: u64,
    /// The chain behind it.
    pub after: Hash,
}

/// An object that can be stored.
#[derive(Clone, Debug)]
pub struct Built {
    /// Its header.
    pub header: Header,
    /// All of it, header and body.
    pub bytes: Bytes,
}

impl Built {
    fn of(mut header: Header, table: &[u8], body: &[u8]) -> Built {
        header.stored_bytes = (table.len() + body.len()) as u64;
        let mut bytes = Vec::with_capacity(HEADER_BYTES + table.len() + body.len());
        bytes.extend_from_slice(&header.encode());
        bytes.extend_from_slice(table);
        bytes.extend_from_slice(body);
        Built { header, bytes: bytes.into() }
    }
}

/// A chunk: `header` says where its bytes belong. They are compressed if that saves a twentieth.
/// Costs about 2 ms a mebibyte.
pub fn build(header: Header, raw: &[u8]) -> Built {
    let header = Header { zstd: false, raw_bytes: raw.len() as u64, ..header };
    match compressed(raw) {
        Some(small) => Built::of(Header { zstd: true, ..header }, &[], &small),
        None => Built::of(header, &[], raw),
    }
}

/// As [`build`], without a copy: `raw` has room for the header, and then the bytes. A compressed
/// body goes into `spare`, which is as large, and leaves its own buffer in its place.
pub fn build_in(header: Header, mut raw: Buffer, spare: &mut Buffer) -> Built {
    let bytes = &raw.as_ref()[HEADER_BYTES..];
    let length = bytes.len();
    let small = compress(bytes, &mut spare.space()[HEADER_BYTES..]);
    if small.is_some() {
        std::mem::swap(&mut raw, spare);
    }
    let stored = small.unwrap_or(length);
    let (raw_bytes, stored_bytes) = (length as u64, stored as u64);
    let header = Header { zstd: small.is_some(), raw_bytes, stored_bytes, ..header };
    raw.space()[..HEADER_BYTES].copy_from_slice(&header.encode());
    raw.set_filled(HEADER_BYTES + stored);
    Built { header, bytes: Bytes::from_owner(raw) }
}

/// A gap.
pub fn gap(header: Header) -> Built {
    Built::of(Header { kind: Kind::Gap, content: Hash::default(), ..header }, &[], &[])
}

/// A seal.
pub fn seal(header: Header) -> Built {
    Built::of(Header { kind: Kind::Seal, ..header }, &[], &[])
}

/// A closed marker.
pub fn closed(header: Header) -> Built {
    Built::of(Header { kind: Kind::Closed, ..header }, &[], &[])
}

/// A merged object.
pub fn merged(header: Header, marks: &[Mark], raw: &[u8]) -> Built {
    let mut table = Vec::with_capacity(marks.len() * MARK_BYTES);
    for mark in marks {
        table.extend_from_slice(&mark.end.to_le_bytes());
        table.extend_from_slice(&mark.time.to_le_bytes());
        table.extend_from_slice(&mark.after.0);
    }
    let count = u32::try_from(marks.len()).expect("marks are bounded by the chunks of a segment");
    let header = Header {
        kind: Kind::Merged,
        marks: count,
        marks_crc: crc32c::crc32c(&table),
        zstd: false,
        raw_bytes: raw.len() as u64,
        ..header
    };
    match compressed(raw) {
        Some(small) => Built::of(Header { zstd: true, ..header }, &table, &small),
        None => Built::of(header, &table, raw),
    }
}

fn compressed(raw: &[u8]) -> Option<Vec<u8>> {
    let mut small = vec![0; raw.len()];
    let length = compress(raw, &mut small)?;
    small.truncate(length);
    Some(small)
}

/// Compresses the bytes into `small`, if that saves a twentieth of them and of a sample; returns
/// the length.
fn compress(raw: &[u8], small: &mut [u8]) -> Option<usize> {
    let most = |raw: &[u8]| raw.len() - raw.len() / 20;
    let sample = sample(raw);
    let length = zstd::bulk::compress(&sample, ZSTD_LEVEL).ok()?.len();
    if length >= most(&sample) {
        return None;
    }
    // A body that does not fit is an error.
    let room = &mut small[..most(raw).saturating_sub(1)];
    zstd::bulk::compress_to_buffer(raw, room, ZSTD_LEVEL).ok()
}

/// Parts of the bytes, evenly spread; all of them if they are few. Bytes that do not shrink here
/// are not worth the time.
fn sample(raw: &[u8]) -> Cow<'_, [u8]> {
    if raw.len() <= SAMPLES * SAMPLE_BYTES {
        return raw.into();
    }
    let parts = raw.chunks(raw.len() / SAMPLES).filter_map(|part| part.get(..SAMPLE_BYTES));
    parts.collect::<Vec<_>>().concat().into()
}

/// The length of a merged object up to the end of its marks.
pub fn table_end(header: &Header) -> u64 {
    HEADER_BYTES as u64 + u64::from(header.marks.min(MARKS_MAX)) * MARK_BYTES as u64
}

/// The marks of a merged object, whose first bytes these are.
pub fn marks(header: &Header, bytes: &[u8]) -> Result<Vec<Mark>, BadObject> {
    if header.marks > MARKS_MAX {
        return Err(BadObject::TooLarge);
    }
    let end = HEADER_BYTES + header.marks as usize * MARK_BYTES;
    let table = bytes.get(HEADER_BYTES..end).ok_or(BadObject::Short)?;
    if crc32c::crc32c(table) != header.marks_crc {
        return Err(BadObject::Content);
    }
    let marks: Vec<Mark> = table.chunks_exact(MARK_BYTES).map(mark).collect();
    let ends = || std::iter::once(header.start).chain(marks.iter().map(|mark| mark.end));
    let is_rising = ends().zip(ends().skip(1)).all(|(before, after)| before < after);
    let last = marks.last().map(|mark| (mark.end, mark.after));
    match is_rising && last == Some((header.end, header.after)) {
        true => Ok(marks),
        false => Err(BadObject::Range),
    }
}

fn mark(bytes: &[u8]) -> Mark {
    let number = |at: usize| u64::from_le_bytes(std::array::from_fn(|index| bytes[at + index]));
    let after = Hash(std::array::from_fn(|index| bytes[16 + index]));
    Mark { end: number(0), time: number(8), after }
}

/// The header and the bytes of the log that an object holds: checksum, length, content hash and the
/// chain of a merged object are verified. A body that unpacks to more than the header's range is
/// refused before more than that is in memory. The object's place is unknown here: the caller
/// compares `header.key()` and `header.before` with the expected ones.
///
/// An uncompressed body is not copied.
pub fn open(object: &Bytes) -> Result<(Header, Bytes), BadObject> {
    let header = Header::decode(object)?;
    let is_whole = (object.len() - HEADER_BYTES) as u64 == header.stored_bytes;
    if !is_whole {
        return Err(BadObject::Short);
    }
    match header.kind {
        Kind::Chunk => {
            Ok((header, unpacked(&header, object.slice(HEADER_BYTES..), CHUNK_BYTES_MAX)?))
        }
        Kind::Merged => open_merged(header, object),
        _ => Ok((header, Bytes::new())),
    }
}

fn open_merged(header: Header, object: &Bytes) -> Result<(Header, Bytes), BadObject> {
    let marks = marks(&header, object)?;
    let body = object.slice(HEADER_BYTES + marks.len() * MARK_BYTES..);
    let raw = unpacked(&header, body, MERGED_BYTES_MAX)?;
    let mut chain = header.before;
    let mut start = header.start;
    for mark in marks {
        // The last chunk may have fewer bytes than positions.
        let at = |lsn: u64| ((lsn - header.start) as usize).min(raw.len());
        let file = header.file.filter(|_| start == header.start);
        let content = hash(&raw[at(start)..at(mark.end)]);
        chain = super::Link { start, end: mark.end, file, content }.after(chain);
        if chain != mark.after {
            return Err(BadObject::Chain);
        }
        start = mark.end;
    }
    Ok((header, raw))
}

fn unpacked(header: &Header, body: Bytes, most: u64) -> Result<Bytes, BadObject> {
    let want = header.raw_bytes;
    if want > most {
        return Err(BadObject::TooLarge);
    }
    let raw = match header.zstd {
        true => decompressed(&body, want)?,
        false => body,
    };
    match raw.len() as u64 == want && hash(&raw) == header.content {
        true => Ok(raw),
        false => Err(BadObject::Content),
    }
}

/// More than is wanted does not fit, which is an error.
fn decompressed(body: &[u8], want: u64) -> Result<Bytes, BadObject> {
    let mut raw = pool::reading(want as usize);
    let room = &mut raw.space()[..want as usize];
    let length = zstd::bulk::decompress_to_buffer(body, room).map_err(|_| BadObject::Content)?;
    raw.set_filled(length);
    Ok(Bytes::from_owner(raw))
}
