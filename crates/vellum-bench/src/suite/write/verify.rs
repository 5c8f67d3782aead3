//! Is everything in the file that should be there, and nothing else?
//!
//! Another process than the writer verifies, after the writer has ended: bytes that were only in
//! its memory are not in the file.

use std::fs::File;
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use super::source::{STAMP_BYTES, Source};
use crate::error::{Context, Error, Result};

/// Read in pieces of this size.
const READ_BYTES: usize = 1 << 20;

/// The file holds the bytes of a round: `len` bytes, the first of which belongs at `first`.
pub(crate) fn stamped(path: &Path, first: u64, len: u64, round: u32) -> Result<()> {
    let mut source = Source::new(READ_BYTES, round);
    let what = |at: u64| format!("what was written at byte {} is not there", first + at);
    compared(path, len, &mut |at, piece| {
        let expected = source.piece(first + at, piece.len());
        if piece == expected {
            return Ok(());
        }
        let blocks = piece.chunks(STAMP_BYTES as usize).zip(expected.chunks(STAMP_BYTES as usize));
        let block = blocks.take_while(|(block, expected)| block == expected).count() as u64;
        Err(Error::failed(what(at + block * STAMP_BYTES)))
    })
}

/// The file holds `len` zeros.
pub(super) fn zeros(path: &Path, len: u64) -> Result<()> {
    let zeros = vec![0; READ_BYTES];
    compared(path, len, &mut |at, piece| {
        if piece == &zeros[..piece.len()] {
            return Ok(());
        }
        let place = piece.iter().take_while(|byte| **byte == 0).count() as u64;
        Err(Error::failed(format!("byte {} is not zero", at + place)))
    })
}

/// At least `bytes` of the device are the file's.
pub(super) fn allocated(path: &Path, bytes: u64) -> Result<()> {
    let metadata = path.metadata().context(|| format!("look at {}", path.display()))?;
    // In units of 512 bytes, whatever the filesystem's own.
    let allocated = metadata.blocks() * 512;
    if allocated >= bytes {
        return Ok(());
    }
    Err(Error::failed(format!("only {allocated} of {bytes} bytes are allocated")))
}

/// Shows `compare` the whole file, which must have `len` bytes, with the place of each piece in it.
fn compared(
    path: &Path,
    len: u64,
    compare: &mut dyn FnMut(u64, &[u8]) -> Result<()>,
) -> Result<()> {
    let mut file = File::open(path).context(|| format!("open {}", path.display()))?;
    let found = file.metadata().context(|| format!("look at {}", path.display()))?.len();
    if found != len {
        return Err(Error::failed(format!("the file has {found} bytes and not {len}")));
    }
    let mut piece = vec![0; READ_BYTES];
    for at in (0..len).step_by(READ_BYTES) {
        let piece = &mut piece[..(len - at).min(READ_BYTES as u64) as usize];
        file.read_exact(piece).context(|| format!("read {}", path.display()))?;
        compare(at, piece)?;
    }
    Ok(())
}
