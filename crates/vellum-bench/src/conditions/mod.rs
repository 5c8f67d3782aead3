//! The conditions of a measurement: other facts that one must know to make sense of a number.
//!
//! Everything is read from `/proc` and `/sys`. An unknown condition is `null` or empty, never a
//! reason not to measure.

use std::fs;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::error::{Context, Result};

pub(crate) mod mount;

/// The place, the time and the machine of a measurement.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Conditions {
    /// When the run began: UTC, RFC 3339.
    pub date: String,
    /// The version of Vellum.
    pub vellum: String,
    /// Languages and libraries of others that take part, with their versions; often none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub software: Vec<String>,
    /// How filesystems were made for the run, if not as usual.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub scratch: Vec<String>,
    /// How the program was called.
    pub command_line: Vec<String>,
    /// The options of the Vellum logs, as the library prints them.
    pub vellum_options: String,
    /// Processor and memory.
    pub machine: Machine,
    /// Name, release and version of the kernel.
    pub kernel: String,
    /// The directory that was appended in.
    pub directory: PathBuf,
    /// The filesystem of that directory.
    pub filesystem: Option<Filesystem>,
    /// The block device of that filesystem, if it has one.
    pub device: Option<Device>,
    /// When the kernel writes dirty pages to the device.
    pub writeback: Writeback,
    /// Load averages over 1, 5 and 15 minutes when the run began.
    pub load_average: Option<[f64; 3]>,
}

/// Processor and memory.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Machine {
    /// The processor's own name.
    pub cpu: Option<String>,
    /// How many cores this process may use.
    pub cores: Option<usize>,
    /// The memory of the machine.
    pub memory_bytes: Option<u64>,
}

/// A mounted filesystem.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Filesystem {
    /// Its type, such as `ext4`.
    pub kind: String,
    /// The mounted device, such as `/dev/vda`.
    pub source: String,
    /// Where it is mounted.
    pub mount_point: PathBuf,
    /// The options of the mount and those of the filesystem itself.
    pub mount_options: String,
}

/// Whether a filesystem of the type `kind` writes a changed block to another place, and keeps the
/// old one for a while.
pub(crate) fn keeps_old_blocks(kind: &str) -> bool {
    matches!(kind, "btrfs" | "bcachefs" | "zfs")
}

/// A block device.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Device {
    /// Its name, such as `vda`; that of the whole disk if a partition is mounted.
    pub name: String,
    /// Its own model name.
    pub model: Option<String>,
    /// Has it got turning discs?
    pub rotational: Option<bool>,
    /// `write back` or `write through`.
    pub write_cache: Option<String>,
    /// The scheduler in use.
    pub scheduler: Option<String>,
    /// The smallest unit that it takes.
    pub logical_block_bytes: Option<u64>,
}

/// The settings under `/proc/sys/vm` that say when dirty pages are written.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Writeback {
    /// From this share of memory on, a process that dirties a page waits for write-back.
    pub dirty_ratio: Option<u64>,
    /// The same in bytes; 0 if the ratio holds.
    pub dirty_bytes: Option<u64>,
    /// From this share of memory on, write-back begins.
    pub dirty_background_ratio: Option<u64>,
    /// The same in bytes; 0 if the ratio holds.
    pub dirty_background_bytes: Option<u64>,
    /// After this long a dirty page is old enough to be written.
    pub dirty_expire_centisecs: Option<u64>,
    /// How often the kernel looks for old pages.
    pub dirty_writeback_centisecs: Option<u64>,
}

