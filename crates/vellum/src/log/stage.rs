//! The stage of a log from its first opener to its last closer.

use rustix::fs::OFlags;

use crate::format::segment::header_len;
use crate::log::CONTROL_NAME;
use crate::log::attachment::Attachment;
use crate::log::core::Core;
use crate::shared::primitive::Ordering;
use crate::shared::{commit, cursor};
use crate::sys::Dir;
use crate::sys::filesystem::Filesystem;
use crate::{Error, ErrorKind, Result, sys};

/// Bytes before the tail that are brought back into the stage: the block that will be written
/// again with what follows, for any block size.
const BLOCK_LEN_MAX: u64 = 4096;

/// Bytes of the blocks that batches are written in.
pub(crate) fn block(dir: &Dir, filesystem: Filesystem) -> u64 {
    let least = filesystem.direct_block_min();
    let control = dir.open_file(&dir.join(CONTROL_NAME), OFlags::RDONLY | OFlags::DIRECT).ok();
    control.and_then(sys::file::direct_block).unwrap_or(least).max(least)
}

impl Core {
    /// Makes the stage ready for the calling process; `is_first` that nobody else has the log
    /// open. The gate is held.
    pub(crate) fn join_stage(&self, is_first: bool) -> Result<()> {
        let Some(stage) = &self.stage else { return Ok(()) };
        let words = &self.words().commits;
        let inode = words.stage.inode.load(Ordering::Acquire);
        if inode == 0 && is_first {
            return self.begin_stage();
        }
        if inode == 0 || stage.inode() != Some(inode) {
            let message = "the stage that the processes using this log share is not there: they \
                           see another /dev/shm; let this process share it with them";
            return Err(Error::new(ErrorKind::Unsupported, message).at_path(stage.dir()));
        }
        if is_first && commit::is_poisoned(words) {
            // What could not be written is in the stage still, and is written again.
            commit::reset(words, commit::durable(words));
        }
        Ok(())
    }

    /// Starts with an empty stage at the tail again, for the only participant.
    pub(crate) fn join_stage_anew(&self) -> Result<()> {
        self.words().commits.stage.inode.store(0, Ordering::SeqCst);
        self.join_stage(true)
    }

    /// Starts with an empty stage at the tail.
    fn begin_stage(&self) -> Result<()> {
        let Some(stage) = &self.stage else { return Ok(()) };
        let words = self.words();
        let inode = stage.create(self.dir.path(), self.rights.mode)?;
        let tail = cursor::tail(words);
        let first = self.segment_of(tail);
        let mut ready_end = tail;
        let header_len = header_len(self.geometry.layout);
        let len = header_len + self.capacity();
        if tail != first {
            stage.make(first, len, self.rights.mode)?;
            let block_at = tail.get() / BLOCK_LEN_MAX * BLOCK_LEN_MAX;
            let mut bytes = vec![0; (tail.get() - block_at) as usize];
            let segment = self.open_to_read(first)?;
            segment.read(crate::Lsn::new(block_at), &mut bytes)?;
            stage.write(first, header_len + (block_at - first.get()), &bytes)?;
            ready_end = self.segment_end(tail);
        }
        // Who has no room for it now may have it later; then the writer makes it.
        let _ = stage.make_spare(len, self.rights.mode);
        words.ready_end.store(ready_end.get(), Ordering::Release);
        words.commits.stage.begin.store(tail.get(), Ordering::SeqCst);
        words.commits.stage.inode.store(inode, Ordering::SeqCst);
        Ok(())
    }

    /// Makes everything durable that a log that commits holds, with a seal at its end, and lets the
    /// stage go. The caller is the only participant, and holds the gate.
    pub(crate) fn end_commits(&self, attachment: &Attachment) -> Result<()> {
        let words = self.words();
        let has_commits =
            self.stage.is_some() || words.commits.ends.named_end.load(Ordering::Acquire) != 0;
        if !has_commits || commit::is_poisoned(&words.commits) {
            return Ok(());
        }
        crate::log::pad::repair(self, attachment)?;
        let tail = cursor::tail(words);
        if cursor::published(words) != tail {
            return Ok(());
        }
        // What is durable first, so that the seal at the end vouches for all of it.
        self.sync()?;
        self.seal_and_sync(attachment)?;
        if let Some(stage) = &self.stage {
            let tail = cursor::tail(words);
            words.commits.stage.begin.store(tail.get(), Ordering::SeqCst);
            words.commits.stage.inode.store(0, Ordering::SeqCst);
            stage.remove();
        }
        Ok(())
    }
}
