//! Names of segment files, and the header of a framed one.
//!
//! A text segment has no header: it is a plain file. A framed segment starts with one block of
//! header; the log's bytes follow, so that they stay aligned to blocks.

use std::path::{Path, PathBuf};

use zerocopy::little_endian::{U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use super::VERSION;
use super::utc::{parse_stamp, stamp};
use crate::sys::checksum;
use crate::{Compression, Lsn};

/// Room for the header of a framed segment: a block of any common device.
pub const HEADER_LEN: u64 = 4096;

const MAGIC: [u8; 8] = *b"VELLUMSG";

/// Ending of a segment of a framed log, and of text logs made before files had readable names.
const SEGMENT_SUFFIX: &str = ".seg";
/// Ending of a text segment.
const TEXT_SUFFIX: &str = ".log";
/// The mark before that ending in the name of a file that only continues the one before it.
const CONTINUATION_MARK: &str = "-more";
/// The ending that follows the former name of a file that zstd has compressed.
const ZSTD_SUFFIX: &str = ".zst";
/// The same of gzip.
const GZIP_SUFFIX: &str = ".gz";

/// How the file of the framed segment that starts at `first` is called.
pub fn file_name(first: Lsn) -> String {
    format!("{:016x}{SEGMENT_SUFFIX}", first.get())
}

/// How the file of the text segment is called that starts at `first` and got its first record at
/// `time`, in seconds since 1970. `is_continuation`: no rule and no caller started it, but the one
/// before was full.
pub fn text_file_name(time: u64, first: Lsn, is_continuation: bool) -> String {
    let mark = if is_continuation { CONTINUATION_MARK } else { "" };
    format!("{}-{:016x}{mark}{TEXT_SUFFIX}", stamp(time), first.get())
}

/// A pattern for the name of the text segment at `first`, where the file is missing.
pub(crate) fn text_file_pattern(first: Lsn) -> String {
    format!("*-{:016x}*{TEXT_SUFFIX}", first.get())
}

/// Path of the framed segment that starts at `first`.
pub fn path(dir: impl AsRef<Path>, first: Lsn) -> PathBuf {
    dir.as_ref().join(file_name(first))
}

/// The facts in the name of a segment file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileName {
    /// First position: up to [`Lsn::MAX`], so that a sum with a capacity never overflows.
    pub first: Lsn,
    /// When the first record went in, in seconds since 1970, where the name tells it.
    pub time: Option<u64>,
    /// Whether it continues the file before it.
    pub is_continuation: bool,
    /// How it was compressed.
    pub compression: Compression,
}

/// The name that a file had before it was compressed, and how it was.
pub(crate) fn before_compression(name: &str) -> (&str, Compression) {
    if let Some(plain) = name.strip_suffix(ZSTD_SUFFIX) {
        return (plain, Compression::Zstd);
    }
    match name.strip_suffix(GZIP_SUFFIX) {
        Some(plain) => (plain, Compression::Gzip),
        None => (name, Compression::None),
    }
}

/// The path of the file at `path` when it is compressed.
pub fn compressed_path(path: &Path, compression: Compression) -> PathBuf {
    let mut compressed = path.as_os_str().to_owned();
    compressed.push(match compression {
        Compression::None => "",
        Compression::Zstd => ZSTD_SUFFIX,
        Compression::Gzip => GZIP_SUFFIX,
    });
    compressed.into()
}

/// Reads the name of a segment file, if it is one.
pub fn parse_file_name(name: &str) -> Option<FileName> {
    let (plain, compression) = before_compression(name);
    if let Some(digits) = plain.strip_suffix(SEGMENT_SUFFIX) {
        let first = parse_first(digits)?;
        return Some(FileName { first, time: None, is_continuation: false, compression });
    }
    let (time, rest) = plain.strip_suffix(TEXT_SUFFIX)?.split_once('-')?;
    let time = Some(parse_stamp(time)?);
    let (digits, is_continuation) = match rest.strip_suffix(CONTINUATION_MARK) {
        Some(digits) => (digits, true),
        None => (rest, false),
    };
    Some(FileName { first: parse_first(digits)?, time, is_continuation, compression })
}

fn parse_first(digits: &str) -> Option<Lsn> {
    let lower_hex = |c: char| c.is_ascii_digit() || ('a'..='f').contains(&c);
    if digits.len() != 16 || !digits.chars().all(lower_hex) {
        return None;
    }
    u64::from_str_radix(digits, 16).ok().map(Lsn::new).filter(|first| *first <= Lsn::MAX)
}

/// The header of a framed segment.
#[derive(
    Clone, Copy, Debug, PartialEq, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned,
)]
#[repr(C)]
pub struct SegmentHeader {
    magic: [u8; 8],
    version: U32,
    /// CRC32C of the header with this field zero.
    check: U32,
    /// Identity of the log, and part of every frame's check.
    pub secret: U64,
    /// First position of this segment.
    pub first: U64,
    /// Bytes of log this segment holds.
    pub capacity: U64,
    /// Where the log begins, if the newest trim ended here; 0 = not noted here.
    pub begin: U64,
}

const _: () = assert!(size_of::<SegmentHeader>() == 48);

