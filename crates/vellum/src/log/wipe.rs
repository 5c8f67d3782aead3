//! Removing what lies behind a position, so that it never passes for part of the log again.
//!
//! Positions that are cut off will be written anew; whole frames of the old ones must not follow
//! the new ones after the next power cut.
//!
//! **If the process dies here**: after a power cut the next opener comes to the same position and
//! wipes again. A truncation has noted its position before.

use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::fs::OFlags;
use rustix::io;

use crate::error::OsResult;
use crate::format::control::Geometry;
use crate::format::segment::header_len;
use crate::segment::listing::{Listing, find};
use crate::segment::sync_names;
use crate::sys::{self, Dir};
use crate::{Lsn, Result};

/// Bytes looked at at a time.
const STEP: usize = 256 << 10;

/// Makes everything from `from` on unwritten, durably: zeros in its segment, and no later ones.
/// Sets `has_begun` once something of it may be gone.
pub(crate) fn wipe(dir: &Dir, geometry: &Geometry, from: Lsn, has_begun: &mut bool) -> Result<()> {
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
            let offset = header_len(geometry.layout) + (from.get() - file.first.get());
            *has_begun = true;
            clear(&fd, offset).or_os("wipe the end of the segment", path)?;
        }
    }
    dir.sync().or_os("sync the names in", dir)
}

/// Writes the bytes from `from` to `to` once more and syncs them: after a failed sync the page
/// cache may hold bytes that it thinks are on the device and are not.
pub(crate) fn rewrite(dir: &Dir, geometry: &Geometry, from: Lsn, to: Lsn) -> Result<()> {
    again(dir, geometry, from, to, |fd, path| sys::file::sync(fd).or_os("sync the segment", path))
}

/// As [`rewrite`], for who syncs them afterwards.
pub(crate) fn write_again(dir: &Dir, geometry: &Geometry, from: Lsn, to: Lsn) -> Result<()> {
    again(dir, geometry, from, to, |_, _| Ok(()))
}

fn again(
    dir: &Dir,
    geometry: &Geometry,
    from: Lsn,
    to: Lsn,
    finish: impl Fn(&OwnedFd, &Path) -> Result<()>,
) -> Result<()> {
    let capacity = geometry.segment_capacity;
    let mut bytes = vec![0; STEP];
    let listing = Listing::read(dir)?;
    let mut first = from.get() / capacity * capacity;
    while first < to.get() {
        let listed = listing.get(Lsn::new(first)).map(|file| file.path.clone());
        let path = listed.map_or_else(|| find(dir, geometry.layout, Lsn::new(first)), Ok)?;
        let fd = dir.open_file(&path, OFlags::RDWR).or_os("open the segment", &path)?;
        let header_len = header_len(geometry.layout);
        let mut offset = header_len + from.get().max(first) - first;
        let end = header_len + to.get().min(first + capacity) - first;
        while offset < end {
            let wanted = STEP.min((end - offset) as usize);
            let count = sys::file::read_up_to_at(&fd, &mut bytes[..wanted], offset)
                .or_os("read the segment", &path)?;
            if count == 0 {
                break;
            }
            sys::file::write_all_at(&fd, &bytes[..count], offset)
                .or_os("write to the segment", &path)?;
            offset += count as u64;
        }
        finish(&fd, &path)?;
        first += capacity;
    }
    Ok(())
}

/// Syncs every segment; those that are clean cost little.
pub(crate) fn sync_all(dir: &Dir) -> Result<()> {
    for file in Listing::read(dir)?.files {
        let fd = dir.open_file(&file.path, OFlags::RDONLY).or_os("open", &file.path)?;
        sys::file::sync(&fd).or_os("sync the segment", &file.path)?;
    }
    sync_names(dir)
}

/// Writes zeros over whatever is not zero from `offset` on, and syncs the file.
///
/// Only that: a full disk may have no block for a zero where there was none before.
fn clear(fd: &OwnedFd, mut offset: u64) -> io::Result<()> {
    let mut bytes = vec![0; STEP];
    loop {
        let count = sys::file::read_up_to_at(fd, &mut bytes, offset)?;
        if count == 0 {
            return sys::file::sync(fd);
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
}
