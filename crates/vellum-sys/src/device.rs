//! What the kernel says of the device that a file is on, from `/sys`.
//!
//! Anonymous device numbers (btrfs, overlay, FUSE, tmpfs) lead to no device there, and some
//! containers show no `/sys`. Then nothing is known, which is an answer and no error.

use std::fs;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};

use rustix::fs::{fstat, fstatvfs, major, minor};

use crate::file::{read_text, retry};

/// A block device, as far as it is known. A partition has the facts of its disk.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Device {
    /// The name of the disk, such as `nvme0n1`.
    pub name: Option<String>,
    /// The smallest write that it makes without touching what is beside it: "the smallest unit a
    /// physical storage device can write atomically" (`Documentation/ABI/stable/sysfs-block`).
    pub physical_block_bytes: Option<u64>,
    /// Whether a power cut empties a cache of it.
    pub has_volatile_cache: Option<bool>,
    /// The smallest and the largest write of which it promises that a power cut tears none.
    pub atomic_write_bytes: Option<(u64, u64)>,
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
    pub fn at(sys: &Path, fd: impl AsFd) -> Device {
        let status = retry(|| fstat(&fd));
        let dir = status.ok().and_then(|status| directory(sys, status.st_dev));
        let filesystem_id = retry(|| fstatvfs(&fd)).map_or(0, |filesystem| filesystem.f_fsid);
        Device { filesystem_id, ..dir.map(|dir| Device::read(&dir)).unwrap_or_default() }
    }

    fn read(dir: &Path) -> Device {
        let number = |name: &str| word(dir, name).and_then(|text| text.parse::<u64>().ok());
        let least = number("queue/atomic_write_unit_min_bytes").filter(|bytes| *bytes > 0);
        let most = number("queue/atomic_write_unit_max_bytes");
        Device {
            name: dir.file_name().map(|name| name.to_string_lossy().into_owned()),
            physical_block_bytes: number("queue/physical_block_size"),
            has_volatile_cache: word(dir, "queue/write_cache")
                .map(|cache| cache != "write through"),
            atomic_write_bytes: least.zip(most),
            dir: Some(dir.to_path_buf()),
            filesystem_id: 0,
        }
    }

    /// Whether a write of `bytes`, aligned to itself, leaves what is beside it alone when the power
    /// is cut; `None` where the device is not known.
    pub fn keeps_neighbours(&self, bytes: u64) -> Option<bool> {
        let physical = self.physical_block_bytes?;
        let is_promised = |(least, most)| (least..=most).contains(&bytes);
        Some(bytes >= physical || self.atomic_write_bytes.is_some_and(is_promised))
    }

    /// By what the device, with the filesystem on it, is known again: one line, with model, serial
    /// number or world-wide name, and size, as far as there are such.
    ///
    /// Device numbers play no part: they change from boot to boot. A log that was copied is on
    /// another filesystem. An image of a disk that was copied is on a device with another serial
    /// number, where it has one.
    pub fn identity(&self) -> String {
        let physical = self.physical_block_bytes.map_or("?".into(), |bytes| bytes.to_string());
        let cache = match self.has_volatile_cache {
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

/// The directory of the disk with this number, or on which the partition with this number is.
fn directory(sys: &Path, device: u64) -> Option<PathBuf> {
    let link = sys.join("dev/block").join(format!("{}:{}", major(device), minor(device)));
    let dir = fs::canonicalize(link).ok()?;
    if dir.join("queue").exists() { Some(dir) } else { dir.parent().map(Path::to_path_buf) }
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

/// What a file of `/sys` holds, on one line, if it holds something.
fn word(dir: &Path, name: &str) -> Option<String> {
    let text = read_text(dir.join(name))?;
    let words: Vec<&str> = text.split_whitespace().collect();
    Some(words.join(" ")).filter(|text| !text.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;

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

    fn device(files: &[(&str, &str)]) -> Device {
        seen(files, Device::clone)
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
        let found = device(&[SECTORS[0], SECTORS[1], ("queue/write_cache", "write through\n")]);
        assert_eq!(found.name.as_deref(), Some("nvme0n1"));
        assert_eq!(found.physical_block_bytes, Some(4096));
        assert_eq!(found.has_volatile_cache, Some(false));
    }

    #[test]
    fn a_part_of_a_sector_is_written_safely_only_where_that_is_promised() {
        let keeps = |files: &[(&str, &str)]| {
            let device = device(files);
            [512, 4096].map(|bytes| device.keeps_neighbours(bytes))
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
        assert_eq!((found.name.as_deref(), found.keeps_neighbours(512)), (None, None));
    }
}
