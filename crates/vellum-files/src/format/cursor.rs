//! The file of named cursors: a header, and for each cursor two images that are written in turn.
//!
//! An image is one sector, with a number that grows and a checksum. So a power cut may tear the
//! image that was being written: the other one holds the state before.

use std::time::Duration;

use zerocopy::little_endian::{U32, U64};
use zerocopy::{FromBytes, FromZeros, Immutable, IntoBytes, KnownLayout, Unaligned};

use super::VERSION;
use crate::Lsn;
use crate::sys::checksum;

const MAGIC: [u8; 8] = *b"VELLUMCU";
/// Cursors that the file has room for.
pub const COUNT: usize = 128;
/// Bytes of a name, at most.
pub const NAME_LEN_MAX: usize = 64;
/// Room for the header; the images follow.
const HEADER_LEN: usize = 4096;
const IMAGE_LEN: usize = 512;
const PAIR_LEN: usize = 2 * IMAGE_LEN;
/// Bytes of the file.
pub const FILE_LEN: usize = HEADER_LEN + COUNT * PAIR_LEN;
/// Stands for "no limit".
const NONE: u64 = u64::MAX;
const STATE_FREE: u32 = 1;
const STATE_USED: u32 = 2;
const FLAG_HOLDS: u32 = 1;

/// The header as it is in the file.
#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
struct Header {
    magic: [u8; 8],
    version: U32,
    /// CRC32C of the header with this field zero.
    check: U32,
    /// The secret of the log that the cursors are of.
    secret: U64,
    count: U32,
    image_len: U32,
}

/// An image as it is in the file.
#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
struct Image {
    /// CRC32C of the image with this field zero.
    check: U32,
    state: U32,
    sequence: U64,
    lsn: U64,
    flags: U32,
    name_len: U32,
    held_bytes_max: U64,
    held_seconds_max: U64,
    committed_at: U64,
    overruns: U64,
    overrun_bytes: U64,
    overrun_at: U64,
    name: [u8; NAME_LEN_MAX],
    unused: [u8; 368],
}

const _: () = assert!(size_of::<Image>() == IMAGE_LEN);

/// The stored state of a cursor. Times are in seconds since 1970.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Its name.
    pub name: String,
    /// Where it is.
    pub lsn: Lsn,
    /// Whether it keeps the log from its position on.
    pub holds: bool,
    /// How many bytes it keeps at most.
    pub held_bytes_max: Option<u64>,
    /// For how long it keeps records at most.
    pub held_age_max: Option<Duration>,
    /// When it was committed or set last.
    pub committed_at: u64,
    /// How often its reader has gone on behind records that were removed in front of it, how many
    /// bytes that were, and when it was the last time.
    pub overruns: u64,
    /// Bytes that it has lost so.
    pub overrun_bytes: u64,
    /// When that was last, in seconds since 1970.
    pub overrun_at: u64,
}

impl Entry {
    /// A cursor that holds nothing.
    pub fn new(name: &str, lsn: Lsn, now: u64) -> Entry {
        Entry {
            name: name.into(),
            lsn,
            holds: false,
            held_bytes_max: None,
            held_age_max: None,
            committed_at: now,
            overruns: 0,
            overrun_bytes: 0,
            overrun_at: 0,
        }
    }
}

/// The place of one cursor in the file, as its two images tell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The cursor, if there is one.
    pub entry: Option<Entry>,
    /// Whether neither image can be read, and something was written.
    pub is_damaged: bool,
    /// Number of the newest image; 0 where none was written.
    sequence: u64,
}

impl Place {
    /// Reads a place from its two images.
    fn parse(bytes: &[u8]) -> Place {
        let images = bytes.chunks_exact(IMAGE_LEN).filter_map(Image::parse);
        let newest = images.max_by_key(|image| image.sequence.get());
        let is_blank = bytes.iter().all(|byte| *byte == 0);
        // The first image of all may be torn: then the other one is blank, and nothing is lost.
        let is_new = bytes[IMAGE_LEN..].iter().all(|byte| *byte == 0);
        Place {
            entry: newest.and_then(Image::entry),
            is_damaged: newest.is_none() && !is_blank && !is_new,
            sequence: newest.map_or(0, |image| image.sequence.get()),
        }
    }

