//! Bringing a group that has begun to the device, and whose error it is if that fails.
//!
//! **This process's**: it has no descriptor, no memory, not the right, or not the room under its
//! own limits. The leader opens everything before the group begins. Running out of descriptors is
//! then an error of its own call and does not poison the log. A resource that it lacks later
//! (memory, or the segments of a very long group) makes it hand the group back: another process, or
//! its own next commit, writes the same bytes. So it does with a write that is refused in each way:
//! nothing was written (`docs/decisions/0040-which-errors-poison.md`).
//!
//! **The device's**: everything else, and every sync that fails. The log is poisoned, because the
//! kernel may have thrown the bytes away, and would call a second try a success.
//!
//! **If the process dies here**: it holds a lane, which is taken over (`shared::commit`).

use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Instant;

use rustix::fs::OFlags;
use rustix::io::{self, Errno};

use crate::error::OsResult;
use crate::files::names::{CONTROL_NAME, GEOMETRY_NAME};
use crate::files::rewrite;
use crate::format::control::Geometry;
use crate::log::append::Appender;
use crate::log::commit::Leader;
use crate::log::commit::commit_path::shares_sector;
use crate::log::ready::stage;
use crate::log::state::control::{open_geometry, store_geometry};
use crate::log::state::core::Core;
use crate::log::state::writer::Writer;
use crate::log::state::{identity, wakeup};
use crate::segment::file::Segment;
use crate::segment::list;
use crate::shared::commit::{self, CommitGroup, CommitLock, Failure, Operation};
use crate::shared::lock::Until;
use crate::shared::tail_word;
use crate::sys::dir::NamesToSync;
use crate::sys::file::is_unsupported;
use crate::sys::{self, Dir};
use crate::{Error, Fill, Lsn, Preallocate, Result};

/// Segments of a group that are open before it has begun.
const SEGMENTS_IN_HAND: usize = 8;

/// The files of a commit group.
#[derive(Clone, Copy)]
pub(crate) struct GroupFiles<'a> {
    pub(crate) core: &'a Core,
}

impl<'a> GroupFiles<'a> {
    #[inline]
    pub(crate) fn of(core: &'a Core) -> GroupFiles<'a> {
        GroupFiles { core }
    }
}

/// The means to write a group.
pub(crate) struct Means {
    /// The segments of the group from its first on, but for those that were trimmed.
    segments: Vec<Arc<Segment>>,
    /// Where names have to be synced, too.
    names: Option<Names>,
    /// Commits of this process that wait for it.
    pub(crate) commits: u64,
}

/// The means to make the names of segments durable.
struct Names {
    /// Segments before this have their names then.
    end: u64,
    /// With the first ones, the files that describe the log and its own name.
    log: Option<LogItself>,
}

struct LogItself {
    geometry: OwnedFd,
    control: OwnedFd,
    /// The directory that the log is in; `None` where this process may not read it.
    parent: Option<OwnedFd>,
}

/// Why a group was not written.
enum Fault {
    /// This process cannot; another may.
    Own(Error),
    Device(Failure),
}

impl GroupFiles<'_> {
    /// Where a group up to `end` continues behind the segment at `first`: many files may be
    /// missing, of a framed log those that were trimmed.
    fn next_of_group(self, first: Lsn, is_there: bool, end: Lsn) -> Result<Lsn> {
        if is_there {
            return Ok(self.core.files.segment_end(first));
        }
        if self.core.files.geometry.layout.has_every_segment() {
            return Ok(self
                .core
                .files
                .segment_end(first)
                .max(self.core.files.segment_of(self.core.begin())));
        }
        let files = list(&self.core.files.dir)?;
        Ok(files.into_iter().find(|next| *next > first).unwrap_or(end))
    }

    fn is_closed_text(self, first: Lsn) -> bool {
        !self.core.files.geometry.layout.has_every_segment()
            && self.core.files.segment_end(first) <= tail_word::published(self.core.words())
    }

    /// Whether nothing of the segment at `first` is kept.
    fn is_trimmed(self, first: Lsn) -> bool {
        self.core.files.segment_end(first) <= self.core.begin()
    }