impl Conditions {
    /// The conditions of a measurement in `directory`, as they are now.
    pub(crate) fn now(directory: &Path, options: &vellum::Options) -> Conditions {
        let directory = directory.canonicalize().unwrap_or_else(|_| directory.to_path_buf());
        let mount = mount::of(&directory);
        Conditions {
            date: Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string(),
            vellum: env!("CARGO_PKG_VERSION").to_string(),
            software: Vec::new(),
            scratch: Vec::new(),
            command_line: std::env::args_os()
                .map(|arg| arg.to_string_lossy().into_owned())
                .collect(),
            vellum_options: format!("{options:?}"),
            machine: Machine::now(),
            kernel: kernel(),
            device: mount.as_ref().and_then(|mount| Device::find(&mount.device_number)),
            filesystem: mount.map(|mount| mount.filesystem),
            directory,
            writeback: Writeback::now(),
            load_average: load_average(),
        }
    }

    /// Machine and kernel, then filesystem and device if they are known, and software of others.
    pub(crate) fn lines(&self) -> Vec<String> {
        let machine = &self.machine;
        let mut lines = vec![format!(
            "{}, {} cores, {}",
            machine.cpu.as_deref().unwrap_or("unknown processor"),
            machine.cores.map_or_else(|| String::from("?"), |cores| cores.to_string()),
            self.kernel,
        )];
        if let Some(filesystem) = &self.filesystem {
            let cache = self.device.as_ref().and_then(|device| device.write_cache.as_deref());
            lines.push(format!(
                "{} on {} ({}){}",
                filesystem.kind,
                filesystem.source,
                filesystem.mount_options,
                cache.map(|cache| format!(", {cache} cache")).unwrap_or_default(),
            ));
        }
        if !self.software.is_empty() {
            lines.push(self.software.join(", "));
        }
        lines.extend(self.scratch.iter().cloned());
        lines
    }
}

impl Machine {
    fn now() -> Machine {
        let cpuinfo = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        Machine {
            cpu: field(&cpuinfo, "model name").or_else(|| field(&cpuinfo, "Model")),
            cores: std::thread::available_parallelism().ok().map(usize::from),
            memory_bytes: memory_bytes("MemTotal"),
        }
    }
}

impl Device {
    /// The device with this number, written `major:minor`.
    fn find(number: &str) -> Option<Device> {
        let found = fs::canonicalize(format!("/sys/dev/block/{number}")).ok()?;
        // A partition has no queue of its own: its disk is the directory above.
        let disk = if found.join("queue").exists() { found } else { found.parent()?.to_path_buf() };
        let queue = |name: &str| read_word(&disk.join("queue").join(name));
        let scheduler = queue("scheduler").map(|schedulers| chosen(&schedulers));
        Some(Device {
            name: disk.file_name()?.to_string_lossy().into_owned(),
            model: read_word(&disk.join("device/model")),
            rotational: queue("rotational").map(|flag| flag == "1"),
            write_cache: queue("write_cache"),
            scheduler,
            logical_block_bytes: queue("logical_block_size").and_then(|size| size.parse().ok()),
        })
    }
}

impl Writeback {
    /// The settings as they are now.
    pub(crate) fn now() -> Writeback {
        let setting = |name: &str| {
            read_word(&Path::new("/proc/sys/vm").join(name)).and_then(|text| text.parse().ok())
        };
        Writeback {
            dirty_ratio: setting("dirty_ratio"),
            dirty_bytes: setting("dirty_bytes"),
            dirty_background_ratio: setting("dirty_background_ratio"),
            dirty_background_bytes: setting("dirty_background_bytes"),
            dirty_expire_centisecs: setting("dirty_expire_centisecs"),
            dirty_writeback_centisecs: setting("dirty_writeback_centisecs"),
        }
    }

    /// From how many dirty bytes on the kernel slows writers down: halfway between the background
    /// limit and the limit.
    pub(crate) fn slowing_bytes(&self, memory_bytes: u64) -> Option<u64> {
        let limit = self.limit_bytes(memory_bytes)?;
        let background = self.background_bytes(memory_bytes)?;
        // A background limit that makes no sense is taken as half of the other.
        Some(limit.midpoint(if background < limit { background } else { limit / 2 }))
    }

