//! The log's identity in its two files: reading it, making it, and beginning another epoch.
//!
//! The copy in the geometry file is synced before a position may be reserved again. Processes that
//! have the log open read the copy in the control file, which is also left where a user removes the
//! geometry file.
//!
//! **If the process dies here**: of a change that did not reach the first copy nothing has
//! happened. One that reached only the first copy counts, because it has the higher number; the
//! next opener writes the other copy again.

use std::os::fd::OwnedFd;

use rustix::fs::OFlags;
use rustix::io::Errno;

use crate::error::OsResult;
use crate::files::names::{CONTROL_NAME, GEOMETRY_NAME, SMALL_LEN_MAX};
use crate::files::recover::positions::Positions;
use crate::format::control::Geometry;
use crate::format::identity::{
    Copy, CutCheckpoint, EPOCH_OFFSET, IDENTITY_LEN, IDENTITY_OFFSET, Identity, Meaning,
};
use crate::identity::{Recovery, RecoveryReason};
use crate::log::state::control::{open_geometry, store_geometry};
use crate::log::state::core::Core;
use crate::restore::shape::fork_step;
use crate::segment::sync_names;
use crate::shared::primitive::{AtomicU64, Ordering};
use crate::sys::{self, Dir};
use crate::{Error, ErrorKind, LogId, Lsn, Options, Position, Result};

/// A log's identity in the files.
pub(crate) struct Stored {
    /// `None` in a log of an earlier version.
    pub(crate) identity: Option<Identity>,
    /// Whether both copies are as they should be.
    is_whole: bool,
    /// Whether a truncation has begun and not ended: the geometry file tells that as well.
    pub(crate) is_being_cut: bool,
}

/// The identity of the log in `dir`: the newer of its two copies.
pub(crate) fn load(dir: &Dir, control: Option<&OwnedFd>) -> Result<Stored> {
    let path = dir.join(GEOMETRY_NAME);
    let geometry = match dir.read(&path, SMALL_LEN_MAX) {
        // A process that may not read it has the other copy.
        Err(Errno::NOENT | Errno::ACCESS) => Vec::new(),
        answer => answer.or_os("read", &path)?,
    };
    let (first, second) = (Copy::in_file(&geometry), copy_in_control(dir, control)?);
    let is_whole = first == second;
    let identity = match (first, second) {
        (Copy::Whole(first), Copy::Whole(second)) if first.id != second.id => {
            return Err(two_logs(dir, first.id, second.id));
        }
        (Copy::Whole(first), Copy::Whole(second)) => Some(first.newer(second)),
        (Copy::Whole(one), _) | (_, Copy::Whole(one)) => Some(one),
        (Copy::Absent, Copy::Absent) => None,
        _ => return Err(damaged(dir)),
    };
    let is_being_cut = Geometry::parse(&geometry).is_ok_and(|stored| stored.cut != 0);
    Ok(Stored { identity, is_whole, is_being_cut })
}

/// The identity of the log into which the one in `dir` is saved: another one, which knows of that
/// one as much as can be told.
pub(crate) fn of_saved(dir: &Dir) -> Identity {
    let control = dir.open_file(&dir.join(CONTROL_NAME), OFlags::RDONLY).ok();
    let stored = load(dir, control.as_ref()).ok().and_then(|stored| stored.identity);
    let (tag, lost) = stored.map_or((0, None), |stored| (stored.tag, stored.lost));
    let mut identity = Identity::new(new_id(), tag);
    identity.lost = lost;
    identity
}

fn copy_in_control(dir: &Dir, control: Option<&OwnedFd>) -> Result<Copy> {
    let Some(control) = control else { return Ok(Copy::Absent) };
    let mut bytes = [0; IDENTITY_LEN];
    let count = sys::file::read_up_to_at(control, &mut bytes, IDENTITY_OFFSET as u64)
        .or_os("read", &dir.join(CONTROL_NAME))?;
    Ok(Copy::parse(&bytes[..count]))
}

impl Stored {
    /// The identity of a log whose files were both just written.
    pub(crate) fn both(identity: Identity) -> Stored {
        Stored { identity: Some(identity), is_whole: true, is_being_cut: false }
    }
}