    fn gather_names(self, end: Lsn) -> Result<Option<Names>> {
        let words = self.core.words();
        let named_end = words.commits.named_end();
        if self.core.commits.stage.is_some() || named_end >= end.get() {
            return Ok(None);
        }
        let end = words.allocated_end();
        let log = (named_end == 0).then(|| LogItself::open(&self.core.files.dir)).transpose()?;
        Ok(Some(Names { end, log }))
    }

    /// Whether stores do not move the time of a file, and a published byte of it never changes: a
    /// segment that is recycled may be another's a moment after it was trimmed.
    fn is_time_left_alone(self) -> bool {
        self.core.files.geometry.fill == Fill::Mapped
            && self.core.files.geometry.preallocate != Preallocate::Recycle
    }

    /// Writes a group of others once more, where it was to be synced: if that failed just before
    /// they died, the kernel thinks its pages clean and would sync nothing.
    fn write_again(self, group: CommitGroup) -> Result<(), Fault> {
        if self.core.commits.stage.is_some() {
            return Ok(());
        }
        let begin = self.core.begin().max(group.start);
        let written = rewrite::records_unsynced(
            &self.core.files.dir,
            &self.core.files.geometry,
            begin,
            group.end,
        );
        written.map_err(|error| match error.raw_os_error().map(Errno::from_raw_os_error) {
            Some(errno) if !is_own(errno) => {
                Fault::Device(failure(errno, group.start, Operation::Sync))
            }
            _ => Fault::Own(error),
        })
    }

    /// Makes the names of segments durable, and with the first ones the log's own.
    fn sync_names(self, names: &Names, at: Lsn) -> Result<(), Fault> {
        let own = |errno| Fault::Own(Error::os(errno, "sync the names in", &self.core.files.dir));
        let failed = |errno| match errno {
            Errno::NOSYS => own(errno),
            _ => Fault::Device(failure(errno, at, Operation::Name)),
        };
        if let Some(log) = &names.log {
            // There are commit records to be looked for from now on.
            let geometry = Geometry { has_commits: true, ..self.core.files.geometry };
            store_geometry(&log.geometry, &geometry).map_err(|errno| match is_own(errno) {
                true => {
                    Fault::Own(Error::os(errno, "write", &self.core.files.dir.join(GEOMETRY_NAME)))
                }
                false => failed(errno),
            })?;
        }
        // The directory has to be opened for that where a daemon has closed it.
        let dir = self.core.files.dir.names_to_sync().map_err(own)?;
        match &names.log {
            Some(log) => log.sync(&dir),
            None => dir.sync(),
        }
        .map_err(failed)?;
        self.core.words().commits.raise_named_end(names.end);
        Ok(())
    }
}