impl SegmentHeader {
    /// The header of the segment at `first`.
    pub fn new(secret: u64, first: Lsn, capacity: u64, begin: Lsn) -> SegmentHeader {
        let mut header = SegmentHeader {
            magic: MAGIC,
            version: U32::new(VERSION),
            check: U32::ZERO,
            secret: U64::new(secret),
            first: U64::new(first.get()),
            capacity: U64::new(capacity),
            begin: U64::new(begin.get()),
        };
        header.check = U32::new(checksum::crc32c(header.as_bytes()));
        header
    }

    /// Reads a header, or names its fault.
    pub fn parse(bytes: &[u8]) -> Result<SegmentHeader, &'static str> {
        let Ok((header, _)) = SegmentHeader::read_from_prefix(bytes) else {
            return Err("is shorter than a segment header");
        };
        if header.magic != MAGIC {
            return Err("does not start with the mark of a segment");
        }
        if header.version.get() != VERSION {
            return Err("is of another format version");
        }
        let unchecked = SegmentHeader { check: U32::ZERO, ..header };
        if checksum::crc32c(unchecked.as_bytes()) != header.check.get() {
            return Err("has a damaged segment header");
        }
        Ok(header)
    }
}

/// Where in the header's block the time follows.
pub const TIME_OFFSET: usize = 64;

/// A moment at which records went to a segment: those of earlier segments are older than that.
/// Noted by the retention of framed logs, and not in the header itself, which is written at other
/// times.
#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct SegmentTime {
    /// Seconds since 1970.
    seconds: U64,
    /// CRC32C of the secret, the first position and the seconds.
    check: U32,
}

impl SegmentTime {
    /// The note that records went to the segment at `first` then.
    pub fn new(secret: u64, first: Lsn, seconds: u64) -> SegmentTime {
        let checked = [secret, first.get(), seconds].map(U64::new);
        let check = U32::new(checksum::crc32c(checked.as_bytes()));
        SegmentTime { seconds: U64::new(seconds), check }
    }

    /// The seconds, if they were noted for this segment.
    pub fn parse(bytes: &[u8], secret: u64, first: Lsn) -> Option<u64> {
        let (time, _) = SegmentTime::read_from_prefix(bytes).ok()?;
        let seconds = time.seconds.get();
        let is_whole = SegmentTime::new(secret, first, seconds).check == time.check;
        is_whole.then_some(seconds)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_go_both_ways_and_others_are_not_segments() {
        let first = Lsn::new(0x400_0000);
        let (time, is_continuation, compression) = (None, false, Compression::None);
        assert_eq!(file_name(first), "0000000004000000.seg");
        let name = FileName { first, time, is_continuation, compression };
        assert_eq!(parse_file_name("0000000004000000.seg"), Some(name));
        let text_name = |is_continuation| text_file_name(1_795_312_643, first, is_continuation);
        assert_eq!(text_name(false), "20261122T015723Z-0000000004000000.log");
        assert_eq!(text_name(true), "20261122T015723Z-0000000004000000-more.log");
        let name = FileName { time: Some(1_795_312_643), ..name };
        assert_eq!(parse_file_name("20261122T015723Z-0000000004000000.log"), Some(name));
        let name = FileName { compression: Compression::Zstd, ..name };
        assert_eq!(parse_file_name("20261122T015723Z-0000000004000000.log.zst"), Some(name));
        let name = FileName { is_continuation: true, ..name };
        assert_eq!(parse_file_name("20261122T015723Z-0000000004000000-more.log.zst"), Some(name));
        let name = FileName { compression: Compression::Gzip, ..name };
        assert_eq!(parse_file_name("20261122T015723Z-0000000004000000-more.log.gz"), Some(name));
        for name in [
            "control",
            "current",
            "4000000.seg",
            "000000000400000G.seg",
            "0000000004000000.spare",
            "+000000004000000.seg",
            "00000000040000AB.seg",
            "fffffffffffff000.seg",
            "0000000004000000.log",
            "20261122T015723Z-0000000004000000.seg",
            "20261122T015723Z-4000000.log",
            "20261122T015723Z-0000000004000000-less.log",
            "0000000004000000-more.seg",
            "20261322T015723Z-0000000004000000.log",
            "20261122T015723Z-0000000004000000.log.zst.new",
        ] {
            assert_eq!(parse_file_name(name), None, "{name}");
        }
    }

    #[test]
    fn a_time_belongs_to_its_segment() {
        let time = SegmentTime::new(1, Lsn::new(4096), 77);
        assert_eq!(SegmentTime::parse(time.as_bytes(), 1, Lsn::new(4096)), Some(77));
        assert_eq!(SegmentTime::parse(time.as_bytes(), 1, Lsn::new(8192)), None);
        assert_eq!(SegmentTime::parse(time.as_bytes(), 2, Lsn::new(4096)), None);
        assert_eq!(SegmentTime::parse(&[0; 16], 1, Lsn::new(4096)), None);
        assert_eq!(SegmentTime::parse(&[], 1, Lsn::new(4096)), None);
    }

    #[test]
    fn a_header_with_any_flipped_bit_is_refused() {
        let header = SegmentHeader::new(1, Lsn::new(4096), 4096, Lsn::ZERO);
        assert_eq!(SegmentHeader::parse(header.as_bytes()), Ok(header));
        for bit in 0..header.as_bytes().len() * 8 {
            let mut bytes = header.as_bytes().to_vec();
            bytes[bit / 8] ^= 1 << (bit % 8);
            assert!(SegmentHeader::parse(&bytes).is_err());
        }
        assert!(SegmentHeader::parse(&[0; 20]).is_err());
    }
}
