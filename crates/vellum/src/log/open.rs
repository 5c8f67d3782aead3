//! Opening and joining a log; `create` makes a new one.
//!
//! All of it happens under an exclusive lock on the gate byte of the `lock` file, which the kernel
//! releases when its holder dies; so two creators make one log, and a creator killed half-way is
//! followed by another who starts over. The control file gets its name when it is complete.
//!
//! Readers without write permission cannot open the `lock` file, so they cannot hold the gate, nor
//! a participant's byte, against anybody. They read the control file and the segments alone.

use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use rustix::fs::{self, OFlags};
use rustix::io::Errno;

use crate::error::OsResult;
use crate::format::control::Geometry;
use crate::format::frame::Codec;
use crate::log::attachment::Attachment;
use crate::log::control::{
    self, overwrite_control, overwrite_geometry, read_geometry, stored_geometry, this_boot,
};
use crate::log::core::{Core, core_with};
use crate::log::create::{
    Opened, check_is_ours, check_new, check_not_restoring, make_control, make_directory,
};
use crate::log::gate::Gate;
use crate::log::names::{CONTROL_NAME, LOCK_NAME};
use crate::log::positions::{Access, Loss, Positions};
use crate::log::text;
use crate::log::trigger::Trigger;
use crate::log::watch::Watch;
use crate::log::writer::Writer;
use crate::log::{commit_path, gate, identity, pad, recover, stage, trust, wipe};
use crate::options::limits::{
    MAPPED_BYTES_MAX_DEFAULT, PREFAULT_BYTES_DEFAULT, STAGED_SEGMENTS_MAX_DEFAULT,
};
use crate::options::policy::PolicyUpdate;
use crate::segment::list;
use crate::segment::listing::LastListing;
use crate::segment::pace::Pace;
use crate::segment::pieces::Pieces;
use crate::segment::rights::Rights;
use crate::segment::stage::Stage;
use crate::shared::commit;
use crate::shared::region::{CONTROL_LEN, Region};
use crate::shared::tail_word;
use crate::sys::filesystem::Filesystem;
use crate::sys::fork::PerProcess;
use crate::sys::{Dir, Map};
use crate::{Error, ErrorKind, Fill, Layout, Options, RecoveryReason, Result, knowledge};

/// Opens the log in `dir` as `options` say.
pub(crate) fn open(dir: &Path, options: &Options) -> Result<Core> {
    options.check()?;
    if options.read_only { open_read_only(dir, options) } else { open_for_writing(dir, options) }
}

fn open_for_writing(path: &Path, options: &Options) -> Result<Core> {
    let entered = Entered::enter(path, options)?;
    let opened = entered.take_up_or_make(options)?;
    let mut core = entered.core(options, opened)?;
    entered.attach(&mut core)?;
    settle(&core, &options.policy)?;
    Ok(core)
}

/// The directory of a log, and the gate, in which nobody else is.
struct Entered {
    dir: Dir,
    filesystem: Filesystem,
    /// For new files.
    mode: u32,
    lock_file: OwnedFd,
    gate: Gate,
    /// Whether no process has the log open.
    is_first: bool,
}

impl Entered {
    fn enter(path: &Path, options: &Options) -> Result<Entered> {
        let mode = options.mode.unwrap_or(0o666);
        let may_create = options.may_create();
        if may_create {
            check_new(path, options)?;
            make_directory(path, mode)?;
        }
        let dir = open_directory(path)?;
        let filesystem = dir.filesystem().or_os("tell the filesystem of", &dir)?;
        if let Some(reason) = knowledge::refusal(filesystem) {
            return Err(Error::new(ErrorKind::Unsupported, reason).at_path(&dir));
        }
        check_not_restoring(&dir)?;
        check_is_ours(&dir, may_create)?;
        let rights = control::rights(&dir, mode).or_os("look at", &dir)?;
        let lock_path = dir.join(LOCK_NAME);
        let lock_file = rights.open_lock(&dir, &lock_path, !options.needs_lock);
        let lock_file = lock_file.or_os("open", &lock_path)?;
        let gate = Gate::enter(&dir)?;
        let is_first = gate.is_alone().or_os("lock", &lock_path)?;
        Ok(Entered { dir, filesystem, mode, lock_file, gate, is_first })
    }

    /// A control file whose words hold: the one that is there, or a new one.
    fn take_up_or_make(&self, options: &Options) -> Result<Opened> {
        let (dir, control_path) = (&self.dir, self.dir.join(CONTROL_NAME));
        match dir.open_file(&control_path, OFlags::RDWR) {
            Ok(_) if options.create_new => {
                let message = "there is a log already";
                Err(Error::new(ErrorKind::AlreadyExists, message).at_path(dir))
            }
            Ok(control) => take_up(dir, options, control, self.is_first),
            Err(Errno::NOENT) => {
                make_control(dir, options, self.filesystem, self.is_first, self.mode)
            }
            Err(errno) => Err(Error::os(errno, "open the control file", &control_path)),
        }
    }

