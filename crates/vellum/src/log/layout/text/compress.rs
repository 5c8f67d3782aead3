//! Compressing the closed files of a text log.
//!
//! Done by the writer that began a new file, outside of the prepare lock: the others continue
//! meanwhile. A lock on a byte of the `lock` file, which the kernel releases with its holder,
//! admits one process at a time.
//!
//! **If the process dies here**: a compressed file gets its name when it is whole and on the
//! device, and the one it was made of goes after that. While both are there the compressed one
//! counts, and the next one removes the other.

use std::fs::File;
use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::io::Errno;

use crate::error::OsResult;
use crate::files::names::{LOCK_NAME, UNFINISHED_COMPRESSED_NAME};
use crate::format::segment::compressed_path;
use crate::log::keep::cursors::file::CursorFile;
use crate::log::layout::text::{TextLog, TextWriter};
use crate::log::state::poison;
use crate::segment::listing::{self, Listing, SegmentFile};
use crate::segment::{packed, sync_names};
use crate::shared::participants::COMPRESS_BYTE;
use crate::shared::tail_word;
use crate::sys::inherited::Brief;
use crate::sys::lock::Kind;
use crate::{Compression, ErrorKind, Result, sys};

impl TextLog<'_> {
    /// Removes what was left of a compression that was not finished, unless another process is at
    /// it.
    pub(crate) fn remove_unfinished_compression(self) {
        let unfinished = self.core.files.dir.join(UNFINISHED_COMPRESSED_NAME);
        if !self.core.files.geometry.layout.names_have_times()
            || !self.core.files.dir.holds(&unfinished)
        {
            return;
        }
        let file = Brief::open(&self.core.files.dir, &self.core.files.dir.join(LOCK_NAME));
        let is_mine = |file: &Brief| sys::lock::try_lock(file, COMPRESS_BYTE, Kind::Exclusive);
        if file.is_ok_and(|file| is_mine(&file) == Ok(true)) {
            let _ = listing::remove(&self.core.files.dir, &unfinished);
        }
    }
}

impl TextWriter<'_> {
    /// Compresses files that are closed, wholly published and not compressed yet, unless another
    /// process is at it.
    pub(crate) fn compress_closed(self, compression: Compression) -> Result<()> {
        let core = self.writer.core;
        // The policy may be that of a process with another build.
        if !compression.is_built() {
            return Ok(());
        }
        let path = core.files.dir.join(LOCK_NAME);
        let file = Brief::open(&core.files.dir, &path).or_os("open", &path)?;
        let locked = sys::lock::try_lock(&file, COMPRESS_BYTE, Kind::Exclusive);
        if !locked.or_os("lock", &path)? {
            return Ok(());
        }
        let files = Listing::read(&core.files.dir)?.files;
        // A file that a cursor holds back is left as its reader knows it.
        let holding = CursorFile::of(core).holding_cursors()?;
        let end = tail_word::published(core.words()).min(CursorFile::of(core).held_from(holding)?);
        let closed = Listing::count_before(&files, end);
        let mut refused = Ok(());
        for file in &files[..closed] {
            let done = match file.is_compressed() {
                true => file.remove_plain(&core.files.dir),
                false => self.compress(file, compression),
            };
            match done {
                // That is no reason to leave the others as they are.
                Err(error) if error.kind() == ErrorKind::PermissionDenied => refused = Err(error),
                answer => answer?,
            }
        }
        refused
    }

    fn compress(self, plain: &SegmentFile, compression: Compression) -> Result<()> {
        let core = self.writer.core;
        let unfinished = core.files.dir.join(UNFINISHED_COMPRESSED_NAME);
        let source = core.files.dir.open_shared(&plain.path).or_os("compress", &plain.path)?;
        let rights = core.files.rights.within(&source).or_os("look at", &plain.path)?;
        let target = rights.create(&core.files.dir, &unfinished, "create the compressed file")?;
        let named = packed::pack(File::from(source), &target, compression)
            .map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO))
            .or_os("compress", &plain.path)
            .and_then(|()| self.sync_compressed(&target, &unfinished))
            .and_then(|()| self.name_compressed(plain, &unfinished, compression));
        if !matches!(named, Ok(true)) {
            // On a full disk above all no unneeded file may stay.
            let removed = listing::remove(&core.files.dir, &unfinished);
            return named.map(drop).and(removed);
        }
        poison::heed_sync(core, sync_names(&core.files.dir))?;
        listing::remove(&core.files.dir, &plain.path)
    }

    fn sync_compressed(self, target: &OwnedFd, path: &Path) -> Result<()> {
        let synced = sys::sync::sync(target).or_unsynced("sync the compressed file", path);
        poison::heed_sync(self.writer.core, synced)
    }

    /// Gives the compressed file its name, unless the other was removed meanwhile.
    fn name_compressed(
        self,
        plain: &SegmentFile,
        unfinished: &Path,
        compression: Compression,
    ) -> Result<bool> {
        let core = self.writer.core;
        // A process that removes files holds it too.
        let _held = self.writer.lock_prepare()?;
        let is_there = core.files.dir.holds(&plain.path);
        if !is_there || core.files.segment_end(plain.first) <= core.begin() {
            return Ok(false);
        }
        let target = compressed_path(&plain.path, compression);
        core.files.dir.rename(unfinished, &target).or_os("name the compressed file", &target)?;
        Ok(true)
    }
}
