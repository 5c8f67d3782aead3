//! The frame: the bytes around a record in a framed log.
//!
//! ```text
//!  0        4        8                    8 + length
//!  +--------+--------+---------------------+-----------+
//!  | length | check  | payload             | 0 to 7    |   all numbers little-endian
//!  +--------+--------+---------------------+-----------+
//!                                           padding to 8
//! ```
//!
//! `check` is a CRC32C that starts from a seed made of the log's secret, the LSN and the length,
//! and is then changed by XOR with a constant per kind. So a frame holds only at the position, in
//! the log and with the length it was written for: the rest of an older segment in a recycled
//! file is never taken for a record. Eight zero bytes are never a frame, and no payload gives a
//! record the check of a pad or a batch: such a check is changed by one more XOR.
//!
//! **Invariants**: (I1) every frame starts at a multiple of 8. (I2) the check of a record covers
//! its payload; the checks of pads and batches cover the header alone (a batch's records have
//! their own).

use crate::Lsn;
use crate::sys::checksum;

/// Bytes before the payload.
pub const HEADER_LEN: usize = 8;
/// Frames start at multiples of this.
pub const ALIGNMENT: u64 = 8;
/// Longest payload of a record: the length has 32 bits.
pub const PAYLOAD_LEN_MAX: u64 = u32::MAX as u64;

/// The kind of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The caller's bytes.
    Record,
    /// Nothing: space that was reserved and not used.
    Pad,
    /// Frames of records that appear all or none; `length` counts all of them with their headers.
    Batch,
    /// A record of a batch. Told from others, so that it counts only where its batch is whole.
    Member,
    /// The durable end when a commit group ended, for recovery (`format::commit_record`).
    CommitRecord,
}

/// XORed into the check, so that a header tells its kind without a byte for it: with 32 bits of
/// length and 32 of check, eight bytes are full.
const PAD_MARK: u32 = 0x9e37_79b9;
const BATCH_MARK: u32 = 0x7f4a_7c15;
const MEMBER_MARK: u32 = 0xbf58_476d;
const COMMIT_MARK: u32 = 0x94d0_49bb;
/// XORed on top where a payload's check is by chance that of a pad or a batch: one payload in 2^31.
const ESCAPE_MARK: u32 = 0x1656_67b1;
/// Stands for a check of zero, which with a length of zero would look like unwritten space.
const ZERO_CHECK: u32 = 0xffff_ffff;

const HEADER_MARKS: [u32; 2] = [PAD_MARK, BATCH_MARK];
const PAYLOAD_MARKS: [u32; 3] = [0, MEMBER_MARK, COMMIT_MARK];

/// No two kinds come out equal, escaped or not, nor where zero is replaced.
const _: () = {
    let [record, member, commit_record] = PAYLOAD_MARKS;
    let [pad, batch] = HEADER_MARKS;
    let differences =
        [record ^ member, record ^ commit_record, member ^ commit_record, pad ^ batch];
    let mut at = 0;
    while at < differences.len() {
        let difference = differences[at];
        assert!(difference != 0 && difference != !0);
        assert!(difference != ESCAPE_MARK && difference != !ESCAPE_MARK);
        at += 1;
    }
};

/// The eight bytes before a payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// Bytes of the payload.
    pub length: u32,
    /// The checksum.
    pub check: u32,
}

impl Header {
    /// Reads a header; any eight bytes are one, valid or not.
    pub fn from_bytes(bytes: [u8; HEADER_LEN]) -> Header {
        let word = u64::from_le_bytes(bytes);
        Header { length: word as u32, check: (word >> 32) as u32 }
    }

    /// The header as it is in the file.
    #[inline]
    pub fn to_bytes(self) -> [u8; HEADER_LEN] {
        (u64::from(self.length) | u64::from(self.check) << 32).to_le_bytes()
    }

    /// Whether this is space in which nothing has been written.
    pub fn is_unwritten(self) -> bool {
        self.length == 0 && self.check == 0
    }

    /// Bytes from this header to the next.
    #[inline]
    pub fn frame_len(self) -> u64 {
        frame_len(u64::from(self.length))
    }
}

/// Bytes that a frame with this much payload takes.
#[inline]
pub const fn frame_len(payload_len: u64) -> u64 {
    // As `next_multiple_of`, which takes more instructions.
    (HEADER_LEN as u64 + payload_len + ALIGNMENT - 1) & !(ALIGNMENT - 1)
}

/// Makes and checks the frames of one log.
#[derive(Clone, Copy, Debug)]
pub struct Codec {
    secret: u64,
    /// `checksum::crc32c_append`, as it is done here.
    append: fn(u32, &[u8]) -> u32,
}

impl Codec {
    /// The codec of the log with this secret.
    pub fn new(secret: u64) -> Codec {
        Codec { secret, append: checksum::way() }
    }

