//! The limited resources of a process: memory, descriptors, mappings.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use crate::error::{Context, Result};

/// The resources of a process.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Taken {
    /// Memory that is its own, with the page tables of its mappings.
    pub(super) own_kib: f64,
    /// Pages of files that are in its page tables; they belong to the page cache.
    pub(super) mapped_kib: f64,
    pub(super) descriptors: f64,
    pub(super) mappings: f64,
}

impl Taken {
    /// The resources of the calling process now.
    pub(super) fn now() -> Result<Taken> {
        let memory = read("/proc/self/smaps_rollup")?;
        let status = read("/proc/self/status")?;
        let own = kib(&memory, "Anonymous:");
        Ok(Taken {
            own_kib: own + kib(&status, "VmPTE:"),
            mapped_kib: kib(&memory, "Rss:") - own,
            descriptors: count_entries(Path::new("/proc/self/fd"))?,
            mappings: read("/proc/self/maps")?.lines().count() as f64,
        })
    }

    /// The growth since `before`, for each of `count`.
    pub(super) fn added(self, before: Taken, count: u32) -> Taken {
        let count = f64::from(count);
        Taken {
            own_kib: (self.own_kib - before.own_kib) / count,
            mapped_kib: (self.mapped_kib - before.mapped_kib) / count,
            descriptors: (self.descriptors - before.descriptors) / count,
            mappings: (self.mappings - before.mappings) / count,
        }
    }
}

fn read(path: &str) -> Result<String> {
    fs::read_to_string(path).context(|| format!("read {path}"))
}

fn count_entries(dir: &Path) -> Result<f64> {
    Ok(fs::read_dir(dir).context(|| format!("list {}", dir.display()))?.count() as f64)
}

/// The number behind a name in a file of `/proc`.
fn kib(text: &str, name: &str) -> f64 {
    let line = text.lines().find_map(|line| line.strip_prefix(name));
    line.and_then(|line| line.trim().strip_suffix(" kB")?.parse().ok()).unwrap_or(0.0)
}

/// Kibibytes that the files below `dir` take of the disk.
pub(super) fn disk_kib(dir: &Path) -> Result<f64> {
    let mut kib = 0.0;
    for entry in fs::read_dir(dir).context(|| format!("list {}", dir.display()))? {
        let entry = entry.context(|| format!("list {}", dir.display()))?;
        let metadata = entry.metadata().context(|| format!("look at {}", dir.display()))?;
        kib += match metadata.is_dir() {
            true => disk_kib(&entry.path())?,
            false => metadata.blocks() as f64 / 2.0,
        };
    }
    Ok(kib)
}
