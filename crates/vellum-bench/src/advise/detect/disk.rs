//! The devices under a filesystem, from `/sys`: what each says of itself, and what it stands on.

use std::fs;
use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::conditions::mount::{self, Mount};

/// A file on a filesystem on a device on a file: somewhere it ends.
const DEPTH_MAX: usize = 8;

/// A block device, as it stands under a filesystem.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Disk {
    /// Its name, such as `vda`; that of the whole disk if a partition is mounted.
    pub name: String,
    /// Has it got turning discs? As it says itself.
    pub is_rotational: Option<bool>,
    /// Does it keep what is written in a cache that a power cut empties?
    pub has_volatile_cache: Option<bool>,
    /// Can it write past that cache (FUA)? If not, a synchronous write is a write and a flush.
    pub has_fua: Option<bool>,
    /// Does it take discards?
    pub takes_discard: Option<bool>,
    /// The smallest unit that it takes.
    pub logical_block_bytes: Option<u64>,
    /// The unit that it writes by itself; a shorter write makes it read first.
    pub physical_block_bytes: Option<u64>,
    /// Where the partition that is mounted begins.
    pub partition_start_bytes: Option<u64>,
    /// Its number, written `major:minor`.
    pub number: Option<String>,
    /// For a loop device, the file that it is made of.
    pub file: Option<PathBuf>,
    /// The type of the filesystem that this file is on.
    pub file_filesystem: Option<String>,
    /// For a loop device on a file: are that file's pages left out of the page cache?
    pub is_direct: Option<bool>,
    /// For a device of the device mapper, what kind: `LVM`, `CRYPT`.
    pub mapper: Option<String>,
}

impl Disk {
    /// Is it made of memory, so that a power cut takes all of it?
    pub(in crate::advise) fn is_memory(&self) -> bool {
        let file_is_memory =
            self.file_filesystem.as_deref().is_some_and(|kind| matches!(kind, "tmpfs" | "ramfs"));
        let number_follows = |prefix: &str| {
            self.name.strip_prefix(prefix).is_some_and(|rest| rest.parse::<u32>().is_ok())
        };
        file_is_memory || ["zram", "ram", "pmem"].into_iter().any(number_follows)
    }

    /// Does the partition that is mounted begin within a block of the disk?
    pub(in crate::advise) fn is_misaligned(&self) -> bool {
        let both = self.partition_start_bytes.zip(self.physical_block_bytes);
        both.is_some_and(|(start, block)| block > 0 && !start.is_multiple_of(block))
    }

    /// For people; what is not known is left out.
    pub(super) fn line(&self) -> String {
        let either = |known: Option<bool>, yes: &str, no: &str| {
            known.map(|known| String::from(if known { yes } else { no }))
        };
        let file = self.file.as_ref().map(|file| format!("is the file {}", file.display()));
        let parts = [
            file,
            self.mapper.as_ref().map(|kind| format!("mapped ({kind})")),
            either(self.is_rotational, "says it rotates", "does not rotate"),
            either(self.has_volatile_cache, "write-back cache", "no volatile cache"),
            either(self.has_fua, "FUA", "no FUA"),
            either(self.takes_discard, "takes discards", "no discards"),
        ];
        let parts: Vec<String> = parts.into_iter().flatten().collect();
        format!("{}: {}", self.name, parts.join(", "))
    }
}

/// The devices under `mount`, each above those that it stands on.
pub(super) fn stack(sys: &Path, mountinfo: &str, mount: &Mount) -> Vec<Disk> {
    let mut disks = Vec::new();
    if let Some(dir) = of_mount(sys, mount) {
        descend(sys, mountinfo, &dir, DEPTH_MAX, &mut disks);
        let start = partition_start_bytes(sys, mount);
        disks.iter_mut().take(1).for_each(|disk| disk.partition_start_bytes = start);
    }
    disks
}

/// `/sys` counts in units of 512 bytes, whatever the device does.
fn partition_start_bytes(sys: &Path, mount: &Mount) -> Option<u64> {
    let start = sys.join("dev/block").join(&mount.device_number).join("start");
    fs::read_to_string(start).ok()?.trim().parse::<u64>().ok().map(|units| units * 512)
}

/// The directory of a mount's device. btrfs has numbers that are no device's, so that its source
/// has to say.
fn of_mount(sys: &Path, mount: &Mount) -> Option<PathBuf> {
    let by_number = sys.join("dev/block").join(&mount.device_number);
    let name = mount.filesystem.source.strip_prefix("/dev/");
    let by_name = name.map(|name| sys.join("class/block").join(name.replace('/', "!")));
    let found = [Some(by_number), by_name].into_iter().flatten();
    let found = found.filter_map(|path| fs::canonicalize(path).ok()).next()?;
    // A partition has no queue of its own: its disk is the directory above.
    if found.join("queue").exists() { Some(found) } else { found.parent().map(Path::to_path_buf) }
}

fn descend(sys: &Path, mountinfo: &str, dir: &Path, depth: usize, disks: &mut Vec<Disk>) {
    let mut disk = read(dir);
    let mount = disk.file.as_ref().and_then(|file| mount::find(mountinfo, file));
    disk.file_filesystem = mount.as_ref().map(|mount| mount.filesystem.kind.clone());
    if depth == 0 || disks.iter().any(|known| known.name == disk.name) {
        return;
    }
    disks.push(disk);
    for below in entries(&dir.join("slaves")) {
        if let Ok(below) = fs::canonicalize(below) {
            let has_queue = below.join("queue").exists();
            let whole = if has_queue { Some(below.as_path()) } else { below.parent() };
            whole.into_iter().for_each(|dir| descend(sys, mountinfo, dir, depth - 1, disks));
        }
    }
    if let Some(below) = mount.and_then(|mount| of_mount(sys, &mount)) {
        descend(sys, mountinfo, &below, depth - 1, disks);
    }
}

fn entries(dir: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(dir).into_iter().flatten().flatten();
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    paths.sort();
    paths
}

fn read(dir: &Path) -> Disk {
    let word = |name: &str| {
        let text = fs::read_to_string(dir.join(name)).ok()?;
        Some(text.trim().to_string()).filter(|text| !text.is_empty())
    };
    let number = |name: &str| word(name).and_then(|text| text.parse::<u64>().ok());
    let flag = |name: &str| number(name).map(|number| number > 0);
    Disk {
        name: dir.file_name().unwrap_or_default().to_string_lossy().into_owned(),
        is_rotational: flag("queue/rotational"),
        has_volatile_cache: word("queue/write_cache").map(|cache| cache == "write back"),
        has_fua: flag("queue/fua"),
        takes_discard: flag("queue/discard_max_bytes"),
        logical_block_bytes: number("queue/logical_block_size"),
        physical_block_bytes: number("queue/physical_block_size"),
        partition_start_bytes: None,
        number: word("dev"),
        file: word("loop/backing_file").map(PathBuf::from),
        file_filesystem: None,
        is_direct: flag("loop/dio"),
        mapper: word("dm/uuid").map(|uuid| uuid.split('-').next().unwrap_or_default().to_string()),
    }
}