impl Options {
    /// Refuses a log of another application.
    pub(crate) fn check_tag(&self, identity: Option<&Identity>, dir: &Dir) -> Result<()> {
        let stored = identity.map_or(0, |identity| identity.tag);
        let Some(asked) = self.application_tag.filter(|asked| *asked != stored) else {
            return Ok(());
        };
        let stored = match stored {
            0 => "without \0application_tag\0".into(),
            stored => format!("with \0application_tag\0 {stored:#018x}"),
        };
        let message = format!("the log was created {stored}, and {asked:#018x} was asked for");
        Err(Error::new(ErrorKind::InvalidOption, message).at_path(dir))
    }

    /// The identity of a log that is created.
    pub(crate) fn new_identity(&self) -> Identity {
        Identity::new(new_id(), self.application_tag.unwrap_or(0))
    }
}

fn new_id() -> LogId {
    let halves = [sys::process::random_u64(), sys::process::random_u64()];
    let mut bytes = [0; 16];
    bytes.chunks_exact_mut(8).zip(halves).for_each(|(to, half)| {
        to.copy_from_slice(&half.to_le_bytes());
    });
    LogId::from_bytes(bytes)
}

/// The identity with which an opened log continues: an earlier version's log gets one, and a copy
/// that is missing or older is written again. The caller is in the gate.
pub(crate) fn settle(
    dir: &Dir,
    control: &OwnedFd,
    geometry: &Geometry,
    stored: Stored,
) -> Result<Option<Identity>> {
    let Stored { identity, is_whole, .. } = stored;
    let is_new = identity.is_none();
    let identity = identity.unwrap_or_else(|| Identity::new(new_id(), 0));
    if is_whole && !is_new {
        return Ok(Some(identity));
    }
    match store(dir, control, geometry, &identity) {
        // One copy is enough; and without space a log of an earlier version continues as it is.
        Err(error) if !is_new || error.kind() == ErrorKind::NoSpace => {
            Ok((!is_new).then_some(identity))
        }
        answer => answer.map(|()| Some(identity)),
    }
}

/// The identity of a log that was recovered, in its next epoch, durably. Without a control file the
/// caller writes the second copy.
pub(crate) fn after_recovery(
    dir: &Dir,
    control: Option<&OwnedFd>,
    geometry: &Geometry,
    stored: Stored,
    positions: &Positions,
    reason: RecoveryReason,
) -> Result<(Stored, Recovery)> {
    let recovery = positions.recovery(reason);
    let Some(mut identity) = stored.identity else {
        // It gets one that knows of no positions yet.
        return Ok((stored, recovery));
    };
    let may_be_another = matches!(reason, RecoveryReason::Moved | RecoveryReason::ControlLost);
    identity.rewind(recovery.from, if may_be_another { fork_step() } else { 1 });
    identity.recovery = Some(recovery);
    store_first(dir, geometry, &identity)?;
    if let Some(control) = control {
        store_second(dir, control, &identity)?;
    }
    Ok((Stored::both(identity), recovery))
}

fn store(dir: &Dir, control: &OwnedFd, geometry: &Geometry, identity: &Identity) -> Result<()> {
    store_first(dir, geometry, identity)?;
    store_second(dir, control, identity)
}

/// Writes the copy in the geometry file, durably.
fn store_first(dir: &Dir, geometry: &Geometry, identity: &Identity) -> Result<()> {
    let (fd, path) = (open_geometry(dir)?, dir.join(GEOMETRY_NAME));
    let store = || {
        let was_gone = sys::file::len(&fd)? == 0;
        if was_gone {
            // Whether there are commit records was noted in it alone.
            store_geometry(&fd, &Geometry { has_commits: true, ..*geometry })?;
        }
        sys::file::write_all_at(&fd, &identity.to_bytes(), IDENTITY_OFFSET as u64)?;
        Ok(was_gone)
    };
    let what = "store the log's identity in";
    let was_gone = store().or_os(what, &path)?;
    sys::sync::sync_data(&fd).or_unsynced(what, &path)?;
    if was_gone { sync_names(dir) } else { Ok(()) }
}

/// Writes the copy in the control file, which has the space. No sync: it is the second.
fn store_second(dir: &Dir, control: &OwnedFd, identity: &Identity) -> Result<()> {
    sys::file::write_all_at(control, &identity.to_bytes(), IDENTITY_OFFSET as u64)
        .or_os("store the log's identity in", &dir.join(CONTROL_NAME))
}

/// Notes with which identity the log was opened.
pub(crate) fn take(core: &mut Core, identity: Option<Identity>) {
    let epoch = identity.as_ref().map_or(0, |identity| identity.epoch);
    (core.opened.identity, core.opened.epoch) = (identity, epoch.into());
}