    /// Start of a check: a different one for each log, position and length.
    ///
    /// A CRC over the same bytes from two different seeds never comes out equal, so only the
    /// 32-bit mixing here decides whether stale bytes could pass (one chance in 2^32 each).
    #[inline]
    fn seed(self, lsn: Lsn, length: u32) -> u32 {
        let mixed = (lsn.get() ^ self.secret).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        (mixed >> 32) as u32 ^ mixed as u32 ^ length.rotate_left(16)
    }

    /// A running check for a record of `length` bytes at `lsn`.
    #[inline]
    pub fn check(self, lsn: Lsn, length: u32) -> Check {
        let seed = self.seed(lsn, length);
        Check { crc: seed, seed, length, append: self.append }
    }

    /// Header of a record whose payload is `parts` one after the other.
    #[inline(always)]
    pub fn record(self, lsn: Lsn, length: u32, parts: &[&[u8]]) -> Header {
        let mut check = self.check(lsn, length);
        for part in parts {
            check.update(part);
        }
        check.finish()
    }

    /// Header of a record whose payload is `payload`.
    #[inline(always)]
    pub fn record_of(self, lsn: Lsn, payload: &[u8]) -> Header {
        self.marked(lsn, payload.len() as u32, payload, 0)
    }

    /// Header of a pad frame of `frame_len` bytes, which is a multiple of 8 up to a segment.
    pub fn pad(self, lsn: Lsn, frame_len: u64) -> Header {
        self.headed(lsn, (frame_len - HEADER_LEN as u64) as u32, PAD_MARK)
    }

    /// Header of a batch whose frames take `length` bytes after it.
    pub fn batch(self, lsn: Lsn, length: u32) -> Header {
        self.headed(lsn, length, BATCH_MARK)
    }

    fn headed(self, lsn: Lsn, length: u32, mark: u32) -> Header {
        Header { length, check: never_zero(self.seed(lsn, length) ^ mark) }
    }

    /// Header of a record of a batch.
    pub fn member(self, lsn: Lsn, length: u32, payload: &[u8]) -> Header {
        self.marked(lsn, length, payload, MEMBER_MARK)
    }

    /// Header of a commit record.
    pub fn commit_record(self, lsn: Lsn, payload: &[u8]) -> Header {
        self.marked(lsn, payload.len() as u32, payload, COMMIT_MARK)
    }

    #[inline(always)]
    fn marked(self, lsn: Lsn, length: u32, payload: &[u8], mark: u32) -> Header {
        let mut check = self.check(lsn, length);
        check.update(payload);
        check.finish_as(mark)
    }

    /// The kind that the header alone shows; `None` is a record, or no frame at all.
    pub fn kind_by_header(self, lsn: Lsn, header: Header) -> Option<Kind> {
        if header == self.headed(lsn, header.length, PAD_MARK) {
            Some(Kind::Pad)
        } else if header == self.headed(lsn, header.length, BATCH_MARK) {
            Some(Kind::Batch)
        } else {
            None
        }
    }

    /// Length of the payload of the record that `bytes` begin with, which are those at `lsn`.
    /// `None` for everything else, also where they end before.
    #[inline]
    pub fn payload_len(self, lsn: Lsn, bytes: &[u8]) -> Option<u64> {
        let (head, rest) = bytes.split_first_chunk()?;
        let header = Header::from_bytes(*head);
        let payload = rest.get(..header.length as usize)?;
        let mut check = self.check(lsn, header.length);
        check.update(payload);
        let is_record = header == check.finish() || header == check.finish_as(MEMBER_MARK);
        is_record.then_some(payload.len() as u64)
    }

    /// The kind of a record by its payload; `None` where the two do not belong together.
    pub fn kind_by_payload(self, lsn: Lsn, header: Header, payload: &[u8]) -> Option<Kind> {
        let mut check = self.check(lsn, header.length);
        check.update(payload);
        check.kind(header)
    }
}

/// The check of a record while its payload passes by.
#[derive(Clone, Copy, Debug)]
pub struct Check {
    crc: u32,
    /// The value from which `crc` started.
    seed: u32,
    length: u32,
    append: fn(u32, &[u8]) -> u32,
}

impl Check {
    /// Takes the next bytes of the payload.
    #[inline]
    pub fn update(&mut self, bytes: &[u8]) {
        self.crc = (self.append)(self.crc, bytes);
    }

    /// The header, after all of the payload.
    #[inline]
    pub fn finish(self) -> Header {
        self.finish_as(0)
    }

    /// The kind of the record with this header, after all of the payload; `None` where the two do
    /// not belong together.
    pub fn kind(self, header: Header) -> Option<Kind> {
        let mut kinds =
            [Kind::Record, Kind::Member, Kind::CommitRecord].into_iter().zip(PAYLOAD_MARKS);
        kinds.find(|(_, mark)| header == self.finish_as(*mark)).map(|(kind, _)| kind)
    }