    /// The log, with its words mapped.
    fn core(&self, options: &Options, opened: Opened) -> Result<Core> {
        let Opened { control, geometry, identity, recovery, prefault_bytes, advice } = opened;
        let (dir, control_path) = (&self.dir, self.dir.join(CONTROL_NAME));
        let identity = identity::settle(dir, &control, &geometry, identity)?;
        let rights = rights_like(&control, dir).or_os("look at", &control_path)?;
        let map = Map::new(&control, CONTROL_LEN, true).or_os("map", &control_path)?;
        let region = Region::new(map);
        let prefault_bytes = options.prefault_bytes.or(prefault_bytes);
        let options = Options { prefault_bytes, ..options.clone() };
        let mut core = core(dir, &options, geometry, self.filesystem, rights, region);
        (core.recovery, core.advice) = (recovery, advice);
        core.take_identity(identity);
        core.watch = Watch::new(&control, &self.lock_file).or_os("look at", &control_path)?;
        core.check_words()?;
        core.join_stage(self.is_first)?;
        Ok(core)
    }

    /// Makes this process a participant, and lets others through the gate.
    fn attach(self, core: &mut Core) -> Result<()> {
        if self.is_first {
            // A truncation may not have come that far, or older segments were restored. A file
            // that cannot be read is told to who uses the cursors.
            let _ = core.clamp_cursors(tail_word::tail(core.words()));
            core.region.origin().iter().for_each(|origin| origin.reopen());
            self.gate.let_in().or_os("unlock", &self.dir.join(LOCK_NAME))?;
        }
        let attachment = Attachment::attach(&self.dir, core.words(), self.lock_file)?;
        drop(self.gate);
        let attached = PerProcess::new(attachment).or_os("notice forks from", &self.dir)?;
        core.writer = Some(attached);
        Ok(())
    }
}

/// What a participant does first: it joins the policy, tidies up and makes space ready.
fn settle(core: &Core, policy: &PolicyUpdate) -> Result<()> {
    core.writer()?.join_policy(policy)?;
    core.writer()?.check_link();
    pad::repair_with_space(core.writer()?)?;
    core.check_poison()?;
    #[cfg(feature = "zstd")]
    core.remove_unfinished_compression();
    core.writer()?.tidy();
    // Perhaps somebody has made space, and that is why this process was started.
    core.words().full.open_way();
    core.writer()?.prepare_first();
    Ok(())
}

/// Takes up a log that has a control file, recovering it where its words do not hold.
fn take_up(dir: &Dir, options: &Options, control: OwnedFd, is_first: bool) -> Result<Opened> {
    let path = dir.join(CONTROL_NAME);
    let geometry = read_geometry(&control, &path)?;
    options.check_against(&geometry, dir)?;
    let identity = identity::load(dir, Some(&control))?;
    options.check_tag(identity.identity.as_ref(), dir)?;
    if !is_first {
        return Ok(Opened::new(control, geometry, identity, None));
    }
    let region = Region::new(Map::new(&control, CONTROL_LEN, true).or_os("map", &path)?);
    let boot_id = this_boot()?;
    let loss = trust::loss(&control, &geometry, boot_id, &region).or_os("look at", &path)?;
    let is_poisoned = loss.is_none() && commit::is_poisoned(&region.words().commits);
    let core = Arc::new(core_with(dir, &geometry, region));
    let loss = match loss {
        None => loss_of_words(&core)?,
        loss => loss,
    };
    let Some(reason) = loss else {
        if text::recover::lacks_newest(&core)? {
            let positions = recover::find_end_behind_newest(&core)?;
            overwrite_control(&control, &geometry, positions).or_os("write", &path)?;
        }
        return Ok(Opened::new(control, geometry, identity, None));
    };
    // What was noted later than the header of the control file, if the file is there.
    let noted = stored_geometry(dir).unwrap_or(Geometry { is_sealed: true, ..geometry });
    let geometry = Geometry { boot_id, ..noted };
    let positions = recover::scan(dir, &geometry, Loss::Power, Access::Change)?;
    if is_poisoned && geometry.fill != Fill::Staged {
        // After a failed sync.
        wipe::rewrite(dir, &geometry, positions.begin, positions.tail)?;
    }
    // All of it counts as durable from now on, and may have been copied here a moment ago.
    wipe::sync_all(dir)?;
    let geometry = Geometry { cut: 0, ..geometry };
    // Before the words count, and positions are given out by them.
    let (identity, recovery) =
        identity::after_recovery(dir, Some(&control), &geometry, identity, &positions, reason)?;
    overwrite_control(&control, &geometry, positions).or_os("write", &path)?;
    overwrite_geometry(dir, &geometry)?;
    Ok(Opened::new(control, geometry, identity, Some(recovery)))
}

