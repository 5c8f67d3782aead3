//! Filesystems on loop devices: made, filled, enlarged, shut down, mounted again.
//!
//! Their images lie on a tmpfs of the trial. It is mounted in a mount namespace of this process, so
//! it goes when the process goes, however that ends.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Context;

use crate::powercut::disk::Outage;
use crate::powercut::image::Image;
use crate::powercut::medium::Medium;
use crate::worlds::sys;

const MIB: u64 = 1 << 20;
/// Pieces of a file that takes all space, down to less than any block.
const PIECES: [usize; 4] = [1 << 20, 64 << 10, 4 << 10, 512];

/// A kind of filesystem.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Kind {
    pub(crate) name: &'static str,
    family: Family,
    /// The program that makes it, and its arguments.
    make: &'static [&'static str],
    /// How it is mounted.
    options: &'static str,
    /// The smallest that it can be.
    pub(crate) mib_min: u64,
    /// The space that is taken at first and given back later: a btrfs keeps much for itself.
    spare_mib: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Family {
    Ext,
    Xfs,
    Btrfs,
    /// A btrfs whose log is in a subvolume with a limit.
    Quota,
    Tmpfs,
    /// An overlay whose upper layer is an ext4.
    Overlay,
}

/// All of them.
pub(crate) const KINDS: &[Kind] = &[
    ext("ext4", &["mkfs.ext4"], ""),
    ext("ext4-1k", &["mkfs.ext4", "-b", "1024"], ""),
    ext("ext4-bigalloc", &["mkfs.ext4", "-O", "bigalloc", "-C", "65536"], ""),
    ext("ext4-journal", &["mkfs.ext4"], "data=journal"),
    ext("ext4-nodelalloc", &["mkfs.ext4"], "nodelalloc"),
    ext("ext3", &["mkfs.ext3"], ""),
    ext("ext2", &["mkfs.ext2"], ""),
    other("xfs", Family::Xfs, &["mkfs.xfs", "-q", "-f"], 300),
    other("btrfs", Family::Btrfs, &["mkfs.btrfs", "-q", "-f"], 128),
    other("btrfs-quota", Family::Quota, &["mkfs.btrfs", "-q", "-f"], 256),
    other("tmpfs", Family::Tmpfs, &[], 60),
    other("overlay", Family::Overlay, &["mkfs.ext4", "-q", "-F", "-m", "0"], 60),
];

const fn ext(name: &'static str, make: &'static [&'static str], options: &'static str) -> Kind {
    Kind { name, family: Family::Ext, make, options, mib_min: 60, spare_mib: 20 }
}

const fn other(
    name: &'static str,
    family: Family,
    make: &'static [&'static str],
    mib_min: u64,
) -> Kind {
    let spare_mib = if matches!(family, Family::Btrfs | Family::Quota) { 40 } else { 20 };
    Kind { name, family, make, options: "", mib_min, spare_mib }
}

impl Kind {
    /// Whether it can be told to stop, as it does after an error of its journal.
    pub(crate) fn shuts_down(&self) -> bool {
        matches!(self.family, Family::Ext | Family::Xfs | Family::Overlay)
    }

    /// Whether two files can share blocks.
    pub(crate) fn shares_blocks(&self) -> bool {
        matches!(self.family, Family::Xfs | Family::Btrfs)
    }

    /// Whether it is on a device.
    pub(crate) fn has_device(&self) -> bool {
        self.family != Family::Tmpfs
    }

    /// Why it cannot be had here.
    pub(crate) fn missing(&self) -> Option<String> {
        let program = self.make.first()?;
        let places = ["/usr/sbin", "/sbin", "/usr/bin"];
        let is_there = places.iter().any(|place| Path::new(place).join(program).exists());
        (!is_there).then(|| format!("{program} is missing"))
    }
}

/// A disk with a filesystem of a kind.
pub(crate) struct Disk {
    pub(crate) kind: &'static Kind,
    mib: u64,
    /// The tmpfs with the image.
    media: PathBuf,
    device: Option<Device>,
    /// Where the filesystem is, and below that the directory of the log.
    at: PathBuf,
    work: PathBuf,
}

/// The device below the filesystem.
enum Device {
    /// A loop device. It is removed when no process has it open any more.
    Loop { path: PathBuf, _open: File },
    /// A disk that this process serves, which can fail. Each request fails whole.
    Served(Medium),
}

impl Device {
    /// A loop device over a file.
    fn new(image: &Path) -> anyhow::Result<Device> {
        let mut find = Command::new("losetup");
        let path = sys::output(find.args(["--find", "--show"]).arg(image))?;
        let path = PathBuf::from(path.trim());
        let _open = File::open(&path).with_context(|| format!("no loop device {path:?}"))?;
        // It stays while it is in use.
        sys::run(Command::new("losetup").arg("-d").arg(&path))?;
        Ok(Device::Loop { path, _open })
    }

