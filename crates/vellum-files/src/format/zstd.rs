//! How long a compressed file was, told by the header of its frame.

/// Bytes of a frame up to the end of its header, at most.
pub(crate) const HEADER_LEN_MAX: usize = 18;

const MAGIC: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];

/// Bytes that the frame at the start of a zstd file holds, where its header tells.
pub fn content_len(header: &[u8]) -> Option<u64> {
    let rest = header.strip_prefix(&MAGIC)?;
    let (descriptor, rest) = rest.split_first()?;
    let is_single_segment = descriptor >> 5 & 1 == 1;
    let dictionary_len = [0, 1, 2, 4][usize::from(descriptor & 3)];
    let skipped = dictionary_len + usize::from(!is_single_segment);
    let field = |len: usize| {
        let mut bytes = [0; 8];
        bytes[..len].copy_from_slice(rest.get(skipped..skipped + len)?);
        Some(u64::from_le_bytes(bytes))
    };
    match descriptor >> 6 {
        0 if is_single_segment => field(1),
        0 => None,
        // The shortest length that needs two bytes is told as 0.
        1 => Some(field(2)? + 256),
        2 => field(4),
        _ => field(8),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_length_is_read_wherever_the_header_has_it() {
        let header = |bytes: &[u8]| content_len(&[&MAGIC, bytes].concat());
        assert_eq!(header(&[0x20, 7]), Some(7));
        assert_eq!(header(&[0x60, 0, 1]), Some(512));
        assert_eq!(header(&[0x80, 0x58, 1, 0, 0, 1]), Some(0x0100_0001), "a window before it");
        assert_eq!(header(&[0xe1, 9, 1, 0, 0, 0, 0, 0, 0, 0]), Some(1), "a dictionary before it");
        assert_eq!(header(&[0x00, 0x58, 1, 2, 3, 4]), None, "not told");
        assert_eq!(header(&[0x80, 0x58, 1]), None, "cut off");
        assert_eq!(content_len(b"20261122 a line of text"), None);
    }
}
