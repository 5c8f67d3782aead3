//! Contents of blocks, and the check that an image holds the last write of each.
//!
//! A block that was written begins with its number and how often it was written before; the rest
//! of it follows from these and from the run. So a block that is lost, torn, in the wrong place or
//! older than it should be is told from the right one, and so are old bytes of the device.

use std::os::unix::fs::FileExt;
use std::path::Path;

use crate::error::{Context, Error, Result};
use crate::queue::open_direct;
use crate::ways::direct::AlignedBuffer;

/// The size of a write.
pub(super) const BLOCK_BYTES: usize = 4096;
/// An image is read back in pieces of this size.
const PIECE_BYTES: usize = 1 << 20;

/// Which block, as written for which time: the first is 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stamp {
    pub(super) block: u32,
    pub(super) generation: u32,
}

/// Fills a block with its content in the run `run`.
pub(super) fn fill(bytes: &mut [u8], stamp: Stamp, run: u64) {
    let first = u64::from(stamp.generation) << 32 | u64::from(stamp.block);
    // Drawn for the run, so that no two of them share a seed.
    let run = fastrand::Rng::with_seed(run).u64(..);
    fastrand::Rng::with_seed(first ^ run).fill(bytes);
    bytes[..8].copy_from_slice(&first.to_le_bytes());
}

/// Does the image hold in each block what was written there last, and zeros where nothing was?
/// `generations` tells how often each block was written.
pub(super) fn verify(path: &Path, generations: &[u32], run: u64) -> Result<()> {
    let file = open_direct(path)?;
    let bytes = generations.len() * BLOCK_BYTES;
    let len = file.metadata().context(|| "look at the image")?.len();
    if len != bytes as u64 {
        return Err(Error::failed(format!("the image has {len} bytes and not {bytes}")));
    }
    verify_all(generations, run, |piece, offset| {
        file.read_exact_at(piece, offset).context(|| "read the image back")
    })
}

/// The same for an image that is read by `read`, into a buffer and at an offset.
pub(super) fn verify_all(
    generations: &[u32],
    run: u64,
    mut read: impl FnMut(&mut [u8], u64) -> Result<()>,
) -> Result<()> {
    let bytes = generations.len() * BLOCK_BYTES;
    let mut piece = AlignedBuffer::new(PIECE_BYTES.min(bytes));
    let mut expected = [0; BLOCK_BYTES];
    let mut block = 0;
    for start in (0..bytes).step_by(PIECE_BYTES) {
        let len = PIECE_BYTES.min(bytes - start);
        let piece = &mut piece.as_mut_slice()[..len];
        read(piece, start as u64)?;
        for found in piece.chunks_exact(BLOCK_BYTES) {
            let stamp = Stamp { block, generation: generations[block as usize] };
            check(found, stamp, run, &mut expected)?;
            block += 1;
        }
    }
    Ok(())
}

/// Is that the block? `expected` is room for it.
fn check(found: &[u8], stamp: Stamp, run: u64, expected: &mut [u8; BLOCK_BYTES]) -> Result<()> {
    match stamp.generation {
        0 => expected.fill(0),
        _ => fill(expected, stamp, run),
    }
    if found == expected {
        return Ok(());
    }
    let Stamp { block, generation } = stamp;
    Err(Error::failed(match (identify(found, run), generation) {
        (Found::Zeros, _) => format!("block {block} was written, and is zero"),
        (Found::Other(other), _) => format!(
            "block {block} (written {generation} times) holds block {} as it was written for the \
             {}. time",
            other.block, other.generation
        ),
        (Found::Unknown, 0) => format!("block {block} was never written, and is not zero"),
        (Found::Unknown, _) => format!("block {block} holds nothing that was written"),
    }))
}

enum Found {
    Zeros,
    Other(Stamp),
    Unknown,
}

fn identify(found: &[u8], run: u64) -> Found {
    if found.iter().all(|byte| *byte == 0) {
        return Found::Zeros;
    }
    let mut first = [0; 8];
    first.copy_from_slice(&found[..8]);
    let first = u64::from_le_bytes(first);
    let stamp = Stamp { block: first as u32, generation: (first >> 32) as u32 };
    let mut whole = [0; BLOCK_BYTES];
    fill(&mut whole, stamp, run);
    if found == whole { Found::Other(stamp) } else { Found::Unknown }
}
