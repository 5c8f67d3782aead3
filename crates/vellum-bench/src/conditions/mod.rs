//! The conditions of a measurement: what else one must know to make sense of a number.
//!
//! Everything is read from `/proc` and `/sys`. What can't be found out is `null` or empty, never a
//! reason not to measure.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

pub(crate) mod mount;

/// Where, when and on what a measurement was made.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Conditions {
    /// When the run began: UTC, RFC 3339.
    pub date: String,
    /// The version of Vellum.
    pub vellum: String,
    /// Languages and libraries of others that take part, with their versions; often none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub software: Vec<String>,
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
    /// What is mounted, such as `/dev/vda`.
    pub source: String,
    /// Where it is mounted.
    pub mount_point: PathBuf,
    /// The options of the mount and those of the filesystem itself.
    pub mount_options: String,
}

/// A block device.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Device {
    /// Its name, such as `vda`; that of the whole disk if a partition is mounted.
    pub name: String,
    /// What it says that it is.
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
    /// From this share of memory on, who dirties a page waits for write-back.
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
            date: rfc3339(SystemTime::now()),
            vellum: env!("CARGO_PKG_VERSION").to_string(),
            software: Vec::new(),
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
    fn now() -> Writeback {
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

    /// How many dirty bytes there may be before whoever writes is stopped, with this much memory
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

/// UTC in the form `2026-11-20T09:30:00Z`.
fn rfc3339(time: SystemTime) -> String {
    let seconds = time.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    let (year, month, day) = civil(seconds / 86_400);
    let (hour, minute, second) = (seconds / 3600 % 24, seconds / 60 % 60, seconds % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
}

/// The date that is `days` after 1970-01-01. Years are counted from March, so that the day that
/// comes and goes is the last of a year; 400 of them always have the same number of days.
fn civil(days: u64) -> (u64, u64, u64) {
    const DAYS_TO_1970: u64 = 719_468; // from 0000-03-01
    const DAYS_IN_400_YEARS: u64 = 146_097;
    let days = days + DAYS_TO_1970;
    let (era, day_of_era) = (days / DAYS_IN_400_YEARS, days % DAYS_IN_400_YEARS);
    let leap_days = day_of_era / 1460 - day_of_era / 36_524 + day_of_era / 146_096;
    let year_of_era = (day_of_era - leap_days) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    (400 * era + year_of_era + u64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn dates_are_right_around_leap_days() {
        let at = |seconds| rfc3339(UNIX_EPOCH + Duration::from_secs(seconds));
        assert_eq!(at(0), "1970-01-01T00:00:00Z");
        assert_eq!(at(951_782_399), "2000-02-28T23:59:59Z");
        assert_eq!(at(951_782_400), "2000-02-29T00:00:00Z");
        assert_eq!(at(951_868_800), "2000-03-01T00:00:00Z");
        assert_eq!(at(1_735_689_599), "2024-12-31T23:59:59Z");
        assert_eq!(at(4_107_542_400), "2100-03-01T00:00:00Z");
    }

    #[test]
    fn the_scheduler_in_use_is_the_one_in_brackets() {
        assert_eq!(chosen("none [mq-deadline] kyber"), "mq-deadline");
        assert_eq!(chosen("none"), "none");
    }

    #[test]
    fn the_conditions_of_this_machine_are_found() {
        let conditions = Conditions::now(Path::new("/"), &vellum::Options::new());
        assert!(conditions.kernel.starts_with("Linux "));
        assert_eq!(conditions.filesystem.unwrap().mount_point, Path::new("/"));
        assert!(conditions.machine.memory_bytes.unwrap() > 1 << 20);
        assert!(conditions.writeback.dirty_background_ratio.is_some());
        assert!(conditions.load_average.is_some());
    }
}