    /// The next image of the place at `index`, where in the file it goes, and the place as it is
    /// then.
    pub fn next(&self, index: usize, entry: Option<Entry>) -> (u64, Vec<u8>, Place) {
        let sequence = self.sequence + 1;
        // The first goes to the first half.
        let half = (sequence + 1) % 2;
        let offset = (HEADER_LEN + index * PAIR_LEN) as u64 + half * IMAGE_LEN as u64;
        let bytes = Image::new(entry.as_ref(), sequence).as_bytes().to_vec();
        (offset, bytes, Place { entry, is_damaged: false, sequence })
    }
}

impl Image {
    fn new(entry: Option<&Entry>, sequence: u64) -> Image {
        let mut image = Image::new_zeroed();
        image.sequence = sequence.into();
        image.state = STATE_FREE.into();
        if let Some(entry) = entry {
            image.fill_in(entry);
        }
        image.check = U32::new(checksum::crc32c(image.as_bytes()));
        image
    }

    fn fill_in(&mut self, entry: &Entry) {
        let len = entry.name.len().min(NAME_LEN_MAX);
        self.state = STATE_USED.into();
        self.lsn = entry.lsn.get().into();
        self.flags = if entry.holds { FLAG_HOLDS.into() } else { U32::ZERO };
        self.name_len = (len as u32).into();
        self.held_bytes_max = entry.held_bytes_max.unwrap_or(NONE).into();
        self.held_seconds_max = entry.held_age_max.map_or(NONE, |age| age.as_secs()).into();
        self.committed_at = entry.committed_at.into();
        self.overruns = entry.overruns.into();
        self.overrun_bytes = entry.overrun_bytes.into();
        self.overrun_at = entry.overrun_at.into();
        self.name[..len].copy_from_slice(&entry.name.as_bytes()[..len]);
    }

    /// An image that is whole.
    fn parse(bytes: &[u8]) -> Option<Image> {
        let image = Image::read_from_bytes(bytes).ok()?;
        let unchecked = Image { check: U32::ZERO, ..image };
        let is_whole = checksum::crc32c(unchecked.as_bytes()) == image.check.get();
        let has_state = matches!(image.state.get(), STATE_FREE | STATE_USED);
        (is_whole && has_state && image.sequence.get() != 0).then_some(image)
    }

    /// The cursor in the image; `None` for one that was removed.
    fn entry(self) -> Option<Entry> {
        let limit = |number: U64| Some(number.get()).filter(|limit| *limit != NONE);
        let name = self.name.get(..self.name_len.get() as usize)?;
        let name = std::str::from_utf8(name).ok().filter(|name| is_name(name))?;
        (self.state.get() == STATE_USED).then(|| Entry {
            name: name.into(),
            lsn: Lsn::new(self.lsn.get()),
            holds: self.flags.get() & FLAG_HOLDS != 0,
            held_bytes_max: limit(self.held_bytes_max),
            held_age_max: limit(self.held_seconds_max).map(Duration::from_secs),
            committed_at: self.committed_at.get(),
            overruns: self.overruns.get(),
            overrun_bytes: self.overrun_bytes.get(),
            overrun_at: self.overrun_at.get(),
        })
    }
}

/// Whether a cursor may have this name.
pub fn is_name(name: &str) -> bool {
    let may_be_in = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
    (1..=NAME_LEN_MAX).contains(&name.len()) && name.bytes().all(may_be_in)
}

/// The fault of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileFault {
    /// It begins with something else, or its checksum is wrong.
    Damaged,
    /// It is of another version.
    Version(u32),
    /// It is of another log.
    Stranger,
}

/// A file without a cursor, of the log with this secret.
pub fn new_file(secret: u64) -> Vec<u8> {
    let mut header = Header {
        magic: MAGIC,
        version: U32::new(VERSION),
        check: U32::ZERO,
        secret: U64::new(secret),
        count: U32::new(COUNT as u32),
        image_len: U32::new(IMAGE_LEN as u32),
    };
    header.check = U32::new(checksum::crc32c(header.as_bytes()));
    let mut bytes = header.as_bytes().to_vec();
    bytes.resize(FILE_LEN, 0);
    bytes
}

