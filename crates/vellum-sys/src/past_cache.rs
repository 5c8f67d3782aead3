//! Writing a file over itself past the page cache, for a device that has refused a write.

use std::ops::Range;
use std::os::fd::AsFd;

use rustix::fs::{self, OFlags};
use rustix::io::{self, Errno};

use crate::file::{
    block_len, check_size_limit, is_hole, is_unsupported, len, read_up_to_at, retry, set_len,
    write_all_at,
};

/// Blocks of the largest folio of ext4.
const FOLIO_BLOCKS_MAX: u64 = 2048;
/// The unit of direct writes, on any filesystem.
const DIRECT_BLOCK: u64 = 4096;

/// Syncs a file, writes the blocks from `begin` to `end` past the page cache, and syncs it again.
/// The first sync says whether the device works: if it does not, the page cache alone has them.
pub fn sync(fd: impl AsFd, begin: u64, end: u64) -> io::Result<()> {
    crate::sync::sync(&fd)?;
    match begin < end && write_over_itself(&fd, begin, end)? {
        true => crate::sync::sync(&fd),
        false => Ok(()),
    }
}

/// Writes the bytes of a file from `begin` to `end`, and some around, over themselves past the page
/// cache. No other process or thread may write to it meanwhile, or have its descriptor. False for
/// files that take no direct write: they stay as they are.
///
/// A direct write drops whole folios from the page cache, and they may be nowhere else. So no piece
/// ends in the middle of one: those of ext4 have 2048 blocks at most.
fn write_over_itself(fd: impl AsFd, begin: u64, end: u64) -> io::Result<bool> {
    let piece_len = FOLIO_BLOCKS_MAX * block_len(&fd)?.max(DIRECT_BLOCK);
    let end = len(&fd)?.min(end.next_multiple_of(piece_len));
    let mut memory = Vec::new();
    let mut offset = begin / piece_len * piece_len;
    while offset < end {
        let wanted = piece_len.min((end - offset).next_multiple_of(DIRECT_BLOCK));
        if !is_hole(&fd, offset, wanted) {
            memory.resize((piece_len + DIRECT_BLOCK) as usize, 0);
            let start = memory.as_ptr().align_offset(DIRECT_BLOCK as usize);
            let piece = &mut memory[start..start + wanted as usize];
            let count = read_up_to_at(&fd, piece, offset)?;
            piece[count..].fill(0);
            if !write_piece_past_cache(&fd, piece, count, offset)? {
                return Ok(false);
            }
        }
        offset += wanted;
    }
    Ok(true)
}

/// Writes a piece of which the file has the first `count` bytes. Holes stay.
fn write_piece_past_cache(
    fd: impl AsFd,
    piece: &[u8],
    count: usize,
    offset: u64,
) -> io::Result<bool> {
    let grows = count < piece.len();
    if grows && check_size_limit(offset + piece.len() as u64).is_err() {
        return Ok(false);
    }
    // Once the first run is written, the page cache says no more where holes are.
    let runs = runs_of_data(&fd, piece, offset);
    let flags = retry(|| fs::fcntl_getfl(&fd))?;
    if retry(|| fs::fcntl_setfl(&fd, flags | OFlags::DIRECT)).is_err() {
        return Ok(false);
    }
    let write =
        |run: &Range<usize>| write_all_at(&fd, &piece[run.clone()], offset + run.start as u64);
    let written = runs.iter().try_for_each(write);
    retry(|| fs::fcntl_setfl(&fd, flags))?;
    if grows {
        set_len(&fd, offset + count as u64)?;
    }
    let Err(errno) = written else { return Ok(true) };
    // The pages may be gone, and the device may not have them.
    let clipped = runs.iter().map(|run| run.start..run.end.min(count));
    clipped.into_iter().try_for_each(|run| write(&run))?;
    if is_unsupported(errno) || errno == Errno::INVAL { Ok(false) } else { Err(errno) }
}

/// Where the blocks of a piece are that are no holes.
fn runs_of_data(fd: impl AsFd, piece: &[u8], offset: u64) -> Vec<Range<usize>> {
    let block_len = DIRECT_BLOCK as usize;
    let mut runs: Vec<Range<usize>> = Vec::new();
    for (index, block) in piece.chunks(block_len).enumerate() {
        let start = index * block_len;
        let is_zero = block.iter().all(|byte| *byte == 0);
        if is_zero && is_hole(&fd, offset + start as u64, DIRECT_BLOCK) {
            continue;
        }
        match runs.last_mut() {
            Some(run) if run.end == start => run.end = start + block_len,
            _ => runs.push(start..start + block_len),
        }
    }
    runs
}
