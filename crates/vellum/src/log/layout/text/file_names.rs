//! The files of a text log: their positions, the name of the next, and the link to the newest.
//!
//! A text segment gets its name when a record needs it, so that the name can tell the time of its
//! first record and a program that follows the directory sees no empty files. The slow part, the
//! blocks of the next file, is made ready before, under the unfinished name.
//!
//! **If the process dies here**: the name is stored in shared words before the file gets it; so the
//! next holder of the prepare lock, which repeats all steps, gives the same name and not a second
//! one. A link that was not moved is moved by the next process that begins a new file, or opens the
//! log.

use std::path::{Path, PathBuf};

use crate::files::names::{CURRENT_NAME, UNFINISHED_CURRENT_NAME};
use crate::log::layout::text::{TextLog, TextSpace, TextWriter};
use crate::log::state::{place, poison};
use crate::segment::listing::{Listing, SegmentFile};
use crate::shared::files::Newest;
use crate::shared::tail_word;
use crate::sys::clock;
use crate::{ErrorKind, Lsn, Result};

impl TextLog<'_> {
    /// Bytes of text up to the tail in the newest file and those that it continues.
    fn group_bytes_at(self, newest: Newest) -> u64 {
        let tail = tail_word::tail(self.core.words());
        newest.group_bytes.saturating_add(tail.get().saturating_sub(newest.first.get()))
    }

    /// The time of the newest file before `first`, and the bytes of text in it and in those that it
    /// continues: as the directory tells.
    fn listed_newest(self, first: Lsn) -> Result<(u64, u64)> {
        let mut listing = Listing::read(&self.core.files.dir)?;
        let time = listing.newest_time().unwrap_or(0).max(self.core.words().files.names.time());
        listing.files.retain(|file| file.first < first);
        Ok((time, self.text_len_of(listing.newest_group())?))
    }

    /// Bytes of text in `files`, of which the last may be the one that is written.
    pub(crate) fn text_len_of(self, files: &[SegmentFile]) -> Result<u64> {
        let tail = tail_word::tail(self.core.words());
        let mut sum = 0;
        for file in files {
            sum += match self.core.files.segment_of(tail) == file.first {
                true => tail.get() - file.first.get(),
                false => file.text_len(&self.core.files.dir)?,
            };
        }
        Ok(sum)
    }

    /// Name of the newest file that is there: a process may have stored a name and died before a
    /// file got it.
    fn newest_name(self) -> Result<Option<PathBuf>> {
        let told = self
            .core
            .newest_path()
            .map(|(_, path)| path)
            .filter(|path| self.core.files.dir.holds(path));
        let newest = match told {
            Some(path) => Some(path),
            None => Listing::read(&self.core.files.dir)?.files.pop().map(|file| file.path),
        };
        Ok(newest.and_then(|path| path.file_name().map(PathBuf::from)))
    }

    fn links_to(self, link: &Path, name: &Path) -> bool {
        self.core.files.dir.readlink(link).is_ok_and(|target| target == name)
    }
}

