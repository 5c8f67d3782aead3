//! Whether the shared words hold, before the first process that opens a log goes on from them.
//!
//! Who joins others believes them: those hold locks of the kernel that runs now. With nobody there,
//! the words are a hint that has to be proven. They must be of this boot, because only its page
//! cache held what they tell of, and of this control file: a copy tells of other segments. And they
//! must agree with the segments, because a filesystem can be mounted again, or an image put back,
//! in the same boot: then each page is as old as when it was last written back.
//!
//! - Nothing may stand at the tail or behind: the words would be older than the segments, and what
//!   stands there would be overwritten.
//! - What lies between `durable` and the tail must be there, but for what the dead had reserved. Of
//!   that no more than the last segment is read, or what is staged; and of a log that was closed in
//!   order, only the last page, whose checksum was noted then.
//!
//! What is durable is not read: if it is damaged, readers are told, as they would be at any other
//! time.
//!
//! **If the process dies here**: nothing was changed. That the log is closed is noted last, and
//! taken back before anybody attaches.

use std::os::fd::OwnedFd;
use std::sync::Arc;

use rustix::{fs, io};

use crate::format::control::Geometry;
use crate::log::core::{Core, bare_core};
use crate::log::framed::frames::{self, Found};
use crate::log::framed::recover;
use crate::log::read_files::open_file;
use crate::log::window::Window;
use crate::segment::listing::Listing;
use crate::shared::commit;
use crate::shared::primitive::Ordering;
use crate::shared::region::{Origin, Region};
use crate::shared::tail_word::{self, Range};
use crate::shared::words::Words;
use crate::{ErrorKind, Layout, Lsn, RecoveryReason, Result};

/// Bytes before the tail by which a closed log is known again.
const CLOSING_LEN: u64 = 4096;
/// What reaches the device at once, if anything does.
const SECTOR_LEN: u64 = 512;
/// Bytes of text looked at at a time.
const STEP: usize = 256 << 10;

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

/// Whether the words were stored in this boot, into this file.
pub(crate) fn is_same_instance(
    control: &OwnedFd,
    geometry: &Geometry,
    boot_id: [u8; 16],
    region: &Region,
) -> io::Result<bool> {
    Ok(loss(control, geometry, boot_id, region)?.is_none())
}

fn is_same_file(control: &OwnedFd, region: &Region) -> io::Result<bool> {
    let status = fs::fstat(control)?;
    Ok(region.origin().is_some_and(|origin| {
        origin.device.load(Ordering::Relaxed) == status.st_dev
            && origin.inode.load(Ordering::Relaxed) == status.st_ino
    }))
}

impl Origin {
    /// Notes which file the words are in; nobody uses it yet.
    pub(crate) fn settle(&self, control: &OwnedFd) -> io::Result<()> {
        let status = fs::fstat(control)?;
        self.closed_at.store(0, Ordering::Relaxed);
        self.device.store(status.st_dev, Ordering::Relaxed);
        self.inode.store(status.st_ino, Ordering::Relaxed);
        Ok(())
    }

    /// Takes back that the log is closed; the caller is the first to open it.
    pub(crate) fn reopen(&self) {
        self.closed_at.store(0, Ordering::SeqCst);
    }
}

/// Whether the words agree with the segments. Nobody is attached.
pub(crate) fn agree(core: &Arc<Core>) -> Result<bool> {
    let durable = commit::durable(&core.words().commits);
    if core.check_words().is_err() || durable > tail_word::tail(core.words()) {
        return Ok(false);
    }
    if is_older_than_segments(core)? {
        return Ok(false);
    }
    if is_as_closed(core)? {
        return Ok(true);
    }
    match is_filled(core) {
        // A file that is gone, or another's: who reads it is told.
        Err(error) if error.kind() == ErrorKind::Corrupt => Ok(true),
        answer => answer,
    }
}

/// Whether a reader without write permission, who cannot tell whether others are attached, may
/// believe words that are of this boot and file.
pub(crate) fn agree_for_reading(core: &Arc<Core>) -> Result<bool> {
    let tail = tail_word::tail(core.words());
    if core.check_words().is_err() || !is_older_than_segments(core)? {
        return Ok(true);
    }
    // Somebody has just appended: what was found there was reserved after the tail was read.
    Ok(tail_word::tail(core.words()) != tail)
}

/// Whether something stands at the tail or behind.
fn is_older_than_segments(core: &Arc<Core>) -> Result<bool> {
    let tail = tail_word::tail(core.words());
    let allocated_end = Lsn::new(core.words().allocated_end.load(Ordering::Acquire));
    let listing = Listing::read(&core.dir)?;
    // One more may have got its name when its maker died.
    if listing.files.last().is_some_and(|file| file.first > allocated_end) {
        return Ok(true);
    }
    let files = Arc::new(bare_core(&core.dir, &core.geometry));
    let active = core.segment_of(tail);
    for file in listing.files.iter().filter(|file| file.first >= active) {
        let from = tail.max(file.first);
        let is_used = match core.geometry.layout {
            // Records follow one another, so the first tells of all.
            Layout::Framed => is_frame(&files, from, core.segment_end(allocated_end))?,
            Layout::Text => file.is_compressed || has_text(&files, file.first, from)?,
        };
        if is_used {
            return Ok(true);
        }
        if core.geometry.layout == Layout::Framed && file.first != active {
            break;
        }
    }
    Ok(false)
}

