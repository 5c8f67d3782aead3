//! Which disk lines are for.

use std::path::Path;

use crate::advise::{Disk, Surroundings};
use crate::error::{Error, Result};

/// A disk, as the kernel names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Device {
    /// Such as `vda`, never a partition: limits are for whole disks.
    pub(super) name: String,
    /// `MAJ:MIN`.
    pub(super) number: String,
    /// The one below it that has a queue, for which the kernel has a model of costs; `None` if that
    /// is not one disk.
    pub(super) queued: Option<(String, String)>,
    /// What the filesystem is, and where it is mounted.
    pub(super) filesystem: String,
}

impl Device {
    /// That of the filesystem that was found; a test has another `/sys`.
    pub(super) fn of(found: &Surroundings, sys: &Path) -> Result<Device> {
        let mount = found.filesystem.as_ref().map(|it| it.mount_point.display().to_string());
        let filesystem = match mount {
            Some(mount) => format!("{} on {mount}", found.kind()),
            None => "this directory".to_owned(),
        };
        let first = found.disks.iter().find_map(|disk| Some((disk, disk.number.clone()?)));
        let Some((disk, number)) = first else {
            return Err(Error::unsupported(format!(
                "{filesystem} has no block device, and limits of io.* are for block devices: \
                 choose a directory on a disk"
            )));
        };
        let name = disk.name.clone();
        Ok(Device { queued: queued(&found.disks, sys), name, number, filesystem })
    }
}

/// The first disk, if it has a queue, and else the only one below it that has one.
fn queued(disks: &[Disk], sys: &Path) -> Option<(String, String)> {
    let has_queue = |disk: &&Disk| sys.join("class/block").join(&disk.name).join("mq").is_dir();
    let named = |disk: &Disk| Some((disk.name.clone(), disk.number.clone()?));
    if let Some(first) = disks.first().filter(has_queue) {
        return named(first);
    }
    match disks.iter().filter(has_queue).collect::<Vec<_>>()[..] {
        [only] => named(only),
        _ => None,
    }
}