impl TextSpace<'_> {
    /// The name of the segment at `allocated`, which is about to be made for a record of `len`
    /// bytes.
    pub(crate) fn next_name(self, allocated: u64, len: u64) -> Result<Newest> {
        let core = self.prepare.writer.core;
        let names = &core.words().files.names;
        let first = Lsn::new(allocated);
        let newest = names.newest();
        if let Some(named) = newest.filter(|newest| newest.first >= first) {
            // The holder before died between naming and saying so.
            if named.first == first {
                return Ok(named);
            }
            // For a record longer than a segment: a file that is there keeps its name.
            let listing = Listing::read(&core.files.dir)?;
            let is_continuation = listing.get(first).is_some_and(|file| file.is_continuation);
            return Ok(Newest { first, is_continuation, ..named });
        }
        let (previous, group_bytes) = match newest {
            Some(newest) => (newest.time, TextLog::of(core).group_bytes_at(newest)),
            None => TextLog::of(core).listed_newest(first)?,
        };
        let time = clock::seconds().max(previous);
        let is_continuation =
            group_bytes > 0 && !TextLog::of(core).is_over(first, group_bytes, len);
        let group_bytes = if is_continuation { group_bytes } else { 0 };
        Ok(Newest { first, time, is_continuation, group_bytes })
    }

    /// Makes the file of the text segment that is to be called so, if it is not made yet, and names
    /// it.
    pub(crate) fn name_next(self, next: Newest) -> Result<()> {
        let first = next.first;
        let names = &self.prepare.writer.core.words().files.names;
        let preparer = self.prepare.writer.core.preparer();
        if !names.is_next_made() {
            poison::heed_sync(self.prepare.writer.core, preparer.make(first))?;
        }
        names.set_next_made(false);
        names.store(next);
        let path = self.prepare.writer.core.path_of(next);
        match preparer.name(&path) {
            // A user has tidied the directory.
            Err(error) if error.kind() == ErrorKind::NotFound => {
                poison::heed_sync(self.prepare.writer.core, preparer.make(first))?;
                preparer.name(&path)
            }
            answer => answer,
        }
    }

    /// Makes the file of the next text segment ahead of need.
    pub(crate) fn make_next(self) -> Result<bool> {
        let core = self.prepare.writer.core;
        let words = core.words();
        let names = &words.files.names;
        let is_new = !names.is_next_made();
        if is_new {
            place::require(core)?;
            let first = Lsn::new(words.allocated_end());
            poison::heed_sync(core, core.preparer().make(first))?;
            names.set_next_made(true);
        }
        words.files.rule.set_edge(u64::MAX);
        Ok(is_new)
    }

    /// Removes the file of [`make_next`](Prepare::make_next). No other process has the log open.
    pub(crate) fn unmake_next(self) -> Result<()> {
        let files = &self.prepare.writer.core.words().files;
        files.names.set_next_made(false);
        files.rule.forget_edge();
        self.prepare.writer.core.preparer().unmake()
    }

    /// Has the link lead to the newest file.
    ///
    /// A link that cannot be made, or of a filesystem without links, is not missed by the log.
    pub(crate) fn point_to_newest(self) {
        if !self.prepare.writer.core.files.geometry.layout.rotates() {
            return;
        }
        let link = self.prepare.writer.core.files.dir.join(CURRENT_NAME);
        let name = match TextLog::of(self.prepare.writer.core).newest_name() {
            Ok(Some(name)) => name,
            Ok(None) => {
                if self.prepare.writer.core.files.dir.readlink(&link).is_ok() {
                    let _ = self.prepare.writer.core.files.dir.unlink(&link);
                }
                return;
            }
            Err(_) => return,
        };
        if TextLog::of(self.prepare.writer.core).links_to(&link, &name) {
            return;
        }
        let unfinished = self.prepare.writer.core.files.dir.join(UNFINISHED_CURRENT_NAME);
        let _ = self.prepare.writer.core.files.dir.unlink(&unfinished);
        if self.prepare.writer.core.files.dir.symlink(&name, &unfinished).is_ok() {
            let _ = self.prepare.writer.core.files.dir.rename(&unfinished, &link);
        }
    }
}

impl TextWriter<'_> {
    /// Puts the link right where a process died before moving it, or a user removed it.
    pub(crate) fn check_link(self) {
        let log = TextLog::of(self.writer.core);
        let link = self.writer.core.files.dir.join(CURRENT_NAME);
        let is_right = || matches!(log.newest_name(), Ok(Some(name)) if log.links_to(&link, &name));
        // A framed log has none, and is not listed for it.
        if self.writer.core.files.geometry.layout.rotates()
            && !is_right()
            && let Ok(prepare) = self.writer.lock_prepare()
        {
            TextSpace::of(&prepare).point_to_newest();
        }
    }
}
