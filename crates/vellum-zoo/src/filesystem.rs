//! The filesystems that can lie on the disk: how each is made, and how mounted.

use std::ffi::CStr;
use std::fmt;
use std::fs::File;
use std::path::Path;
use std::process::{Command, Stdio};
use std::str::FromStr;

use anyhow::{Context, bail};
use rustix::io::Errno;
use rustix::mount::{MountFlags, mount};

use super::missing::Missing;

const MIB: u64 = 1 << 20;

/// A kind of filesystem.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Filesystem {
    /// ext4, data ordered.
    Ext4,
    /// XFS.
    Xfs,
    /// btrfs: copy on write.
    Btrfs,
}

impl Filesystem {
    /// Its name, for `mount` as for people.
    pub fn name(self) -> &'static str {
        match self {
            Filesystem::Ext4 => "ext4",
            Filesystem::Xfs => "xfs",
            Filesystem::Btrfs => "btrfs",
        }
    }

    /// The smallest disk that it likes.
    fn len_min(self) -> u64 {
        match self {
            Filesystem::Ext4 => 64 * MIB,
            Filesystem::Xfs => 320 * MIB,
            Filesystem::Btrfs => 128 * MIB,
        }
    }

    /// Offsets of the blocks with superblocks of more than a sector. A filesystem takes it for
    /// granted that those are written whole, and cannot be mounted otherwise.
    pub fn superblocks(self) -> &'static [u64] {
        match self {
            Filesystem::Ext4 => &[0],
            Filesystem::Xfs => &[],
            Filesystem::Btrfs => &[64 << 10, 64 << 20],
        }
    }

    /// Whether its own recovery takes it for granted that blocks are written whole. That of XFS
    /// tells by the first sector of a block whether the rest is up to date, and is then unable to
    /// mount.
    pub fn trusts_blocks(self) -> bool {
        self == Filesystem::Xfs
    }

    /// The program that makes it, and how: nothing is left to be done in the background later.
    fn maker(self) -> (&'static str, &'static [&'static str]) {
        match self {
            Filesystem::Ext4 => (
                "mkfs.ext4",
                &["-qF", "-b", "4096", "-E", "nodiscard,lazy_itable_init=0,lazy_journal_init=0"],
            ),
            Filesystem::Xfs => ("mkfs.xfs", &["-qfK"]),
            Filesystem::Btrfs => ("mkfs.btrfs", &["-qfK"]),
        }
    }

    /// Options without which an image that another process has mounted too would be refused.
    fn options(self) -> Option<&'static CStr> {
        match self {
            Filesystem::Ext4 => None,
            Filesystem::Xfs => Some(c"nouuid"),
            Filesystem::Btrfs => Some(c"nodiscard"),
        }
    }

    /// Fails if the program that makes it is not there.
    pub fn look_for_maker(self) -> Result<(), Missing> {
        let (program, _) = self.maker();
        let package = match self {
            Filesystem::Ext4 => "e2fsprogs",
            Filesystem::Xfs => "xfsprogs",
            Filesystem::Btrfs => "btrfs-progs",
        };
        match command(program).arg("-V").stdout(Stdio::null()).stderr(Stdio::null()).status() {
            Ok(_) => Ok(()),
            Err(error) => Err(Missing(format!("{program} (package {package}): {error}"))),
        }
    }

    /// What makes it write whole physical sectors of 4096 bytes, as it does by itself on a disk
    /// that reports such.
    fn coarse_arguments(self) -> &'static [&'static str] {
        match self {
            Filesystem::Xfs => &["-s", "size=4096"],
            Filesystem::Ext4 | Filesystem::Btrfs => &[],
        }
    }

    /// Makes an empty one in a file, which is made or cut to so many bytes at least, if `is_coarse`
    /// for physical sectors of 4096 bytes.
    pub fn make(self, path: &Path, len: u64, is_coarse: bool) -> anyhow::Result<()> {
        File::create(path)?.set_len(len.max(self.len_min()))?;
        let (program, arguments) = self.maker();
        let coarse = if is_coarse { self.coarse_arguments() } else { &[] };
        let output = command(program).args(arguments).args(coarse).arg(path).output()?;
        if !output.status.success() {
            bail!("{program} failed: {}", String::from_utf8_lossy(&output.stderr).trim());
        }
        Ok(())
    }

    /// Mounts it, which recovers it after a power cut.
    pub fn mount(self, device: &Path, dir: &Path) -> anyhow::Result<()> {
        match mount(device, dir, self.name(), MountFlags::NOATIME, self.options()) {
            Ok(()) => Ok(()),
            Err(Errno::NODEV) => Err(Missing(format!("the kernel knows no {self}")).into()),
            Err(error) => Err(error).with_context(|| format!("cannot mount {self}")),
        }
    }
}

/// A program of the administrator's, whose directory is not in everyone's path.
fn command(program: &str) -> Command {
    let path = std::env::var("PATH").unwrap_or_default();
    let mut command = Command::new(program);
    command.env("PATH", format!("{path}:/usr/sbin:/sbin"));
    command
}

impl fmt::Display for Filesystem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Filesystem {
    type Err = String;

    fn from_str(text: &str) -> Result<Filesystem, String> {
        [Filesystem::Ext4, Filesystem::Xfs, Filesystem::Btrfs]
            .into_iter()
            .find(|filesystem| filesystem.name() == text)
            .ok_or_else(|| "ext4, xfs and btrfs are known".to_owned())
    }
}