/// Why words of this boot and file do not hold, if they do not: a truncation was not finished, the
/// stage is gone, the page cache cannot be believed after a failed sync, or the segments say
/// something else.
fn loss_of_words(core: &Arc<Core>) -> Result<Option<RecoveryReason>> {
    let (dir, geometry, words) = (&core.dir, &core.geometry, core.words());
    // Nobody is here, so who truncated has died.
    if is_being_cut(dir) {
        return Ok(Some(RecoveryReason::Truncation));
    }
    let is_staged = geometry.fill == Fill::Staged;
    if is_staged && stage::is_lost(dir, geometry, words)? {
        return Ok(Some(RecoveryReason::StageLost));
    }
    if !is_staged && commit::is_poisoned(&words.commits) {
        return Ok(Some(RecoveryReason::Poisoned));
    }
    Ok((!trust::agree(core)?).then_some(RecoveryReason::Disagreement))
}

/// Whether words may be read that nobody can be asked about.
fn may_be_read(dir: &Dir, control: &OwnedFd, geometry: &Geometry) -> Result<bool> {
    let path = dir.join(CONTROL_NAME);
    let map = || Map::new(control, CONTROL_LEN, false).or_os("map", &path);
    let region = Region::new(map()?);
    if stage::is_lost(dir, geometry, region.words())? {
        return Ok(false);
    }
    if gate::is_somebody_present(dir) {
        return Ok(true);
    }
    let is_same = trust::is_same_instance(control, geometry, this_boot()?, &region);
    let core = core_with(dir, geometry, region);
    Ok(is_same.or_os("look at", &path)? && trust::agree_for_reading(&Arc::new(core))?)
}

/// The words of a log that has lost them, worked out for one reader alone from the segments as
/// they are.
fn worked_out(dir: &Dir, geometry: &Geometry, loss: Loss) -> Result<Region> {
    let region = Region::on_heap();
    let found = recover::scan(dir, geometry, loss, Access::Look)?;
    // Who may change nothing has synced nothing: only a seal vouches for what was durable.
    let durable = match geometry.layout {
        Layout::Framed => found.found.durable,
        Layout::Text => found.begin,
    };
    Positions { durable, ..found }.store(region.words());
    Ok(region)
}

/// Whether a truncation has begun and not ended.
fn is_being_cut(dir: &Dir) -> bool {
    stored_geometry(dir).is_ok_and(|stored| stored.cut != 0)
}

fn open_read_only(path: &Path, options: &Options) -> Result<Core> {
    let dir = &open_directory(path)?;
    let filesystem = dir.filesystem().or_os("tell the filesystem of", dir)?;
    check_not_restoring(dir)?;
    let control_path = dir.join(CONTROL_NAME);
    let control = match dir.open_file(&control_path, OFlags::RDONLY) {
        Ok(control) => Some(control),
        Err(Errno::NOENT) => None,
        Err(errno) => return Err(Error::os(errno, "open the control file", &control_path)),
    };
    let (geometry, rights) = match &control {
        Some(control) => {
            let rights = rights_like(control, dir).or_os("look at", &control_path)?;
            (read_geometry(control, &control_path)?, rights)
        }
        // Perhaps one is being created at this moment; its first segment comes after.
        None if list(dir)?.is_empty() => {
            return Err(Error::new(ErrorKind::NotFound, "there is no log").at_path(dir));
        }
        None => (stored_geometry(dir)?, Rights::default()),
    };
    options.check_against(&geometry, dir)?;
    let identity = identity::load(dir, control.as_ref())?.identity;
    options.check_tag(identity.as_ref(), dir)?;
    if is_being_cut(dir) {
        let message = "the log is being truncated, or somebody died doing so; try again, and if \
                       that does not help, open it for writing once";
        return Err(Error::new(ErrorKind::Busy, message).at_path(dir));
    }
    let region = match &control {
        Some(control) if may_be_read(dir, control, &geometry)? => {
            Region::new(Map::new(control, CONTROL_LEN, false).or_os("map", &control_path)?)
        }
        Some(_) => worked_out(dir, &geometry, Loss::Power)?,
        None => worked_out(dir, &geometry, Loss::of(&geometry, this_boot()?))?,
    };
    let mut core = core(dir, options, geometry, filesystem, rights, region);
    core.take_identity(identity);
    core.check_words()?;
    core.check_policy(&options.policy)?;
    Ok(core)
}

