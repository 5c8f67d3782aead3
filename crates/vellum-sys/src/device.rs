//! The kernel's description of the device that a file is on, from `/sys`.
//!
//! Anonymous device numbers (btrfs, overlay, FUSE, tmpfs) lead to no device there, and some
//! containers show no `/sys`. Then nothing is known, which is an answer and no error.

use std::os::fd::AsFd;
use std::path::{Path, PathBuf};

use rustix::fs::{fstat, fstatvfs, major, minor};

use crate::file::{read_text, retry};

const PHYSICAL_BLOCK: &str = "queue/physical_block_size";

/// A block device, as far as it is known. A partition has the facts of its disk.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Device {
    /// The smallest write that it makes without touching what is beside it: "the smallest unit a
    /// physical storage device can write atomically" (`Documentation/ABI/stable/sysfs-block`).
    pub physical_block_bytes: Option<u64>,
    /// Its directory in `/sys`.
    pub dir: Option<PathBuf>,
    /// The number that the filesystem on it has for itself, or 0.
    pub filesystem_id: u64,
}

impl Device {
    /// The device of an open file or directory.
    pub fn of(fd: impl AsFd) -> Device {
        Device::at(Path::new("/sys"), fd)
    }

    /// As [`of`](Device::of), with another `/sys`.
    ///
    /// Every staged log that is opened asks for this, so it reads no more than that takes.
    pub fn at(sys: &Path, fd: impl AsFd) -> Device {
        let filesystem_id = retry(|| fstatvfs(&fd)).map_or(0, |filesystem| filesystem.f_fsid);
        let device = retry(|| fstat(&fd)).map(|status| status.st_dev);
        let found = device.ok().and_then(|device| {
            let link = sys.join("dev/block").join(format!("{}:{}", major(device), minor(device)));
            // The link leads to a disk, or to a partition in the directory of its disk.
            let disk = link.join("..");
            [link, disk].into_iter().find_map(|dir| Some((number(&dir, PHYSICAL_BLOCK)?, dir)))
        });
        let (physical_block_bytes, dir) = found.unzip();
        Device { physical_block_bytes, dir, filesystem_id }
    }

    /// Whether a power cut empties a cache of it.
    pub fn has_volatile_cache(&self) -> Option<bool> {
        let cache = word(self.dir.as_ref()?, "queue/write_cache")?;
        Some(cache != "write through")
    }

    /// The smallest and the largest write of which it promises that a power cut tears none.
    fn atomic_write_bytes(&self) -> Option<(u64, u64)> {
        let dir = self.dir.as_ref()?;
        let least = number(dir, "queue/atomic_write_unit_min_bytes").filter(|bytes| *bytes > 0)?;
        Some((least, number(dir, "queue/atomic_write_unit_max_bytes")?))
    }

    /// Whether a write of `bytes`, aligned to itself, leaves what is beside it alone when the power
    /// is cut; `None` where the device is not known.
    pub fn keeps_neighbours(&self, bytes: u64) -> Option<bool> {
        let physical = self.physical_block_bytes?;
        let is_promised = |(least, most)| (least..=most).contains(&bytes);
        Some(bytes >= physical || self.atomic_write_bytes().is_some_and(is_promised))
    }

    /// By what the device, with the filesystem on it, is known again: one line, with model, serial
    /// number or world-wide name, and size, as far as there are such.
    ///
    /// Device numbers play no part: they change from boot to boot. A log that was copied is on
    /// another filesystem. An image of a disk that was copied is on a device with another serial
    /// number, where it has one.
    pub fn identity(&self) -> String {
        let physical = self.physical_block_bytes.map_or("?".into(), |bytes| bytes.to_string());
        let cache = match self.has_volatile_cache() {
            Some(true) => "write-back",
            Some(false) => "write-through",
            None => "?",
        };
        let facts =
            format!("sector={physical} cache={cache} filesystem={:016x}", self.filesystem_id);
        let marks = self.dir.iter().flat_map(|dir| marks(dir));
        marks.chain([facts]).collect::<Vec<String>>().join(" ")
    }
}

