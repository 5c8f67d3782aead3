//! As much of the kernel's FUSE protocol as a filesystem needs that is one file.
//!
//! The file is the root of the filesystem, which is mounted over another file. Numbers are in the
//! byte order of the machine, places as in `linux/fuse.h`.

use std::io;
use std::os::fd::AsFd;

use rustix::io::Errno;

use super::served::Request;

/// Most bytes of one write.
pub(crate) const WRITE_LEN_MAX: usize = 1 << 20;

/// Room for any request.
pub(crate) const REQUEST_LEN_MAX: usize = WRITE_LEN_MAX + 4096;

const IN_HEADER_LEN: usize = 40;
const IN_WRITE_LEN: usize = 40;
const PAGES_MAX: u16 = 256;
/// Writes of more than a page; more than 32 pages at once.
const FLAGS: u32 = 1 << 5 | 1 << 22;
/// Several reads at once; several requests of direct I/O at once.
const OVERLAPPING_FLAGS: u32 = 1 | 1 << 15;
const FILE_MODE: u32 = 0o100_600;
/// How long the kernel need not ask again; nothing changes.
const VALID_SECONDS: u64 = 1 << 30;

/// A question of the kernel.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Asked<'a> {
    /// Which version and what size.
    Init {
        /// The kernel's minor version of the protocol.
        minor: u32,
        /// Read-ahead of the kernel, in bytes.
        readahead_max: u32,
    },
    /// The kind of the file, and its length.
    Attributes,
    /// Open it.
    Open,
    /// A request that the disk itself answers.
    Disk(Request<'a>),
    /// Anything that succeeds by doing nothing.
    Nothing,
    /// Anything that no answer is sent to.
    Silence,
    /// Anything that is not offered.
    Unknown,
}

/// Reads one request: the number that its answer must carry, and its question.
pub(crate) fn parse(message: &[u8]) -> (u64, Asked<'_>) {
    let body = message.get(IN_HEADER_LEN..).unwrap_or_default();
    let asked = match u32_at(message, 4) {
        26 => Asked::Init { minor: u32_at(body, 4), readahead_max: u32_at(body, 8) },
        3 | 4 => Asked::Attributes,
        14 => Asked::Open,
        15 => Asked::Disk(Request::Read(u64_at(body, 8), u32_at(body, 16) as usize)),
        16 => {
            let bytes = body.get(IN_WRITE_LEN..).unwrap_or_default();
            let len = bytes.len().min(u32_at(body, 16) as usize);
            Asked::Disk(Request::Write(u64_at(body, 8), &bytes[..len]))
        }
        20 => Asked::Disk(Request::Flush),
        // Release, flush, destroy.
        18 | 25 | 38 => Asked::Nothing,
        // Forget, interrupt, forget many.
        2 | 36 | 42 => Asked::Silence,
        _ => Asked::Unknown,
    };
    (u64_at(message, 8), asked)
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    bytes.get(at..at + 4).map_or(0, |part| u32::from_ne_bytes(part.try_into().expect("four bytes")))
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    bytes
        .get(at..at + 8)
        .map_or(0, |part| u64::from_ne_bytes(part.try_into().expect("eight bytes")))
}

/// The bytes of an answer, or the error that is one.
pub(crate) type Answer = Result<Vec<u8>, Errno>;

/// Sends an answer. One whose request was given up meanwhile is not missed.
pub(crate) fn reply(connection: impl AsFd, unique: u64, answer: Answer) -> io::Result<()> {
    let (error, body) = match answer {
        Ok(body) => (0, body),
        Err(error) => (-error.raw_os_error(), Vec::new()),
    };
    let mut message = Vec::with_capacity(16 + body.len());
    message.extend((16 + body.len() as u32).to_ne_bytes());
    message.extend(error.to_ne_bytes());
    message.extend(unique.to_ne_bytes());
    message.extend(body);
    match rustix::io::write(connection, &message) {
        Ok(_) | Err(Errno::NOENT) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// The answer to [`Asked::Init`].
pub(crate) fn init(minor: u32, readahead_max: u32, is_overlapping: bool) -> Vec<u8> {
    let flags = FLAGS | if is_overlapping { OVERLAPPING_FLAGS } else { 0 };
    let mut body = Vec::with_capacity(64);
    for word in [7, minor.min(36), readahead_max, flags] {
        body.extend(word.to_ne_bytes());
    }
    // How many requests may wait, and from how many on there is congestion.
    body.extend(64u16.to_ne_bytes());
    body.extend(48u16.to_ne_bytes());
    body.extend((WRITE_LEN_MAX as u32).to_ne_bytes());
    body.extend(1u32.to_ne_bytes());
    body.extend(PAGES_MAX.to_ne_bytes());
    body.resize(64, 0);
    body
}

/// The answer to [`Asked::Attributes`].
pub(crate) fn attributes(len: u64) -> Vec<u8> {
    let mut body = Vec::with_capacity(104);
    body.extend(VALID_SECONDS.to_ne_bytes());
    body.extend(0u64.to_ne_bytes());
    // Inode, length, sectors; three times.
    for word in [1, len, len / 512, 0, 0, 0] {
        body.extend(word.to_ne_bytes());
    }
    // Three parts of times; mode, links, owner, group, device, block length, flags.
    for word in [0, 0, 0, FILE_MODE, 1, 0, 0, 0, 4096, 0] {
        body.extend(word.to_ne_bytes());
    }
    body
}

/// The answer to [`Asked::Open`].
pub(crate) fn open() -> Vec<u8> {
    vec![0; 16]
}

/// The answer to [`Request::Write`].
pub(crate) fn written(len: usize) -> Vec<u8> {
    let mut body = (len as u32).to_ne_bytes().to_vec();
    body.resize(8, 0);
    body
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_write_is_read_from_its_bytes() {
        let mut message = vec![0; IN_HEADER_LEN + IN_WRITE_LEN];
        message[4] = 16;
        message[8] = 99;
        message[IN_HEADER_LEN + 9] = 2;
        message[IN_HEADER_LEN + 16] = 3;
        message.extend(b"abc");
        assert_eq!(parse(&message), (99, Asked::Disk(Request::Write(512, b"abc"))));
        assert_eq!(parse(&[]), (0, Asked::Unknown));
    }

    #[test]
    fn answers_have_the_lengths_of_the_kernels_structures() {
        assert_eq!([init(31, 0, false).len(), attributes(1).len()], [64, 104]);
        assert_eq!([open().len(), written(1).len()], [16, 8]);
    }
}
