//! Filesystems made for a run: an image file in a tmpfs, a loop device on it, a filesystem on that.
//!
//! ```text
//! room      private mounts, and in them a tmpfs
//! image     a file in the tmpfs, all of it allocated
//! device    /dev/loopN on the image; given back by the kernel when nobody uses it any more
//! mount     ext4, xfs or btrfs on the device; for tmpfs, a directory of the room
//! ```
//!
//! **If the process dies here**, or is killed: its mounts go with it and with the processes that it
//! forked, for nobody else has them; so the device has no user left, and the image no name.

use std::fmt;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::str::FromStr;

use rustix::fs::{FallocateFlags, fallocate};
use rustix::mount::{
    MountFlags, MountPropagationFlags, UnmountFlags, mount, mount_change, unmount,
};

use crate::conditions::memory_bytes;
use crate::error::{Context, Error, Result};
use crate::sys;

/// Metadata, and room that a filesystem keeps for itself: a quarter, but so much at least, for
/// less than 300 MiB xfs refuses.
const OVERHEAD_SHARE: u64 = 4;
const OVERHEAD_BYTES_MIN: u64 = 384 << 20;

/// A kind of filesystem that can be made for a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ScratchKind {
    /// ext4 on a loop device.
    Ext4,
    /// XFS on a loop device.
    Xfs,
    /// btrfs on a loop device.
    Btrfs,
    /// Memory without a device.
    Tmpfs,
}

impl ScratchKind {
    /// All of them.
    pub const ALL: [ScratchKind; 4] =
        [ScratchKind::Ext4, ScratchKind::Xfs, ScratchKind::Btrfs, ScratchKind::Tmpfs];

