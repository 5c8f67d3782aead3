//! Leaves out, before it is run, what disk or memory would not hold.

use super::Entry;
use crate::conditions::memory_bytes;
use crate::place::Place;
use crate::record::Records;
use crate::setting::Setting;

/// The records of every process are in memory in its process and once more in the ledger; ways
/// with a buffer of their own have one or two copies of a record.
const MEMORY_COPIES: u64 = 4;

/// Why the place, or the memory, would not hold `setting`; `None` if they would.
pub(super) fn reason(setting: &Setting, place: &Place<'_>, entry: &Entry) -> Option<String> {
    let usable = place.usable_bytes();
    let needed = entry.way.disk_bytes(setting);
    if needed > usable {
        return Some(format!(
            "{setting} needs {} of disk, and {} there can be used",
            mebibytes(needed),
            mebibytes(usable),
        ));
    }
    let copies = u64::from(setting.processes) * MEMORY_COPIES;
    let needed = Records::memory_bytes(setting.bytes).saturating_mul(copies);
    let available = memory_bytes("MemAvailable")?;
    (needed > available / 2).then(|| {
        format!(
            "{setting}: the records of {} processes take {} of memory, and half of the {} \
             available can be used",
            setting.processes,
            mebibytes(needed),
            mebibytes(available),
        )
    })
}

fn mebibytes(bytes: u64) -> String {
    format!("{} MiB", bytes.div_ceil(1 << 20))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::ways::WayName;

    fn reason_of(setting: Setting) -> Option<String> {
        let dir = tempfile::tempdir().unwrap();
        let place = Place { dir: dir.path(), filesystem: "some", is_scratch: false };
        let name = WayName::Direct;
        let entry = Entry { name, way: name.way(&vellum::Options::new()), skipped: None };
        reason(&setting, &place, &entry)
    }

    #[test]
    fn more_than_the_disk_holds_has_a_reason() {
        let reason = reason_of(Setting::new(1000, 99_999_999_999, 4096)).unwrap();
        assert!(reason.contains("of disk"), "{reason}");
        assert!(reason_of(Setting::new(1000, 99_999_999_999, 1 << 30)).is_some());
    }

    #[test]
    fn more_than_the_memory_holds_has_a_reason() {
        let many = Setting { processes: 1024, records: 1, bytes: 64 << 20 };
        let dir = tempfile::tempdir().unwrap();
        let name = WayName::Write;
        let way: Box<dyn crate::ways::Way> = Box::new(Small);
        let place = Place { dir: dir.path(), filesystem: "some", is_scratch: false };
        let reason = reason(&many, &place, &Entry { name, way, skipped: None });
        assert!(reason.unwrap().contains("of memory"));
    }

    /// Needs nothing of the disk.
    struct Small;

    impl crate::ways::Way for Small {
        fn disk_bytes(&self, _setting: &Setting) -> u64 {
            0
        }

        fn prepare(
            &self,
            _dir: &Path,
            _setting: &Setting,
        ) -> crate::Result<Box<dyn crate::ways::Prepared>> {
            Err(crate::Error::failed("it never runs"))
        }
    }

    #[test]
    fn a_small_setting_fits() {
        assert_eq!(reason_of(Setting::new(2, 10, 128)), None);
    }
}
