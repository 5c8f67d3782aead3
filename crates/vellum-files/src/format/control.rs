//! The first page of the control file: the geometry of the log, written once.
//!
//! The shared words behind it are described in `shared::words` and `docs/protocol.md`.

use zerocopy::little_endian::{U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use super::envelope::ENVELOPE_LEN;
use super::{MARKED_VERSION, VERSION};
use crate::sys::checksum;
use crate::{Fill, Layout, Preallocate};

/// Room for this header; the shared words start behind it.
pub const HEADER_LEN: usize = 4096;

/// Where in the header's page of a control file it says which file it is
/// (`shared::region::Origin`).
pub const ORIGIN_OFFSET: usize = 128;

/// A segment holds at least one page, because segments are mapped.
pub const SEGMENT_CAPACITY_BYTES_MIN: u64 = 4096;
/// A pad frame spans at most a segment and has 32 bits of length.
pub const SEGMENT_CAPACITY_BYTES_MAX: u64 = 1 << 30;
/// Segment capacities and prefault windows are multiples of this on every machine; a machine with
/// larger pages asks for multiples of those.
pub const CAPACITY_UNIT_BYTES: u64 = 4096;

const MAGIC: [u8; 8] = *b"VELLUMCT";

/// The properties of a log; the same for every participant and for the log's whole life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Geometry {
    /// How records lie in the segments.
    pub layout: Layout,
    /// Bytes of log in a segment.
    pub segment_capacity: u64,
    /// How file space is made ready.
    pub preallocate: Preallocate,
    /// How records are written.
    pub fill: Fill,
    /// Identity of the log, and part of every frame's check.
    pub secret: u64,
    /// The boot in which the control file was made; in another, its words mean nothing.
    pub boot_id: [u8; 16],
    /// Whether there are commit records in the log, because something was committed.
    pub has_commits: bool,
    /// Where the log is being truncated, or 0. Only in the geometry file.
    pub cut: u64,
    /// Whether each record has an envelope (`format::envelope`).
    pub has_envelope: bool,
}

/// Geometry as it is in the file.
#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
struct ControlHeader {
    magic: [u8; 8],
    version: U32,
    /// CRC32C of the header with this field zero.
    check: U32,
    layout: U32,
    preallocate: U32,
    fill: U32,
    /// 1 for commit records. From version 2 on, the marks that a library must know to use the log.
    marks: U32,
    segment_capacity: U64,
    secret: U64,
    boot_id: [u8; 16],
    cut: U64,
}

/// Bytes of the geometry in its own file; the policy of a text log follows.
pub const GEOMETRY_LEN: usize = size_of::<ControlHeader>();

const _: () = assert!(GEOMETRY_LEN == 72);

/// In `marks`: there may be commit records.
const COMMITTED_MARK: u32 = 1;
/// In `marks` of version 2: records have envelopes.
const ENVELOPE_MARK: u32 = 2;

impl Geometry {
    /// The header as it is in the file.
    pub fn to_bytes(self) -> Vec<u8> {
        let mut header = ControlHeader {
            magic: MAGIC,
            version: U32::new(self.version()),
            check: U32::ZERO,
            layout: U32::new(code_of(&LAYOUTS, self.layout)),
            preallocate: U32::new(code_of(&PREALLOCATES, self.preallocate)),
            fill: U32::new(code_of(&FILLS, self.fill)),
            marks: U32::new(self.marks()),
            segment_capacity: U64::new(self.segment_capacity),
            secret: U64::new(self.secret),
            boot_id: self.boot_id,
            cut: U64::new(self.cut),
        };
        header.check = U32::new(checksum::crc32c(header.as_bytes()));
        header.as_bytes().to_vec()
    }

    /// Reads a header, or names its fault.
    pub fn parse(bytes: &[u8]) -> Result<Geometry, HeaderFault> {
        let Ok((header, _)) = ControlHeader::read_from_prefix(bytes) else {
            return Err(HeaderFault::NotAControlFile);
        };
        if header.magic != MAGIC {
            return Err(HeaderFault::NotAControlFile);
        }
        let version = header.version.get();
        if version != VERSION && version != MARKED_VERSION {
            return Err(HeaderFault::Version(version));
        }
        let unchecked = ControlHeader { check: U32::ZERO, ..header };
        if checksum::crc32c(unchecked.as_bytes()) != header.check.get() {
            return Err(HeaderFault::Damaged);
        }
        let marks = header.marks.get();
        if version == MARKED_VERSION && marks & !(COMMITTED_MARK | ENVELOPE_MARK) != 0 {
            return Err(HeaderFault::Marks(marks & !(COMMITTED_MARK | ENVELOPE_MARK)));
        }
        let choice = |code: U32| code.get().checked_sub(1).map(|index| index as usize);
        let geometry = (|| {
            Some(Geometry {
                layout: *LAYOUTS.get(choice(header.layout)?)?,
                preallocate: *PREALLOCATES.get(choice(header.preallocate)?)?,
                fill: *FILLS.get(choice(header.fill)?)?,
                segment_capacity: header.segment_capacity.get(),
                secret: header.secret.get(),
                boot_id: header.boot_id,
                has_commits: marks & COMMITTED_MARK != 0,
                cut: header.cut.get(),
                has_envelope: version == MARKED_VERSION && marks & ENVELOPE_MARK != 0,
            })
        })();
        geometry.filter(Geometry::is_possible).ok_or(HeaderFault::Damaged)
    }