    /// The name that the kernel has for it.
    pub const fn as_str(self) -> &'static str {
        match self {
            ScratchKind::Ext4 => "ext4",
            ScratchKind::Xfs => "xfs",
            ScratchKind::Btrfs => "btrfs",
            ScratchKind::Tmpfs => "tmpfs",
        }
    }

    /// Is there all that it takes to make `kinds`? Best asked before anything else is done.
    ///
    /// # Errors
    ///
    /// What is missing, in a line.
    pub fn check(kinds: &[ScratchKind]) -> Result<()> {
        if kinds.is_empty() {
            return Ok(());
        }
        if !rustix::process::geteuid().is_root() {
            return Err(Error::invalid("only root can mount filesystems made for a run"));
        }
        for (program, _, package) in kinds.iter().filter_map(|kind| kind.maker()) {
            if find(program).is_none() {
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

    /// The program that makes one, its options, and the package that it is in. None discards: that
    /// would punch holes into the image.
    fn maker(self) -> Option<(&'static str, &'static [&'static str], &'static str)> {
        match self {
            ScratchKind::Ext4 => Some((
                "mkfs.ext4",
                &["-q", "-F", "-E", "nodiscard,lazy_itable_init=0,lazy_journal_init=0"],
                "e2fsprogs",
            )),
            ScratchKind::Xfs => Some(("mkfs.xfs", &["-q", "-f", "-K"], "xfsprogs")),
            ScratchKind::Btrfs => Some(("mkfs.btrfs", &["-q", "-f", "-K"], "btrfs-progs")),
            ScratchKind::Tmpfs => None,
        }
    }
}

impl fmt::Display for ScratchKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl FromStr for ScratchKind {
    type Err = Error;

    fn from_str(text: &str) -> Result<ScratchKind> {
        ScratchKind::ALL.into_iter().find(|kind| kind.as_str() == text).ok_or_else(|| {
            let names = ScratchKind::ALL.map(ScratchKind::as_str).join(", ");
            Error::invalid(format!("\"{text}\" can't be made for a run; there are {names}"))
        })
    }
}

/// Where a program is: administrators' directories are not in everybody's path.
fn find(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let usual = ["/usr/sbin", "/sbin"].map(PathBuf::from);
    let dirs = std::env::split_paths(&path).chain(usual);
    dirs.map(|dir| dir.join(program)).find(|path| path.is_file())
}

/// A tmpfs that only this thread and its children see. Goes when dropped, or with them.
pub(crate) struct Room {
    dir: PathBuf,
}

impl Room {
    /// Mounts one of `bytes` on the directory `dir`, in which nothing else should be.
    pub(crate) fn new(dir: &Path, bytes: u64) -> Result<Room> {
        let available = memory_bytes("MemAvailable").unwrap_or(u64::MAX);
        if bytes > available / 2 {
            return Err(Error::no_space(format!(
                "filesystems made for a run take {} MiB of memory here, and half of the {} MiB \
                 available can be used",
                bytes >> 20,
                available >> 20
            )));
        }
        sys::unshare_mounts().context(|| "leave the mounts of the other processes")?;
        let private = MountPropagationFlags::PRIVATE | MountPropagationFlags::REC;
        mount_change("/", private).context(|| "make the mounts private")?;
        fs::create_dir_all(dir).context(|| format!("make {}", dir.display()))?;
        let options = std::ffi::CString::new(format!("size={bytes},mode=0700")).unwrap_or_default();
        mount("tmpfs", dir, "tmpfs", MountFlags::empty(), options.as_c_str())
            .context(|| format!("mount a tmpfs on {}", dir.display()))?;
        Ok(Room { dir: dir.to_path_buf() })
    }

    /// What a room needs for a filesystem that holds `bytes`.
    pub(crate) fn bytes_for(bytes: u64) -> u64 {
        bytes + (bytes / OVERHEAD_SHARE).max(OVERHEAD_BYTES_MIN)
    }

    /// Makes a filesystem in which `bytes` have room.
    pub(crate) fn furnish(&self, kind: ScratchKind, bytes: u64) -> Result<Scratch> {
        let dir = self.dir.join(kind.as_str());
        fs::create_dir(&dir).context(|| format!("make {}", dir.display()))?;
        let Some((program, options, _)) = kind.maker() else {
            return Ok(Scratch { dir, image: None });
        };
        // The number tells, in a list of loop devices, whose this is.
        let image = self.dir.join(format!("{kind}-{}.image", std::process::id()));
        // From here on a failure removes what there is.
        let mut scratch = Scratch { dir, image: Some(Image { path: image, is_mounted: false }) };
        scratch.build(kind, program, options, Room::bytes_for(bytes) - (16 << 20))?;
        Ok(scratch)
    }
}

impl Drop for Room {
    fn drop(&mut self) {
        // What is left unmounted goes with the process.
        let _ = unmount(&self.dir, UnmountFlags::DETACH);
    }
}

/// A filesystem made for a run. Goes when dropped.
pub(crate) struct Scratch {
    dir: PathBuf,
    /// `None` for a directory of the room itself.
    image: Option<Image>,
}

struct Image {
    path: PathBuf,
    is_mounted: bool,
}

impl Scratch {
    /// Where it is mounted.
    pub(crate) fn dir(&self) -> &Path {
        &self.dir
    }

    fn build(
        &mut self,
        kind: ScratchKind,
        program: &str,
        options: &[&str],
        bytes: u64,
    ) -> Result<()> {
        let Some(image) = &mut self.image else { return Ok(()) };
        let file = File::options().read(true).write(true).create_new(true).open(&image.path);
        let file = file.context(|| format!("make an image for {kind}"))?;
        fallocate(&file, FallocateFlags::empty(), 0, bytes)
            .context(|| format!("allocate {} MiB for {kind}", bytes >> 20))?;
        run(program, options, &image.path)?;
        let (device, path) =
            sys::attach_loop(&file).context(|| "make a loop device of the image")?;
        mount(&path, &self.dir, kind.as_str(), MountFlags::empty(), None)
            .map_err(|error| cannot_mount(kind, error))?;
        image.is_mounted = true;
        // Held open until it was mounted: the kernel takes back what nobody uses.
        drop(device);
        Ok(())
    }
}

fn cannot_mount(kind: ScratchKind, error: rustix::io::Errno) -> Error {
    if error == rustix::io::Errno::NODEV {
        return Error::failed(format!("this kernel has no {kind}"));
    }
    Error::os(format_args!("mount {kind} on a loop device"), io::Error::from(error))
}

fn run(program: &str, options: &[&str], image: &Path) -> Result<()> {
    let path = find(program).unwrap_or_else(|| PathBuf::from(program));
    let output = Command::new(path)
        .args(options)
        .arg(image)
        .stdin(Stdio::null())
        .output()
        .context(|| format!("run {program}"))?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr).trim().replace('\n', "; ");
    Err(Error::failed(format!("{program} failed: {said}")))
}

impl Drop for Scratch {
    fn drop(&mut self) {
        if let Some(image) = &self.image {
            if image.is_mounted && unmount(&self.dir, UnmountFlags::empty()).is_err() {
                let _ = unmount(&self.dir, UnmountFlags::DETACH);
            }
            let _ = fs::remove_file(&image.path);
        }
        let _ = fs::remove_dir_all(&self.dir);
    }
}

#[cfg(test)]
#[path = "scratch_tests.rs"]
mod tests;
