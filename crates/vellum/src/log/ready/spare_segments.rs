//! Segments that are asked for ahead of need, and given back.
//!
//! A segment that is given back may have been opened by a process that was about to write there,
//! and its positions come again in another file. So no other process may have the log open.
//!
//! **If the process dies here**: the end of the allocated space is lowered before a file is
//! removed, the newest first. A file that is left beyond is replaced by the next preparer.

use crate::error::OsResult;
use crate::log::append::Append;
use crate::log::ready::RoomMaker;
use crate::log::repair::presence::Presence;
use crate::log::state::core::Core;
use crate::log::state::writer::Writer;
use crate::log::state::{poison, wait};
use crate::shared::tail_word;
use crate::{Error, ErrorKind, Result};

/// Makes `segments` ready, as [`Append::prepare`] does, and gives back what it has made if it fails
/// and no other process has the log open.
pub(crate) fn prepare_all(core: &Core, segments: u64) -> Result<u64> {
    check_space(core, segments)?;
    let mut made = 0;
    Append::of(core).prepare(segments, &mut made).map(|()| made).inspect_err(|_| {
        // The caller gets the first error. Segments that are left can be seen.
        let _ = release(core, made);
    })
}

/// Refuses more than there is space for before anything is made: a disk that is full meanwhile
/// fails others.
pub(crate) fn check_space(core: &Core, segments: u64) -> Result<()> {
    if core.files.geometry.layout.names_have_times() {
        return Ok(());
    }
    let words = core.words();
    let end = core.files.segment_end(tail_word::tail(words)).get();
    let made = words.allocated_end().saturating_sub(end) / core.files.capacity();
    let bytes = core.preparer().bytes_taken(segments.saturating_sub(made));
    match core.files.dir.space_left().or_os("ask for space at", &core.files.dir)? {
        Some(left) if bytes > left => {
            let message = format!(
                "cannot prepare {segments} segments: that takes {bytes} bytes more, and {left} are \
                 left; ask for fewer"
            );
            Err(Error::new(ErrorKind::NoSpace, message).at_path(&core.files.dir))
        }
        _ => Ok(()),
    }
}

/// Gives back as many of the newest prepared segments as there are, `most` of them at most; returns
/// how many.
pub(crate) fn release(core: &Core, most: u64) -> Result<u64> {
    let writer = core.writer()?;
    // The one file that a text log makes ahead goes with its last process.
    if most == 0 || core.files.geometry.layout.names_have_times() {
        return Ok(0);
    }
    poison::check(core)?;
    Presence::of(writer).alone(|| release_alone(writer, most))?.ok_or_else(|| in_use(core))
}

/// The same, where no other process has the log open; `None` where a thread of this process is in
/// the middle of something.
fn release_alone(writer: Writer<'_>, most: u64) -> Result<Option<u64>> {
    let core = writer.core;
    // In this order: a leader takes the lock first and a slot then.
    let busy = writer.busy();
    let lock = writer.lock_commits(wait::deadline(core), &busy)?;
    let words = core.words();
    let prepare = writer.lock_prepare()?;
    let Some(mut slots) = writer.attachment.slots.all() else { return Ok(None) };
    if !lock.is_idle() {
        return Ok(None);
    }
    core.check_words()?;
    writer.attachment.forget_all_segments(&mut slots);
    let used = tail_word::ready_end(words).max(tail_word::tail(words)).get();
    let kept = used.next_multiple_of(core.files.capacity());
    let mut end = words.allocated_end();
    let mut released = 0;
    while end > kept && released < most {
        end -= core.files.capacity();
        words.commits.lower_named_end(end);
        words.set_allocated_end(end);
        RoomMaker::of(&prepare).unallocate(end, end + core.files.capacity());
        released += 1;
    }
    Ok(Some(released))
}

fn in_use(core: &Core) -> Error {
    let message = "cannot give prepared segments back while others use the log, or an append is in \
                   progress; let them end first";
    Error::new(ErrorKind::Busy, message).at_path(&core.files.dir)
}