    #[inline(always)]
    fn finish_as(self, mark: u32) -> Header {
        let check = self.crc ^ mark;
        // A check of the header alone differs from the seed by a mark, if no zero is replaced.
        let may_be_zero = check == 0 || check == ZERO_CHECK;
        let check = match may_be_zero || HEADER_MARKS.contains(&(check ^ self.seed)) {
            true => self.escaped(never_zero(check)),
            false => check,
        };
        Header { length: self.length, check }
    }

    /// The check of a record in place of `check`, if that could be taken for another kind.
    #[cold]
    fn escaped(self, check: u32) -> u32 {
        let is_other = HEADER_MARKS.into_iter().any(|mark| check == never_zero(self.seed ^ mark));
        if is_other { never_zero(check ^ ESCAPE_MARK) } else { check }
    }
}

#[inline]
fn never_zero(check: u32) -> u32 {
    if check == 0 { ZERO_CHECK } else { check }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CODEC: Codec = Codec { secret: 0x1234_5678_9abc_def0, append: checksum::crc32c_append };

    #[test]
    fn a_record_holds_only_at_its_own_position_and_length() {
        let (lsn, payload) = (Lsn::new(4096), b"hello".as_slice());
        let header = CODEC.record(lsn, 5, &[payload]);
        assert_eq!(header, CODEC.record(lsn, 5, &[b"he", b"llo"]), "parts do not matter");
        assert_ne!(header, CODEC.record(Lsn::new(4104), 5, &[payload]));
        assert_ne!(header, Codec::new(7).record(lsn, 5, &[payload]));
        assert_ne!(header.check, CODEC.record(lsn, 6, &[payload]).check);
        assert_eq!(CODEC.kind_by_header(lsn, header), None);
        assert_eq!(CODEC.kind_by_payload(lsn, header, payload), Some(Kind::Record));
        let member = CODEC.member(lsn, 5, payload);
        assert_eq!(CODEC.kind_by_payload(lsn, member, payload), Some(Kind::Member));
        assert_eq!(CODEC.kind_by_payload(lsn, member, b"other"), None);
        assert_eq!(Header::from_bytes(header.to_bytes()), header);
    }

    #[test]
    fn a_record_is_told_by_its_bytes_as_by_its_kind() {
        for number in 0..1000_u64 {
            let (lsn, payload) = (Lsn::new(8 * number), number.to_le_bytes());
            let frame = |header: Header| [header.to_bytes(), payload, [0; 8]].concat();
            let (record, member) =
                (CODEC.record(lsn, 8, &[&payload]), CODEC.member(lsn, 8, &payload));
            for header in [record, member] {
                assert_eq!(CODEC.payload_len(lsn, &frame(header)), Some(8));
                assert_eq!(CODEC.payload_len(lsn, &frame(header)[..15]), None);
                assert_eq!(CODEC.payload_len(Lsn::new(8 * number + 8), &frame(header)), None);
            }
            for other in
                [CODEC.pad(lsn, 16), CODEC.batch(lsn, 8), CODEC.commit_record(lsn, &payload)]
            {
                assert_eq!(CODEC.payload_len(lsn, &frame(other)), None);
            }
        }
    }

    #[test]
    fn pads_and_batches_are_told_by_their_header() {
        let lsn = Lsn::new(8);
        assert_eq!(CODEC.kind_by_header(lsn, CODEC.pad(lsn, 8)), Some(Kind::Pad));
        assert_eq!(CODEC.kind_by_header(lsn, CODEC.pad(lsn, 1 << 30)), Some(Kind::Pad));
        assert_eq!(CODEC.kind_by_header(lsn, CODEC.batch(lsn, 64)), Some(Kind::Batch));
        assert_eq!(CODEC.kind_by_header(Lsn::new(16), CODEC.batch(lsn, 64)), None);
        assert_eq!(CODEC.pad(lsn, 24).frame_len(), 24);
    }

    #[test]
    fn a_frame_never_looks_unwritten() {
        for lsn in (0..1 << 20).step_by(8) {
            assert!(!CODEC.record(Lsn::new(lsn), 0, &[]).is_unwritten());
            assert!(!CODEC.pad(Lsn::new(lsn), 8).is_unwritten());
        }
        assert!(Header::from_bytes([0; 8]).is_unwritten());
    }

    #[test]
    fn every_flipped_bit_of_a_frame_is_noticed() {
        let lsn = Lsn::new(64);
        let payload: Vec<u8> = (0..40).collect();
        let header = CODEC.record(lsn, 40, &[&payload]);
        for bit in 0..payload.len() * 8 {
            let mut flipped = payload.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert_ne!(CODEC.record(lsn, 40, &[&flipped]), header);
        }
    }
}
