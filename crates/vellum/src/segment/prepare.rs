//! Making file space ready before it may be reserved.
//!
//! Whatever runs out (blocks, quota, file-size limit) runs out here, where nothing has been
//! promised yet. All of it happens under the log's prepare lock.
//!
//! **If the process dies here**: a file under its unfinished name is replaced by the next preparer;
//! a finished segment beyond `allocated_end` is replaced, because no process can have reserved in
//! it; zeros written beyond `ready_end` are written again.

use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::time::Instant;

use rustix::fs::OFlags;
use rustix::io::{self, Errno};
use zerocopy::IntoBytes;

use super::{SPARE_SUFFIX, UNFINISHED_NAME, names, sync_names};
use crate::error::OsResult;
use crate::format::control::Geometry;
use crate::format::segment::{HEADER_LEN, SegmentHeader, path};
use crate::knowledge::{self, Preparation};
use crate::options::limits::CAPACITY_UNIT_BYTES;
use crate::segment::listing::{self, Listing, SegmentFile};
use crate::segment::open::is_unpinned;
use crate::segment::pieces::Pieces;
use crate::segment::rights::Rights;
use crate::segment::zeroed_file::ZeroedFile;
use crate::sys::file::{ZEROS_BYTES_MAX, is_unsupported};
use crate::sys::filesystem::Filesystem;
use crate::sys::{self, Dir};
use crate::{Error, Fill, Lsn, Preallocate, Result};

/// Blocks that a text file gets at a time, from the first bytes of it to a long one.
pub(crate) const STEP_BYTES_MIN: u64 = 256 << 10;
pub(crate) const STEP_BYTES_MAX: u64 = 4 << 20;
/// Bytes of zeros that go to the device with one call. While they do, commits wait.
const DIRECT_ZEROS_BYTES: u64 = 256 << 10;
/// More than any filesystem gives a file behind its end.
const BEHIND_BYTES_MAX: u64 = 1 << 40;
/// So many segments have room where there is plenty of space.
const PLENTY_SEGMENTS: u64 = 4;
/// Spares that a log keeps that commits; others keep one.
const SPARES_MAX: usize = 4;

/// Makes segment files for one log.
pub(crate) struct Preparer<'a> {
    pub(crate) dir: &'a Dir,
    pub(crate) geometry: &'a Geometry,
    pub(crate) filesystem: Filesystem,
    /// Whose the segments are.
    pub(crate) rights: &'a Rights,
    /// How large the pieces are in which zeros are written ahead.
    pub(crate) pieces: &'a Pieces,
    /// Bytes of the log that a segment gets blocks for: less than its capacity where a text log
    /// continues in a new file before.
    pub(crate) room: u64,
    /// Whether a segment gets blocks alone that would get zeros.
    pub(crate) skips_zeros: bool,
}

