//! The stage: files beside the segments in which records wait until they are committed.
//!
//! Each segment that is written has a twin with the same offsets, `NAME.stage`. Records are stored
//! there, and written from there to the segment when they are committed. The twin is sparse; it has
//! pages up to a window ahead of the tail. When all of a segment is durable, its twin is cut to
//! nothing and removed: its pages are dropped, and the kernel never writes them to the device. It
//! does write pages that wait longer than it lets dirty pages wait (half a minute), which costs a
//! write and changes nothing.
//!
//! One that is over is kept as a spare, unless another is or it is nearly as old as that: it
//! becomes the next twin, with pages that are there already, and a process that had it mapped uses
//! the mapping again. The bytes of its old records in them are never mistaken for others: a reader
//! of a stage checks afterwards whether it still was one, and the check of a frame holds at one
//! position only, as in a segment that is used again.
//!
//! The header of a stage has the identity that is stored in the control file's words, and the log's
//! epoch. Words that name the stage name files with that identity. Where no words are believed, the
//! epoch decides: in one epoch a position is given out once, so whole frames in a stage of the
//! newest epoch are the records that were appended there (`files::recover::staged`).
//!
//! Nothing is stored through a mapping where a full disk could make a store fail
//! (`Filesystem::mapping_hazard`). There, records are written to the stage by `pwrite`, onto blocks
//! that were allocated before.
//!
//! **If the process dies here**: a file under its unfinished name is made again; a file that has a
//! name and is not needed is removed when the log is opened or closed by one process alone.

use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::{self, OFlags};
use rustix::io::{self, Errno};
use zerocopy::{FromBytes, IntoBytes};

use super::{SPARE_STAGE_NAME, STAGE_SUFFIX, UNFINISHED_STAGE_NAME};
use crate::error::OsResult;
use crate::format::stage::StageHeader;
use crate::segment::listing::Listing;
use crate::segment::rights::Rights;
use crate::sys::filesystem::Filesystem;
use crate::sys::{self, Dir};
use crate::{Error, ErrorKind, Lsn, Result};

/// How old a stage may be that is used again: the kernel writes files to the device that have had
/// dirty pages for 30 seconds.
const REUSED_AGE_MAX: Duration = Duration::from_secs(20);

/// The parts of a file of the stage.
pub struct Twin<'a> {
    /// The id by which the words of the control file call it.
    pub id: u64,
    /// The epoch of the log.
    pub epoch: u64,
    /// First position of the segment.
    pub first: Lsn,
    /// Bytes of the file.
    pub len: u64,
    /// The bytes of the segment before the first record, which will be written again with it, and
    /// their offset.
    pub begin: (u64, &'a [u8]),
}

/// The stage of one log.
pub struct Stage {
    dir: Dir,
    /// Whether records may be stored through a mapping.
    pub is_mapped: bool,
}

impl Stage {
    /// The stage of the log in `dir`.
    pub fn of(dir: &Dir, filesystem: Filesystem) -> Stage {
        Stage { dir: dir.clone(), is_mapped: filesystem.mapping_hazard().is_none() }
    }

    /// The stage of the segment at `first`.
    pub fn path(&self, first: Lsn) -> PathBuf {
        path(&self.dir, first)
    }

    /// Makes a file of the stage, in place of one that a dead preparer left.
    pub fn make(&self, twin: Twin<'_>, rights: &Rights) -> Result<()> {
        let unfinished = self.dir.join(UNFINISHED_STAGE_NAME);
        sys::file::check_size_limit(twin.len).or_os("make the stage of a segment", &unfinished)?;
        let target = self.path(twin.first);
        let fd = match self.take_spare(&unfinished, rights) {
            Some(spare) => spare,
            None => rights.create(&self.dir, &unfinished, "make the stage of a segment")?,
        };
        self.fill_in(&fd, twin)
            .and_then(|()| self.dir.rename(&unfinished, &target))
            .inspect_err(|_| {
                // Give the blocks back; if even that fails the next preparer will.
                let _ = self.dir.unlink(&unfinished);
            })
            .or_os("make the stage of the next segment", &target)
    }

    /// The spare, under the unfinished name.
    fn take_spare(&self, unfinished: &Path, rights: &Rights) -> Option<OwnedFd> {
        self.dir.rename(&self.dir.join(SPARE_STAGE_NAME), unfinished).ok()?;
        let fd = self.dir.open_file(unfinished, OFlags::RDWR).ok()?;
        rights.fit(&fd).is_ok_and(|fits| fits).then_some(fd)
    }

