//! Opening a log to read it, which changes nothing and takes no lock.

use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::Arc;

use rustix::fs::OFlags;
use rustix::io::Errno;

use crate::error::OsResult;
use crate::files::Files;
use crate::files::directory::open_directory;
use crate::files::names::CONTROL_NAME;
use crate::files::recover;
use crate::files::recover::positions::{Evidence, Loss, Positions};
use crate::format::control::{Geometry, HEADER_LEN};
use crate::format::identity::Identity;
use crate::log::open::create::check_not_restoring;
use crate::log::open::parts::{chosen, rights_like};
use crate::log::open::words_check;
use crate::log::ready::stage;
use crate::log::state::control::{read_geometry, store_positions, stored_geometry, this_boot};
use crate::log::state::core::{Core, core_with};
use crate::log::state::gate;
use crate::log::state::identity::{self, Stored};
use crate::segment::kept::KeptFiles;
use crate::segment::list;
use crate::segment::listing::Listing;
use crate::segment::rights::Rights;
use crate::shared::region::Region;
use crate::shared::tail_word;
use crate::sys::fork::PerProcess;
use crate::sys::{self, Dir};
use crate::{Error, ErrorKind, Options, Result};

pub(crate) fn open_read_only(path: &Path, options: &Options) -> Result<Core> {
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
    let Stored { identity, is_being_cut, .. } = identity::load(dir, control.as_ref())?;
    options.check_tag(identity.as_ref(), dir)?;
    if is_being_cut {
        let message = "the log is being truncated, or somebody died doing so; try again, and if \
                       that does not help, open it for writing once";
        return Err(Error::new(ErrorKind::Busy, message).at_path(dir));
    }
    let tail_word = control.as_ref().map(|control| tail_word_in(dir, control)).transpose()?;
    let region = match &control {
        Some(control) if may_be_read(dir, control, &geometry)? => {
            Region::map(control, false).or_unmapped("map", &control_path)?
        }
        Some(_) => worked_out(dir, &geometry, Loss::Power, identity.as_ref())?,
        None => {
            let loss = Loss::of(&geometry, this_boot()?);
            worked_out(dir, &geometry, loss, identity.as_ref())?
        }
    };
    let mut core = chosen(core_with(dir, &geometry, region), options, filesystem, rights);
    identity::take(&mut core, identity);
    core.watch.tail_word = tail_word.unwrap_or_default();
    // For want of memory each record takes opening its file.
    core.opened.kept_files = PerProcess::new(KeptFiles::default()).ok();
    core.check_words()?;
    core.check_begin()?;
    Ok(core)
}

/// The log of a reader whose words are not those of its control file, or no longer: once a process
/// has opened it for writing, that file has newer words.
fn with_words(before: &Core) -> Option<Core> {
    let dir = &before.files.dir;
    let control_path = dir.join(CONTROL_NAME);
    let control = dir.open_file(&control_path, OFlags::RDONLY).ok()?;
    let geometry = read_geometry(&control, &control_path).ok()?;
    let region = Region::map(&control, false).ok()?;
    // A process that has changed it since this one looked runs now, whatever its boot is called.
    let is_written =
        tail_word::raw(region.words()) != before.watch.tail_word && geometry.boot_id != [0; 16];
    if !is_written && !may_be_read(dir, &control, &geometry).ok()? {
        return None;
    }
    let options = Options::default().read_only(true);
    let (filesystem, rights) = (before.ready.filesystem, before.files.rights);
    let mut core = chosen(core_with(dir, &geometry, region), &options, filesystem, rights);
    identity::take(&mut core, identity::load(dir, Some(&control)).ok()?.identity);
    core.check_words().ok()?;
    let id = |core: &Core| core.opened.identity.as_ref().map(|identity| identity.id);
    (id(before).is_none() || id(before) == id(&core)).then_some(core)
}

/// The same log with the words of the control file, for a reader that had to work them out, or that
/// has mapped another file.
pub(crate) fn taken_up(core: &Core) -> Option<Arc<Core>> {
    let is_behind = core.writer.is_none()
        && match core.region.origin() {
            None => true,
            Some(_) => core.watch.is_due() && has_another_file(core),
        };
    is_behind.then(|| with_words(core)).flatten().map(Arc::new)
}

/// Whether the control file is not the one that is mapped, although it has the number of that. The
/// first process that opens a file of an overlay for writing gets a copy, and others keep their
/// mappings.
fn has_another_file(core: &Core) -> bool {
    let control = core.files.dir.open_file(&core.files.dir.join(CONTROL_NAME), OFlags::RDONLY);
    let Ok(Ok(named)) = control.map(|control| tail_word_in(&core.files.dir, &control)) else {
        return false;
    };
    // Read afterwards: the tail of one file only grows, or another epoch begins.
    named > tail_word::raw(core.words())
}

/// The tail word in a control file, which is the first of its words.
fn tail_word_in(dir: &Dir, control: &OwnedFd) -> Result<u64> {
    let mut bytes = [0; size_of::<u64>()];
    sys::file::read_up_to_at(control, &mut bytes, HEADER_LEN as u64)
        .or_os("read", &dir.join(CONTROL_NAME))?;
    Ok(u64::from_ne_bytes(bytes))
}

/// Whether words may be read without a living participant to confirm them.
fn may_be_read(dir: &Dir, control: &OwnedFd, geometry: &Geometry) -> Result<bool> {
    let path = dir.join(CONTROL_NAME);
    let region = Region::map(control, false).or_unmapped("map", &path)?;
    if stage::is_lost(dir, geometry, region.words())? {
        return Ok(false);
    }
    if gate::is_somebody_present(dir) {
        return Ok(true);
    }
    let loss = words_check::loss(control, geometry, this_boot()?, &region);
    let is_same = loss.or_os("look at", &path)?.is_none();
    let core = core_with(dir, geometry, region);
    Ok(is_same && words_check::agree_for_reading(&Arc::new(core))?)
}

/// The words of a log that has lost them, worked out for one reader alone from the segments as
/// they are.
fn worked_out(
    dir: &Dir,
    geometry: &Geometry,
    loss: Loss,
    identity: Option<&Identity>,
) -> Result<Region> {
    let region = Region::on_heap();
    let evidence = Evidence::without_words(loss, identity);
    let files = Files::new(dir, geometry, Rights::default());
    let (found, _) = recover::find_end(&files, &Arc::new(Listing::read(dir)?), evidence)?;
    // A process that may change nothing has synced nothing: only a commit record vouches for
    // durable records.
    let durable = match geometry.layout.has_commit_records() {
        true => found.recovered.durable,
        false => found.begin,
    };
    store_positions(Positions { durable, ..found }, region.words());
    Ok(region)
}
