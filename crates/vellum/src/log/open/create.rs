//! Making what a log is made of before its first segment: the directory, the `lock` file, the
//! geometry and the control file.
//!
//! **If the process dies here**: the names of its files mark a half-made log, and the next creator
//! starts over.

use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::error::OsResult;
use crate::files::Files;
use crate::files::named;
use crate::files::names::{
    CONTROL_NAME, CURRENT_NAME, CURSORS_NAME, GEOMETRY_NAME, LOCK_NAME, LOST_AND_FOUND_NAME,
    RESTORING_NAME, UNFINISHED_COMPRESSED_NAME, UNFINISHED_CONTROL_NAME, UNFINISHED_CURRENT_NAME,
    UNFINISHED_CURSORS_NAME,
};
use crate::files::recover;
use crate::files::recover::positions::{Evidence, Loss, Positions};
use crate::files::rewrite;
use crate::format::control::Geometry;
use crate::format::segment::parse_file_name;
use crate::identity::{Recovery, RecoveryReason};
use crate::log::state::control::{
    self, overwrite_geometry, stored_geometry, sync_log_names, this_boot, write_control,
    write_geometry,
};
use crate::log::state::core::Core;
use crate::log::state::identity::{self, Stored};
use crate::restore::BROKEN_OFF;
use crate::segment::listing::Listing;
use crate::segment::rights::Rights;
use crate::segment::{SPARE_SUFFIX, STAGE_SUFFIX, UNFINISHED_NAME, list, listing, names};
use crate::sys::Dir;
use crate::sys::filesystem::Filesystem;
use crate::{Create, Error, ErrorKind, Fill, Options, Result, knowledge, sys};

/// The remedy for a framed log with options of text logs.
const INSTEAD: &str = "create it with \0layout\0 text";

/// A control file whose words hold.
pub(crate) struct Opened {
    pub(crate) control: OwnedFd,
    pub(crate) geometry: Geometry,
    /// The log with its words, where they were mapped to look at them.
    pub(crate) core: Option<Core>,
    /// The files of a staged log, where they were listed.
    pub(crate) listing: Option<Arc<Listing>>,
    pub(crate) identity: Stored,
    pub(crate) recovery: Option<Recovery>,
    /// How far ahead to make pages ready, where a file advised it.
    pub(crate) prefault_bytes: Option<u64>,
    /// The file that was followed.
    pub(crate) advice: Option<PathBuf>,
}

impl Opened {
    pub(crate) fn new(
        control: OwnedFd,
        geometry: Geometry,
        identity: Stored,
        recovery: Option<Recovery>,
    ) -> Opened {
        let (core, listing, prefault_bytes, advice) = (None, None, None, None);
        Opened { control, geometry, core, listing, identity, recovery, prefault_bytes, advice }
    }
}

/// Refuses options for a new log in `path` before anything is made for it. A process that is faster
/// than this one has them refused once more.
pub(crate) fn check_new(path: &Path, options: &Options) -> Result<()> {
    if named::holds_log(path) {
        return Ok(());
    }
    // Segments that have lost both are refused as such.
    options.check_layout(options.layout.unwrap_or_default(), path, INSTEAD)?;
    options.check_advice(path)
}

/// Refuses a directory in which a restore has not finished.
pub(crate) fn check_not_restoring(dir: &Dir) -> Result<()> {
    if !dir.holds(&dir.join(RESTORING_NAME)) || dir.holds(&dir.join(GEOMETRY_NAME)) {
        return Ok(());
    }
    Err(Error::new(ErrorKind::Busy, BROKEN_OFF).at_path(dir))
}

/// Whether anything of a log is there that its creator does not make anew; a part that cannot be
/// seen may be there.
pub(crate) fn has_parts(dir: &Dir) -> bool {
    let files = [CONTROL_NAME, GEOMETRY_NAME, CURSORS_NAME];
    files.iter().any(|name| dir.holds(&dir.join(name)))
        || !list(dir).is_ok_and(|segments| segments.is_empty())
}

/// Refuses a directory with other things in it, which a user named by mistake.
pub(crate) fn check_is_ours(dir: &Dir, may_create: bool) -> Result<()> {
    let makes_a_log = [CONTROL_NAME, GEOMETRY_NAME];
    // Nearly always; and there may be thousands of names.
    if makes_a_log.iter().any(|name| dir.holds(&dir.join(name))) {
        return Ok(());
    }
    let names = names(dir)?;
    // Another process has made the log since.
    if names.iter().any(|name| makes_a_log.contains(&name.as_str())) {
        return Ok(());
    }
    let is_ours = |name: &String| {
        let others = [
            LOCK_NAME,
            UNFINISHED_CONTROL_NAME,
            UNFINISHED_NAME,
            CURRENT_NAME,
            UNFINISHED_CURRENT_NAME,
            UNFINISHED_COMPRESSED_NAME,
            CURSORS_NAME,
            UNFINISHED_CURSORS_NAME,
            RESTORING_NAME,
            LOST_AND_FOUND_NAME,
        ];
        others.contains(&name.as_str())
            || name.ends_with(SPARE_SUFFIX)
            || name.ends_with(STAGE_SUFFIX)
            || parse_file_name(name).is_some()
    };
    if let Some(stranger) = names.iter().find(|name| !is_ours(name)) {
        let message = format!(
            "not a log: the directory holds {stranger:?} and no control file; name a new or empty \
             directory"
        );
        return Err(Error::new(ErrorKind::Incompatible, message).at_path(dir));
    }
    if !may_create && !names.iter().any(|name| parse_file_name(name).is_some()) {
        return Err(Error::new(ErrorKind::NotFound, "there is no log").at_path(dir));
    }
    Ok(())
}