    /// Whether the control file was made in the boot with this id; one that is not known is
    /// another.
    pub fn is_of_boot(&self, boot_id: [u8; 16]) -> bool {
        boot_id != [0; 16] && self.boot_id == boot_id
    }

    /// The oldest version whose libraries can use the log.
    fn version(&self) -> u32 {
        if self.has_envelope { MARKED_VERSION } else { VERSION }
    }

    fn marks(&self) -> u32 {
        let committed = if self.has_commits { COMMITTED_MARK } else { 0 };
        let envelope = if self.has_envelope { ENVELOPE_MARK } else { 0 };
        committed | envelope
    }

    /// Bytes that the log puts before each payload, behind the header of its frame.
    #[inline]
    pub fn envelope_len(&self) -> usize {
        if self.has_envelope { ENVELOPE_LEN } else { 0 }
    }

    /// Whether lines are written by system calls, so that a file is its text and others may follow
    /// it.
    #[inline]
    pub fn writes_text(&self) -> bool {
        self.layout == Layout::Text && self.fill == Fill::Pwrite
    }

    /// Whether records wait in a stage until they are committed.
    pub fn is_staged(&self) -> bool {
        self.fill == Fill::Staged
    }

    fn is_possible(&self) -> bool {
        (SEGMENT_CAPACITY_BYTES_MIN..=SEGMENT_CAPACITY_BYTES_MAX).contains(&self.segment_capacity)
            && self.segment_capacity.is_multiple_of(CAPACITY_UNIT_BYTES)
            && !(self.has_envelope && self.layout == Layout::Text)
    }
}

/// The faults that the first page of a control file can have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HeaderFault {
    /// It begins with something else.
    NotAControlFile,
    /// It is of another version.
    Version(u32),
    /// Bits of `marks` that this library does not know.
    Marks(u32),
    /// Its checksum or a value is wrong.
    Damaged,
}

/// The choices in the order of their codes, which start at 1 so that zeros are never valid.
const LAYOUTS: [Layout; 2] = [Layout::Framed, Layout::Text];
const FILLS: [Fill; 3] = [Fill::Mapped, Fill::Pwrite, Fill::Staged];
const PREALLOCATES: [Preallocate; 6] = [
    Preallocate::Auto,
    Preallocate::Off,
    Preallocate::Sparse,
    Preallocate::Fallocate,
    Preallocate::Zeros,
    Preallocate::Recycle,
];

fn code_of<T: PartialEq>(choices: &[T], choice: T) -> u32 {
    choices.iter().position(|other| *other == choice).map_or(0, |index| index as u32 + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    const GEOMETRY: Geometry = Geometry {
        layout: Layout::Text,
        segment_capacity: 8192,
        preallocate: Preallocate::Recycle,
        fill: Fill::Pwrite,
        secret: 42,
        boot_id: [3; 16],
        has_commits: true,
        cut: 9,
        has_envelope: false,
    };
    const WITH_ENVELOPE: Geometry =
        Geometry { layout: Layout::Framed, has_envelope: true, ..GEOMETRY };

    /// The header with its check as it should be.
    fn checked(mut bytes: Vec<u8>) -> Vec<u8> {
        bytes[12..16].fill(0);
        let check = checksum::crc32c(&bytes).to_le_bytes();
        bytes[12..16].copy_from_slice(&check);
        bytes
    }

    #[test]
    fn a_header_comes_back_as_it_was_written() {
        for geometry in [GEOMETRY, WITH_ENVELOPE, Geometry { has_commits: false, ..WITH_ENVELOPE }]
        {
            assert_eq!(Geometry::parse(&geometry.to_bytes()), Ok(geometry));
        }
    }

    #[test]
    fn a_log_with_envelopes_has_a_version_that_earlier_libraries_refuse() {
        let version = |geometry: Geometry| geometry.to_bytes()[8];
        assert_eq!((version(GEOMETRY), version(WITH_ENVELOPE)), (1, 2));
        let mut later = WITH_ENVELOPE.to_bytes();
        later[8] = 3;
        assert_eq!(Geometry::parse(&checked(later)), Err(HeaderFault::Version(3)));
    }

    #[test]
    fn marks_that_are_not_known_are_refused_by_name() {
        let mut bytes = WITH_ENVELOPE.to_bytes();
        bytes[28] |= 8;
        assert_eq!(Geometry::parse(&checked(bytes)), Err(HeaderFault::Marks(8)));
        let text = Geometry { layout: Layout::Text, ..WITH_ENVELOPE };
        assert_eq!(Geometry::parse(&text.to_bytes()), Err(HeaderFault::Damaged));
    }

    #[test]
    fn a_header_with_any_flipped_bit_is_refused() {
        for bit in 0..GEOMETRY.to_bytes().len() * 8 {
            let mut bytes = GEOMETRY.to_bytes();
            bytes[bit / 8] ^= 1 << (bit % 8);
            assert!(Geometry::parse(&bytes).is_err(), "bit {bit}");
        }
        assert_eq!(Geometry::parse(&[]), Err(HeaderFault::NotAControlFile));
    }
}
