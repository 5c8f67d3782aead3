//! The control file and the geometry file: reading them, making them, writing them anew.
//!
//! A control file of this boot holds the truth; one of another boot holds nothing but its header.
//! It is then written anew in its place, because a full disk may have no room for another.
//!
//! **If the process dies here**: a new control file gets its name when it is complete. One that is
//! written anew first loses its boot and gets it back last, so the next opener starts over.

use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::fs::{FileType, OFlags};
use rustix::io::{self, Errno};

use crate::error::OsResult;
use crate::files::names::{CONTROL_NAME, GEOMETRY_NAME, SMALL_LEN_MAX, UNFINISHED_CONTROL_NAME};
use crate::files::recover::positions::Positions;
use crate::format::control::{self, Geometry, HeaderFault};
use crate::format::identity::{IDENTITY_OFFSET, Identity};
use crate::format::{MARKED_VERSION, VERSION};
use crate::log::state::small_file;
use crate::segment::rights::Rights;
use crate::segment::{list, sync_names};
use crate::shared::primitive::Ordering;
use crate::shared::region::{CONTROL_LEN, Origin, Region};
use crate::shared::words::Words;
use crate::sys::{self, Dir};
use crate::{Error, ErrorKind, Result};

/// Writes a complete control file and gives it its name.
pub(crate) fn write_control(
    dir: &Dir,
    geometry: &Geometry,
    identity: Option<&Identity>,
    positions: Positions,
    rights: &Rights,
) -> Result<OwnedFd> {
    let mut bytes = with_identity(geometry, identity);
    // Written, not sparse: a store into the mapping must never need a block.
    bytes.resize(CONTROL_LEN, 0);
    let names = [UNFINISHED_CONTROL_NAME, CONTROL_NAME];
    small_file::write_and(dir, rights, names, &bytes, "create", |fd| {
        store(fd, positions, 0).or_unmapped("map", &dir.join(CONTROL_NAME))
    })
}

/// Writes a control file anew, in its place. Of the words it keeps that `untold` records were
/// dropped.
pub(crate) fn overwrite_control(
    control: &OwnedFd,
    geometry: &Geometry,
    positions: Positions,
    untold: u64,
) -> rustix::io::Result<()> {
    let nowhere = Geometry { boot_id: [0; 16], ..*geometry };
    sys::file::write_all_at(control, &nowhere.to_bytes(), 0)?;
    let words_len = (CONTROL_LEN - control::HEADER_LEN) as u64;
    sys::file::write_zeros_at(control, control::HEADER_LEN as u64, words_len, words_len)?;
    store(control, positions, untold)?;
    sys::file::write_all_at(control, &geometry.to_bytes(), 0)
}

/// Writes a new geometry file.
pub(crate) fn write_geometry(
    dir: &Dir,
    geometry: &Geometry,
    identity: &Identity,
    rights: &Rights,
) -> Result<()> {
    let (names, bytes) =
        ([UNFINISHED_CONTROL_NAME, GEOMETRY_NAME], with_identity(geometry, Some(identity)));
    small_file::write(dir, rights, names, &bytes, "create").map(drop)
}

/// Gives a complete geometry file, under the unfinished name, its own.
pub(crate) fn name_geometry(dir: &Dir, fd: &OwnedFd) -> Result<()> {
    let target = dir.join(GEOMETRY_NAME);
    sys::sync::sync(fd).or_os("sync", &target)?;
    dir.rename(&dir.join(UNFINISHED_CONTROL_NAME), &target).or_os("name", &target)
}

/// The first bytes of the control file or the geometry file.
fn with_identity(geometry: &Geometry, identity: Option<&Identity>) -> Vec<u8> {
    let mut bytes = geometry.to_bytes();
    bytes.resize(IDENTITY_OFFSET, 0);
    bytes.extend(identity.iter().flat_map(|identity| identity.to_bytes()));
    bytes
}

/// Changes the geometry file in its place, durably: it is within one sector.
pub(crate) fn overwrite_geometry(dir: &Dir, geometry: &Geometry) -> Result<()> {
    let (fd, path) = (open_geometry(dir)?, dir.join(GEOMETRY_NAME));
    store_geometry(&fd, geometry).or_os("write", &path)?;
    sys::sync::sync_data(&fd).or_unsynced("write", &path)
}

/// Changes the geometry file; the caller syncs it.
pub(crate) fn store_geometry(fd: &OwnedFd, geometry: &Geometry) -> io::Result<()> {
    sys::file::write_all_at(fd, &geometry.to_bytes(), 0)
}

/// Opens the geometry file to change it, and makes it where it is gone.
pub(crate) fn open_geometry(dir: &Dir) -> Result<OwnedFd> {
    let path = dir.join(GEOMETRY_NAME);
    match dir.open_file(&path, OFlags::RDWR) {
        Err(Errno::NOENT) => {
            let rights = rights(dir, 0o600).or_os("look at", dir)?;
            rights.create(dir, &path, "create the geometry file")
        }
        answer => answer.or_os("open", &path),
    }
}

/// Whose the files of the log are, if there is one: its control file tells, or else its geometry
/// file. A new one gets the permission bits of `mode`.
pub(crate) fn rights(dir: &Dir, mode: u32) -> rustix::io::Result<Rights> {
    for name in [CONTROL_NAME, GEOMETRY_NAME] {
        match dir.stat(&dir.join(name)) {
            Ok(file) if FileType::from_raw_mode(file.st_mode) == FileType::RegularFile => {
                return Rights::like(&file, dir);
            }
            // An entry that is no file is refused when it is opened.
            Ok(_) | Err(Errno::NOENT) => {}
            Err(errno) => return Err(errno),
        }
    }
    Rights::of_new_log(dir, mode)
}