    fn fill_in(&self, fd: &OwnedFd, twin: Twin<'_>) -> io::Result<()> {
        sys::file::overwrite_in_place(fd);
        sys::file::set_len(fd, twin.len)?;
        if !self.is_mapped {
            match sys::file::allocate(fd, twin.len) {
                Err(Errno::OPNOTSUPP | Errno::NOSYS) => {}
                answer => answer?,
            }
        }
        let (offset, bytes) = twin.begin;
        sys::file::write_all_at(fd, bytes, offset)?;
        let header = StageHeader::new(twin.id, twin.first, twin.epoch);
        sys::file::write_all_at(fd, header.as_bytes(), 0)
    }

    /// Whether the stage of the segment at `first` is there, and the one with identity `id`.
    pub fn is_there(&self, id: u64, first: Lsn) -> Result<bool> {
        Ok(header(&self.dir, first)?.is_some_and(|header| header.is_called(id, first)))
    }

    /// Drops the stage of the segment at `first`, of which everything is durable, or keeps it as
    /// the spare. Pages that are dropped go at once, even if some process has them mapped.
    pub fn retire(&self, first: Lsn) {
        let path = self.path(first);
        let spare = self.dir.join(SPARE_STAGE_NAME);
        let is_kept = self.is_mapped
            && !self.dir.holds(&spare)
            && self.dir.open_file(&path, OFlags::RDONLY).is_ok_and(|fd| is_young(&fd))
            && self.dir.rename(&path, &spare).is_ok();
        if !is_kept {
            self.remove(&path);
        }
    }

    /// Drops every stage that is in the directory, as it was listed; a file that cannot be removed
    /// is left to the next process.
    pub fn retire_all(&self, listing: &Listing) {
        listing.stages.iter().for_each(|path| self.remove(path));
    }

    fn remove(&self, path: &Path) {
        // One with another name may be another user's file, which was linked here.
        if let Ok(fd) = self.dir.open_file(path, OFlags::RDWR)
            && fs::fstat(&fd).is_ok_and(|found| found.st_nlink == 1)
        {
            let _ = sys::file::set_len(&fd, 0);
        }
        let _ = self.dir.unlink(path);
    }
}

/// The path of the stage of the segment at `first`.
pub fn path(dir: &Dir, first: Lsn) -> PathBuf {
    dir.join(format!("{:016x}{STAGE_SUFFIX}", first.get()))
}

/// Opens the stage of the segment at `first`.
pub fn open(dir: &Dir, first: Lsn, flags: OFlags) -> Result<OwnedFd> {
    let path = path(dir, first);
    dir.open_file(&path, flags).map_err(|errno| match errno {
        Errno::NOENT => {
            let message = "the stage of a segment, with records that are not committed yet, is \
                           missing; let the processes that use the log commit and close it";
            Error::new(ErrorKind::Corrupt, message).at_path(&path).at_lsn(first)
        }
        errno => Error::os(errno, "open the stage", &path),
    })
}

/// Whether the stage of the segment at `first` is there, and was made in `epoch`.
pub(crate) fn is_of_epoch(dir: &Dir, epoch: u64, first: Lsn) -> Result<bool> {
    Ok(header(dir, first)?.is_some_and(|header| header.is_of_epoch(epoch, first)))
}

fn header(dir: &Dir, first: Lsn) -> Result<Option<StageHeader>> {
    let path = path(dir, first);
    let read = || -> io::Result<Option<StageHeader>> {
        let fd = match dir.open_file(&path, OFlags::RDONLY) {
            Err(Errno::NOENT) => return Ok(None),
            answer => answer?,
        };
        let mut bytes = [0; size_of::<StageHeader>()];
        let count = sys::file::read_up_to_at(&fd, &mut bytes, 0)?;
        Ok(StageHeader::read_from_bytes(&bytes[..count]).ok())
    };
    read().or_os("look at the stage", &path)
}

/// Whether a file was made so short a while ago that the kernel has not begun to write it to the
/// device.
fn is_young(fd: &OwnedFd) -> bool {
    let age = sys::file::age(fd);
    age.is_some_and(|age| age < REUSED_AGE_MAX)
}
