//! Opening and joining a log; `create` makes a new one.
//!
//! All of it happens under an exclusive lock on the gate byte of the `lock` file, which the kernel
//! releases when its holder dies; so two creators make one log, and a creator killed half-way is
//! followed by another that starts over. The control file gets its name when it is complete.
//!
//! Readers without write permission cannot open the `lock` file, so they cannot hold the gate, nor
//! a participant's byte, against any process. They read the control file and the segments alone.

use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::{OFlags, rmdir};
use rustix::io::Errno;

use crate::error::OsResult;
use crate::files::Files;
use crate::files::directory::{make_directory, open_directory};
use crate::files::named;
use crate::files::names::{CONTROL_NAME, GEOMETRY_NAME, LOCK_NAME, UNFINISHED_CONTROL_NAME};
use crate::files::recover;
use crate::files::recover::positions::{Evidence, Loss};
use crate::files::rewrite;
use crate::format::control::Geometry;
use crate::identity::RecoveryReason;
use crate::log::append::Appender;
use crate::log::keep::cursors::file::CursorFile;
use crate::log::keep::retention;
use crate::log::layout::text::{self, TextWriter, policy};
use crate::log::open::agreement::Cache;
use crate::log::open::create::{
    Opened, check_is_ours, check_new, check_not_restoring, has_parts, make_control,
};
use crate::log::open::parts::{chosen, rights_like};
use crate::log::open::reading::open_read_only;
use crate::log::open::{behind_newest, leave, words_check};
use crate::log::ready::stage;
use crate::log::repair::pad;
use crate::log::state::attachment::Attachment;
use crate::log::state::control::{
    self, overwrite_control, overwrite_geometry, read_geometry, stored_geometry, this_boot,
};
use crate::log::state::core::{Core, Participation, core_with};
use crate::log::state::gate::Gate;
use crate::log::state::identity::{self, Stored};
use crate::log::state::poison;
use crate::log::state::watch::Watch;
use crate::options::policy::PolicyUpdate;
use crate::segment::listing::Listing;
use crate::segment::rights::Rights;
use crate::shared::region::Region;
use crate::shared::{commit, tail_word};
use crate::sys::filesystem::Filesystem;
use crate::sys::fork::PerProcess;
use crate::sys::{Dir, residence};
use crate::{Create, Error, ErrorKind, Options, Result, knowledge};

/// Opens the log that `path` names as `options` say.
pub(crate) fn open(path: &Path, options: &Options) -> Result<Core> {
    open_in(&named::directory(path, options.makes_link()), options)
}

/// Opens the log in `dir`.
pub(crate) fn open_in(dir: &Path, options: &Options) -> Result<Core> {
    options.check()?;
    if options.read_only {
        return open_read_only(dir, options);
    }
    let core = open_for_writing(dir, options)?;
    if options.makes_link() {
        named::make_link(dir);
    }
    Ok(core)
}

fn open_for_writing(path: &Path, options: &Options) -> Result<Core> {
    let entered = Entered::enter(path, options)?;
    let opened = entered.open_or_make(options).map_err(|error| entered.leave_nothing(error))?;
    let mut core = entered.core(options, opened)?;
    entered.attach(&mut core)?;
    first_tasks(&core, &options.policy)?;
    Ok(core)
}

/// The directory of a log, and the gate, which this process holds alone.
struct Entered {
    dir: Dir,
    filesystem: Filesystem,
    /// For new files.
    mode: u32,
    lock_file: OwnedFd,
    gate: Gate,
    /// Whether no process has the log open.
    is_first: bool,
    /// The files and directories that were made before the log itself.
    made: Made,
}

/// The parts that this process has made of a log that may not be completed.
#[derive(Default)]
struct Made {
    directory: Option<PathBuf>,
    lock: bool,
    /// Whether nothing else of a log was there.
    is_all: bool,
}

