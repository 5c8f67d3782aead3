//! Removing everything behind a position, so that it never passes for part of the log again.
//!
//! Positions that are cut off will be written anew; whole frames of the old ones must not follow
//! the new ones after the next power cut.
//!
//! **If the process dies here**: after a power cut the next opener comes to the same position and
//! wipes again. A truncation has noted its position before.

use std::os::fd::OwnedFd;

use rustix::fs::OFlags;
use rustix::io;

use crate::error::OsResult;
use crate::files::rewrite::write_over_itself;
use crate::format::control::Geometry;
use crate::segment::listing::Listing;
use crate::sys::{self, Dir};
use crate::{Lsn, Result};

/// Bytes looked at at a time.
const STEP: usize = 256 << 10;
/// Bytes that are all left alone or all written.
const PAGE: usize = 4096;

/// Makes everything from `from` on unwritten, durably: zeros in its segment, and no later ones.
/// Sets `has_begun` once something of it may be gone.
pub fn write(dir: &Dir, geometry: &Geometry, from: Lsn, has_begun: &mut bool) -> Result<()> {
    write_to(dir, geometry, &Listing::read(dir)?, (from, None), has_begun)
}

/// As [`write()`], of the files that were listed. Nothing but zeros follows in the segment from
/// `zeros` on, where that is known.
pub fn write_to(
    dir: &Dir,
    geometry: &Geometry,
    listing: &Listing,
    (from, zeros): (Lsn, Option<Lsn>),
    has_begun: &mut bool,
) -> Result<()> {
    let capacity = geometry.segment_capacity;
    let active = Lsn::new(from.get() / capacity * capacity);
    // The newest first, so that there is never a gap.
    for file in listing.files.iter().rev() {
        let path = &file.path;
        if file.first > active {
            file.remove(dir)?;
            *has_begun = true;
        } else if file.first == active {
            let fd = dir.open_file(path, OFlags::RDWR).or_os("open the segment", path)?;
            let header_len = geometry.layout.file_header_len();
            let offset_of = |lsn: Lsn| header_len + (lsn.get() - file.first.get());
            *has_begun = true;
            shorten(&fd, header_len + capacity).or_os("cut the end of the segment", path)?;
            clear(&fd, offset_of(from), zeros.map(offset_of))
                .or_os("wipe the end of the segment", path)?;
        }
    }
    dir.sync().or_os("sync the names in", dir)
}

/// Cuts off the bytes beyond the end of any segment: looking through them may take hours.
fn shorten(fd: &OwnedFd, len_max: u64) -> io::Result<()> {
    if sys::file::len(fd)? > len_max { sys::file::set_len(fd, len_max) } else { Ok(()) }
}

/// Writes zeros over the pages that are not zero from `start` on, and syncs the file. Nothing but
/// zeros follows from `zeros` on, where that is known.
///
/// Only those: a full disk may have no block for a zero where there was none before.
fn clear(fd: &OwnedFd, start: u64, zeros: Option<u64>) -> io::Result<()> {
    let end = zeros.map_or_else(|| sys::file::end_before_zeros(fd, start, u64::MAX), Ok)?;
    let mut bytes = vec![0; STEP.min(end.saturating_sub(start) as usize)];
    let mut offset = start;
    while offset < end {
        let wanted = bytes.len().min((end - offset) as usize);
        let count = sys::file::read_up_to_at(fd, &mut bytes[..wanted], offset)?;
        if count == 0 {
            break;
        }
        let (mut run, mut at) = (offset, offset);
        let wipe = |begin: u64, end: u64| {
            sys::file::write_zeros_at(fd, begin, end - begin, sys::file::ZEROS_BYTES_MAX)
        };
        for page in bytes[..count].chunks(PAGE) {
            let next = at + page.len() as u64;
            if sys::file::is_zero(page) {
                wipe(run, at)?;
                run = next;
            }
            at = next;
        }
        wipe(run, at)?;
        offset += count as u64;
    }
    sys::sync::sync(fd).inspect_err(|_| {
        // The bytes before the end were dirty as well, perhaps.
        let _ = write_over_itself(fd, 0, u64::MAX);
    })
}
