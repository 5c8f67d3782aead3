//! Putting a record's bytes where they were reserved.
//!
//! The header of a framed record goes in last when it is stored through the mapping, so that a
//! header in the file means that its payload is there too, whenever the writer dies.
//!
//! Where storage fails under the mapping, the stored bytes are in no file. They are written again
//! by system call, which succeeds or returns an error.

use std::io::IoSlice;

use crate::files::padding;
use crate::format::frame::HEADER_LEN;
use crate::log::append::reserve::Placement;
use crate::log::append::{Append, Appender};
use crate::log::state::attachment::LocalSlot;
use crate::log::state::identity;
use crate::log::state::writer::Writer;
use crate::shared::tail_word::Grant;
use crate::{Lsn, Result};

/// Records up to this long are stored through the mapping, longer ones written by `pwrite`:
/// above, the copy by the kernel costs less than the zeros and the page faults of the mapping
/// (`docs/benchmarks.md`).
const MAPPED_LEN_MAX: u64 = 128 << 10;

/// The same where no other thread appends, so that no thread queues for the file.
pub(crate) const MAPPED_ALONE_MAX: u64 = 48 << 10;

/// A thread's way to the file for one reservation.
pub(crate) struct Filler<'a> {
    pub(crate) writer: Writer<'a>,
    pub(crate) slot: &'a mut LocalSlot,
    /// Whether it stores through the mapping.
    pub(crate) is_mapped: bool,
}

impl Append<'_> {
    /// Whether a record that takes `len` bytes goes through the mapping, appended by the thread of
    /// `slot`.
    #[inline]
    pub(crate) fn is_mapped(self, len: u64, slot: &LocalSlot) -> bool {
        let most = if len <= MAPPED_ALONE_MAX { MAPPED_ALONE_MAX } else { self.mapped_max(slot) };
        self.core.has_mapping() && len <= most.min(self.core.files.capacity())
    }

    /// Up to which length records go through the mapping now.
    fn mapped_max(self, slot: &LocalSlot) -> u64 {
        // From a stage a commit writes stored bytes faster than those written by system call.
        let is_alone = self.core.commits.stage.is_none()
            && slot.rivals.are_away(self.core.words(), slot.index());
        if is_alone { MAPPED_ALONE_MAX } else { MAPPED_LEN_MAX }
    }
}

impl Filler<'_> {
    /// Accounts for the bytes that the reservation skips at the end of a segment.
    #[inline]
    pub(crate) fn skip(&mut self, placement: Placement) -> Result<()> {
        if placement.at == placement.grant.range.start {
            return Ok(());
        }
        self.skip_to(placement)
    }

    #[cold]
    fn skip_to(&mut self, placement: Placement) -> Result<()> {
        let Placement { grant: Grant { range, .. }, at } = placement;
        if self.writer.core.files.geometry.layout.ends_with_records() {
            let segment = Appender::of(self.writer).segment(self.slot, range.start)?;
            return padding::cut_off(&segment.file, range.start);
        }
        let len = at.get() - range.start.get();
        if len < HEADER_LEN as u64 {
            return Err(self.writer.core.nonsense(format!("no frame ends at {}", range.start)));
        }
        let header = self.writer.core.files.codec.pad(range.start, len).to_bytes();
        self.bytes(range.start, &[&header])?;
        let epoch = identity::live_epoch(self.writer.core);
        self.writer.attachment.skipped.note(epoch, range.start);
        Ok(())
    }

    /// Puts a framed record at `at`: header, then the payload in `parts`.
    #[inline]
    pub(crate) fn record(&mut self, at: Lsn, parts: &[&[u8]]) -> Result<()> {
        let len: usize = parts.iter().map(|part| part.len()).sum();
        let header = self.writer.core.files.codec.record(at, len as u32, parts).to_bytes();
        self.put(at, &header, parts)
    }

    /// Puts bytes at `at` as they are.
    #[inline]
    pub(crate) fn bytes(&mut self, at: Lsn, parts: &[&[u8]]) -> Result<()> {
        self.put(at, &[], parts)
    }

    /// Puts `header` and the parts behind it at `at`, the header last.
    #[inline(always)]
    fn put(&mut self, at: Lsn, header: &[u8], parts: &[&[u8]]) -> Result<()> {
        if !self.is_mapped {
            return self.write_record(at, header, parts);
        }
        let len = header.len() + parts.iter().map(|part| part.len()).sum::<usize>();
        let segment = Appender::of(self.writer).segment(self.slot, at)?;
        let offset = segment.offset_of(at);
        let core = self.writer.core;
        // No more than others would make ready for it: an append has time for a window.
        let limit = || core.ready_end().min(Lsn::new(at.get() + 2 * core.ready.window.bytes()));
        let Some(map) = segment.mapped(offset, len, limit)? else {
            return self.write_record(at, header, parts);
        };
        let mut next = offset as usize + header.len();
        for part in parts {
            map.write(next, part);
            next += part.len();
        }
        if !header.is_empty() {
            map.write(offset as usize, header);
        }
        if map.is_lost() {
            segment.check_len(offset, len)?;
            return self.write_record(at, header, parts);
        }
        Ok(())
    }

    fn write_record(&mut self, at: Lsn, header: &[u8], parts: &[&[u8]]) -> Result<()> {
        match parts {
            _ if header.is_empty() => self.write_parts(at, parts),
            [payload] => self.write_parts(at, &[header, payload]),
            _ => self.write_parts(at, &[&[header], parts].concat()),
        }
    }

    /// Writes parts by system call: one where they lie in one segment.
    fn write_parts(&mut self, at: Lsn, parts: &[&[u8]]) -> Result<()> {
        let len: u64 = parts.iter().map(|part| part.len() as u64).sum();
        let room = self.writer.core.files.segment_end(at).get() - at.get();
        if len > room {
            return self.write_across(at, parts);
        }
        let segment = Appender::of(self.writer).segment(self.slot, at)?;
        let offset = segment.offset_of(at);
        match parts {
            [line] => segment.file.write(line, offset),
            [header, payload] => {
                let mut pieces = [IoSlice::new(header), IoSlice::new(payload)];
                segment.file.write_vectored(&mut pieces, offset)
            }
            _ => {
                let mut pieces: Vec<_> = parts.iter().map(|part| IoSlice::new(part)).collect();
                segment.file.write_vectored(&mut pieces, offset)
            }
        }
    }

    /// Writes parts that lie in several segments.
    fn write_across(&mut self, mut at: Lsn, parts: &[&[u8]]) -> Result<()> {
        for part in parts {
            let mut rest = *part;
            while !rest.is_empty() {
                let segment = Appender::of(self.writer).segment(self.slot, at)?;
                let room = segment.file.first.get() + self.writer.core.files.capacity() - at.get();
                let (piece, further) = rest.split_at(rest.len().min(room as usize));
                segment.file.write(piece, segment.offset_of(at))?;
                at = Lsn::new(at.get() + piece.len() as u64);
                rest = further;
            }
        }
        Ok(())
    }
}