    /// A disk with the content of a file.
    fn served(image: &Path) -> anyhow::Result<Device> {
        let content = Image::from_file(image)?;
        fs::remove_file(image)?;
        let dir = image.with_file_name("served");
        fs::create_dir(&dir)?;
        let mut medium = Medium::new(&dir, content)?;
        medium.ask_in_whole()?;
        Ok(Device::Served(medium))
    }

    fn path(&self) -> &Path {
        match self {
            Device::Loop { path, .. } => path,
            Device::Served(medium) => medium.device_path(),
        }
    }
}

impl Disk {
    /// A filesystem of `mib` MiB below `base`, a directory of its own. Its device can fail if
    /// `can_fail`.
    pub(crate) fn make(
        base: &Path,
        kind: &'static Kind,
        mib: u64,
        can_fail: bool,
    ) -> anyhow::Result<Disk> {
        let [media, at] = ["media", "disk"].map(|name| base.join(name));
        for place in [&media, &at] {
            fs::create_dir(place)?;
        }
        let room = format!("size={}m", mib * 5 / 4 + 8);
        sys::mount(Path::new("media"), &media, "tmpfs", 0, &room)?;
        let mut disk = Disk { kind, mib, media, device: None, work: at.join("work"), at };
        if let [program, arguments @ ..] = kind.make {
            let image = disk.image();
            File::create(&image)?.set_len(mib * MIB)?;
            let mut command = Command::new(program);
            if kind.family == Family::Ext {
                command.args(["-q", "-F", "-m", "0", "-E", "nodiscard"]);
            }
            sys::run(command.args(arguments).arg(&image))?;
            let make = if can_fail { Device::served } else { Device::new };
            disk.device = Some(make(&image)?);
        }
        disk.mount()?;
        disk.prepare()?;
        Ok(disk)
    }

    fn image(&self) -> PathBuf {
        self.media.join("image")
    }

    /// The directory in which the log is.
    pub(crate) fn work(&self) -> &Path {
        &self.work
    }

    fn is_overlay(&self) -> bool {
        self.kind.family == Family::Overlay
    }

    /// Where the filesystem of the device is mounted.
    fn below(&self) -> PathBuf {
        if self.is_overlay() { self.media.join("below") } else { self.at.clone() }
    }

    fn mount(&self) -> anyhow::Result<()> {
        let Some(device) = &self.device else {
            return Ok(sys::mount(Path::new("small"), &self.at, "tmpfs", 0, &self.size())?);
        };
        fs::create_dir_all(self.below())?;
        let mut command = Command::new("mount");
        if !self.kind.options.is_empty() {
            command.args(["-o", self.kind.options]);
        }
        sys::run(command.arg(device.path()).arg(self.below()))?;
        if !self.is_overlay() {
            return Ok(());
        }
        let layers = ["lower", "upper", "layers"].map(|name| self.below().join(name));
        layers.iter().try_for_each(fs::create_dir_all)?;
        let [lower, upper, layers] = layers.map(|layer| layer.display().to_string());
        let data = format!("lowerdir={lower},upperdir={upper},workdir={layers}");
        Ok(sys::mount(Path::new("overlay"), &self.at, "overlay", 0, &data)?)
    }

    fn size(&self) -> String {
        format!("size={}m", self.mib)
    }

    fn prepare(&self) -> anyhow::Result<()> {
        if self.kind.family != Family::Quota {
            fs::create_dir(&self.work)?;
        } else {
            sys::run(Command::new("btrfs").args(["-q", "subvolume", "create"]).arg(&self.work))?;
            sys::run(Command::new("btrfs").args(["quota", "enable"]).arg(&self.at))?;
            self.set_quota(self.mib / 4)?;
        }
        fs::write(self.work.join("spare"), vec![1; (self.kind.spare_mib * MIB) as usize])?;
        Ok(())
    }

    fn set_quota(&self, mib: u64) -> anyhow::Result<()> {
        let limit = format!("{mib}M");
        sys::run(Command::new("btrfs").args(["qgroup", "limit", &limit]).arg(&self.work))
    }

    /// Leaves so many MiB of the free space, or all of it if that is less.
    pub(crate) fn leave(&self, mib: u64) -> anyhow::Result<()> {
        let place = rustix::fs::statvfs(&self.work)?;
        let available = match self.kind.family {
            Family::Quota => self.mib / 4,
            // Of what it says is free it gives files less.
            Family::Btrfs => place.f_bavail * place.f_frsize / MIB * 3 / 4,
            _ => place.f_bavail * place.f_frsize / MIB,
        };
        let mut file = File::create(self.work.join("leave"))?;
        for _ in mib..available {
            match file.write_all(&vec![1; MIB as usize]).and_then(|()| file.sync_data()) {
                Err(error) if is_full(&error) => break,
                answer => answer?,
            }
        }
        Ok(())
    }

