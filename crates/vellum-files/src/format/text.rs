//! Lines that a text log gets from Vellum itself: markers, which fill space that was reserved and
//! never written, and lines that count dropped records.

/// Longest line of a marker: programs that read lines have buffers of 64 KiB.
pub(crate) const LINE_LEN_MAX: usize = 60 << 10;

/// `len` bytes of marker, ending in a newline.
///
/// A reader of the file sees that something is missing, how much and why. Only the first line has
/// words, and only where `lost` is the number of missing bytes: a sum over such lines counts no
/// byte twice. All else is tildes; where the space is too short for words, a few tildes or a bare
/// newline have to do.
pub fn marker(lost: Option<u64>, len: usize, reason: &str) -> Vec<u8> {
    let mut bytes = vec![b'~'; len];
    bytes.chunks_mut(LINE_LEN_MAX).for_each(|line| line[line.len() - 1] = b'\n');
    let words = lost.map(|lost| format!("~ vellum: {lost} bytes lost: {reason} "));
    let line_len = len.min(LINE_LEN_MAX);
    if let Some(words) = words.filter(|words| words.len() < line_len) {
        bytes[..words.len()].copy_from_slice(words.as_bytes());
    }
    bytes
}

/// Bytes that a line says were lost, if it begins as the first line of a marker.
pub(crate) fn told(line: &[u8]) -> Option<u64> {
    let words = line.strip_prefix(b"~ vellum: ")?;
    let (count, _) = words.split_at(words.iter().position(|byte| !byte.is_ascii_digit())?);
    let is_told = words[count.len()..].starts_with(b" bytes lost: ");
    str::from_utf8(count).ok().filter(|_| is_told)?.parse().ok()
}

/// Whether a marker may start with these bytes.
pub(crate) fn may_start_marker(bytes: &[u8]) -> bool {
    bytes.first() == Some(&b'~')
}

/// The line that reports `count` records that a full disk had no room for.
pub fn dropped(count: u64) -> String {
    format!("~ vellum: {count} records dropped: no space left on the disk ~\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_marker_has_the_exact_length_and_ends_its_line() {
        for len in [1, 2, 3, 20, 60, 128, LINE_LEN_MAX - 1, LINE_LEN_MAX, LINE_LEN_MAX + 1, 200_000]
        {
            let bytes = marker(Some(len as u64), len, "its writer died");
            assert_eq!(bytes.len(), len);
            assert_eq!(bytes.last(), Some(&b'\n'));
            assert!(!bytes.contains(&0));
            assert!(bytes.split(|byte| *byte == b'\n').all(|line| line.len() < LINE_LEN_MAX));
        }
        let text = String::from_utf8(marker(Some(128), 128, "its writer died")).unwrap();
        assert!(text.starts_with("~ vellum: 128 bytes lost: its writer died ~~~"), "{text}");
    }

    #[test]
    fn the_size_is_told_once() {
        let text = String::from_utf8(marker(Some(174_635), 174_635, "its writer died")).unwrap();
        let is_filler = |line: &str| line.bytes().all(|byte| byte == b'~');
        assert!(text.lines().skip(1).all(is_filler) && text.lines().count() == 3, "{text}");
        assert!(String::from_utf8(marker(None, 80, "")).unwrap().lines().all(is_filler));
        assert_eq!(told(text.as_bytes()), Some(174_635));
        for other in ["", "~ vellum: 1", "~ vellum: x bytes lost: ", "~ vellum: 5 records dropped"]
        {
            assert_eq!(told(other.as_bytes()), None, "{other}");
        }
    }
}
