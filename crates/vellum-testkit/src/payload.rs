//! Records that show their writer, and whether they are whole.

use vellum::Layout;

use crate::random::Random;

/// A record of a test: its writer, its number and its length decide every byte of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Payload {
    /// A letter for the process that appends it.
    pub writer: char,
    /// Its number among that process's records.
    pub number: u32,
    /// Bytes in all; at least 16.
    pub len: usize,
}

impl Payload {
    /// The record with this name.
    pub const fn new(writer: char, number: u32, len: usize) -> Payload {
        Payload { writer, number, len }
    }

    /// The payload that `bytes` are, if they are whole.
    pub fn of(bytes: &[u8], layout: Layout) -> Option<Payload> {
        let end = bytes.iter().position(|byte| *byte == b' ')?;
        let name = std::str::from_utf8(&bytes[..end]).ok()?;
        let (number, len) = name.get(1..)?.split_once('/')?;
        let (number, len) = (number.parse().ok()?, len.parse().ok()?);
        let payload = Payload::new(name.chars().next()?, number, len);
        (len == bytes.len() && payload.bytes(layout) == bytes).then_some(payload)
    }

    /// Its bytes: in a text log one line, otherwise anything.
    pub fn bytes(&self, layout: Layout) -> Vec<u8> {
        let mut bytes = format!("{}{}/{} ", self.writer, self.number, self.len).into_bytes();
        assert!(bytes.len() < self.len, "a payload has room for its name");
        let seed = (u64::from(u32::from(self.writer)) << 32) | u64::from(self.number);
        Random::new(seed).finish_record(&mut bytes, self.len, layout);
        bytes
    }
}

/// Whether a line of a text log marks space that was reserved and not written.
pub fn is_marker(line: &[u8]) -> bool {
    let Some(body) = line.strip_suffix(b"\n") else { return false };
    let tildes = match body.strip_prefix(b"~ vellum: ") {
        Some(words) => {
            let end = words.iter().rposition(|byte| *byte == b' ').unwrap_or(0);
            words.get(end + 1..).unwrap_or_default()
        }
        None => body,
    };
    tildes.iter().all(|byte| *byte == b'~')
}

/// How many records a line of a text log says were dropped.
pub fn told(line: &[u8]) -> Option<u64> {
    let line = std::str::from_utf8(line).ok()?.strip_prefix("~ vellum: ")?;
    let count = line.strip_suffix(" records dropped: no space left on the disk ~\n")?;
    count.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_payload_is_one_line_of_its_length_and_like_no_other() {
        let payload = Payload::new('v', 7, 100);
        let bytes = payload.bytes(Layout::Text);
        assert_eq!(bytes.len(), 100);
        assert_eq!(bytes.iter().position(|byte| *byte == b'\n'), Some(99));
        assert!(!is_marker(&bytes));
        assert_ne!(bytes, Payload::new('v', 8, 100).bytes(Layout::Text));
        assert_eq!(Payload::of(&bytes, Layout::Text), Some(payload));
        assert_eq!(Payload::of(&bytes[..99], Layout::Text), None);
    }

    #[test]
    fn markers_are_recognised_and_torn_lines_are_not() {
        assert!(is_marker(b"\n"));
        assert!(is_marker(b"~~~\n"));
        assert!(is_marker(b"~ vellum: 80 bytes lost: their writer died ~~~~\n"));
        assert!(!is_marker(b"~~~"));
        assert!(!is_marker(b"~ vellum: 80 bytes lost: their writer died ~~xx\n"));
        assert!(!is_marker(b"abc\n"));
    }
}
