//! CRC32C, one bit at a time: independent of the library's.

/// The checksum of `bytes`.
pub(crate) fn crc32c(bytes: &[u8]) -> u32 {
    let mut crc = u32::MAX;
    for byte in bytes {
        crc ^= u32::from(*byte);
        for _ in 0..8 {
            crc = (crc >> 1) ^ (0x82f6_3b78 & (crc & 1).wrapping_neg());
        }
    }
    !crc
}

/// Makes the header of a control or geometry file valid again after a change.
pub(crate) fn seal_control_header(header: &mut [u8]) {
    header[12..16].fill(0);
    let check = crc32c(&header[..72]);
    header[12..16].copy_from_slice(&check.to_le_bytes());
}

#[test]
fn the_checksum_is_that_of_the_standard() {
    assert_eq!(crc32c(b"123456789"), 0xe306_9283);
}

/// The four bytes that take a checksum from `from` to `to`.
pub(crate) fn bytes_between(from: u32, to: u32) -> [u8; 4] {
    let mut crc = !to;
    for _ in 0..32 {
        let was_odd = crc >> 31;
        crc = (crc ^ (0x82f6_3b78 & was_odd.wrapping_neg())) << 1 | was_odd;
    }
    (crc ^ !from).to_le_bytes()
}

#[test]
fn four_bytes_lead_to_any_checksum() {
    let from = crc32c(b"12345");
    let [a, b, c, d] = bytes_between(from, 0xe306_9283);
    assert_eq!([a, b, c, d], *b"6789");
    assert_eq!(crc32c(&[b'1', b'2', b'3', b'4', b'5', a, b, c, d]), 0xe306_9283);
}
