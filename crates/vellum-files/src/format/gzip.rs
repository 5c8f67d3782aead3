//! How long a file was that gzip compressed, told by its last bytes (RFC 1952, section 2.3.1).

/// Bytes that a gzip file begins with: the magic number, and the only method there is.
const MAGIC: [u8; 3] = [0x1f, 0x8b, 8];
/// Bytes at its end that tell the length.
pub(crate) const TRAILER_LEN: usize = 4;

/// Bytes that a gzip file of one part holds, of which these are the first and the last bytes. It
/// tells them modulo 2^32; a segment is shorter.
pub fn content_len(header: &[u8], trailer: [u8; TRAILER_LEN]) -> Option<u64> {
    header.starts_with(&MAGIC).then(|| u32::from_le_bytes(trailer).into())
}
