//! The stage of a log from its first opener to its last closer.

use std::sync::Arc;

use crate::format::control::Geometry;
use crate::log::ready::RoomMaker;
use crate::log::state::core::Core;
use crate::log::state::identity;
use crate::segment::listing::Listing;
use crate::segment::stage::{Stage, Twin};
use crate::shared::commit::{self, Operation};
use crate::shared::tail_word;
use crate::shared::words::Words;
use crate::sys::filesystem::Filesystem;
use crate::sys::{self, Dir};
use crate::{Error, ErrorKind, Fill, Lsn, Result};

/// Bytes before the tail that are brought back into the stage: the block that will be written again
/// with the next records, for any block size.
const BLOCK_LEN_MAX: u64 = 4096;

/// Whether the words name a stage that is not there, or that cannot be believed because the kernel
/// failed to keep it.
pub(crate) fn is_lost(dir: &Dir, geometry: &Geometry, words: &Words) -> Result<bool> {
    let id = words.commits.stage.id();
    if geometry.fill != Fill::Staged || id == 0 {
        return Ok(false);
    }
    let failure = commit::failure(&words.commits);
    if failure.is_some_and(|failure| failure.operation == Operation::Stage) {
        return Ok(true);
    }
    let stage = Stage::of(dir, Filesystem::Other(0));
    Ok(!is_whole(&stage, geometry, words, id)?)
}

/// Whether there is a stage for each segment that has records in it.
fn is_whole(stage: &Stage, geometry: &Geometry, words: &Words, id: u64) -> Result<bool> {
    let capacity = geometry.segment_capacity;
    let begin = || words.commits.stage.begin().get();
    // Read in this order: both only grow, and ready space is there.
    let first = begin() / capacity * capacity;
    let ready_end = tail_word::ready_end(words).get();
    if begin() == ready_end {
        return Ok(true);
    }
    for first in (first..ready_end).step_by(capacity as usize) {
        let is_over = || begin() >= first + capacity;
        if !stage.is_there(id, Lsn::new(first))? && !is_over() {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Makes the stage ready for the calling process; `is_first` means that no other process has the
/// log open. The gate is held; the files may have been listed in it already.
pub(crate) fn join(core: &Core, is_first: bool, listed: Option<Arc<Listing>>) -> Result<()> {
    let Some(stage) = &core.commits.stage else { return Ok(()) };
    let words = &core.words().commits;
    let id = words.stage.id();
    if id == 0 && is_first {
        return begin(core, listed);
    }
    if id == 0 || !is_whole(stage, &core.files.geometry, core.words(), id)? {
        let message = "a stage of the log, a file NAME.stage with what is not committed, is \
                       missing although processes use the log; let them commit and close it, \
                       and open it again";
        return Err(Error::new(ErrorKind::Corrupt, message).at_path(&core.files.dir));
    }
    Ok(())
}

/// Starts with an empty stage at the tail again, for the only participant.
pub(crate) fn join_anew(core: &Core) -> Result<()> {
    core.words().commits.stage.forget();
    join(core, true, None)
}

/// Starts with an empty stage at the tail. It has no file before there is something to store: a
/// full disk keeps no process from opening the log.
fn begin(core: &Core, listed: Option<Arc<Listing>>) -> Result<()> {
    let Some(stage) = &core.commits.stage else { return Ok(()) };
    let words = core.words();
    let listed = listed.or_else(|| Listing::read(&core.files.dir).ok().map(Arc::new));
    stage.retire_all(&listed.unwrap_or_default());
    let tail = tail_word::tail(words);
    words.take_back_ready(tail);
    words.commits.stage.start(tail, sys::process::random_u64().max(1));
    Ok(())
}

/// Refuses an append up to `end` that needs the stage of one more segment than this process may
/// fill, while a commit would make room.
pub(crate) fn check_room(core: &Core, end: Lsn) -> Result<()> {
    let Some(begin) = core.stage_begin() else { return Ok(()) };
    let words = core.words();
    let last = core.files.segment_of(Lsn::new(end.get() - 1));
    let is_made = last < core.ready_end();
    let segments =
        last.get().saturating_sub(core.files.segment_of(begin).get()) / core.files.capacity();
    let may_grow = segments < core.choices.staged_segments_max;
    if is_made || may_grow || commit::durable(&words.commits) >= tail_word::published(words) {
        return Ok(());
    }
    let message = format!(
        "{segments} segments hold records that are not committed, as many as this process may \
         fill (\0staged_segments_max\0); commit some"
    );
    Err(Error::new(ErrorKind::NoSpace, message).at_path(&core.files.dir))
}

/// Drops the stages of segments of which everything is durable.
pub(crate) fn retire(core: &Core) {
    let Some(stage) = &core.commits.stage else { return };
    let words = &core.words().commits;
    let durable = commit::durable(words);
    while let Some(begin) = core.stage_begin() {
        let end = core.files.segment_end(begin);
        if end > durable {
            return;
        }
        // Before the file: a reader of a stage checks afterwards whether it was one. The process
        // that succeeds removes the file, and no process makes it again.
        if words.stage.retire(begin, end) {
            stage.retire(core.files.segment_of(begin));
        }
    }
}

impl RoomMaker<'_> {
    /// Makes the stage of the segment that begins at `ready`, or of the first one.
    pub(crate) fn make_stage_at(self, stage: &Stage, ready: u64) -> Result<()> {
        let is_first = self.prepare.writer.core.stage_begin() == Some(Lsn::new(ready));
        match ready.is_multiple_of(self.prepare.writer.core.files.capacity()) || is_first {
            true => self.make_stage(stage, Lsn::new(ready)),
            false => Ok(()),
        }
    }

    /// Makes the stage of the segment that holds `ready`, the end of the ready space, if it is not
    /// there.
    pub(crate) fn make_stage(self, stage: &Stage, ready: Lsn) -> Result<()> {
        let id = self.prepare.writer.core.words().commits.stage.id();
        let first = self.prepare.writer.core.files.segment_of(ready);
        // One that is there may be open already.
        if stage.is_there(id, first)? {
            return Ok(());
        }
        let block_at = Lsn::new(ready.get() / BLOCK_LEN_MAX * BLOCK_LEN_MAX);
        let mut bytes = vec![0; (ready.get() - block_at.get()) as usize];
        if !bytes.is_empty() {
            self.prepare.writer.core.open_to_read(first)?.read(block_at, &mut bytes)?;
        }
        let header_len = self.prepare.writer.core.files.geometry.layout.file_header_len();
        let twin = Twin {
            id,
            epoch: identity::live_epoch(self.prepare.writer.core),
            first,
            len: header_len + self.prepare.writer.core.files.capacity(),
            begin: (header_len + (block_at.get() - first.get()), &bytes),
        };
        stage.make(twin, &self.prepare.writer.core.files.rights)
    }
}