/// The places of a file of the log with this secret.
pub fn parse_file(bytes: &[u8], secret: u64) -> Result<Vec<Place>, FileFault> {
    let (header, _) = Header::read_from_prefix(bytes).map_err(|_| FileFault::Damaged)?;
    let unchecked = Header { check: U32::ZERO, ..header };
    let is_whole = checksum::crc32c(unchecked.as_bytes()) == header.check.get();
    if header.magic != MAGIC || !is_whole {
        return Err(FileFault::Damaged);
    }
    if header.version.get() != VERSION {
        return Err(FileFault::Version(header.version.get()));
    }
    if header.secret.get() != secret {
        return Err(FileFault::Stranger);
    }
    if bytes.len() != FILE_LEN {
        return Err(FileFault::Damaged);
    }
    Ok(bytes[HEADER_LEN..].chunks_exact(PAIR_LEN).map(Place::parse).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(lsn: u64) -> Entry {
        let held_age_max = Some(Duration::from_secs(9));
        let (held_bytes_max, holds) = (Some(7), true);
        Entry { held_bytes_max, held_age_max, holds, ..Entry::new("a-b_c.9", Lsn::new(lsn), 3) }
    }

    fn write(file: &mut [u8], index: usize, entry: Option<Entry>) -> std::ops::Range<usize> {
        let (offset, bytes, _) = parse_file(file, 5).unwrap()[index].next(index, entry);
        let range = offset as usize..offset as usize + bytes.len();
        file[range.clone()].copy_from_slice(&bytes);
        range
    }

    #[test]
    fn a_cursor_comes_back_as_it_was_written_last() {
        let mut file = new_file(5);
        for lsn in 1..5 {
            write(&mut file, 127, Some(entry(lsn)));
            let places = parse_file(&file, 5).unwrap();
            assert_eq!(places[127].entry, Some(entry(lsn)));
            assert_eq!(places.iter().filter(|place| place.entry.is_some()).count(), 1);
        }
        write(&mut file, 127, None);
        assert_eq!(parse_file(&file, 5).unwrap()[127].entry, None);
    }

    #[test]
    fn a_torn_image_leaves_the_one_before() {
        let mut file = new_file(5);
        let torn = write(&mut file, 0, Some(entry(1)));
        let first = file.clone();
        file[torn.start] ^= 1;
        let place = &parse_file(&file, 5).unwrap()[0];
        assert!(place.entry.is_none() && !place.is_damaged, "it was never acknowledged");
        file = first;
        let torn = write(&mut file, 0, Some(entry(2)));
        for byte in torn {
            let mut file = file.clone();
            file[byte] ^= 16;
            assert_eq!(parse_file(&file, 5).unwrap()[0].entry, Some(entry(1)), "byte {byte}");
        }
        file[HEADER_LEN + 8] ^= 1;
        file[HEADER_LEN + IMAGE_LEN + 8] ^= 1;
        assert!(parse_file(&file, 5).unwrap()[0].is_damaged);
    }

    #[test]
    fn a_file_that_is_none_or_of_another_log_is_refused() {
        assert_eq!(parse_file(&[], 5), Err(FileFault::Damaged));
        assert_eq!(parse_file(&new_file(6), 5), Err(FileFault::Stranger));
        assert_eq!(parse_file(&new_file(5)[..FILE_LEN - 1], 5), Err(FileFault::Damaged));
        for bit in 0..size_of::<Header>() * 8 {
            let mut file = new_file(5);
            file[bit / 8] ^= 1 << (bit % 8);
            assert!(parse_file(&file, 5).is_err(), "bit {bit}");
        }
    }

    #[test]
    fn names_are_short_and_plain() {
        let longest = "x".repeat(64);
        assert!(["a", "A.b-c_9", &longest].iter().all(|name| is_name(name)));
        let too_long = "x".repeat(65);
        assert!(!["", "a b", "a/b", "ä", "a\n", &too_long].iter().any(|name| is_name(name)));
    }
}
