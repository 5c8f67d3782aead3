//! Removing what lies behind a position, so that it never passes for part of the log again.
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
use crate::format::control::Geometry;
use crate::log::state::rewrite::write_over_itself;
use crate::segment::listing::Listing;
use crate::sys::{self, Dir};
use crate::{Lsn, Result};

/// Bytes looked at at a time.
const STEP: usize = 256 << 10;

/// Makes everything from `from` on unwritten, durably: zeros in its segment, and no later ones.
/// Sets `has_begun` once something of it may be gone.
pub(crate) fn write(dir: &Dir, geometry: &Geometry, from: Lsn, has_begun: &mut bool) -> Result<()> {
    let capacity = geometry.segment_capacity;
    let active = Lsn::new(from.get() / capacity * capacity);
    // The newest first, so that there is never a gap.
    for file in Listing::read(dir)?.files.into_iter().rev() {
        let path = &file.path;
        if file.first > active {
            file.remove(dir)?;
            *has_begun = true;
        } else if file.first == active {
            let fd = dir.open_file(path, OFlags::RDWR).or_os("open the segment", path)?;
            let header_len = geometry.layout.file_header_len();
            let offset = header_len + (from.get() - file.first.get());
            *has_begun = true;
            shorten(&fd, header_len + capacity).or_os("cut the end of the segment", path)?;
            clear(&fd, offset).or_os("wipe the end of the segment", path)?;
        }
    }
    dir.sync().or_os("sync the names in", dir)
}

/// Takes off what is beyond the end of any segment: looking through that may take hours.
fn shorten(fd: &OwnedFd, len_max: u64) -> io::Result<()> {
    if sys::file::len(fd)? > len_max { sys::file::set_len(fd, len_max) } else { Ok(()) }
}

/// Writes zeros over whatever is not zero from `start` on, and syncs the file.
///
/// Only that: a full disk may have no block for a zero where there was none before.
fn clear(fd: &OwnedFd, start: u64) -> io::Result<()> {
    let mut bytes = vec![0; STEP];
    let mut offset = start;
    loop {
        let count = sys::file::read_up_to_at(fd, &mut bytes, offset)?;
        if count == 0 {
            break;
        }
        let mut begin = 0;
        for piece in bytes[..count].chunks(4096) {
            if piece.iter().any(|byte| *byte != 0) {
                let len = piece.len() as u64;
                sys::file::write_zeros_at(fd, offset + begin as u64, len, len)?;
            }
            begin += piece.len();
        }
        offset += count as u64;
    }
    sys::file::sync(fd).inspect_err(|_| {
        // What lies before the end was dirty as well, perhaps.
        let _ = write_over_itself(fd, 0, u64::MAX);
    })
}