/// The identity as it is now. `None` in a log of an earlier version that no process has opened for
/// writing since.
pub(crate) fn current(core: &Core) -> Option<Identity> {
    let words = core.region.identity_words();
    if let Some(Copy::Whole(identity)) = words.map(|words| Copy::parse(&bytes_of(words))) {
        return Some(identity);
    }
    // It is being changed, or there are no words: the first copy counts then.
    let file = words
        .and_then(|_| core.files.dir.read(&core.files.dir.join(GEOMETRY_NAME), SMALL_LEN_MAX).ok());
    match file.map(|file| Copy::in_file(&file)) {
        Some(Copy::Whole(identity)) => Some(identity),
        _ => core.opened.identity.clone(),
    }
}

/// The epoch as it is now: a read of memory. 0 where there is no identity.
pub(crate) fn live_epoch(core: &Core) -> u64 {
    match (&core.opened.identity, core.region.identity_words()) {
        (Some(_), Some(words)) => words[EPOCH_OFFSET / 8].load(Ordering::SeqCst),
        (identity, _) => identity.as_ref().map_or(0, |identity| identity.epoch),
    }
}

/// The LSN of a position, and the epoch of that answer.
pub(crate) fn resolve(core: &Core, position: Position, meaning: Meaning) -> Result<(Lsn, u64)> {
    let identity = current(core).ok_or_else(|| no_identity(core))?;
    let lsn =
        identity.resolve(position, meaning).map_err(|error| error.at_path(&core.files.dir))?;
    Ok((lsn, identity.epoch))
}

/// The position `lsn` of this log, seen in `epoch`.
pub(crate) fn position(core: &Core, epoch: u64, lsn: Lsn) -> Result<Position> {
    match &core.opened.identity {
        Some(identity) => Ok(Position { log: identity.id, epoch, lsn }),
        None => Err(no_identity(core)),
    }
}

/// Begins the next epoch, in which positions from `lsn` on are given out again, durably. The
/// caller is alone in the log.
pub(crate) fn rewind(core: &Core, lsn: Lsn) -> Result<()> {
    change(core, |identity| identity.rewind(lsn, 1))
}

/// Notes the checkpoint of a log that is about to be cut at `at`, durably: the only commit record
/// that carries it may be cut off. The caller is alone in the log.
pub(crate) fn keep_checkpoint(core: &Core, at: Lsn) -> Result<()> {
    let checkpoint = core.words().commits.checkpoint().min(at);
    if checkpoint == Lsn::ZERO {
        return Ok(());
    }
    change(core, |identity| identity.note_checkpoint(CutCheckpoint { at, checkpoint }))
}

fn change(core: &Core, change: impl FnOnce(&mut Identity)) -> Result<()> {
    let Some(mut identity) = current(core) else { return Ok(()) };
    change(&mut identity);
    store_first(&core.files.dir, &core.files.geometry, &identity)?;
    if let Some(words) = core.region.identity_words() {
        let bytes = identity.to_bytes();
        for (word, bytes) in words.iter().zip(bytes.chunks_exact(8)) {
            let bytes = bytes.try_into().expect("chunks have eight bytes");
            word.store(u64::from_ne_bytes(bytes), Ordering::SeqCst);
        }
    }
    core.opened.epoch.store(identity.epoch, Ordering::SeqCst);
    Ok(())
}

fn bytes_of(words: &[AtomicU64; IDENTITY_LEN / 8]) -> Vec<u8> {
    words.iter().flat_map(|word| word.load(Ordering::SeqCst).to_ne_bytes()).collect()
}

fn no_identity(core: &Core) -> Error {
    let message = "the log has no id yet, because an earlier version made it; open it once for \
                   writing, with some space on the disk";
    Error::new(ErrorKind::Unsupported, message).at_path(&core.files.dir)
}

fn two_logs(dir: &Dir, geometry: LogId, control: LogId) -> Error {
    let message = format!(
        "the geometry file is of log {geometry} and the control file of log {control}; restore the \
         one that belongs here"
    );
    Error::new(ErrorKind::Corrupt, message).at_path(&dir.join(GEOMETRY_NAME))
}

fn damaged(dir: &Dir) -> Error {
    let message = "the log's id is damaged in the geometry file, and the control file has no other \
                   copy; restore one of the two files, or save the records into a new log with \
                   `vellum repair`";
    Error::new(ErrorKind::Corrupt, message).at_path(&dir.join(GEOMETRY_NAME))
}
