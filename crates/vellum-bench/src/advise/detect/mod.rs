//! What there is around a directory that has a say in how to write there: filesystem, mount,
//! devices and what they stand on, what the kernel can do, memory, cores.
//!
//! Mounts come from `mountinfo` and devices from `/sys`; what the kernel can do here is tried, in a
//! directory on the filesystem of interest, since what a kernel knows and what a filesystem can do
//! are two things. What can't be found out is empty, never a reason not to advise.

use std::fs;
use std::path::{Path, PathBuf};

use serde::Serialize;
use vellum_command::text::bytes;

use crate::conditions::{Filesystem, memory_bytes, mount};
use crate::error::{Context, Result};

mod disk;
mod feature;
mod limits;

pub use disk::Disk;
pub use feature::Feature;
pub use limits::IoLimit;

/// What there is around a directory.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Surroundings {
    /// The filesystem of the directory.
    pub filesystem: Option<Filesystem>,
    /// For an overlay, the filesystem that is written to.
    pub upper_filesystem: Option<Filesystem>,
    /// The devices of that filesystem, each above those that it stands on.
    pub disks: Vec<Disk>,
    /// What the control groups of this process allow it to write to them.
    pub limits: Vec<IoLimit>,
    /// Is copy-on-write switched off for new files? `None` where there is no such thing.
    pub is_nocow: Option<bool>,
    /// The size of the filesystem.
    pub total_bytes: u64,
    /// What may still be written by this user.
    pub free_bytes: u64,
    /// What the kernel can do here.
    pub features: Vec<Feature>,
    /// What positions, lengths and memory of direct writes must be a multiple of.
    pub direct_alignment_bytes: Option<u32>,
    /// The memory of the machine.
    pub memory_bytes: Option<u64>,
    /// What of it can be had.
    pub memory_available_bytes: Option<u64>,
    /// The cores that this process may use.
    pub cores: usize,
}

impl Surroundings {
    /// Of the empty directory `dir`, in which files are made and removed.
    pub(crate) fn of(dir: &Path) -> Result<Surroundings> {
        // Files are made by the path that was given: the other may lead elsewhere by then.
        let place = dir.canonicalize().context(|| format!("find {}", dir.display()))?;
        let mountinfo = fs::read_to_string("/proc/thread-self/mountinfo").unwrap_or_default();
        let mut found = mounts_and_disks(&place, &mountinfo, Path::new("/sys"));
        let groups = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
        found.limits = limits::limits(Path::new("/sys/fs/cgroup"), &groups, &found.disks);
        let stat = rustix::fs::statvfs(dir)
            .context(|| format!("ask for the free space of {}", dir.display()))?;
        found.total_bytes = stat.f_blocks.saturating_mul(stat.f_frsize);
        found.free_bytes = stat.f_bavail.saturating_mul(stat.f_frsize);
        found.is_nocow = found.is_kind(&["btrfs"]).then(|| is_nocow(dir));
        found.features = feature::probe(dir)?;
        found.direct_alignment_bytes = feature::direct_alignment(dir);
        found.memory_bytes = memory_bytes("MemTotal");
        found.memory_available_bytes = memory_bytes("MemAvailable");
        found.cores = std::thread::available_parallelism().map_or(1, usize::from);
        Ok(found)
    }

    /// For people, in a few lines; what is not known is left out.
    pub(crate) fn lines(&self) -> Vec<String> {
        let mut lines = Vec::new();
        if let Some(mount) = &self.filesystem {
            let upper = self.upper_filesystem.as_ref();
            let upper = upper.map(|upper| format!(", written to {}", upper.kind));
            lines.push(format!(
                "{} on {}, {} of {} free{}",
                mount.kind,
                mount.mount_point.display(),
                bytes(self.free_bytes),
                bytes(self.total_bytes),
                upper.unwrap_or_default()
            ));
        }
        lines.extend(self.disks.iter().map(Disk::line));
        let memory = self.memory_available_bytes.map_or_else(|| "?".into(), bytes);
        lines.push(format!("{} cores, {memory} of memory available", self.cores));
        let names = |works: bool| {
            let features = self.features.iter().filter(|feature| feature.works == works);
            features.map(|feature| feature.name).collect::<Vec<&str>>().join(", ")
        };
        lines.push(format!("works here: {}; does not: {}", names(true), names(false)));
        if let Some(unit) = self.direct_alignment_bytes {
            lines.push(format!("direct writes in multiples of {unit} bytes"));
        }
        lines
    }

    /// The name of the filesystem's type.
    pub fn kind(&self) -> &str {
        self.filesystem.as_ref().map_or("unknown", |filesystem| filesystem.kind.as_str())
    }

    pub(super) fn is_kind(&self, kinds: &[&str]) -> bool {
        kinds.contains(&self.kind())
    }

    /// The value of a mount option; empty for one without.
    pub(super) fn option(&self, option: &str) -> Option<&str> {
        let mounts = [&self.filesystem, &self.upper_filesystem].into_iter().flatten();
        let words = mounts.flat_map(|mount| mount.mount_options.split([',', ';', ' ']));
        words
            .map(|word| word.split_once('=').unwrap_or((word, "")))
            .find_map(|(name, value)| (name == option).then_some(value))
    }

    /// The share of the filesystem that is in use.
    pub(super) fn used_share(&self) -> Option<f64> {
        let free = self.free_bytes as f64 / self.total_bytes as f64;
        (self.total_bytes > 0).then_some(1.0 - free)
    }
}

/// What can be read from `mountinfo` and from a `/sys`, so that a test can give it others.
pub(crate) fn mounts_and_disks(dir: &Path, mountinfo: &str, sys: &Path) -> Surroundings {
    let mut found = Surroundings::default();
    let Some(mount) = mount::find(mountinfo, dir) else { return found };
    let mut under = &mount;
    let upper = upper_directory(&mount.filesystem);
    let upper = upper.and_then(|upper| mount::find(mountinfo, &upper));
    if let Some(upper) = &upper {
        found.upper_filesystem = Some(upper.filesystem.clone());
        under = upper;
    }
    found.disks = disk::stack(sys, mountinfo, under);
    found.filesystem = Some(mount.filesystem);
    found
}

/// Where an overlay writes to.
fn upper_directory(filesystem: &Filesystem) -> Option<PathBuf> {
    if filesystem.kind != "overlay" {
        return None;
    }
    let (_, rest) = filesystem.mount_options.split_once("upperdir=")?;
    rest.split(',').next().map(PathBuf::from)
}

fn is_nocow(dir: &Path) -> bool {
    let flags = fs::File::open(dir).map(rustix::fs::ioctl_getflags);
    matches!(flags, Ok(Ok(flags)) if flags.contains(rustix::fs::IFlags::NOCOW))
}

#[cfg(test)]
#[path = "../detect_tests.rs"]
mod tests;