    /// How many dirty bytes there may be before a writer is stopped, with this much memory
    /// free.
    pub(crate) fn limit_bytes(&self, memory_bytes: u64) -> Option<u64> {
        match self.dirty_bytes {
            Some(bytes) if bytes > 0 => Some(bytes),
            _ => self.dirty_ratio.map(|ratio| memory_bytes / 100 * ratio),
        }
    }

    /// How many dirty bytes there may be before write-back begins, with this much memory free.
    pub(crate) fn background_bytes(&self, memory_bytes: u64) -> Option<u64> {
        match self.dirty_background_bytes {
            Some(bytes) if bytes > 0 => Some(bytes),
            _ => self.dirty_background_ratio.map(|ratio| memory_bytes / 100 * ratio),
        }
    }
}

/// The filesystem that `directory` is on.
pub(crate) fn filesystem_of(directory: &Path) -> Option<Filesystem> {
    mount::of(&directory.canonicalize().ok()?).map(|mount| mount.filesystem)
}

/// The bytes of the filesystem of `directory` that any user may use.
pub(crate) fn free_bytes(directory: &Path) -> Result<u64> {
    let stat = rustix::fs::statvfs(directory)
        .context(|| format!("ask for the free space of {}", directory.display()))?;
    Ok(stat.f_bavail.saturating_mul(stat.f_frsize))
}

/// A line of `/proc/meminfo`, in bytes.
pub(crate) fn memory_bytes(name: &str) -> Option<u64> {
    let meminfo = fs::read_to_string("/proc/meminfo").ok()?;
    let kib = field(&meminfo, name)?;
    kib.strip_suffix(" kB")?.trim().parse::<u64>().ok().map(|kib| kib * 1024)
}

fn load_average() -> Option<[f64; 3]> {
    let text = fs::read_to_string("/proc/loadavg").ok()?;
    let mut loads = text.split_whitespace().map(|load| load.parse().ok());
    Some([loads.next()??, loads.next()??, loads.next()??])
}

fn kernel() -> String {
    let parts = ["ostype", "osrelease", "version"];
    let part = |name: &&str| read_word(&Path::new("/proc/sys/kernel").join(name));
    parts.iter().filter_map(part).collect::<Vec<String>>().join(" ")
}

/// The value of the first line `name : value`.
fn field(text: &str, name: &str) -> Option<String> {
    let mut fields = text.lines().filter_map(|line| line.split_once(':'));
    let (_, value) = fields.find(|(key, _)| key.trim() == name)?;
    Some(value.trim().to_string())
}

/// The one in brackets, as in `none [mq-deadline] kyber`.
fn chosen(choices: &str) -> String {
    let bracketed = choices.split_once('[').and_then(|(_, rest)| rest.split_once(']'));
    bracketed.map_or(choices, |(choice, _)| choice).to_string()
}

fn read_word(path: &Path) -> Option<String> {
    let text = fs::read_to_string(path).ok()?;
    let text = text.trim();
    (!text.is_empty()).then(|| text.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_scheduler_in_use_is_the_one_in_brackets() {
        assert_eq!(chosen("none [mq-deadline] kyber"), "mq-deadline");
        assert_eq!(chosen("none"), "none");
    }

    #[test]
    fn the_conditions_of_this_machine_are_found() {
        let conditions = Conditions::now(Path::new("/"), &vellum::Options::default());
        assert!(conditions.kernel.starts_with("Linux "));
        assert_eq!(conditions.filesystem.unwrap().mount_point, Path::new("/"));
        assert!(conditions.machine.memory_bytes.unwrap() > 1 << 20);
        assert!(conditions.writeback.dirty_background_ratio.is_some());
        assert!(conditions.load_average.is_some());
        let date: Timestamp = conditions.date.parse().unwrap();
        assert!(conditions.date.len() == 20 && date <= Timestamp::now(), "{}", conditions.date);
    }
}
