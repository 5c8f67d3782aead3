//! Dropping the newest part of a log, as a Raft follower does whose leader disagrees.
//!
//! Positions that are dropped are given out again, in the next epoch, so no other process may have
//! the log open.
//!
//! A truncation that fails before it has removed anything takes its note back, and the log is as it
//! was. One that fails later cannot: the log then refuses appends and commits until it is closed
//! and opened again, which finishes it.
//!
//! **If the process dies here**: where the log is cut is noted in the geometry file before
//! anything is wiped, and then the next epoch is begun, in which positions are given out again; the
//! next opener wipes to the end.

use std::sync::Arc;

use rustix::io::Errno;

use crate::files::recover::zero_tail;
use crate::files::window::Window;
use crate::format::control::Geometry;
use crate::log::commit::Commit;
use crate::log::keep::cursors::file::{CursorFile, CursorWriter};
use crate::log::layout::text::TextSpace;
use crate::log::read::reader::not_a_start;
use crate::log::read::reader::start::starts_record;
use crate::log::ready::stage;
use crate::log::repair::presence::Presence;
use crate::log::state::control::{overwrite_geometry, stored_geometry};
use crate::log::state::core::Core;
use crate::log::state::writer::Writer;
use crate::log::state::{identity, poison, wait, wakeup};
use crate::segment::listing::Listing;
use crate::shared::commit::{self, Failure, Operation};
use crate::shared::tail_word::{self, TailWord};
use crate::{Error, ErrorKind, Lsn, Result};

/// Drops the record at `from` and everything behind it.
pub(crate) fn truncate(core: &Arc<Core>, from: Lsn) -> Result<()> {
    let writer = core.writer()?;
    poison::check(core)?;
    // In this order: all before `from` is published, so it is durable then.
    check(core, from)?;
    Commit::of(core).commit_published()?;
    // Before the gate and the other locks, in the order of a change of a cursor.
    let _cursors = CursorWriter::of(writer).lock_cursors()?;
    let answer = Presence::of(writer).alone(|| {
        let mut is_half_done = false;
        let answer = cut(writer, from, &mut is_half_done);
        if let Err(error) = &answer
            && is_half_done
        {
            refuse_more(writer, from, error);
        }
        answer.map(Some)
    });
    answer?.ok_or_else(|| in_use(core))
}

/// Cuts the log at `from`; says whether it is neither as it was nor as it will be.
fn cut(writer: Writer<'_>, from: Lsn, is_half_done: &mut bool) -> Result<()> {
    let core = writer.core;
    // In this order: a leader takes the lock first and a slot then.
    let busy = writer.busy();
    let lock = writer.lock_commits(wait::deadline(core), &busy)?;
    let words = core.words();
    let prepare = writer.lock_prepare()?;
    let before = tail_word::load(words);
    let tail = before.tail();
    let mut slots = writer.attachment.slots.all().ok_or_else(|| in_use(core))?;
    if tail_word::published(words) != tail || !lock.is_idle() {
        return Err(in_use(core));
    }
    check_plain(core, from)?;
    let geometry = stored_geometry(&core.files.dir)?;
    let note = |cut| overwrite_geometry(&core.files.dir, &Geometry { cut, ..geometry });
    let end_at = |tail: TailWord| tail_word::set(words, tail);
    let begin_next_epoch = || {
        // The new end first: a reader that begins in the next epoch must find none of the dropped
        // records.
        end_at(TailWord::new(from, 0));
        identity::rewind(core, from)
    };
    // First of all: it means nothing as long as the newest commit record is there.
    let wiped = identity::keep_checkpoint(core, from)
        .and_then(|()| note(from.get()))
        .and_then(|()| begin_next_epoch())
        .and_then(|()| zero_tail::write(&core.files.dir, &core.files.geometry, from, is_half_done));
    let wiped = poison::heed_sync(core, wiped);
    if wiped.is_err() {
        if !*is_half_done {
            end_at(before);
        }
        // Nothing is gone yet: without the note the log is as it was.
        *is_half_done = *is_half_done || note(0).is_err();
        return wiped;
    }
    *is_half_done = true;
    writer.attachment.forget_all_segments(&mut slots);
    let active = core.files.segment_of(from);
    let is_there = Listing::read(&core.files.dir)?.get(active).is_some();
    words.cut(from, if is_there { core.files.segment_end(from) } else { active });
    TextSpace::of(&prepare).point_to_newest();
    stage::join_anew(core)?;
    CursorFile::of(core).clamp_cursors(from)?;
    note(0)?;
    *is_half_done = false;
    Ok(())
}

/// Has the log refuse appends and commits, which would be cut off by the next opener.
fn refuse_more(writer: Writer<'_>, from: Lsn, error: &Error) {
    let core = writer.core;
    let failure = Failure {
        errno: error.raw_os_error().unwrap_or(Errno::IO.raw_os_error()),
        segment: core.files.segment_of(from),
        operation: Operation::Cut,
    };
    commit::poison(&core.words().commits, writer.attachment.me(), &writer.liveness(), failure);
    wakeup::notify_durable(core);
}

/// Refuses to cut a file that has been compressed.
fn check_plain(core: &Core, from: Lsn) -> Result<()> {
    let listing = Listing::read(&core.files.dir)?;
    let Some(file) = listing.get(core.files.segment_of(from)).filter(|file| file.is_compressed())
    else {
        return Ok(());
    };
    let message = "cannot truncate the log inside of a compressed file; decompress it first";
    Err(Error::new(ErrorKind::Unsupported, message).at_path(&file.path).at_lsn(from))
}

fn check(core: &Arc<Core>, from: Lsn) -> Result<()> {
    let begin = core.begin();
    let published = tail_word::published(core.words());
    if from < begin || from > published {
        let message = format!("cannot truncate at {from}: the log holds {begin} to {published}");
        return Err(Error::new(ErrorKind::OutOfRange, message)
            .at_path(&core.files.dir)
            .at_lsn(from));
    }
    if starts_record(core, &mut Window::new(Arc::clone(core)), from)? {
        return Ok(());
    }
    Err(not_a_start(core, from))
}

fn in_use(core: &Core) -> Error {
    let message = "cannot truncate the log while others use it, or an append is in progress; \
                   let them end first";
    Error::new(ErrorKind::Busy, message).at_path(&core.files.dir)
}