fn marks(dir: &Path) -> Vec<String> {
    let files = [
        ("model", "device/model"),
        ("serial", "device/serial"),
        ("serial", "serial"),
        ("wwid", "wwid"),
        ("wwid", "device/wwid"),
        ("mapper", "dm/uuid"),
        ("array", "md/uuid"),
        ("sectors", "size"),
    ];
    let mark = |(name, file)| Some(format!("{name}={}", word(dir, file)?));
    files.into_iter().filter_map(mark).collect()
}

/// The content of a file of `/sys`, on one line, if it has any.
fn word(dir: &Path, name: &str) -> Option<String> {
    let text = read_text(dir.join(name))?;
    let words: Vec<&str> = text.split_whitespace().collect();
    Some(words.join(" ")).filter(|text| !text.is_empty())
}

fn number(dir: &Path, name: &str) -> Option<u64> {
    word(dir, name)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use std::fs::{self, File};

    use super::*;

    /// A `/sys` whose disk has the device of `of`, with a queue as these say, and a partition.
    fn sys(of: &Path, files: &[(&str, &str)]) -> tempfile::TempDir {
        let sys = tempfile::tempdir().unwrap();
        let disk = sys.path().join("devices/nvme0n1");
        for (name, text) in files {
            let path = disk.join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        fs::create_dir_all(disk.join("nvme0n1p2")).unwrap();
        fs::create_dir_all(sys.path().join("dev/block")).unwrap();
        let device = fstat(File::open(of).unwrap()).unwrap().st_dev;
        let link = sys.path().join(format!("dev/block/{}:{}", major(device), minor(device)));
        std::os::unix::fs::symlink(disk.join("nvme0n1p2"), link).unwrap();
        sys
    }

    fn seen<T>(files: &[(&str, &str)], look: impl FnOnce(&Device) -> T) -> T {
        let dir = tempfile::tempdir().unwrap();
        let sys = sys(dir.path(), files);
        look(&Device::at(sys.path(), File::open(dir.path()).unwrap()))
    }

    const SECTORS: [(&str, &str); 2] =
        [("queue/logical_block_size", "512\n"), ("queue/physical_block_size", "4096\n")];

    #[test]
    fn a_partition_has_the_facts_of_its_disk() {
        let files = [SECTORS[0], SECTORS[1], ("queue/write_cache", "write through\n")];
        let facts = |device: &Device| (device.physical_block_bytes, device.has_volatile_cache());
        assert_eq!(seen(&files, facts), (Some(4096), Some(false)));
    }

    #[test]
    fn a_part_of_a_sector_is_written_safely_only_where_that_is_promised() {
        let keeps = |files: &[(&str, &str)]| {
            seen(files, |device| [512, 4096].map(|bytes| device.keeps_neighbours(bytes)))
        };
        assert_eq!(keeps(&SECTORS), [Some(false), Some(true)]);
        let promised = |least| {
            let (least, most) = (
                ("queue/atomic_write_unit_min_bytes", least),
                ("queue/atomic_write_unit_max_bytes", "16384"),
            );
            keeps(&[SECTORS[0], SECTORS[1], least, most])
        };
        assert_eq!(promised("512"), [Some(true), Some(true)]);
        assert_eq!(promised("4096"), [Some(false), Some(true)]);
        assert_eq!(promised("0"), [Some(false), Some(true)]);
        assert_eq!(keeps(&[]), [None, None]);
    }

    #[test]
    fn what_tells_devices_apart_is_in_their_identity() {
        let serial = |text| seen(&[SECTORS[1], ("device/serial", text)], Device::identity);
        assert!(serial("S4X\n A").contains("serial=S4X A sector=4096 cache=?"), "{}", serial("a"));
        assert_ne!(serial("A"), serial("B"));
        assert_ne!(serial("A"), seen(&[("device/serial", "A")], Device::identity));
        assert!(!serial("A\nB").contains('\n'));
    }

    #[test]
    fn nothing_is_known_without_a_device() {
        let empty = tempfile::tempdir().unwrap();
        let found = Device::at(empty.path(), File::open(empty.path()).unwrap());
        assert_eq!((found.dir.as_deref(), found.keeps_neighbours(512)), (None, None));
    }
}
