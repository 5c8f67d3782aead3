//! Noticing that a log was removed or moved under its writers, and continuing in a new one.
//!
//! A process reaches the files below the directory that it opened, so it would keep writing to a
//! log that no reader finds any more. Once a second, by a clock that costs no system call, an
//! append (of those that follow one another quickly, every sixteenth) looks whether the path still
//! leads to that directory, and whether `lock` and `control` in it are the files that it has open.
//! If not, it reserves nothing.
//!
//! It also checks whether the descriptors of `lock` and of the open segments are still these files:
//! a program may have closed them by their numbers.
//!
//! A control file that is missing alone changes nothing: all processes that have it mapped continue
//! together, and `lock` keeps others from making another. Without `lock` the next opener would see
//! no participant.
//!
//! A directory above may be renamed: as long as the log is where it was in its own parent and
//! nothing else has its path, it is in its place.

use std::sync::atomic::Ordering;
use std::time::Duration;

use crate::files::named;
use crate::files::names::{CONTROL_NAME, LOCK_NAME};
use crate::log::state::attachment::Attachment;
use crate::log::state::core::{Core, kept_files};
use crate::log::state::newest::{self, FileMatch, file_match, has_steady_inodes};
use crate::log::state::watch::CheckInterval;
use crate::log::state::writer::Writer;
use crate::sys::clock;
use crate::{Error, ErrorKind, Result};

/// How often to look whether a file is missing because all of the log is being removed.
const LOOKS: usize = 200;
const PAUSE: Duration = Duration::from_millis(5);
/// Appends that may go by without a look at the clock.
const LEFT_OUT_MAX: u8 = 15;
/// A moment at which no append checks: the next one does.
const NEVER: u64 = u64::MAX;

/// Refuses to append to a log that is not at its path any more; looks once a second.
#[inline]
pub(crate) fn check(core: &Core) -> Result<()> {
    let now = clock::uptime();
    match core.watch.checked_at.load(Ordering::Relaxed) == now {
        true => Ok(()),
        false => look(core, now),
    }
}

/// As [`check`], for a thread that appends often: after several checks in the same second up to
/// [`LEFT_OUT_MAX`] appends go by without one.
#[inline]
pub(crate) fn check_sometimes(core: &Core, interval: &mut CheckInterval) -> Result<()> {
    if interval.left > 0 {
        interval.left -= 1;
        return Ok(());
    }
    check_and_adapt(core, interval)
}

#[inline(never)]
fn check_and_adapt(core: &Core, interval: &mut CheckInterval) -> Result<()> {
    let now = clock::uptime();
    let is_same_second = core.watch.checked_at.load(Ordering::Relaxed) == now;
    interval.step = if is_same_second { (2 * interval.step + 1).min(LEFT_OUT_MAX) } else { 0 };
    interval.left = interval.step;
    if is_same_second { Ok(()) } else { look(core, now) }
}

#[cold]
fn look(core: &Core, now: u64) -> Result<()> {
    // Other threads continue meanwhile.
    core.watch.checked_at.store(now, Ordering::Relaxed);
    // They are of another second, and may be all that the space of a trimmed file is taken for.
    kept_files(core).inspect(|files| files.close());
    require(core)?;
    if let Some(attachment) = core.writer.as_ref().and_then(|writer| writer.own()) {
        require_descriptors(core, attachment)?;
        if !newest::check(Writer { core, attachment }) {
            core.watch.checked_at.store(NEVER, Ordering::Relaxed);
        }
    }
    if core.choices.options.makes_link() {
        named::make_link(core.files.dir.absolute_path());
    }
    Ok(())
}

/// Refuses a log that is not at its path any more.
#[cold]
pub(crate) fn require(core: &Core) -> Result<()> {
    if core.watch.files.is_none() {
        return Ok(());
    }
    let message = if !core.files.dir.is_in_place(has_steady_inodes(core)) {
        "the log's directory was removed or moved while the log was open; open it again, which \
         makes a new one where there is none"
    } else if !has_own_files(core) {
        "files of the log were removed or replaced while it was open; open it again, which \
         makes a new one where there is none"
    } else {
        return Ok(());
    };
    // It may be put back.
    core.watch.checked_at.store(NEVER, Ordering::Relaxed);
    Err(Error::new(ErrorKind::Removed, message).at_path(&core.files.dir))
}

/// Refuses a log whose descriptors the program has closed.
fn require_descriptors(core: &Core, attachment: &Attachment) -> Result<()> {
    if attachment.has_descriptors() {
        return Ok(());
    }
    core.watch.checked_at.store(NEVER, Ordering::Relaxed);
    let message = "this program has closed descriptors of the log, and with them its lock; open \
                   the log again";
    Err(Error::new(ErrorKind::Io, message).at_path(&core.files.dir))
}

/// Leaves the newest file of a text log if an append has failed because its name is gone; returns
/// whether the append may work now, in a new file.
#[cold]
pub(crate) fn is_left_after(writer: Writer<'_>, error: &Error) -> bool {
    let is_missing = matches!(error.kind(), ErrorKind::NotFound | ErrorKind::Corrupt);
    is_missing && newest::is_lost(writer) && require(writer.core).is_ok() && newest::check(writer)
}

/// The error of a failed operation; where the log's place is the cause, the error for that. A file
/// that is missing may be the first of all to go: then it takes up to a second until the rest has
/// followed. Where it did not, the next calls do not wait for it again.
#[cold]
pub(crate) fn explain(core: &Core, error: Error) -> Error {
    let may_be_first = matches!(error.kind(), ErrorKind::Corrupt | ErrorKind::NotFound)
        && core.files.is_told_missing(&error)
        && core.watch.may_wait();
    for _ in 0..if may_be_first { LOOKS } else { 1 } {
        if let Err(removed) = require(core) {
            return removed;
        }
        if may_be_first {
            std::thread::sleep(PAUSE);
        }
    }
    error
}

/// Whether the files in the directory are those of the log that is mapped, wherever it was
/// moved.
pub(crate) fn has_own_files(core: &Core) -> bool {
    let Some(files) = core.watch.files else { return true };
    file_match(core, LOCK_NAME, files.lock) == FileMatch::Same
        && file_match(core, CONTROL_NAME, files.control) != FileMatch::Other
}