fn is_frame(files: &Arc<Core>, lsn: Lsn, limit: Lsn) -> Result<bool> {
    let mut window = Window::new(Arc::clone(files));
    let found = frames::look_whole(files, &mut window, lsn, limit);
    Ok(matches!(found, Ok(Found::Frame { .. })))
}

/// Whether the text segment at `first` holds anything but NULs from `from` on.
fn has_text(core: &Core, first: Lsn, from: Lsn) -> Result<bool> {
    let segment = open_file(core, &mut Arc::default(), first)?;
    let mut bytes = vec![0; STEP];
    let (mut at, end) = (from, core.segment_end(first));
    // A file may be long and hold nothing.
    while let Some(data) = segment.next_data(at)?.filter(|data| *data < end) {
        at = data;
        let count = segment.read(at, &mut bytes)?;
        if bytes[..count].iter().any(|byte| *byte != 0) {
            return Ok(true);
        }
        if count < bytes.len() {
            return Ok(false);
        }
        at = Lsn::new(at.get() + count as u64);
    }
    Ok(false)
}

/// Notes that the log is closed, and what it ends with. The caller is the only participant, holds
/// the gate, and goes.
pub(crate) fn note_closed(core: &Core) -> Result<()> {
    let (words, Some(origin)) = (core.words(), core.region.origin()) else { return Ok(()) };
    let tail = tail_word::tail(words);
    let is_staged = words.commits.stage.id.load(Ordering::Acquire) != 0;
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

/// A checksum of what stands before `tail`; `None` where that is not all there.
fn closing_check(core: &Core, tail: Lsn) -> Result<Option<u64>> {
    let first = core.segment_of(Lsn::new(tail.get().saturating_sub(1)));
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
    Ok((count == bytes.len()).then(|| u64::from(crc32c::crc32c(&bytes))))
}

/// Whether everything from `durable` on, in the last segment, is there.
fn is_filled(core: &Arc<Core>) -> Result<bool> {
    let tail = tail_word::tail(core.words());
    let base = commit::durable(&core.words().commits).max(core.begin());
    if base >= tail {
        return Ok(true);
    }
    let reserved = reserved(core.words());
    match core.geometry.layout {
        Layout::Framed => is_row_of_frames(core, base, tail, &reserved),
        Layout::Text => is_text(core, base, tail, &reserved),
    }
}

/// What the dead had reserved.
fn reserved(words: &Words) -> Vec<Range> {
    let seen = tail_word::load(words);
    let slots = 0..tail_word::used_slots(words);
    slots.filter_map(|slot| tail_word::granted(words, slot, seen)).collect()
}

/// The end of the reserved range in which `lsn` lies.
fn reserved_to(reserved: &[Range], lsn: Lsn) -> Option<Lsn> {
    let holds = |range: &&Range| range.start <= lsn && lsn < range.end();
    reserved.iter().find(holds).map(|range| range.end())
}

/// Whether whole frames, and what was reserved, lead to exactly `tail`.
fn is_row_of_frames(core: &Arc<Core>, base: Lsn, tail: Lsn, reserved: &[Range]) -> Result<bool> {
    let mut window = Window::new(Arc::clone(core));
    let mut next = |lsn| -> Result<Option<Lsn>> {
        if let Some(end) = reserved_to(reserved, lsn) {
            return Ok(Some(end));
        }
        match frames::look_whole(core, &mut window, lsn, tail)? {
            Found::Frame { next, .. } => Ok(Some(next)),
            _ => Ok(None),
        }
    };
    // Where the last segment starts, or the long record that goes on in it; what is staged is
    // little, and becomes durable without being looked at again.
    let mut first = core.segment_of(Lsn::new(tail.get() - 1));
    while first > base && (core.stage.is_some() || next(first)?.is_none()) {
        first = Lsn::new(first.get() - core.capacity());
    }
    let mut lsn = first;
    if first <= base {
        lsn = match base == core.begin() {
            true => {
                recover::behind_trimmed_batch(core, &mut Window::new(Arc::clone(core)), base, tail)?
            }
            false => base,
        };
    }
    while lsn < tail {
        match next(lsn)? {
            Some(end) => lsn = end,
            None => return Ok(false),
        }
    }
    Ok(lsn == tail)
}

/// Whether text leads to `tail`: what was never written back reads as NULs up to the end of a
/// sector, or as a file that is too short.
fn is_text(core: &Core, base: Lsn, tail: Lsn, reserved: &[Range]) -> Result<bool> {
    let first = core.segment_of(Lsn::new(tail.get() - 1));
    let segment = open_file(core, &mut Arc::default(), first)?;
    let mut bytes = vec![0; STEP];
    let mut at = base.max(first);
    while at < tail {
        let wanted = STEP.min((tail.get() - at.get()) as usize);
        let count = segment.read(at, &mut bytes[..wanted])?;
        bytes[count..wanted].fill(0);
        for (byte, lsn) in bytes[..wanted].iter().zip(at.get()..) {
            let ends_sector = (lsn + 1).is_multiple_of(SECTOR_LEN) || lsn + 1 == tail.get();
            if ends_sector && *byte == 0 && reserved_to(reserved, Lsn::new(lsn)).is_none() {
                return Ok(false);
            }
        }
        at = Lsn::new(at.get() + wanted as u64);
    }
    Ok(true)
}