impl Preparer<'_> {
    /// Makes the framed segment that starts at `first`, replacing what a dead preparer left.
    pub(crate) fn create(&self, first: Lsn) -> Result<()> {
        let target = path(self.dir, first);
        self.make(first)?;
        self.name(&target)?;
        if !self.is_synced() {
            return Ok(());
        }
        sync_names(self.dir).inspect_err(|_| drop(listing::remove(self.dir, &target)))
    }

    /// Makes a file for the segment that starts at `first`, under the unfinished name. That of a
    /// text segment will do for any.
    pub(crate) fn make(&self, first: Lsn) -> Result<()> {
        let file_len = self.geometry.layout.file_header_len() + self.room;
        let unfinished = self.dir.join(UNFINISHED_NAME);
        let wanted = if self.geometry.layout.ends_with_records() { 0 } else { file_len };
        sys::file::check_size_limit(wanted).or_os("prepare a segment of this size", &unfinished)?;
        let fd = self.open_unfinished(&unfinished)?;
        let made = self
            .fill_in(&fd, first, file_len)
            .or_os("prepare the next segment", &unfinished)
            .and_then(|()| self.sync_made(&fd, &unfinished));
        if made.is_err() {
            // Give the blocks back; if even that fails the next preparer will.
            let _ = self.dir.unlink(&unfinished);
        }
        made
    }

    /// Gives the file that was made its name, or removes it: a full disk has no room for an unused
    /// file.
    pub(crate) fn name(&self, target: &Path) -> Result<()> {
        let unfinished = self.dir.join(UNFINISHED_NAME);
        let named = self.dir.rename(&unfinished, target).or_os("name the next segment", target);
        named.inspect_err(|_| drop(self.unmake()))
    }

    /// Removes a file that was made and never named.
    pub(crate) fn unmake(&self) -> Result<()> {
        listing::remove(self.dir, &self.dir.join(UNFINISHED_NAME))
    }

    /// Whether a segment is on the device before records go there, so that commits never wait for
    /// a journal.
    fn is_synced(&self) -> bool {
        self.geometry.fill == Fill::Staged
    }

    fn preparation(&self) -> Preparation {
        let Geometry { preallocate, fill, .. } = *self.geometry;
        knowledge::preparation(self.filesystem, preallocate, fill)
    }

    /// Continues the file of the next segment until zeros are written in `len` bytes of it, in a
    /// log whose segments are written all over: the rest takes less time when it is needed. Where
    /// little space is left, none is taken before that, and the taken space is given back. Returns
    /// whether there is such work.
    pub(crate) fn begin(&self, len: u64) -> Result<bool> {
        let preparation = self.preparation();
        let is_long_work = self.is_synced() && preparation.writes_zeros;
        if !is_long_work || (preparation.recycles && self.spare()?.is_some()) {
            return Ok(false);
        }
        let file_len = self.geometry.layout.file_header_len() + self.room;
        let len = len.next_multiple_of(CAPACITY_UNIT_BYTES).min(file_len);
        let unfinished = self.dir.join(UNFINISHED_NAME);
        sys::file::check_size_limit(file_len)
            .or_os("prepare a segment of this size", &unfinished)?;
        let fd = self.open_unfinished(&unfinished)?;
        let begin = || {
            if sys::file::space_left(&fd)? < PLENTY_SEGMENTS * file_len {
                return Err(Errno::NOSPC);
            }
            sys::file::allocate(&fd, file_len)?;
            self.write_zeros_directly(&fd, len)
        };
        let begun = begin().or_os("begin the next segment", &unfinished);
        if begun.is_err() {
            let _ = self.dir.unlink(&unfinished);
        }
        begun.map(|()| true)
    }

    /// The begun file of the next segment.
    fn begun(&self, unfinished: &Path) -> Option<OwnedFd> {
        let fd = self.dir.open_file(unfinished, OFlags::RDWR).ok()?;
        let file_len = self.geometry.layout.file_header_len() + self.room;
        let is_ours = || -> io::Result<bool> {
            Ok(self.rights.fit(&fd)? && sys::file::len(&fd)? <= file_len)
        };
        is_ours().unwrap_or(false).then_some(fd)
    }

    /// An empty file, one that was begun, or a spare with its old bytes, under the unfinished name.
    fn open_unfinished(&self, unfinished: &Path) -> Result<OwnedFd> {
        if self.is_synced()
            && let Some(begun) = self.begun(unfinished)
        {
            return Ok(begun);
        }
        if let Some(spare) = self.spare()? {
            self.dir.rename(&spare, unfinished).or_os("take the spare segment", &spare)?;
            // A power cut must not find the new header under the old name.
            sync_names(self.dir)?;
            let fd = self.dir.open_file(unfinished, OFlags::RDWR);
            let fd = fd.or_os("open the spare segment", unfinished)?;
            if self.rights.fit(&fd).or_os("look at", unfinished)? {
                return Ok(fd);
            }
        }
        let fd = self.rights.create(self.dir, unfinished, "create the next segment")?;
        if self.is_synced() {
            sys::file::overwrite_in_place(&fd);
        }
        Ok(fd)
    }

    /// Gives the file its blocks, its length and its header.
    fn fill_in(&self, fd: &OwnedFd, first: Lsn, file_len: u64) -> io::Result<()> {
        let geometry = self.geometry;
        self.give_blocks(fd, file_len)?;
        // A text file is as long as its text: `grep` and `tail` must not see the prepared part.
        if !geometry.layout.ends_with_records() {
            let Geometry { layout, preallocate, fill, .. } = *geometry;
            let grows = knowledge::grows_when_ready(layout, preallocate, fill);
            if self.preparation().preallocate != Preallocate::Off && !grows {
                sys::file::set_len(fd, file_len)?;
            }
            let mut block = vec![0; HEADER_LEN as usize];
            let header =
                SegmentHeader::new(geometry.secret, first, geometry.segment_capacity, Lsn::ZERO);
            block[..size_of::<SegmentHeader>()].copy_from_slice(header.as_bytes());
            sys::file::write_all_at(fd, &block, 0)?;
        }
        Ok(())
    }

    fn sync_made(&self, fd: &OwnedFd, unfinished: &Path) -> Result<()> {
        if self.is_synced() {
            sys::sync::sync(fd).or_unsynced("sync the next segment", unfinished)?;
            // Direct writes would have to throw the pages out one by one.
            sys::file::forget_pages(fd);
        }
        Ok(())
    }

    /// Gives a file all its blocks, or the first ones: so the next file of a log with short ones is
    /// there whole before the disk is full. Further ones come by [`allocate`](Preparer::allocate),
    /// or with the zeros that are written ahead.
    fn give_blocks(&self, fd: &OwnedFd, file_len: u64) -> io::Result<()> {
        let preparation = self.preparation();
        if matches!(preparation.preallocate, Preallocate::Off | Preallocate::Sparse) {
            return Ok(());
        }
        // A file that is long enough has been used before: its blocks are written.
        if self.is_synced() && sys::file::len(fd)? == file_len {
            return Ok(());
        }
        let in_steps = knowledge::goes_in_steps(
            self.geometry.layout,
            self.geometry.preallocate,
            self.geometry.fill,
        );
        let first_len = if in_steps { file_len.min(STEP_BYTES_MIN) } else { file_len };
        let allocated = match sys::file::allocate(fd, first_len) {
            // Where the disk is full, or the process at its limit, there may be room for less.
            Err(_) if in_steps => sys::file::allocate(fd, first_len.min(CAPACITY_UNIT_BYTES)),
            answer => answer,
        };
        let has_blocks = allocated.is_ok();
        match allocated {
            Err(Errno::OPNOTSUPP | Errno::NOSYS) if preparation.is_best_effort => {}
            answer => answer?,
        }
        if preparation.writes_zeros && !in_steps && !(has_blocks && self.skips_zeros) {
            // The page cache takes them faster, and an append that needs the segment waits.
            let begun = if self.is_synced() { sys::file::len(fd)?.min(file_len) } else { 0 };
            sys::file::write_zeros_at(fd, begun, file_len - begun, ZEROS_BYTES_MAX)?;
        }
        Ok(())
    }

    /// Writes zeros past the page cache at the end of the begun file, until it has `len` bytes: the
    /// device does other things between two pieces, where the sync of a whole segment holds up all
    /// commits.
    fn write_zeros_directly(&self, fd: &OwnedFd, len: u64) -> io::Result<()> {
        let begin = sys::file::len(fd)?;
        let missing = len.saturating_sub(begin);
        let path = self.dir.join(UNFINISHED_NAME);
        let write_directly = || {
            if !begin.is_multiple_of(CAPACITY_UNIT_BYTES) {
                return Err(Errno::INVAL);
            }
            let direct = self.dir.open_file(&path, OFlags::WRONLY | OFlags::DIRECT)?;
            sys::file::write_zeros_at(direct, begin, missing, DIRECT_ZEROS_BYTES)
        };
        match write_directly() {
            Err(errno) if is_unsupported(errno) => {
                sys::file::write_zeros_at(fd, begin, missing, ZEROS_BYTES_MAX)
            }
            answer => answer,
        }
    }

    /// Gives the segment at `path` blocks from `begin` to `limit`, where the log allocates ahead.
    /// The file stays as long as it is.
    pub(crate) fn allocate(&self, path: &Path, begin: Lsn, limit: Lsn) -> Result<()> {
        let preparation = self.preparation();
        if matches!(preparation.preallocate, Preallocate::Off | Preallocate::Sparse) {
            return Ok(());
        }
        let fd = self.dir.open_file(path, OFlags::RDWR).or_os("open the segment", path)?;
        let header_len = self.geometry.layout.file_header_len();
        let offset = header_len + begin.get() % self.geometry.segment_capacity;
        let len = limit.get() - begin.get();
        match sys::file::allocate_beyond(&fd, offset, len) {
            Err(Errno::OPNOTSUPP | Errno::NOSYS) if preparation.is_best_effort => Ok(()),
            Err(errno) => {
                let what = &format!("find room for {len} bytes in");
                Err(Error::os(errno, what, path))
            }
            Ok(()) => Ok(()),
        }
    }

    /// Bytes that `count` more segments take, at least: the first may be made of spares.
    pub(crate) fn bytes_taken(&self, count: u64) -> u64 {
        let is_sparse =
            matches!(self.preparation().preallocate, Preallocate::Off | Preallocate::Sparse);
        let each = if is_sparse { CAPACITY_UNIT_BYTES } else { self.room };
        count.saturating_sub(SPARES_MAX as u64).saturating_mul(each)
    }

    /// Removes a segment.
    pub(crate) fn remove(&self, first: Lsn) -> Result<()> {
        if !self.geometry.layout.names_have_times() {
            return listing::remove(self.dir, &path(self.dir, first));
        }
        // A process that cannot list does not know that it is gone.
        Listing::read(self.dir)?.get(first).map_or(Ok(()), |file| file.remove(self.dir))
    }

    /// Keeps the first of `files` that no process reads as spares, if the log recycles and has not
    /// enough of them: no more than `most`. The others are removed.
    pub(crate) fn keep_spares(&self, files: &[&SegmentFile], most: u64) -> Result<()> {
        if !self.preparation().recycles {
            return Ok(());
        }
        let wanted = self.spares_max().min(most as usize);
        let spares = self.spares()?;
        spares.iter().skip(wanted).try_for_each(|spare| listing::remove(self.dir, spare))?;
        let missing = wanted.saturating_sub(spares.len());
        let is_free = |file: &&&SegmentFile| is_unpinned(self.dir, &file.path);
        for file in files.iter().take(SPARES_MAX * 4).filter(is_free).take(missing) {
            let to = file.path.with_extension(&SPARE_SUFFIX[1..]);
            match self.dir.rename(&file.path, &to) {
                // Another process has trimmed too.
                Err(Errno::NOENT) => {}
                answer => answer.or_os("keep the segment as a spare", &file.path)?,
            }
        }
        Ok(())
    }

    fn spares_max(&self) -> usize {
        if self.is_synced() { SPARES_MAX } else { 1 }
    }

    /// A file that waits to be used again, if there is one.
    pub(crate) fn spare(&self) -> Result<Option<PathBuf>> {
        Ok(self.spares()?.into_iter().next())
    }

    fn spares(&self) -> Result<Vec<PathBuf>> {
        if !self.preparation().recycles {
            return Ok(Vec::new());
        }
        let spares = names(self.dir)?.into_iter().filter(|name| name.ends_with(SPARE_SUFFIX));
        Ok(spares.map(|name| self.dir.join(name)).collect())
    }

    /// Gives back the blocks behind the zeros that end at `limit`, in a file that grows no more. A
    /// hint.
    pub(crate) fn free_behind(&self, file: &ZeroedFile, limit: Lsn) {
        if knowledge::grows_behind_end(self.filesystem) {
            let end = (limit.get() - 1) % self.geometry.segment_capacity + 1;
            sys::file::free_range(
                file.fd(),
                self.geometry.layout.file_header_len() + end,
                BEHIND_BYTES_MAX,
            );
        }
    }

    /// Writes zeros from `begin` to `limit`, which lie in the segment of `file`: after this the
    /// pages are in the page cache, in large folios, and have blocks to go to.
    ///
    /// Cheaper than faulting holes in through the mapping, page by page and once for each process
    /// (`docs/decisions/0004-zeros-ahead-of-the-tail.md`).
    pub(crate) fn write_zeros(&self, file: &ZeroedFile, begin: Lsn, limit: Lsn) -> Result<()> {
        let header_len = self.geometry.layout.file_header_len();
        let offset = header_len + begin.get() % self.geometry.segment_capacity;
        let len = limit.get() - begin.get();
        let piece = self.pieces.choose(len);
        let begun = Instant::now();
        sys::file::write_zeros_at(file.fd(), offset, len, piece.bytes())
            .and_then(|()| file.prove_storable(offset + len))
            .or_os("make room in the segment", file.path())?;
        self.pieces.note(piece, len, begun.elapsed());
        Ok(())
    }
}
