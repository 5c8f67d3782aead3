//! Lines that a text log gets from Vellum itself: what fills space that was reserved and never
//! written, and what tells of records that were dropped.

/// Longest single marker line; longer space gets several.
const LINE_LEN_MAX: usize = 4096;

/// `len` bytes of marker, ending in a newline.
///
/// A reader of the file sees that something is missing, how much and why; where the space is too
/// short for words, a few tildes or a bare newline have to do.
pub(crate) fn marker(len: usize, reason: &str) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(len);
    while bytes.len() < len {
        let line_len = (len - bytes.len()).min(LINE_LEN_MAX);
        let line = bytes.len()..bytes.len() + line_len;
        bytes.resize(line.end, b'~');
        let words = format!("~ vellum: {len} bytes lost: {reason} ");
        if words.len() < line_len {
            bytes[line.start..line.start + words.len()].copy_from_slice(words.as_bytes());
        }
        bytes[line.end - 1] = b'\n';
    }
    bytes
}

/// Whether a marker may start with these bytes.
pub(crate) fn may_start_marker(bytes: &[u8]) -> bool {
    bytes.first() == Some(&b'~')
}

/// The line that tells of `count` records that a full disk had no room for.
pub(crate) fn dropped(count: u64) -> String {
    format!("~ vellum: {count} records dropped: no space left on the disk ~\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_marker_has_the_exact_length_and_ends_its_line() {
        for len in [1, 2, 3, 20, 60, 128, 4095, 4096, 4097, 10_000] {
            let bytes = marker(len, "its writer died");
            assert_eq!(bytes.len(), len);
            assert_eq!(bytes.last(), Some(&b'\n'));
            assert!(!bytes.contains(&0));
        }
        let text = String::from_utf8(marker(128, "its writer died")).unwrap();
        assert!(text.starts_with("~ vellum: 128 bytes lost: its writer died ~~~"), "{text}");
    }
}
