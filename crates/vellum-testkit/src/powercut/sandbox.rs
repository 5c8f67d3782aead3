//! A world of its own for the harness: whatever happens to it, nothing of it remains.
//!
//! All mounts are made in a private namespace, all files of the harness lie on a memory filesystem
//! in it, and all processes live below one whose death kills them. To the commands under test, a
//! power cut looks like a reboot: the boot id is another, and shared memory is empty. Or it looks
//! as if the disk alone had been lost, and came back in the same boot.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use rustix::mount::{
    MountFlags, MountPropagationFlags, UnmountFlags, mount, mount_bind, mount_change, unmount,
};

use vellum_zoo::filesystem::Filesystem;
use vellum_zoo::{Missing, missing_if_forbidden};

use super::sys;
use crate::random::Random;

/// Where the harness keeps its files; hidden from everyone else, and there on every Linux.
const ROOT: &str = "/mnt";

const SHARED_MEMORY: &str = "/dev/shm";
const BOOT_ID: &str = "/proc/sys/kernel/random/boot_id";

/// Fails with [`Missing`] where something is missing.
pub fn look_for_needs(filesystems: &[Filesystem]) -> Result<(), Missing> {
    vellum_zoo::look_for_needs()?;
    filesystems.iter().try_for_each(|filesystem| filesystem.look_for_maker())
}

/// In which boot a disk is mounted again that was cut off.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Boot {
    /// The power was gone: nothing but the disk is left.
    Another,
    /// The disk was lost and came back, or an image of it.
    Same,
}

impl std::fmt::Display for Boot {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Boot::Another => "opened in another boot",
            Boot::Same => "opened in the same boot",
        })
    }
}

/// The number that a boot has its id from.
pub type BootNumber = u64;

/// The private world.
#[derive(Debug)]
pub struct Sandbox {
    random: Random,
}

impl Sandbox {
    /// Enters it; the calling process has one thread and is the first of its process namespace.
    pub fn enter(seed: u64) -> anyhow::Result<Sandbox> {
        furnish().map_err(|error| missing_if_forbidden("no mounts of our own", error))?;
        Ok(Sandbox { random: Random::new(seed) })
    }

    /// A directory of the memory filesystem.
    pub fn dir(&self, name: &str) -> anyhow::Result<PathBuf> {
        let dir = Path::new(ROOT).join(name);
        fs::create_dir_all(&dir)?;
        Ok(dir)
    }

    /// Enters a boot: that which `last` names, or another, which has nothing that no reboot leaves.
    /// Returns which it is.
    pub fn enter_boot(&mut self, boot: Boot, last: BootNumber) -> anyhow::Result<BootNumber> {
        let number = match boot {
            Boot::Same => last,
            Boot::Another => {
                empty_shared_memory()?;
                self.random.next_u64()
            }
        };
        let mut random = Random::new(number);
        let text = format!("{:016x}{:016x}", random.next_u64(), random.next_u64());
        let parts = [&text[..8], &text[8..12], &text[12..16], &text[16..20], &text[20..]];
        fs::write(Path::new(ROOT).join("boot_id"), format!("{}\n", parts.join("-")))?;
        Ok(number)
    }
}

fn empty_shared_memory() -> io::Result<()> {
    if fs::read_dir(SHARED_MEMORY).is_ok_and(|mut entries| entries.next().is_some()) {
        unmount(SHARED_MEMORY, UnmountFlags::DETACH)?;
        mount_shared_memory()?;
    }
    Ok(())
}

/// Makes the mounts of the private world.
fn furnish() -> io::Result<()> {
    sys::leave_mounts()?;
    mount_change("/", MountPropagationFlags::PRIVATE | MountPropagationFlags::REC)?;
    mount("tmpfs", ROOT, "tmpfs", MountFlags::NOSUID, Some(c"mode=0700,size=100%"))?;
    // A process finds itself in /proc only if that is of its own namespace.
    mount("proc", "/proc", "proc", MountFlags::NOSUID, None)?;
    let boot_id = Path::new(ROOT).join("boot_id");
    fs::write(&boot_id, "")?;
    mount_bind(&boot_id, BOOT_ID)?;
    mount_shared_memory()
}

fn mount_shared_memory() -> io::Result<()> {
    if Path::new(SHARED_MEMORY).is_dir() {
        mount("tmpfs", SHARED_MEMORY, "tmpfs", MountFlags::NOSUID, Some(c"mode=1777"))?;
    }
    Ok(())
}
