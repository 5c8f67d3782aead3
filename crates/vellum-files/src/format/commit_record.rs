//! The commit record: a frame at the end of a batch that tells recovery the durable end before it.
//!
//! A power cut tears only bytes that were on their way to the device. Bytes that a commit record
//! calls durable were not, so damage there is no crash's doing; and nothing before it needs to be
//! read to find the end of a log.

use zerocopy::little_endian::U64;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use super::frame::{Codec, HEADER_LEN, Header};
use crate::Lsn;

/// Bytes that a commit record takes in the log.
pub const RECORD_LEN: u64 = (HEADER_LEN + size_of::<RecordBytes>()) as u64;

/// The positions that were known when a batch began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CommitRecord {
    /// End of the durable bytes.
    pub durable: Lsn,
    /// Oldest position kept.
    pub begin: Lsn,
    /// The user's own mark.
    pub checkpoint: Lsn,
}

#[derive(FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
struct RecordBytes {
    durable: U64,
    begin: U64,
    checkpoint: U64,
}

impl CommitRecord {
    /// The frame for position `lsn`.
    pub fn to_frame(self, codec: Codec, lsn: Lsn) -> [u8; RECORD_LEN as usize] {
        let payload = RecordBytes {
            durable: U64::new(self.durable.get()),
            begin: U64::new(self.begin.get()),
            checkpoint: U64::new(self.checkpoint.get()),
        };
        let mut frame = [0; RECORD_LEN as usize];
        frame[HEADER_LEN..].copy_from_slice(payload.as_bytes());
        let header = codec.commit_record(lsn, &frame[HEADER_LEN..]);
        frame[..HEADER_LEN].copy_from_slice(&header.to_bytes());
        frame
    }

    /// The commit record in the first bytes of `bytes`, which are at `lsn`, if there is one.
    pub fn parse(codec: Codec, lsn: Lsn, bytes: &[u8]) -> Option<CommitRecord> {
        let (head, payload) = bytes.get(..RECORD_LEN as usize)?.split_at(HEADER_LEN);
        let header = Header::from_bytes(head.try_into().ok()?);
        if header.length as usize != size_of::<RecordBytes>()
            || header != codec.commit_record(lsn, payload)
        {
            return None;
        }
        let bytes = RecordBytes::read_from_bytes(payload).ok()?;
        Some(CommitRecord {
            durable: Lsn::new(bytes.durable.get()),
            begin: Lsn::new(bytes.begin.get()),
            checkpoint: Lsn::new(bytes.checkpoint.get()),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_commit_record_is_read_back_where_it_was_written_and_nowhere_else() {
        let codec = Codec::new(7);
        let (durable, begin, checkpoint) = (Lsn::new(9000), Lsn::new(4096), Lsn::new(8000));
        let record = CommitRecord { durable, begin, checkpoint };
        let frame = record.to_frame(codec, Lsn::new(9600));
        assert_eq!(CommitRecord::parse(codec, Lsn::new(9600), &frame), Some(record));
        assert_eq!(CommitRecord::parse(codec, Lsn::new(9608), &frame), None);
        for bit in 0..frame.len() * 8 {
            let mut flipped = frame;
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(CommitRecord::parse(codec, Lsn::new(9600), &flipped), None);
        }
    }
}
