//! The file that says how commit groups get to the device, and on which device that was found out.
//!
//! Lines of a name and a value, so that a person can read it; the last one has the CRC32C of those
//! before. What is damaged or of a later version counts as not there: it costs time at most.

use crate::CommitPath;
use crate::options::commit_path::PathOrigin;
use crate::sys::checksum;

const HEAD: &str = "vellum-commit-path 1";
/// A longer file is none.
pub(crate) const FILE_LEN_MAX: usize = 4096;

/// What the file says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct StoredPath {
    pub(crate) path: CommitPath,
    /// `Measured` or `Chosen`.
    pub(crate) origin: PathOrigin,
    /// Since when, in seconds since 1970.
    pub(crate) at: u64,
    /// The device (`sys::device::Device::identity`).
    pub(crate) device: String,
}

impl StoredPath {
    pub(crate) fn to_text(&self) -> String {
        let StoredPath { path, origin, at, device } = self;
        let lines = format!("{HEAD}\npath {path}\norigin {origin}\nat {at}\ndevice {device}\n");
        let check = check_line(&lines);
        lines + &check
    }

    pub(crate) fn parse(text: &[u8]) -> Option<StoredPath> {
        let text = std::str::from_utf8(text).ok().filter(|text| text.len() <= FILE_LEN_MAX)?;
        let (lines, check) = text.split_at(text.rfind("check ")?);
        let is_whole = check == check_line(lines);
        let mut lines = lines.lines();
        if !is_whole || lines.next() != Some(HEAD) {
            return None;
        }
        let mut value = |name| lines.next()?.strip_prefix(name)?.strip_prefix(' ');
        Some(StoredPath {
            path: value("path")?.parse().ok()?,
            origin: value("origin")?.parse().ok().filter(is_stored)?,
            at: value("at")?.parse().ok()?,
            device: value("device")?.to_string(),
        })
    }
}

/// The last line, of those before.
fn check_line(lines: &str) -> String {
    format!("check {:08x}\n", checksum::crc32c(lines.as_bytes()))
}

fn is_stored(origin: &PathOrigin) -> bool {
    matches!(origin, PathOrigin::Measured | PathOrigin::Chosen)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stored() -> StoredPath {
        StoredPath {
            path: "fdatasync/4096/2".parse().unwrap(),
            origin: PathOrigin::Measured,
            at: 1_795_000_000,
            device: "model=X serial=check 1 sector=4096".into(),
        }
    }

    #[test]
    fn the_file_comes_back_as_it_was_written() {
        assert_eq!(StoredPath::parse(stored().to_text().as_bytes()), Some(stored()));
        let nowhere = StoredPath { device: String::new(), ..stored() };
        assert_eq!(StoredPath::parse(nowhere.to_text().as_bytes()), Some(nowhere));
    }

    #[test]
    fn a_file_with_any_flipped_bit_or_cut_short_counts_as_none() {
        let text = stored().to_text().into_bytes();
        for bit in 0..text.len() * 8 {
            let mut bytes = text.clone();
            bytes[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(StoredPath::parse(&bytes), None, "bit {bit}");
        }
        for len in 0..text.len() {
            assert_eq!(StoredPath::parse(&text[..len]), None, "{len}");
        }
    }

    #[test]
    fn what_a_later_version_says_counts_as_none() {
        let text = stored().to_text();
        let checked = |text: String| {
            let lines = &text[..text.rfind("check ").unwrap()];
            format!("{lines}check {:08x}\n", checksum::crc32c(lines.as_bytes()))
        };
        for (from, to) in [
            ("-path 1", "-path 2"),
            ("fdatasync", "teleport"),
            ("/4096/", "/8192/"),
            ("measured", "default"),
        ] {
            let later = checked(text.replace(from, to));
            assert_eq!(StoredPath::parse(later.as_bytes()), None, "{to}");
        }
    }
}