/// The log of a reader that had to work out its words, once somebody has opened it for writing:
/// from then on the control file tells more.
fn with_words(before: &Core) -> Option<Core> {
    let dir = &before.dir;
    let control_path = dir.join(CONTROL_NAME);
    let control = dir.open_file(&control_path, OFlags::RDONLY).ok()?;
    let geometry = read_geometry(&control, &control_path).ok()?;
    let map = || Some(Region::new(Map::new(&control, CONTROL_LEN, false).ok()?));
    let is_same = trust::is_same_instance(&control, &geometry, this_boot().ok()?, &map()?).ok()?;
    if !is_same || !may_be_read(dir, &control, &geometry).ok()? {
        return None;
    }
    let options = Options::new().read_only(true);
    let mut core = core(dir, &options, geometry, before.filesystem, before.rights, map()?);
    core.take_identity(identity::load(dir, Some(&control)).ok()?.identity);
    core.check_words().ok()?;
    Some(core)
}

/// The same log with the words of the control file, if its own had to be worked out and there are
/// some by now.
pub(crate) fn taken_up(core: &Core) -> Option<Arc<Core>> {
    let had_none = core.writer.is_none() && core.region.origin().is_none();
    had_none.then(|| with_words(core)).flatten().map(Arc::new)
}

fn core(
    dir: &Dir,
    options: &Options,
    geometry: Geometry,
    filesystem: Filesystem,
    rights: Rights,
    region: Region,
) -> Core {
    let is_staged = geometry.fill == Fill::Staged;
    let commit_path = match is_staged {
        true => commit_path::choose(dir, filesystem, options),
        false => knowledge::commit_path(1),
    };
    Core {
        dir: dir.clone(),
        codec: Codec::new(geometry.secret),
        filesystem,
        rights,
        pieces: Pieces::default(),
        pace: Pace::default(),
        prefault_bytes: options
            .prefault_bytes
            .unwrap_or(PREFAULT_BYTES_DEFAULT)
            .min(geometry.segment_capacity),
        mapped_bytes_max: options.mapped_bytes_max.unwrap_or(MAPPED_BYTES_MAX_DEFAULT),
        timeout: options.timeout,
        on_full: options.on_full,
        staged_segments_max: options.staged_segments_max.unwrap_or(STAGED_SEGMENTS_MAX_DEFAULT),
        on_stage_full: options.on_stage_full,
        trigger: Trigger::new(options.checkpoint_after_bytes),
        stage: is_staged.then(|| Stage::of(dir, filesystem)),
        block: if is_staged { commit_path.block_bytes } else { 1 },
        commit_path,
        recovery: None,
        identity: None,
        epoch: AtomicU64::new(0),
        advice: None,
        geometry,
        options: Box::new(options.clone()),
        watch: Watch::default(),
        last_listing: LastListing::default(),
        writer: None,
        leave: |core, attachment| Writer { core, attachment }.detach(),
        region,
    }
}

fn rights_like(control: &OwnedFd, dir: &Dir) -> rustix::io::Result<Rights> {
    Rights::like(&fs::fstat(control)?, dir)
}

pub(crate) fn open_directory(path: &Path) -> Result<Dir> {
    Dir::open(path).map_err(|errno| match errno {
        Errno::NOTDIR => {
            let message = "not a log: a log is a directory, and this is not one";
            Error::new(ErrorKind::Incompatible, message).at_path(path)
        }
        Errno::NOENT => Error::new(ErrorKind::NotFound, "there is no log").at_path(path),
        errno => Error::os(errno, "open the log's directory", path),
    })
}

impl Options {
    /// Refuses options that contradict what is stored in the log.
    pub(crate) fn check_against(&self, stored: &Geometry, dir: &Dir) -> Result<()> {
        self.check_layout(stored.layout, dir.path())?;
        let contradiction = [
            contradict("layout", self.layout, stored.layout),
            contradict("segment capacity", self.segment_capacity_bytes, stored.segment_capacity),
            contradict("preallocation", self.preallocate, stored.preallocate),
            // Earlier versions made such a log where there was no shared memory to stage in.
            ((self.fill, stored.fill) != (Some(Fill::Staged), Fill::Pwrite))
                .then(|| contradict("fill", self.fill, stored.fill))
                .flatten(),
            contradict("envelopes", self.envelope.map(Presence), Presence(stored.has_envelope)),
        ];
        match contradiction.into_iter().flatten().next() {
            Some(message) => Err(Error::new(ErrorKind::InvalidOption, message).at_path(dir)),
            None => Ok(()),
        }
    }
}

/// Whether a log has something, in words.
#[derive(Clone, Copy, PartialEq)]
struct Presence(bool);

impl std::fmt::Display for Presence {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(if self.0 { "yes" } else { "no" })
    }
}

fn contradict<T: PartialEq + std::fmt::Display>(
    what: &str,
    asked: Option<T>,
    stored: T,
) -> Option<String> {
    let asked = asked.filter(|asked| *asked != stored)?;
    Some(format!("the log was created with {what} {stored}, and {asked} was asked for"))
}
