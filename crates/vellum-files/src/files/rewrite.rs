//! Writing once more the bytes that the page cache holds and the device may not.
//!
//! The kernel takes the pages of a failed sync for clean: the next sync finds nothing to write, and
//! succeeds. So the bytes of such a sync are written over themselves, and are dirty again.
//!
//! ext4 takes a block for written as soon as it has begun to write it for the first time. If that
//! fails, the block counts as unwritten on the device, and as written in the page cache. Later
//! writes of such a page reach the block, and the device still says that it holds zeros. Only a
//! write past the page cache asks the device. So blocks are written in this way too.
//!
//! **If the process dies here**: the log is poisoned still, and the next opener does it again. An
//! opening that fails to sync has nothing to poison: it leaves dirty pages to the next one.

use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::fs::OFlags;
use rustix::io::{self, Errno};

use crate::error::OsResult;
use crate::files::names::{CURSORS_NAME, GEOMETRY_NAME, SMALL_LEN_MAX};
use crate::format::control::Geometry;
use crate::format::cursor;
use crate::format::segment::HEADER_LEN;
use crate::segment::listing::{Listing, find};
use crate::segment::sync_names;
use crate::sys::{self, Dir};
use crate::{Lsn, Result};

/// Bytes copied at a time.
const STEP: usize = 256 << 10;

/// Writes the notes beside the records, and syncs them: where the log begins, in the headers of
/// segments; where it was being cut, in the geometry file; and the cursors.
pub fn notes(dir: &Dir, geometry: &Geometry) -> Result<()> {
    if geometry.layout.file_header_len() > 0 {
        for file in Listing::read(dir)?.files {
            note(dir, &file.path, HEADER_LEN, 0)?;
        }
    }
    for (name, len_max) in [(GEOMETRY_NAME, SMALL_LEN_MAX), (CURSORS_NAME, cursor::FILE_LEN)] {
        note(dir, &dir.join(name), len_max as u64, len_max as u64)?;
    }
    Ok(())
}

/// The first `len` bytes of a file, if it is there; `direct` of them past the page cache too.
fn note(dir: &Dir, path: &Path, len: u64, direct: u64) -> Result<()> {
    let fd = match dir.open_file(path, OFlags::RDWR) {
        Err(Errno::NOENT) => return Ok(()),
        answer => answer.or_os("open", path)?,
    };
    write_over_itself(&fd, 0, len)
        .and_then(|()| sys::past_cache::sync(&fd, 0, direct))
        .or_os("write again", path)
}

/// Writes the bytes of the log from `from` to the tail, and syncs them. So too the space that was
/// made ready behind the tail: records will be stored there.
pub fn records(dir: &Dir, geometry: &Geometry, from: Lsn, tail: Lsn) -> Result<()> {
    let end = Lsn::new(tail.get().next_multiple_of(geometry.segment_capacity));
    again(dir, geometry, from, end, |fd, begin, end| sys::past_cache::sync(fd, begin, end))
}

/// As [`records`], for a caller that syncs them afterwards.
pub fn records_unsynced(dir: &Dir, geometry: &Geometry, from: Lsn, to: Lsn) -> Result<()> {
    again(dir, geometry, from, to, |_, _, _| Ok(()))
}

fn again(
    dir: &Dir,
    geometry: &Geometry,
    from: Lsn,
    to: Lsn,
    finish: impl Fn(&OwnedFd, u64, u64) -> io::Result<()>,
) -> Result<()> {
    let capacity = geometry.segment_capacity;
    let listing = Listing::read(dir)?;
    let mut first = from.get() / capacity * capacity;
    while first < to.get() {
        let listed = listing.get(Lsn::new(first)).map(|file| file.path.clone());
        let path = listed.map_or_else(|| find(dir, geometry.layout, Lsn::new(first)), Ok)?;
        let fd = dir.open_file(&path, OFlags::RDWR).or_os("open the segment", &path)?;
        let header_len = geometry.layout.file_header_len();
        let begin = header_len + from.get().max(first) - first;
        let end = header_len + to.get().min(first + capacity) - first;
        let written = write_over_itself(&fd, begin, end).and_then(|()| finish(&fd, begin, end));
        written.or_os("write again", &path)?;
        first += capacity;
    }
    Ok(())
}

/// Writes the bytes of a file from `begin` to `end`, or to where it ends, over themselves. Holes
/// stay.
pub fn write_over_itself(fd: &OwnedFd, begin: u64, end: u64) -> io::Result<()> {
    let mut bytes = vec![0; STEP];
    let mut offset = begin;
    while offset < end {
        let wanted = STEP.min(usize::try_from(end - offset).unwrap_or(STEP));
        let count = sys::file::read_up_to_at(fd, &mut bytes[..wanted], offset)?;
        if count == 0 {
            break;
        }
        let piece = &bytes[..count];
        if !sys::file::is_zero(piece) || !sys::file::is_hole(fd, offset, count as u64) {
            sys::file::write_all_at(fd, piece, offset)?;
        }
        offset += count as u64;
    }
    Ok(())
}

/// Syncs every segment; those that are clean cost little. Those that cannot be synced are dirty
/// afterwards.
pub fn sync_all(dir: &Dir, geometry: &Geometry, listing: &Listing) -> Result<()> {
    let len_max = geometry.layout.file_header_len() + geometry.segment_capacity;
    for file in &listing.files {
        let fd = dir.open_file(&file.path, OFlags::RDONLY).or_os("open", &file.path)?;
        let synced = sys::sync::sync(&fd);
        if synced.is_err()
            && let Ok(fd) = dir.open_file(&file.path, OFlags::RDWR)
        {
            let _ = write_over_itself(&fd, 0, len_max);
        }
        synced.or_os("sync the segment", &file.path)?;
    }
    sync_names(dir)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{FileExt, MetadataExt};

    use super::*;

    #[test]
    fn past_the_page_cache_a_file_keeps_its_bytes_its_length_and_its_holes() {
        let file = tempfile::tempfile().unwrap();
        let at = [(4000, 200), (5 << 20, 70_000), ((20 << 20) - 1, 4099)];
        for (offset, len) in at {
            file.write_all_at(&vec![7; len], offset).unwrap();
        }
        let fd = OwnedFd::from(file.try_clone().unwrap());
        let mut before = vec![0; file.metadata().unwrap().len() as usize];
        file.read_exact_at(&mut before, 0).unwrap();
        for (begin, end) in [(4100, u64::MAX >> 1), (6 << 20, 6 << 20), (0, 5 << 20)] {
            sys::past_cache::sync(&fd, begin, end).unwrap();
            let mut bytes = vec![1; before.len()];
            file.read_exact_at(&mut bytes, 0).unwrap();
            assert!(bytes == before, "{begin} to {end}");
            assert_eq!(file.metadata().unwrap().len(), before.len() as u64);
        }
        assert!(file.metadata().unwrap().blocks() * 512 < 200_000);
    }

    #[test]
    fn a_sparse_file_stays_sparse() {
        let file = tempfile::tempfile().unwrap();
        file.set_len(8 << 20).unwrap();
        file.write_all_at(b"data", 4 << 20).unwrap();
        let fd = OwnedFd::from(file.try_clone().unwrap());
        write_over_itself(&fd, 0, u64::MAX).unwrap();
        file.sync_all().unwrap();
        assert!(file.metadata().unwrap().blocks() * 512 <= STEP as u64);
        let mut bytes = vec![1; 8 << 20];
        file.read_exact_at(&mut bytes, 0).unwrap();
        assert_eq!(bytes.iter().filter(|byte| **byte != 0).count(), 4);
    }
}
