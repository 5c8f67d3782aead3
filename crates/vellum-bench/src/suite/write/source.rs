//! The written bytes: no filesystem can compress them, and they are stamped with their places.
//!
//! Pieces are made in a small buffer just before they are written, so that they come out of a
//! processor's cache, as fresh results of a program do, and not out of memory. Every block of a
//! kibibyte begins with its place in the file and the round: a page that is missing, that is in
//! another's place or that an earlier round left can't pass for the right one.

use std::ops::Range;

use crate::ways::direct::AlignedBuffer;

/// Each block of this size is stamped; offsets and lengths are multiples of it.
pub(super) const STAMP_BYTES: u64 = 1 << 10;
/// After so many bytes the pattern begins anew: more than filesystems compress at a time, and
/// less than a core's cache holds.
const PATTERN_BYTES: usize = 256 << 10;

/// Makes the pieces of one round.
pub(crate) struct Source {
    /// The pattern, and a piece more of it.
    buffer: AlignedBuffer,
    round: u32,
}

impl Source {
    /// Makes pieces of `piece_bytes` at most.
    pub(crate) fn new(piece_bytes: usize, round: u32) -> Source {
        let mut buffer = AlignedBuffer::new(memory_bytes(piece_bytes));
        draw(buffer.as_mut_slice(), round);
        Source { buffer, round }
    }

    /// The `len` bytes that belong at `offset`. They begin at the boundary of a page if `offset`
    /// does.
    pub(crate) fn piece(&mut self, offset: u64, len: usize) -> &[u8] {
        let memory = self.buffer.as_mut_slice();
        let piece = stamp(memory, offset, len, self.round);
        &memory[piece]
    }
}

/// How much memory it takes to make pieces of `piece_bytes` at most.
pub(super) fn memory_bytes(piece_bytes: usize) -> usize {
    PATTERN_BYTES + piece_bytes
}

/// Fills `memory` with the pattern of a round, of which [`stamp`] makes pieces.
pub(super) fn draw(memory: &mut [u8], round: u32) {
    fastrand::Rng::with_seed(round.into()).fill(&mut memory[..PATTERN_BYTES]);
    for start in (PATTERN_BYTES..memory.len()).step_by(PATTERN_BYTES) {
        let len = PATTERN_BYTES.min(memory.len() - start);
        memory.copy_within(..len, start);
    }
}

/// Makes the `len` bytes that belong at `offset`, and says where in the `memory` they are.
pub(super) fn stamp(memory: &mut [u8], offset: u64, len: usize, round: u32) -> Range<usize> {
    debug_assert!(offset.is_multiple_of(STAMP_BYTES));
    let start = (offset % PATTERN_BYTES as u64) as usize;
    let piece = start..start + len;
    let blocks = memory[piece.clone()].chunks_exact_mut(STAMP_BYTES as usize);
    for (block, at) in blocks.zip((offset..).step_by(STAMP_BYTES as usize)) {
        block[..8].copy_from_slice(&at.to_le_bytes());
        block[8..12].copy_from_slice(&round.to_le_bytes());
    }
    piece
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_depend_on_their_place_and_round_and_not_on_the_piece_they_come_in() {
        let mut small = Source::new(1 << 10, 1);
        let mut large = Source::new(1 << 20, 1);
        let at = 3 * PATTERN_BYTES as u64 - 2048;
        let piece = large.piece(at, 8192).to_vec();
        for (index, block) in piece.chunks(1024).enumerate() {
            assert_eq!(small.piece(at + 1024 * index as u64, 1024), block);
            assert_ne!(small.piece(at + 4096 + 1024 * index as u64, 1024), block);
        }
        assert_ne!(Source::new(8192, 2).piece(at, 8192), piece);
        // Without their stamps, too, so that no part of a block can be another round's.
        assert_ne!(Source::new(8192, 2).piece(at, 8192)[16..1024], piece[16..1024]);
    }

    #[test]
    fn pieces_are_aligned_as_their_places_are() {
        let mut source = Source::new(1 << 20, 1);
        for offset in [0, 4096, 260 << 10, 7 << 20] {
            assert_eq!(source.piece(offset, 4096).as_ptr().addr() % 4096, 0);
        }
    }
}
