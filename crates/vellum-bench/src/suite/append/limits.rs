//! Refuses, before anything is run, what disk or memory would not hold.

use std::path::Path;

use super::Entry;
use crate::conditions::memory_bytes;
use crate::error::{Context, Error, Result};
use crate::record::Records;
use crate::setting::Setting;

/// The records of every process are in memory in its process and once more in the ledger; ways
/// with a buffer of their own have one or two copies of a record.
const MEMORY_COPIES: u64 = 4;

/// A tenth of the disk stays free: other programs live there too, and filesystems that are
/// nearly full are slow.
const FREE_SHARE: u64 = 10;

/// Does `setting` fit the filesystem of `dir` and the memory, in all `entries` that will run?
pub(super) fn check(setting: &Setting, dir: &Path, entries: &[Entry]) -> Result<()> {
    let stat = rustix::fs::statvfs(dir)
        .context(|| format!("ask for the free space of {}", dir.display()))?;
    let free = stat.f_bavail.saturating_mul(stat.f_frsize);
    let usable = free - free / FREE_SHARE;
    for entry in entries.iter().filter(|entry| entry.skipped.is_none()) {
        let needed = entry.way.disk_bytes(setting);
        if needed > usable {
            return Err(Error::no_space(format!(
                "{setting}: {} needs {} of disk, and {} of the {} free in {} can be used; choose \
                 another directory, fewer records or other ways",
                entry.name,
                mebibytes(needed),
                mebibytes(usable),
                mebibytes(free),
                dir.display(),
            )));
        }
    }
    let copies = u64::from(setting.processes) * MEMORY_COPIES;
    let needed = Records::memory_bytes(setting.bytes).saturating_mul(copies);
    match memory_bytes("MemAvailable") {
        Some(available) if needed > available / 2 => Err(Error::no_space(format!(
            "{setting}: the records of {} processes take {} of memory, and half of the {} \
             available can be used",
            setting.processes,
            mebibytes(needed),
            mebibytes(available),
        ))),
        _ => Ok(()),
    }
}

fn mebibytes(bytes: u64) -> String {
    format!("{} MiB", bytes.div_ceil(1 << 20))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ErrorKind;
    use crate::ways::WayName;

    fn entries() -> Vec<Entry> {
        let options = vellum::Options::new();
        let entry = |name: WayName| Entry { name, way: name.way(&options), skipped: None };
        WayName::ALL.map(entry).into()
    }

    fn refusal(setting: Setting) -> String {
        let dir = tempfile::tempdir().unwrap();
        let error = check(&setting, dir.path(), &entries()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NoSpace);
        error.to_string()
    }

    #[test]
    fn more_than_the_disk_holds_is_refused() {
        assert!(refusal(Setting::new(1000, 99_999_999_999, 4096)).contains("of disk"));
        assert!(refusal(Setting::new(1000, 99_999_999_999, 1 << 30)).contains("of disk"));
    }

    #[test]
    fn more_than_the_memory_holds_is_refused() {
        let setting = Setting::new(1024, 1, 1 << 30);
        let dir = tempfile::tempdir().unwrap();
        assert!(check(&setting, dir.path(), &[]).unwrap_err().to_string().contains("of memory"));
    }

    #[test]
    fn a_small_setting_fits() {
        let dir = tempfile::tempdir().unwrap();
        check(&Setting::new(2, 10, 128), dir.path(), &entries()).unwrap();
    }
}