/// Stores what a log goes on from into the words of a control file that nobody uses yet.
fn store(control: &OwnedFd, positions: Positions, untold: u64) -> rustix::io::Result<()> {
    let region = Region::map(control, true)?;
    store_positions(positions, region.words());
    region.words().full.set_untold(untold);
    region.origin().map_or(Ok(()), |origin| origin.settle(control))
}

/// Stores where the log begins and ends into its words.
pub(crate) fn store_positions(positions: Positions, words: &Words) {
    let Positions { begin, durable, tail, staged_from, allocated_end, checkpoint, .. } = positions;
    words.set_space(begin, tail, allocated_end);
    words.commits.set_ends(durable, checkpoint, staged_from);
}

/// The geometry from a control file, refusing whatever is none.
pub(crate) fn read_geometry(control: &OwnedFd, path: &Path) -> Result<Geometry> {
    let len = sys::file::len(control).or_os("look at", path)?;
    let geometry = read_header(control, path)?;
    if len != CONTROL_LEN as u64 {
        let message = format!(
            "the control file has {len} bytes instead of {CONTROL_LEN}; when no process uses the \
             log, remove it to have it rebuilt from the segments"
        );
        return Err(Error::new(ErrorKind::Corrupt, message).at_path(path));
    }
    Ok(geometry)
}

/// The geometry from the first bytes of a control file, however long it is.
fn read_header(control: &OwnedFd, path: &Path) -> Result<Geometry> {
    let mut bytes = vec![0; control::HEADER_LEN];
    let count = sys::file::read_up_to_at(control, &mut bytes, 0).or_os("read", path)?;
    Geometry::parse(&bytes[..count]).map_err(|fault| header_error(fault, path))
}

/// The geometry from its own file, or from the control file where that one is gone or damaged. The
/// file that it is from becomes the model of the others.
pub(crate) fn any_geometry(dir: &Dir) -> Result<Geometry> {
    let from_control = |error| {
        let path = dir.join(CONTROL_NAME);
        let control = dir.open_file(&path, OFlags::RDONLY).ok();
        let geometry = control.and_then(|control| read_header(&control, &path).ok());
        geometry.map(|geometry| (geometry, path)).ok_or(error)
    };
    let stored = stored_geometry(dir).map(|geometry| (geometry, dir.join(GEOMETRY_NAME)));
    let (geometry, path) = stored.or_else(from_control)?;
    take_as_model(dir, &path)?;
    Ok(geometry)
}

/// Gives a file that was found to be the log's the permissions of the others.
pub(crate) fn take_as_model(dir: &Dir, path: &Path) -> Result<()> {
    let file = dir.open_file(path, OFlags::RDONLY).or_os("open", path)?;
    dir.set_model(path, &file).or_os("look at", path)
}

/// The geometry from its own file, where the control file is gone.
pub(crate) fn stored_geometry(dir: &Dir) -> Result<Geometry> {
    let path = dir.join(GEOMETRY_NAME);
    match dir.read(&path, SMALL_LEN_MAX) {
        Ok(bytes) => Geometry::parse(&bytes).map_err(|fault| header_error(fault, &path)),
        Err(Errno::NOENT) => {
            if list(dir)?.is_empty() {
                return Err(Error::new(ErrorKind::NotFound, "there is no log").at_path(dir));
            }
            let message = "the directory holds segments but neither the control file nor the \
                           geometry file; restore one of them";
            Err(Error::new(ErrorKind::Corrupt, message).at_path(&path))
        }
        Err(errno) => Err(Error::os(errno, "read", &path)),
    }
}

fn header_error(fault: HeaderFault, path: &Path) -> Error {
    let (kind, message) = match fault {
        HeaderFault::NotAControlFile => {
            (ErrorKind::Incompatible, "not a log: the file is not Vellum's".to_string())
        }
        HeaderFault::Version(version) => {
            let message = format!(
                "the log has format version {version}; this library reads versions {VERSION} and \
                 {MARKED_VERSION}"
            );
            (ErrorKind::Incompatible, message)
        }
        HeaderFault::Marks(marks) => {
            let message = format!(
                "the log was created with features ({marks:#x}) that this library does not know; \
                 use the version that made it, or a later one"
            );
            (ErrorKind::Incompatible, message)
        }
        HeaderFault::Damaged => (
            ErrorKind::Corrupt,
            "the header is damaged; when no process uses the log, remove the control file to have \
             it rebuilt"
                .to_string(),
        ),
    };
    Error::new(kind, message).at_path(path)
}

/// Makes the names in the log's directory durable, and its own.
pub(crate) fn sync_log_names(dir: &Dir) -> Result<()> {
    sync_names(dir)?;
    let what = "sync the name of the log's directory";
    dir.sync_own_name(dir.open_parent().or_os(what, dir)?.as_ref()).or_unsynced(what, dir)
}

/// The id of the boot that the kernel is in now, or zeros where it does not tell.
pub(crate) fn this_boot() -> Result<[u8; 16]> {
    sys::process::boot_id().or_os("read", sys::process::BOOT_ID_PATH)
}

impl Origin {
    /// Notes which file the words are in; no process uses it yet.
    pub(crate) fn settle(&self, control: &OwnedFd) -> io::Result<()> {
        let status = rustix::fs::fstat(control)?;
        self.closed_at.store(0, Ordering::Relaxed);
        self.device.store(status.st_dev, Ordering::Relaxed);
        self.inode.store(status.st_ino, Ordering::Relaxed);
        Ok(())
    }

    /// Takes back that the log is closed; the caller is the first to open it.
    pub(crate) fn reopen(&self) {
        self.closed_at.store(0, Ordering::SeqCst);
    }
}
