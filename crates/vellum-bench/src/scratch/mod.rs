//! Filesystems made for a run: image files in a tmpfs, a loop device on each, a filesystem on that.
//!
//! ```text
//! room      private mounts, and in them a tmpfs
//! images    files in the tmpfs, all of them allocated: one, or one for each device of the kind
//! devices   /dev/loopN on each image; given back by the kernel when nobody uses it any more
//! array     /dev/mdN over the devices, for a kind that has one
//! mount     the filesystem on the devices or on the array, beside the room; for tmpfs, a directory
//!           of the room
//! ```
//!
//! **If the process dies here**, or is killed: its mounts end with it and with the processes that
//! it forked, for no other process has them; so a device has no user left, and an image no name. An
//! array does not end by itself: [`give_back`] is for a process that outlives this one.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::conditions::keeps_old_blocks;
use crate::error::{Context, Error, Result};
use crate::names::named;

mod array;
mod ballast;
mod making;
mod room;

pub use making::{Making, MkfsOptions};
pub(crate) use room::Room;

named! {
    /// A kind of filesystem that can be made for a run.
    #[non_exhaustive]
    pub enum ScratchKind, "can't be made for a run" {
        /// ext4 on a loop device.
        Ext4 = "ext4",
        /// XFS on a loop device.
        Xfs = "xfs",
        /// btrfs on a loop device.
        Btrfs = "btrfs",
        /// Memory without a device.
        Tmpfs = "tmpfs",
        /// ext4 on a RAID 0 of md over four loop devices, in chunks of 512 KiB.
        Raid0Ext4 = "raid0-ext4",
        /// btrfs over two loop devices: data striped, metadata on both.
        BtrfsRaid0 = "btrfs-raid0",
    }
}

/// How a kind is made.
struct Maker {
    /// The filesystem, as the kernel calls it.
    filesystem: &'static str,
    program: &'static str,
    options: &'static [&'static str],
    /// The same for one that is filled: nothing is kept for root, or it would never be full.
    filled_options: &'static [&'static str],
    /// The package of the program.
    package: &'static str,
    mount_options: &'static str,
    /// The number of its loop devices.
    devices: u64,
    /// Are they one RAID 0?
    is_array: bool,
}

impl ScratchKind {
    /// Can any of `kinds` be made here? Best asked before anything else is done. A kind that lacks
    /// something in the kernel fails when it is made; then it is left out.
    ///
    /// # Errors
    ///
    /// Checks the programs and rights; the error names the missing ones in a line.
    pub fn check(kinds: &[ScratchKind]) -> Result<()> {
        if kinds.is_empty() {
            return Ok(());
        }
        if !rustix::process::geteuid().is_root() {
            return Err(Error::invalid("only root can mount filesystems made for a run"));
        }
        for maker in kinds.iter().filter_map(|kind| kind.maker()) {
            if find(maker.program).is_none() {
                let Maker { program, package, .. } = maker;
                return Err(Error::invalid(format!(
                    "{program} is missing; it comes with {package}"
                )));
            }
            if !Path::new("/dev/loop-control").exists() {
                return Err(Error::invalid(
                    "this system has no loop devices: no /dev/loop-control",
                ));
            }
        }
        Ok(())
    }

    /// Whether it writes a changed block to another place, and keeps the old one for a while.
    pub(crate) fn keeps_old_blocks(self) -> bool {
        self.maker().is_some_and(|maker| keeps_old_blocks(maker.filesystem))
    }

    /// How it is made; `None` for a mere directory of the room. Nothing discards: that would punch
    /// holes into the image.
    fn maker(self) -> Option<Maker> {
        let ext4 = Maker {
            filesystem: "ext4",
            program: "mkfs.ext4",
            options: &["-q", "-F", "-E", "nodiscard,lazy_itable_init=0,lazy_journal_init=0"],
            filled_options: &["-m", "0"],
            package: "e2fsprogs",
            mount_options: "",
            devices: 1,
            is_array: false,
        };
        let btrfs = Maker {
            filesystem: "btrfs",
            program: "mkfs.btrfs",
            options: &["-q", "-f", "-K"],
            filled_options: &[],
            package: "btrfs-progs",
            mount_options: "nodiscard",
            ..ext4
        };
        match self {
            ScratchKind::Ext4 => Some(ext4),
            ScratchKind::Xfs => Some(Maker {
                filesystem: "xfs",
                program: "mkfs.xfs",
                options: &["-q", "-f", "-K"],
                filled_options: &[],
                package: "xfsprogs",
                ..ext4
            }),
            ScratchKind::Btrfs => Some(btrfs),
            ScratchKind::Tmpfs => None,
            ScratchKind::Raid0Ext4 => Some(Maker { devices: 4, is_array: true, ..ext4 }),
            ScratchKind::BtrfsRaid0 => Some(Maker {
                options: &["-q", "-f", "-K", "-d", "raid0", "-m", "raid1"],
                devices: 2,
                ..btrfs
            }),
        }
    }
}

/// Gives back what does not go with the processes of a run that were killed: arrays of devices.
/// `dir` is where the run made its directory; it is to be removed
/// after this. False if something is still in use: then call it again.
#[must_use]
pub fn give_back(dir: &Path) -> bool {
    array::stop_all(dir)
}

/// Where a program is: administrators' directories are not in each user's path.
fn find(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let usual = ["/usr/sbin", "/sbin"].map(PathBuf::from);
    let dirs = std::env::split_paths(&path).chain(usual);
    dirs.map(|dir| dir.join(program)).find(|path| path.is_file())
}

/// Runs a program to its end; an error has its standard error.
fn run(program: &str, options: &[&str], paths: &[PathBuf]) -> Result<()> {
    let path = find(program).unwrap_or_else(|| PathBuf::from(program));
    let output = Command::new(path)
        .args(options)
        .args(paths)
        .stdin(Stdio::null())
        .output()
        .context(|| format!("run {program}"))?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr).trim().replace('\n', "; ");
    let options = options.join(" ");
    Err(Error::failed(format!("{program} {options} failed: {said}")))
}

#[cfg(test)]
mod tests;
