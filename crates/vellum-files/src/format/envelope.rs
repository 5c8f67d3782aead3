//! The envelope: bytes that the log itself puts before the payload of each record, where it was
//! created with one.
//!
//! ```text
//!  0                8                16
//!  +----------------+----------------+--------------------
//!  | nanoseconds    | writer         | the caller's bytes      all numbers little-endian
//!  +----------------+----------------+--------------------
//! ```
//!
//! It is part of the frame's payload: the length counts it and the check covers it. Pads, batches
//! and commit records have none; each record of a batch has one.

use std::time::{Duration, SystemTime};

use crate::WriterId;

/// Bytes of an envelope.
pub const ENVELOPE_LEN: usize = 16;

/// When a record was appended, and by whom.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Envelope {
    /// Nanoseconds since 1970-01-01 00:00:00 UTC.
    pub nanos: u64,
    /// The process that appended the record.
    pub writer: WriterId,
}

impl Envelope {
    /// The envelope as it is in the file.
    #[inline]
    pub fn to_bytes(self) -> [u8; ENVELOPE_LEN] {
        (u128::from(self.nanos) | u128::from(self.writer.get()) << 64).to_le_bytes()
    }

    /// Reads an envelope; any bytes are one.
    pub fn from_bytes(bytes: [u8; ENVELOPE_LEN]) -> Envelope {
        let both = u128::from_le_bytes(bytes);
        Envelope { nanos: both as u64, writer: WriterId::new((both >> 64) as u64) }
    }

    /// The envelope at the start of a record's payload; `None` where that is shorter.
    pub fn of(payload: &[u8]) -> Option<Envelope> {
        payload.first_chunk().copied().map(Envelope::from_bytes)
    }

    /// When the record was appended.
    pub fn time(self) -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::from_nanos(self.nanos)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_envelope_comes_back_as_it_was_written() {
        let envelope = Envelope { nanos: 0x0102_0304_0506_0708, writer: WriterId::new(9) };
        let bytes = envelope.to_bytes();
        assert_eq!(bytes, [8, 7, 6, 5, 4, 3, 2, 1, 9, 0, 0, 0, 0, 0, 0, 0]);
        let payload = [&bytes[..], b"more"].concat();
        assert_eq!(Envelope::of(&payload), Some(envelope));
        assert_eq!(Envelope::of(&bytes[..15]), None);
        assert!(Envelope { nanos: u64::MAX, ..envelope }.time() > envelope.time());
    }
}