impl Leader<'_> {
    /// Opens what writing the group from `start` to `end` takes.
    pub(crate) fn gather(self, start: Lsn, end: Lsn) -> Result<Means> {
        let mut segments = Vec::new();
        let mut first = self.writer.core.files.segment_of(start);
        while first < end && segments.len() < SEGMENTS_IN_HAND {
            let segment = self.segment_of_group(first, end)?;
            first =
                GroupFiles::of(self.writer.core).next_of_group(first, segment.is_some(), end)?;
            segments.extend(segment);
        }
        let names = GroupFiles::of(self.writer.core).gather_names(end)?;
        Ok(Means { segments, names, commits: 0 })
    }

    /// The segment at `first`, ready for the part of a group up to `end` that is in it; `None`
    /// where it was trimmed or removed.
    fn segment_of_group(self, first: Lsn, end: Lsn) -> Result<Option<Arc<Segment>>> {
        let core = self.writer.core;
        let segment = match Appender::of(self.writer).open_segment(first) {
            // A trim removes files whether they are durable or not, and raises `begin` before.
            Err(_) if core.commits.stage.is_none() && GroupFiles::of(core).is_trimmed(first) => {
                return Ok(None);
            }
            // A closed file of text that a user has removed does not keep the others from being
            // durable.
            Err(error)
                if GroupFiles::of(core).is_closed_text(first)
                    && core.files.is_told_missing(&error) =>
            {
                return Ok(None);
            }
            segment => segment?,
        };
        // A write or a sync by such a number would reach another file, and succeed.
        segment.check_open()?;
        if core.commits.stage.is_some() {
            segment
                .open_target(&core.files.dir, core.commits.commit_path.write)
                .or_os("open the segment", &segment.file.path)?;
            // A write beyond the limit would end this process.
            let limit =
                end.min(core.files.segment_end(first)).get().next_multiple_of(core.commits.block);
            let len = segment.offset_of(Lsn::new(limit));
            sys::file::check_size_limit(len).or_os("write records to", &segment.file.path)?;
        }
        Ok(Some(segment))
    }

    /// Brings a group that has begun to the device and marks it written; hands it back or poisons
    /// the log where it cannot. No process begins another as long as `lock` is held.
    pub(crate) fn write_group(
        self,
        group: CommitGroup,
        means: &Means,
        lock: Option<CommitLock<'_>>,
        until: Until,
    ) -> Result<()> {
        let core = self.writer.core;
        let since = Instant::now();
        let written = match &core.commits.stage {
            Some(_) => self.write_blocks(group, means),
            None => self.sync_segments(group, means),
        };
        drop(lock);
        if let Err(fault) = written {
            return self.fail(group, fault);
        }
        let time = since.elapsed();
        core.words().commits.counts.count_sync(group, time);
        let bytes = group.end.get() - group.start.get();
        self.writer.attachment.returning.note_group_end(means.commits, bytes, time);
        let liveness = self.writer.liveness();
        commit::finish(&core.words().commits, self.writer.attachment.me(), &liveness, group, until);
        wakeup::notify_durable(core);
        stage::retire(core);
        Ok(())
    }

    /// Brings a group to the device that another process has begun and left.
    pub(crate) fn write_left_group(
        self,
        group: CommitGroup,
        lock: Option<CommitLock<'_>>,
        until: Until,
    ) -> Result<()> {
        let gathered = self.gather(group.start, group.end).map_err(Fault::Own);
        let means = gathered
            .and_then(|means| GroupFiles::of(self.writer.core).write_again(group).map(|()| means));
        match means {
            Ok(means) => self.write_group(group, &means, lock, until),
            Err(fault) => {
                drop(lock);
                self.fail(group, fault)
            }
        }
    }

    /// The part of the commit lock that is kept while a group up to `end` is written: all of it
    /// where the rest of its last physical sector could be written at the same time.
    pub(crate) fn kept_lock<'a>(self, lock: CommitLock<'a>, end: Lsn) -> Option<CommitLock<'a>> {
        shares_sector(end.get(), self.writer.core.commits.block).then_some(lock)
    }

    fn fail(self, group: CommitGroup, fault: Fault) -> Result<()> {
        let words = &self.writer.core.words().commits;
        match fault {
            Fault::Own(error) => {
                commit::hand_back(words, group);
                Err(error)
            }
            Fault::Device(failure) => {
                // Each process that waits for the group finds that out, this one too.
                let (me, liveness) = (self.writer.attachment.me(), self.writer.liveness());
                commit::poison(words, me, &liveness, failure);
                wakeup::notify_durable(self.writer.core);
                Ok(())
            }
        }
    }

    /// Writes the blocks of a group, segment by segment.
    fn write_blocks(self, group: CommitGroup, means: &Means) -> Result<(), Fault> {
        let block = self.writer.core.commits.block;
        let mut next = Lsn::new(group.start.get() / block * block);
        while next < group.end {
            let first = self.writer.core.files.segment_of(next);
            let segment_end = self.writer.core.files.segment_end(next);
            let limit = self.end_of_blocks(next, group.end.min(segment_end));
            if let Some(segment) = self.opened(means, first, group.end)? {
                self.write_to_device(&segment, next, limit)?;
                let spoilt = |errno| Fault::Device(failure(errno, first, Operation::Stage));
                segment.check_stage(next, limit).map_err(spoilt)?;
            }
            next = segment_end;
        }
        Ok(())
    }

    /// Where the blocks end that have to be written of published bytes from `begin` to `end`, which
    /// lie in one segment.
    fn end_of_blocks(self, begin: Lsn, end: Lsn) -> Lsn {
        let Writer { core, attachment } = self.writer;
        let read_end = if end == core.files.segment_end(begin) {
            attachment.skipped.end_of_records(identity::live_epoch(core), begin, end)
        } else {
            end
        };
        Lsn::new(read_end.get().next_multiple_of(core.commits.block))
    }

    /// Writes blocks of one segment, which survive a power cut then.
    fn write_to_device(self, segment: &Segment, begin: Lsn, end: Lsn) -> Result<(), Fault> {
        let core = self.writer.core;
        let by = core.commits.commit_path.write;
        // A write that is refused in each way, or finds no space, wrote nothing, and nothing was
        // thrown away: the bytes are in the stage.
        let is_own = |errno| is_own(errno) || is_unsupported(errno) || segment.had_no_space(errno);
        segment.write_staged(&core.files.dir, by, begin, end).map_err(|errno| {
            match is_own(errno) {
                true => Fault::Own(Error::os(errno, "write records to", &segment.file.path)),
                false => Fault::Device(failure(errno, segment.file.first, Operation::Write)),
            }
        })?;
        segment.sync_target(core.ready.filesystem, by).map_err(|errno| unsynced(errno, segment))
    }

    /// Syncs the files of a group.
    fn sync_segments(self, group: CommitGroup, means: &Means) -> Result<(), Fault> {
        let core = self.writer.core;
        let mut first = core.files.segment_of(group.start);
        while first < group.end {
            let segment = self.opened(means, first, group.end)?;
            if let Some(segment) = &segment {
                if GroupFiles::of(core).is_time_left_alone() {
                    segment.touch(first.max(group.start));
                }
                sys::sync::sync_data_on(core.ready.filesystem, segment.fd())
                    .map_err(|errno| unsynced(errno, segment))?;
            }
            let next = GroupFiles::of(core).next_of_group(first, segment.is_some(), group.end);
            first = next.map_err(Fault::Own)?;
        }
        match &means.names {
            Some(names) => GroupFiles::of(core).sync_names(names, group.start),
            None => Ok(()),
        }
    }

    /// The segment at `first`, which only a long group opens now.
    fn opened(self, means: &Means, first: Lsn, end: Lsn) -> Result<Option<Arc<Segment>>, Fault> {
        match means.segments.iter().find(|segment| segment.file.first == first) {
            Some(segment) => Ok(Some(Arc::clone(segment))),
            None => self.segment_of_group(first, end).map_err(Fault::Own),
        }
    }
}

