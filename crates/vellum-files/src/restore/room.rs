//! Whether a log that is restored has room, before anything is written.
//!
//! The length of a gap comes from a few bytes that another program has stored. In a framed log a
//! gap takes a file for each segment, though hardly any blocks.

use std::path::Path;

use rustix::fs::{StatVfs, statfs, statvfs};

use crate::error::OsResult;
use crate::format::segment::HEADER_LEN;
use crate::restore::shape::LogShape;
use crate::sys::filesystem::Filesystem;
use crate::{Error, ErrorKind, Lsn, Result};

/// The most files that are made of gaps in one restore.
pub(crate) const GAP_FILES_MAX: u64 = 1 << 16;

/// The needed space.
pub(crate) struct Need {
    /// Bytes of records.
    pub(crate) bytes: u64,
    /// Files that hold nothing but a gap.
    pub(crate) gap_files: u64,
}

/// How many segments begin in a gap: those that hold nothing else, and the one in which it ends.
pub(crate) fn gap_files(shape: &LogShape, from: Lsn, to: Lsn) -> u64 {
    let begun = |lsn: Lsn| lsn.get().div_ceil(shape.segment_capacity_bytes());
    match shape.layout().has_every_segment() {
        true => begun(to).saturating_sub(begun(from)),
        false => 0,
    }
}

/// Makes sure that there is room in the filesystem of `dir`, or of the nearest directory above it
/// that is there.
pub(crate) fn check(dir: &Path, shape: &LogShape, need: &Need) -> Result<()> {
    if need.gap_files > GAP_FILES_MAX {
        let message = format!(
            "what was lost before it was shipped takes {} files to leave out, and {GAP_FILES_MAX} \
             at most are made; restore what is before it",
            need.gap_files
        );
        return Err(Error::new(ErrorKind::OutOfRange, message).at_path(dir));
    }
    let there = dir.ancestors().find(|dir| dir.is_dir()).filter(|dir| *dir != Path::new(""));
    let there = there.unwrap_or(Path::new("."));
    let what = "ask for space at";
    // By the path: a directory that may not be read can be asked too.
    let kind = statfs(there).or_os(what, there)?.f_type;
    let (filesystem, room) =
        (Filesystem::from_magic(kind as u64), statvfs(there).or_os(what, there)?);
    // A filesystem that compresses may take more than it has room for.
    let bytes = if filesystem.stores_as_is() { need.bytes } else { 0 };
    let gap_bytes = need.gap_files.saturating_mul(gap_file_bytes(filesystem, shape, &room));
    let wanted = bytes.saturating_add(gap_bytes);
    let free = room.f_bavail.saturating_mul(room.f_frsize);
    // Where files are not counted there are none.
    let is_short_of_files = room.f_files > 0 && need.gap_files > room.f_favail;
    if wanted <= free && !is_short_of_files {
        return Ok(());
    }
    let message = format!(
        "the log takes {wanted} bytes, and {} files of what was lost before it was shipped; the \
         filesystem has room for {free} bytes and {} files",
        need.gap_files, room.f_favail
    );
    Err(Error::new(ErrorKind::NoSpace, message).at_path(dir))
}

/// A file of a gap has its header, and the mark that nothing follows.
fn gap_file_bytes(filesystem: Filesystem, shape: &LogShape, room: &StatVfs) -> u64 {
    match filesystem.has_holes() {
        true => 2 * room.f_frsize.max(HEADER_LEN),
        false => HEADER_LEN + shape.segment_capacity_bytes(),
    }
}
