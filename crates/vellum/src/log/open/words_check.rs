//! Whether the shared words hold, before the first process that opens a log continues from them.
//!
//! A process that joins others believes them: those hold locks of the kernel that runs now. Without
//! a participant, the words are a hint that has to be proven. They must be of this boot, because
//! only its page cache held the records that they count, and of this control file: a copy is about
//! other segments. And they must agree with the files (`log::open::agreement`), because a
//! filesystem can be mounted again, or an image put back, in the same boot: then each page is as
//! old as when it was last written back.
//!
//! Of a log that was closed in order only the last page is read, whose checksum was noted then.
//!
//! Neither the boot nor the file proves that something was lost: some containers have a boot id of
//! their own, and some filesystems change the numbers of files. So words that are not believed
//! still count for the ranges of the dead, if they agree with the files in everything.
//!
//! **If the process dies here**: nothing was changed. That the log is closed is noted last, and
//! taken back before a process attaches.

use std::os::fd::OwnedFd;
use std::sync::Arc;

use rustix::{fs, io};

use crate::files::open_files::open_file;
use crate::format::control::Geometry;
use crate::identity::RecoveryReason;
use crate::log::open::agreement::{self, Cache};
use crate::log::ready::stage;
use crate::log::state::core::Core;
use crate::lsn::Range;
use crate::segment::listing::Listing;
use crate::shared::commit;
use crate::shared::primitive::Ordering;
use crate::shared::region::Region;
use crate::shared::tail_word;
use crate::sys::checksum;
use crate::{ErrorKind, Lsn, Result};

/// Bytes before the tail by which a closed log is known again.
const CLOSING_LEN: u64 = 4096;

/// Why the words cannot be of this boot and this file, if they cannot.
pub(crate) fn loss(
    control: &OwnedFd,
    geometry: &Geometry,
    boot_id: [u8; 16],
    region: &Region,
) -> io::Result<Option<RecoveryReason>> {
    if !is_same_file(control, region)? {
        return Ok(Some(RecoveryReason::Moved));
    }
    Ok((!geometry.is_of_boot(boot_id)).then_some(RecoveryReason::Reboot))
}

fn is_same_file(control: &OwnedFd, region: &Region) -> io::Result<bool> {
    let status = fs::fstat(control)?;
    Ok(region.origin().is_some_and(|origin| {
        origin.device.load(Ordering::Relaxed) == status.st_dev
            && origin.inode.load(Ordering::Relaxed) == status.st_ino
    }))
}

/// Whether the words agree with the files, which `listing` has. No process is attached.
pub(crate) fn agree(core: &Arc<Core>, listing: &Arc<Listing>, cache: Cache) -> Result<bool> {
    let durable = commit::durable(&core.words().commits);
    if core.check_words().is_err() || durable > tail_word::tail(core.words()) {
        return Ok(false);
    }
    if agreement::is_older_than_segments(core, listing)? {
        return Ok(false);
    }
    if is_as_closed(core)? {
        return Ok(true);
    }
    match agreement::is_whole(core, listing, cache) {
        // A file that is gone, or another's.
        Err(error) if error.kind() == ErrorKind::Corrupt => Ok(false),
        answer => answer,
    }
}

/// The ranges of the dead, if the words agree with the files in everything. For an opener that does
/// not believe them otherwise.
pub(crate) fn reserved(core: &Arc<Core>, listing: &Arc<Listing>) -> Result<Vec<Range>> {
    let reserved = agreement::reserved(core.words());
    let is_proven = !reserved.is_empty()
        && !stage::is_lost(&core.files.dir, &core.files.geometry, core.words())?
        && agree(core, listing, Cache::Unknown)?;
    Ok(if is_proven { reserved } else { Vec::new() })
}

/// Whether a reader without write permission, which cannot tell whether others are attached, may
/// believe words that are of this boot and file. The staged part is small, and is read whole:
/// without it, nothing behind can be read.
pub(crate) fn agree_for_reading(core: &Arc<Core>) -> Result<bool> {
    if core.commits.stage.is_some() {
        return agree(core, &Arc::new(Listing::read(&core.files.dir)?), Cache::Unknown);
    }
    let ends = || (tail_word::tail(core.words()), agreement::allocated_end(core));
    let before = ends();
    if core.check_words().is_err() {
        return Ok(true);
    }
    if !agreement::is_older_than_segments(core, &Listing::read(&core.files.dir)?)? {
        return Ok(true);
    }
    // A process has just appended: the bytes there were reserved or made after the words were read.
    Ok(ends() != before)
}

/// Notes that the log is closed, and its end. The caller is the only participant, holds the gate,
/// and leaves.
pub(crate) fn note_closed(core: &Core) -> Result<()> {
    let (words, Some(origin)) = (core.words(), core.region.origin()) else { return Ok(()) };
    let tail = tail_word::tail(words);
    let is_staged = words.commits.stage.id() != 0;
    if is_staged || commit::is_poisoned(&words.commits) || tail_word::published(words) != tail {
        return Ok(());
    }
    if let Some(check) = closing_check(core, tail)? {
        origin.closed_check.store(check, Ordering::SeqCst);
        origin.closed_at.store(tail.get(), Ordering::SeqCst);
    }
    Ok(())
}

/// Whether the log was closed in order, and ends as it did then.
fn is_as_closed(core: &Core) -> Result<bool> {
    let tail = tail_word::tail(core.words());
    let Some(origin) = core.region.origin() else { return Ok(false) };
    if origin.closed_at.load(Ordering::Acquire) != tail.get() {
        return Ok(false);
    }
    let check = origin.closed_check.load(Ordering::Acquire);
    Ok(closing_check(core, tail)? == Some(check))
}

/// A checksum of the bytes before `tail`; `None` where some of them are missing.
fn closing_check(core: &Core, tail: Lsn) -> Result<Option<u64>> {
    let first = core.files.segment_of(Lsn::new(tail.get().saturating_sub(1)));
    let from = Lsn::new(tail.get().saturating_sub(CLOSING_LEN)).max(first);
    let mut bytes = vec![0; (tail.get() - from.get()) as usize];
    if tail <= core.begin() {
        return Ok(Some(0));
    }
    let count = match open_file(core, &mut Arc::default(), first) {
        Ok(segment) => segment.read(from, &mut bytes)?,
        Err(error) if error.kind() == ErrorKind::Corrupt => 0,
        Err(error) => return Err(error),
    };
    Ok((count == bytes.len()).then(|| u64::from(checksum::crc32c(&bytes))))
}
