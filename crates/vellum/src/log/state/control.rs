//! The control file: reading it, making it, writing it anew.
//!
//! A control file of this boot holds the truth; one of another boot holds nothing but its header.
//! It is then written anew in its place, because a full disk may have no room for another.
//!
//! **If the process dies here**: a new control file gets its name when it is complete. One that is
//! written anew first loses its boot and gets it back last, so the next opener starts over.

use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::io;

use crate::error::OsResult;
use crate::files::geometry::{read_header, with_identity};
use crate::files::names::{CONTROL_NAME, UNFINISHED_CONTROL_NAME};
use crate::files::recover::positions::Positions;
use crate::files::small_file;
use crate::format::control::{self, Geometry};
use crate::format::identity::Identity;
use crate::segment::rights::Rights;
use crate::shared::primitive::Ordering;
use crate::shared::region::{CONTROL_LEN, Origin, Region};
use crate::shared::words::Words;
use crate::sys::{self, Dir};
use crate::{Error, ErrorKind, Result};

pub(crate) use crate::files::geometry::{
    any_geometry, open_geometry, overwrite_geometry, rights, store_geometry, stored_geometry,
    sync_log_names, take_as_model, write_geometry,
};

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
    small_file::write(dir, rights, names, &bytes, "create", |fd| {
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