impl Entered {
    fn enter(path: &Path, options: &Options) -> Result<Entered> {
        let mode = options.mode.unwrap_or(0o666);
        let may_create = options.may_create();
        let mut made = Made::default();
        if may_create {
            check_new(path, options)?;
            made.directory = make_directory(path, mode)?;
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
        let (lock_file, gate) = loop {
            made.lock = !dir.holds(&lock_path);
            let lock_file = rights.open_lock(&dir, &lock_path, !options.needs_lock);
            let lock_file = lock_file.or_os("open", &lock_path)?;
            let gate = Gate::enter(&dir)?;
            if gate.is_of(&lock_file, &dir).or_os("look at", &lock_path)? {
                break (lock_file, gate);
            }
        };
        let is_first = gate.is_alone().or_os("lock", &lock_path)?;
        made.is_all = is_first && !has_parts(&dir);
        Ok(Entered { dir, filesystem, mode, lock_file, gate, is_first, made })
    }

    /// A control file whose words hold: the one that is there, or a new one.
    fn open_or_make(&self, options: &Options) -> Result<Opened> {
        let (dir, control_path) = (&self.dir, self.dir.join(CONTROL_NAME));
        match dir.open_file(&control_path, OFlags::RDWR) {
            Ok(_) if options.create == Create::New => {
                let message = "there is a log already";
                Err(Error::new(ErrorKind::AlreadyExists, message).at_path(dir))
            }
            Ok(control) => open_existing(dir, options, control, self.is_first),
            Err(Errno::NOENT) => {
                make_control(dir, options, self.filesystem, self.is_first, self.mode)
            }
            Err(errno) => Err(Error::os(errno, "open the control file", &control_path)),
        }
    }

    /// Removes what was made of a new log that could not be made, and tells why it could not.
    fn leave_nothing(&self, error: Error) -> Error {
        if !self.made.is_all {
            return error;
        }
        let made = [UNFINISHED_CONTROL_NAME, CONTROL_NAME, GEOMETRY_NAME];
        let lock = self.made.lock.then_some(LOCK_NAME);
        for name in made.into_iter().chain(lock) {
            let _ = self.dir.unlink(&self.dir.join(name));
        }
        if let Some(directory) = &self.made.directory {
            let _ = rmdir(directory);
        }
        if self.filesystem == Filesystem::Fuse { error.on_fuse() } else { error }
    }

    /// The log, with its words mapped.
    fn core(&self, options: &Options, opened: Opened) -> Result<Core> {
        let Opened { control, geometry, identity, recovery, .. } = opened;
        let (dir, control_path) = (&self.dir, self.dir.join(CONTROL_NAME));
        dir.set_model(&control_path, &control).or_os("look at", &control_path)?;
        let identity = identity::settle(dir, &control, &geometry, identity)?;
        let rights = rights_like(&control, dir).or_os("look at", &control_path)?;
        let map = || Region::map(&control, true).or_unmapped("map", &control_path);
        let core = match opened.core {
            Some(core) => core,
            None => core_with(dir, &geometry, map()?),
        };
        let mut options = options.clone();
        options.tuning.prefault_bytes = options.tuning.prefault_bytes.or(opened.prefault_bytes);
        let mut core = chosen(core, &options, self.filesystem, rights);
        (core.opened.recovery, core.opened.advice) = (recovery, opened.advice);
        identity::take(&mut core, identity);
        core.watch = Watch::new(&control, &self.lock_file).or_os("look at", &control_path)?;
        core.check_words()?;
        core.check_begin()?;
        stage::join(&core, self.is_first, opened.listing)?;
        if self.is_first {
            residence::mark(&control);
        }
        Ok(core)
    }

    /// Makes this process a participant, and lets others through the gate.
    fn attach(self, core: &mut Core) -> Result<()> {
        if self.is_first {
            // A truncation may not have come that far, or older segments were restored. Users of
            // the cursors get the error of a file that cannot be read.
            let _ = CursorFile::of(core).clamp_cursors(tail_word::tail(core.words()));
            core.region.origin().iter().for_each(|origin| origin.reopen());
            self.gate.let_in().or_os("unlock", &self.dir.join(LOCK_NAME))?;
        }
        let attachment =
            Attachment::attach(&self.dir, core.words(), self.lock_file, &core.choices.options)?;
        drop(self.gate);
        let attachment = PerProcess::new(attachment).or_os("notice forks from", &self.dir)?;
        core.writer = Some(Participation { attachment, leave: Some(leave::detach) });
        Ok(())
    }
}

/// The first tasks of a participant: it joins the policy, tidies up and makes space ready.
fn first_tasks(core: &Core, policy: &PolicyUpdate) -> Result<()> {
    policy::join(core.writer()?, policy)?;
    TextWriter::of(core.writer()?).check_link();
    pad::repair_with_space(core.writer()?)?;
    poison::check(core)?;
    text::TextLog::of(core).remove_unfinished_compression();
    retention::tidy(core.writer()?);
    // Perhaps a user has made space, and started this process for that reason.
    core.words().full.open_way();
    Appender::of(core.writer()?).prepare_first();
    Ok(())
}

/// Opens a log that has a control file, and recovers it where its words do not hold.
fn open_existing(dir: &Dir, options: &Options, control: OwnedFd, is_first: bool) -> Result<Opened> {
    let path = dir.join(CONTROL_NAME);
    let geometry = read_geometry(&control, &path)?;
    dir.set_model(&path, &control).or_os("look at", &path)?;
    options.check_against(&geometry, dir)?;
    let identity = identity::load(dir, Some(&control))?;
    options.check_tag(identity.identity.as_ref(), dir)?;
    if !is_first {
        return Ok(Opened::new(control, geometry, identity, None));
    }
    let region = Region::map(&control, true).or_unmapped("map", &path)?;
    let boot_id = this_boot()?;
    let loss = words_check::loss(&control, &geometry, boot_id, &region).or_os("look at", &path)?;
    let is_poisoned = commit::is_poisoned(&region.words().commits);
    if is_poisoned {
        // Before anything is removed or given out because of the notes.
        rewrite::notes(dir, &geometry)?;
    }
    let core = Arc::new(core_with(dir, &geometry, region));
    let listing = Arc::new(Listing::read(dir)?);
    let loss = match loss {
        // No other process is here, so the truncating one has died.
        None if identity.is_being_cut => Some(RecoveryReason::Truncation),
        None => loss_of_words(&core, &listing, &control)?,
        loss => loss,
    };
    match loss {
        None => continue_from_words(core, listing, control, identity),
        Some(reason) => {
            let lost = Lost { reason, is_poisoned };
            recover_from_files(&core, &listing, control, identity, lost)
        }
    }
}

/// Opens a log whose words hold.
fn continue_from_words(
    core: Arc<Core>,
    listing: Arc<Listing>,
    control: OwnedFd,
    identity: Stored,
) -> Result<Opened> {
    let (geometry, words) = (core.files.geometry, core.words());
    if behind_newest::lacks_newest(&core, &listing) {
        let positions = behind_newest::find_end(&core, &listing)?;
        overwrite_control(&control, &geometry, positions, words.full.untold())
            .or_os("write", &core.files.dir.join(CONTROL_NAME))?;
    } else if core.commits.stage.is_some() {
        // Groups that were on their way to the device are in the stage still, and are written
        // again. No process takes over the lanes of the dead: their words may be older than
        // `durable`.
        commit::reset(&words.commits, commit::durable(&words.commits));
    }
    // No file of a staged log has been changed.
    let listing = core.commits.stage.is_some().then_some(listing);
    let core = Arc::into_inner(core);
    Ok(Opened { core, listing, ..Opened::new(control, geometry, identity, None) })
}

/// Why words do not hold, and whether the log had failed.
struct Lost {
    reason: RecoveryReason,
    is_poisoned: bool,
}

/// Recovers a log from its files.
fn recover_from_files(
    core: &Arc<Core>,
    listing: &Arc<Listing>,
    control: OwnedFd,
    identity: Stored,
    lost: Lost,
) -> Result<Opened> {
    let (dir, path) = (&core.files.dir, core.files.dir.join(CONTROL_NAME));
    let reserved = match lost.reason {
        RecoveryReason::Reboot | RecoveryReason::Moved => words_check::reserved(core, listing)?,
        _ => Vec::new(),
    };
    // The notes that are newer than the header of the control file, if the file is there.
    let noted =
        stored_geometry(dir).unwrap_or(Geometry { has_commits: true, ..core.files.geometry });
    let geometry = Geometry { boot_id: this_boot()?, ..noted };
    let evidence = Evidence::new(Loss::Power, identity.identity.as_ref(), &reserved);
    let files = Files::new(dir, &geometry, Rights::default());
    let (positions, listing) = recover::recover(&files, Arc::clone(listing), evidence)?;
    if lost.is_poisoned {
        // After a failed sync. Committed records of a staged log had been written directly.
        let from = if geometry.is_staged() { positions.recovered.durable } else { positions.begin };
        rewrite::records(dir, &geometry, from, positions.tail)?;
    }
    // All of it counts as durable from now on, and may have been copied here a moment ago.
    rewrite::sync_all(dir, &geometry, &listing)?;
    let geometry = Geometry { cut: 0, ..geometry };
    // Before the words count, and positions are given out by them.
    let (identity, recovery) = identity::after_recovery(
        dir,
        Some(&control),
        &geometry,
        identity,
        &positions,
        lost.reason,
    )?;
    overwrite_control(&control, &geometry, positions, 0).or_os("write", &path)?;
    overwrite_geometry(dir, &geometry)?;
    Ok(Opened::new(control, geometry, identity, Some(recovery)))
}

/// Why words of this boot and file do not hold, if they do not: the stage is gone, the page cache
/// cannot be believed after a failed sync, or the segments say something else.
fn loss_of_words(
    core: &Arc<Core>,
    listing: &Arc<Listing>,
    control: &OwnedFd,
) -> Result<Option<RecoveryReason>> {
    let (dir, geometry, words) = (&core.files.dir, &core.files.geometry, core.words());
    let is_staged = geometry.is_staged();
    if is_staged && stage::is_lost(dir, geometry, words)? {
        return Ok(Some(RecoveryReason::StageLost));
    }
    if !is_staged && commit::is_poisoned(&words.commits) {
        return Ok(Some(RecoveryReason::Poisoned));
    }
    let cache = if residence::is_marked(control) { Cache::Kept } else { Cache::Unknown };
    Ok((!words_check::agree(core, listing, cache)?).then_some(RecoveryReason::Disagreement))
}
