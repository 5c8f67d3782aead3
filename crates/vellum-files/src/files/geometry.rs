//! The geometry file, and code that it shares with the control file: reading the two, making them,
//! finding their owner.
//!
//! **If the process dies here**: a new file gets its name when it is complete. A change in its
//! place is within one sector.

use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::fs::{FileType, OFlags};
use rustix::io::{self, Errno};

use crate::error::OsResult;
use crate::files::names::{CONTROL_NAME, GEOMETRY_NAME, SMALL_LEN_MAX, UNFINISHED_CONTROL_NAME};
use crate::files::small_file;
use crate::format::control::{self, Geometry, HeaderFault};
use crate::format::identity::{IDENTITY_OFFSET, Identity};
use crate::format::{MARKED_VERSION, VERSION};
use crate::segment::rights::Rights;
use crate::segment::{list, sync_names};
use crate::sys::{self, Dir};
use crate::{Error, ErrorKind, Result};

/// Writes a new geometry file.
pub fn write_geometry(
    dir: &Dir,
    geometry: &Geometry,
    identity: &Identity,
    rights: &Rights,
) -> Result<()> {
    let (names, bytes) =
        ([UNFINISHED_CONTROL_NAME, GEOMETRY_NAME], with_identity(geometry, Some(identity)));
    small_file::write(dir, rights, names, &bytes, "create", |_| Ok(())).map(drop)
}

/// Gives a complete geometry file, under the unfinished name, its own.
pub fn name_geometry(dir: &Dir, fd: &OwnedFd) -> Result<()> {
    let target = dir.join(GEOMETRY_NAME);
    sys::sync::sync(fd).or_os("sync", &target)?;
    dir.rename(&dir.join(UNFINISHED_CONTROL_NAME), &target).or_os("name", &target)
}

/// The first bytes of the control file or the geometry file.
pub fn with_identity(geometry: &Geometry, identity: Option<&Identity>) -> Vec<u8> {
    let mut bytes = geometry.to_bytes();
    bytes.resize(IDENTITY_OFFSET, 0);
    bytes.extend(identity.iter().flat_map(|identity| identity.to_bytes()));
    bytes
}

/// Changes the geometry file in its place, durably: it is within one sector.
pub fn overwrite_geometry(dir: &Dir, geometry: &Geometry) -> Result<()> {
    let (fd, path) = (open_geometry(dir)?, dir.join(GEOMETRY_NAME));
    store_geometry(&fd, geometry).or_os("write", &path)?;
    sys::sync::sync_data(&fd).or_unsynced("write", &path)
}

/// Changes the geometry file; the caller syncs it.
pub fn store_geometry(fd: &OwnedFd, geometry: &Geometry) -> io::Result<()> {
    sys::file::write_all_at(fd, &geometry.to_bytes(), 0)
}

/// Opens the geometry file to change it, and makes it where it is gone.
pub fn open_geometry(dir: &Dir) -> Result<OwnedFd> {
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
pub fn rights(dir: &Dir, mode: u32) -> rustix::io::Result<Rights> {
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

/// The geometry from the first bytes of a control file, however long it is.
pub fn read_header(control: &OwnedFd, path: &Path) -> Result<Geometry> {
    let mut bytes = vec![0; control::HEADER_LEN];
    let count = sys::file::read_up_to_at(control, &mut bytes, 0).or_os("read", path)?;
    Geometry::parse(&bytes[..count]).map_err(|fault| header_error(fault, path))
}

/// The geometry from its own file, or from the control file where that one is gone or damaged. The
/// file that it is from becomes the model of the others.
pub fn any_geometry(dir: &Dir) -> Result<Geometry> {
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

/// Has a file that was found to be the log's show whom the others let in.
pub fn take_as_model(dir: &Dir, path: &Path) -> Result<()> {
    let file = dir.open_file(path, OFlags::RDONLY).or_os("open", path)?;
    dir.set_model(path, &file).or_os("look at", path)
}

/// The geometry from its own file, where the control file is gone.
pub fn stored_geometry(dir: &Dir) -> Result<Geometry> {
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
pub fn sync_log_names(dir: &Dir) -> Result<()> {
    sync_names(dir)?;
    let what = "sync the name of the log's directory";
    let (parent, names) =
        (dir.open_parent().or_os(what, dir)?, dir.names_to_sync().or_os(what, dir)?);
    names.sync_own(parent.as_ref()).or_unsynced(what, dir)
}
