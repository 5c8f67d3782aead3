//! Noticing that the file that is written was packed, removed or replaced, and leaving it.
//!
//! A process reaches a file that it has open whatever becomes of the file's name, so it would store
//! records that no reader finds. It looks at the name once a second, with the place of the log
//! (`place`), which costs three system calls then. If another file has the name or none, the next
//! record starts a new file.
//!
//! Records of the second before are in the old file alone. Where that was packed (`gzip`), its
//! text comes back under its name, and the packed copy, which ends earlier, goes. Where it was
//! removed or renamed, readers report a missing file.
//!
//! **If the process dies here**: the packed copy counts as long as it is there, and whatever has
//! the name beside it is removed. The next process that looks finds the name missing, or the file
//! of a copy that is not whole, and starts a new file.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use rustix::io::Errno;

use crate::error::OsResult;
use crate::log::state::core::Core;
use crate::log::state::writer::{Prepare, Writer};
use crate::segment::file::Segment;
use crate::segment::listing::{Listing, remove};
use crate::segment::sync_names;
use crate::shared::tail_word;
use crate::sys::filesystem::Filesystem;
use crate::{Result, sys};

/// How long to wait for appends that are in progress, and in how many steps.
const LOOKS: usize = 20;
const PAUSE: Duration = Duration::from_millis(5);
/// Bytes that are copied at once.
const PIECE_BYTES: usize = 1 << 20;

/// The file that has the name of an earlier one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FileMatch {
    Same,
    Other,
    Missing,
}

/// Has the next record go to a new segment, unless this one is empty.
pub(crate) fn leave(prepare: &Prepare<'_>) {
    let core = prepare.writer.core;
    let words = core.words();
    let tail = tail_word::tail(words);
    let is_full = tail.get() == words.allocated_end();
    if is_full || !tail.get().is_multiple_of(core.files.capacity()) {
        words.files.rule.leave(if is_full { tail } else { core.files.segment_end(tail) });
    }
}

/// Leaves the newest file of a text log if its name is not its name any more. Returns whether
/// everything is done.
#[cold]
pub(crate) fn check(writer: Writer<'_>) -> bool {
    if lost(writer).is_none() {
        return true;
    }
    let Some(prepare) = writer.try_lock_prepare() else { return false };
    // Others may have done it meanwhile.
    let Some(segment) = lost(writer) else { return true };
    leave(&prepare);
    // A segment that cannot be brought back is reported to readers.
    let _ = bring_back(&prepare, &segment);
    true
}

/// Whether the newest file that this process has open has lost its name.
pub(crate) fn is_lost(writer: Writer<'_>) -> bool {
    lost(writer).is_some()
}

/// The newest file, if this process has it open and its name leads elsewhere.
fn lost(writer: Writer<'_>) -> Option<Arc<Segment>> {
    let core = writer.core;
    let tail = tail_word::tail(core.words());
    let (first, path) = core.newest_path().filter(|_| core.files.geometry.layout.rotates())?;
    let segment = writer.attachment.open_segments().find(first)?;
    let is_left = core.files.segment_of(tail) != first;
    let known = sys::file::identity(segment.fd()).ok().filter(|_| !is_left)?;
    let name = path.file_name()?.to_str()?;
    (file_match(core, name, known) != FileMatch::Same).then_some(segment)
}

/// Gives the text of a file that was packed its name again.
fn bring_back(prepare: &Prepare<'_>, segment: &Segment) -> Result<()> {
    let core = prepare.writer.core;
    let listing = Listing::read(&core.files.dir)?;
    let packed = listing.get(segment.file.first).filter(|file| file.is_compressed());
    let Some((packed, (_, path))) = packed.zip(core.newest_path()) else { return Ok(()) };
    let tail = tail_word::tail(core.words());
    let is_in_progress = || tail_word::published(core.words()) < tail;
    (0..LOOKS).take_while(|_| is_in_progress()).for_each(|_| std::thread::sleep(PAUSE));
    copy(core, segment, segment.offset_of(tail), &path)?;
    remove(&core.files.dir, &packed.path)?;
    sync_names(&core.files.dir)
}

/// Copies the first `len` bytes of a file to `path`, durably.
fn copy(core: &Core, segment: &Segment, len: u64, path: &Path) -> Result<()> {
    let target = core.files.rights.create(&core.files.dir, path, "create the file again")?;
    let (mut bytes, mut offset) = (vec![0; PIECE_BYTES], 0);
    while offset < len {
        let piece = (len - offset).min(PIECE_BYTES as u64) as usize;
        let count = sys::file::read_up_to_at(segment.fd(), &mut bytes[..piece], offset)
            .or_os("read the segment", &segment.file.path)?;
        sys::file::write_all_at(&target, &bytes[..piece], offset).or_os("write to", path)?;
        bytes[..piece].fill(0);
        offset += count.max(piece) as u64;
    }
    sys::sync::sync(&target).or_os("sync", path)
}

/// The file that has the name of the `known` one; a file without a readable status is taken to be
/// it.
pub(crate) fn file_match(core: &Core, name: &str, known: (u64, u64)) -> FileMatch {
    match core.files.dir.stat(&core.files.dir.join(name)) {
        Ok(found) if (found.st_dev, found.st_ino) == known => FileMatch::Same,
        Ok(_) if has_steady_inodes(core) => FileMatch::Other,
        Err(Errno::NOENT) => FileMatch::Missing,
        Ok(_) | Err(_) => FileMatch::Same,
    }
}

/// Whether a file keeps its inode as long as it is there.
pub(crate) fn has_steady_inodes(core: &Core) -> bool {
    core.ready.filesystem != Filesystem::Fuse
}
