//! How much memory waits to be written to devices, and when the kernel slows writers down for it;
//! how much may be locked.

use rustix::fs::OFlags;
use rustix::io;
use rustix::param::page_size;
use rustix::process::{Resource, getrlimit};

use crate::file;

/// Bytes of the page cache that are newer than the device, in the whole machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dirty {
    /// Pages that are newer than the device, or on their way there.
    pub bytes: u64,
    /// From here on the kernel writes back on its own account.
    pub background: u64,
    /// The kernel lets no process go beyond this.
    pub limit: u64,
}

/// More than `/proc/vmstat` has on any kernel before the lines that are looked for.
const VMSTAT_BYTES: usize = 8 << 10;

impl Dirty {
    /// Reads `/proc/vmstat`, which takes some ten microseconds.
    pub fn read() -> io::Result<Option<Dirty>> {
        let fd = file::open("/proc/vmstat".as_ref(), OFlags::RDONLY, 0)?;
        let mut bytes = [0; VMSTAT_BYTES];
        let len = file::read_up_to_at(&fd, &mut bytes, 0)?;
        Ok(Dirty::parse(&bytes[..len]))
    }

    fn parse(vmstat: &[u8]) -> Option<Dirty> {
        let text = str::from_utf8(vmstat).ok()?;
        let number = |name: &str| {
            let mut lines = text.lines().filter_map(|line| line.split_once(' '));
            let pages: u64 = lines.find(|(found, _)| *found == name)?.1.parse().ok()?;
            pages.checked_mul(page_size() as u64)
        };
        Some(Dirty {
            bytes: number("nr_dirty")?.checked_add(number("nr_writeback")?)?,
            background: number("nr_dirty_background_threshold")?,
            limit: number("nr_dirty_threshold")?,
        })
    }

    /// From here on the kernel slows down processes that make more pages dirty.
    pub fn slowed_from(&self) -> u64 {
        u64::midpoint(self.background, self.limit)
    }
}

/// Bytes that this process may lock in memory, if that is limited.
pub fn lock_limit() -> Option<u64> {
    getrlimit(Resource::Memlock).current
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_numbers_are_found_by_their_names() {
        let text = b"nr_free_pages 9\nnr_dirty 5\nnr_writeback 2\nnr_writeback_temp 7\n\
                     nr_dirty_threshold 40\nnr_dirty_background_threshold 20\npgpgin 1\n";
        let dirty = Dirty::parse(text).unwrap();
        let page = page_size() as u64;
        assert_eq!(dirty, Dirty { bytes: 7 * page, background: 20 * page, limit: 40 * page });
        assert_eq!(dirty.slowed_from(), 30 * page);
        assert_eq!(Dirty::parse(b"nr_dirty 5\n"), None);
        assert_eq!(Dirty::parse(b""), None);
    }

    #[test]
    fn this_machine_has_them() {
        let dirty = Dirty::read().unwrap().unwrap();
        assert!(0 < dirty.background && dirty.background <= dirty.limit, "{dirty:?}");
    }
}