impl LogItself {
    fn open(dir: &Dir) -> Result<LogItself> {
        let geometry = open_geometry(dir)?;
        let path = dir.join(CONTROL_NAME);
        let control = dir.open_file(&path, OFlags::RDONLY).or_os("open", &path)?;
        let parent = dir.open_parent().or_os("open the directory above", dir)?;
        Ok(LogItself { geometry, control, parent })
    }

    fn sync(&self, dir: &NamesToSync<'_>) -> io::Result<()> {
        sys::sync::sync(&self.geometry)?;
        sys::sync::sync(&self.control)?;
        dir.sync()?;
        dir.sync_own(self.parent.as_ref())
    }
}

/// Whether an error is that of the calling process, and not of the device.
fn is_own(errno: Errno) -> bool {
    matches!(
        errno,
        Errno::MFILE
            | Errno::NFILE
            | Errno::NOMEM
            | Errno::ACCESS
            | Errno::PERM
            | Errno::FBIG
            | Errno::INTR
            | Errno::AGAIN
            | Errno::NOENT
            | Errno::BADF
    )
}

/// Why a segment could not be synced. Whatever the kernel answers, it may say with it that it could
/// not write back what was stored before; only a call that is not there, or a descriptor that the
/// program has closed, says nothing.
fn unsynced(errno: Errno, segment: &Segment) -> Fault {
    match errno {
        Errno::NOSYS | Errno::BADF => Fault::Own(Error::os(errno, "sync", &segment.file.path)),
        _ => Fault::Device(failure(errno, segment.file.first, Operation::Sync)),
    }
}

fn failure(errno: Errno, segment: Lsn, operation: Operation) -> Failure {
    Failure { errno: errno.raw_os_error(), segment, operation }
}
