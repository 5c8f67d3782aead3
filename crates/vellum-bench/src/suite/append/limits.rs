//! Leaves out cases, before they are run, that disk or memory would not hold.

use crate::bytes::mebibytes;
use crate::conditions::memory_bytes;
use crate::error::{Error, Result};
use crate::place::Place;
use crate::record::Records;
use crate::setting::Setting;
use crate::ways::Way;

/// The records of every process are in memory in its process and once more in the ledger; ways
/// with a buffer of their own have one or two copies of a record.
const MEMORY_COPIES: u64 = 4;

/// Refuses what the place, or the memory, would not hold.
pub(super) fn check(
    setting: &Setting,
    between_bytes: u64,
    place: &Place<'_>,
    way: &dyn Way,
) -> Result<()> {
    let (needed, usable) = (way.disk_bytes(setting), place.usable_bytes());
    if needed > usable {
        return Err(Error::unsupported(format!(
            "{setting} needs {} of disk, and {} there can be used",
            mebibytes(needed),
            mebibytes(usable),
        )));
    }
    let processes = u64::from(setting.processes);
    let needed = Records::memory_bytes(setting.bytes).saturating_mul(processes * MEMORY_COPIES);
    let needed = needed.saturating_add(between_bytes.saturating_mul(processes));
    match memory_bytes("MemAvailable") {
        Some(available) if needed > available / 2 => Err(Error::unsupported(format!(
            "{setting}: the records of {} processes take {} of memory, and half of the {} \
             available can be used",
            setting.processes,
            mebibytes(needed),
            mebibytes(available),
        ))),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::ways::WayName;

    fn reason(setting: Setting, way: &dyn Way) -> Option<String> {
        let dir = tempfile::tempdir().unwrap();
        let place = Place { dir: dir.path(), filesystem: "some", is_scratch: false };
        check(&setting, 0, &place, way).err().map(|error| error.to_string())
    }

    fn reason_of(setting: Setting) -> Option<String> {
        reason(setting, &*WayName::Direct.way(&vellum::Options::default()))
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
        assert!(reason(many, &Small).unwrap().contains("of memory"));
    }

    /// Needs nothing of the disk.
    struct Small;

    impl Way for Small {
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