    /// Takes another piece of the space there is; false when there is none.
    pub(crate) fn take(&self, len: usize) -> anyhow::Result<bool> {
        let file = File::options().append(true).create(true).open(self.work.join("ballast"));
        match file
            .and_then(|mut file| file.write_all(&vec![1; len]).and_then(|()| file.sync_data()))
        {
            Ok(()) => Ok(true),
            Err(error) if is_full(&error) => Ok(false),
            Err(error) => Err(error).context("cannot fill the disk"),
        }
    }

    /// Takes all the space there is.
    pub(crate) fn fill(&self) -> anyhow::Result<()> {
        for len in PIECES {
            while self.take(len)? {}
        }
        Ok(())
    }

    /// Makes space: the space that others have taken, a larger limit, or a larger filesystem.
    pub(crate) fn make_space(&mut self, by_growth: bool) -> anyhow::Result<()> {
        if by_growth && self.grow()? {
            return Ok(());
        }
        if self.kind.family == Family::Quota {
            return self.set_quota(self.mib);
        }
        for name in ["spare", "leave", "ballast"] {
            // A btrfs that is full may have no room to note that a file is gone.
            let path = self.work.join(name);
            let _ = File::options().write(true).open(&path).and_then(|file| file.set_len(0));
            match fs::remove_file(&path) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error)?,
                _ => {}
            }
        }
        // Space that a transaction still holds is none.
        Ok(rustix::fs::syncfs(File::open(&self.at)?)?)
    }

    /// Enlarges it by half, if it can be.
    fn grow(&mut self) -> anyhow::Result<bool> {
        let mib = self.mib * 3 / 2;
        let at = self.at.display().to_string();
        let mut command = match (self.kind.family, &self.device) {
            (Family::Tmpfs, _) => {
                let mut command = Command::new("mount");
                command.args(["-o", &format!("remount,size={mib}m"), &at]);
                command
            }
            (Family::Xfs, Some(_)) => sys::words(&["xfs_growfs", &at]),
            (Family::Btrfs, Some(_)) => {
                sys::words(&["btrfs", "-q", "filesystem", "resize", "max", &at])
            }
            (Family::Ext, Some(device)) if self.kind.name == "ext4" => {
                let mut command = Command::new("resize2fs");
                command.arg(device.path());
                command
            }
            _ => return Ok(false),
        };
        if let Some(device) = &self.device {
            self.give_room(mib * 5 / 4)?;
            File::options().write(true).open(self.image())?.set_len(mib * MIB)?;
            sys::run(Command::new("losetup").arg("-c").arg(device.path()))?;
        }
        // ext4 lets no process do it that lacks `CAP_SYS_RESOURCE`.
        let is_grown = sys::run(&mut command).is_ok();
        if is_grown {
            self.mib = mib;
        }
        Ok(is_grown)
    }

    /// How much room the image finds.
    fn give_room(&self, mib: u64) -> anyhow::Result<()> {
        let options = format!("remount,size={mib}m");
        sys::run(Command::new("mount").args(["-o", &options]).arg(&self.media))
    }

    /// Has the filesystem stop at once.
    pub(crate) fn shut_down(&self, flush: u32) -> anyhow::Result<()> {
        Ok(sys::shut_down(&File::open(self.below())?, flush)?)
    }

    /// Has the device fail in this way from now on, or in none.
    pub(crate) fn fail(&self, outage: Option<Outage>) {
        if let Some(Device::Served(medium)) = &self.device {
            medium.disk().fail(outage);
        }
    }

    fn unmount(&self) {
        sys::run(Command::new("umount").arg(&self.at)).unwrap_or_else(|_| sys::unmount(&self.at));
        if self.is_overlay() {
            let below = self.below();
            sys::run(Command::new("umount").arg(&below)).unwrap_or_else(|_| sys::unmount(&below));
        }
    }

    /// Unmounts it and mounts it again: data that was only in memory is gone.
    pub(crate) fn mount_again(&self) -> anyhow::Result<()> {
        self.unmount();
        self.fail(None);
        if let (true, Some(device)) = (self.kind.name == "ext2", &self.device) {
            // It has no journal, so its own structures may contradict each other.
            let _ = sys::run(Command::new("e2fsck").arg("-fy").arg(device.path()));
        }
        self.mount().context("it cannot be mounted again")
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        self.unmount();
        self.device = None;
        sys::unmount(&self.media);
    }
}

fn is_full(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
}