/// Makes the control file: of a new log, or again from the segments.
pub(crate) fn make_control(
    dir: &Dir,
    options: &Options,
    filesystem: Filesystem,
    is_first: bool,
    mode: u32,
) -> Result<Opened> {
    require_alone(is_first, dir)?;
    if !list(dir)?.is_empty() {
        return make_control_again(dir, options);
    }
    if !options.may_create() {
        return Err(Error::new(ErrorKind::NotFound, "there is no log").at_path(dir));
    }
    options.check_layout(options.layout.unwrap_or_default(), dir.path(), INSTEAD)?;
    let (options, advice) = options.with_room_to_rotate().advised(dir.path(), filesystem)?;
    let geometry = new_geometry(&options, filesystem, this_boot()?);
    let rights = &Rights::of_new_log(dir, mode).or_os("look at", dir)?;
    // Cursors of the log that was here before mean nothing in this one.
    listing::remove(dir, &dir.join(CURSORS_NAME))?;
    let identity = options.new_identity();
    write_geometry(dir, &geometry, &identity, rights)?;
    let positions = Positions::of_new_log(&geometry);
    let control = write_control(dir, &geometry, Some(&identity), positions, rights)?;
    if geometry.is_staged() {
        // Others do this when something is committed first.
        sync_log_names(dir)?;
    }
    let prefault_bytes = options.tuning.prefault_bytes;
    let identity = Stored::both(identity);
    Ok(Opened { prefault_bytes, advice, ..Opened::new(control, geometry, identity, None) })
}

/// Makes the control file of a log that has lost it.
fn make_control_again(dir: &Dir, options: &Options) -> Result<Opened> {
    if options.create == Create::New {
        let message = "there are segments of a log already";
        return Err(Error::new(ErrorKind::AlreadyExists, message).at_path(dir));
    }
    let stored = stored_geometry(dir)?;
    options.check_against(&stored, dir)?;
    let identity = identity::load(dir, None)?;
    options.check_tag(identity.identity.as_ref(), dir)?;
    control::take_as_model(dir, &dir.join(GEOMETRY_NAME))?;
    let geometry = Geometry { boot_id: this_boot()?, ..stored };
    let loss = Loss::of(&stored, geometry.boot_id);
    let evidence = Evidence::without_words(loss, identity.identity.as_ref());
    let files = Files::new(dir, &geometry, Rights::default());
    let listing = Arc::new(Listing::read(dir)?);
    let (positions, listing) = recover::recover(&files, listing, evidence)?;
    if loss == Loss::Power {
        // All of it counts as durable from now on, and may have been copied here a moment ago.
        rewrite::sync_all(dir, &geometry, &listing)?;
    }
    let geometry = Geometry { cut: 0, ..geometry };
    let lost = RecoveryReason::ControlLost;
    let (identity, recovery) =
        identity::after_recovery(dir, None, &geometry, identity, &positions, lost)?;
    overwrite_geometry(dir, &geometry)?;
    let rights = control::rights(dir, 0o600).or_os("look at", dir)?;
    let stored = identity.identity.as_ref();
    let control = write_control(dir, &geometry, stored, positions, &rights)?;
    Ok(Opened::new(control, geometry, identity, Some(recovery)))
}

fn new_geometry(options: &Options, filesystem: Filesystem, boot_id: [u8; 16]) -> Geometry {
    let preallocate = options.tuning.preallocate.unwrap_or_default();
    let fill = options.wanted_fill();
    let fill = fill.unwrap_or_else(|| knowledge::fill(filesystem, preallocate));
    let capacity = options.tuning.segment_capacity_bytes;
    Geometry {
        layout: options.layout.unwrap_or_default(),
        segment_capacity: capacity.unwrap_or_else(|| knowledge::segment_capacity_bytes(fill)),
        preallocate,
        fill,
        has_commits: fill == Fill::Staged,
        cut: 0,
        has_envelope: options.envelope.unwrap_or_default(),
        secret: sys::process::random_u64(),
        boot_id,
    }
}

fn require_alone(is_first: bool, dir: &Dir) -> Result<()> {
    if is_first {
        return Ok(());
    }
    let message = "the control file is missing although processes use the log; restore it, or end \
                   those processes";
    Err(Error::new(ErrorKind::Busy, message).at_path(&dir.join(CONTROL_NAME)))
}
