//! The written end of a segment, read through a mapping: a reader that keeps up with the writers
//! makes no system call for each record.
//!
//! A load from a page beyond the end of the file loses the mapping (`sys::guard`). So the caller
//! reads only published records in a segment that is not full: no process of the log cuts those.
//! The file's length is queried before bytes are read that were beyond it. A file that another
//! program cuts is left to `pread`, for which it is an error.

use crate::sys::kept::KeptFile;
use crate::sys::{self, Map};

/// Bytes that are mapped at a time, so that address space and page tables stay small.
const STRETCH_BYTES: u64 = 4 << 20;

/// The stretch of a segment file that is read at the moment.
#[derive(Default)]
pub(crate) struct MappedEnd {
    stretch: Option<Stretch>,
    /// Length of the file when it was last asked for.
    file_len: u64,
    /// Whether a mapping was refused: it is not asked for again.
    is_refused: bool,
}

struct Stretch {
    offset: u64,
    map: Map,
}

impl MappedEnd {
    /// Copies the bytes at `offset` of `file`. Returns `false`, and the caller reads by system
    /// call, if the file is shorter, if they lie in two stretches, or if there is no mapping.
    #[inline]
    pub(crate) fn read(&mut self, file: &KeptFile, offset: u64, bytes: &mut [u8]) -> bool {
        let end = offset + bytes.len() as u64;
        if end > self.file_len {
            self.file_len = sys::file::len(file).unwrap_or(0);
        }
        if end > self.file_len {
            return false;
        }
        let Some(stretch) = self.stretch_of(file, offset) else { return false };
        let is_inside = end - stretch.offset <= STRETCH_BYTES;
        if is_inside {
            stretch.map.read((offset - stretch.offset) as usize, bytes);
        }
        is_inside && !self.has_lost()
    }

    /// Whether storage has failed under the stretch, which is not used again then.
    #[inline]
    fn has_lost(&mut self) -> bool {
        let is_lost = self.stretch.as_ref().is_some_and(|stretch| stretch.map.is_lost());
        if is_lost {
            (self.stretch, self.is_refused) = (None, true);
        }
        is_lost
    }

    /// The stretch around `offset`, mapped.
    #[inline]
    fn stretch_of(&mut self, file: &KeptFile, offset: u64) -> Option<&Stretch> {
        let begin = offset / STRETCH_BYTES * STRETCH_BYTES;
        if self.stretch.as_ref().is_none_or(|stretch| stretch.offset != begin) {
            self.map(file, begin);
        }
        self.stretch.as_ref()
    }

    #[cold]
    fn map(&mut self, file: &KeptFile, offset: u64) {
        self.stretch = None;
        // The mapping is used for longer than the descriptor is believed.
        if !self.is_refused && file.check().is_ok() {
            let map = Map::at(file, offset, STRETCH_BYTES as usize, false);
            self.stretch = map.ok().map(|map| Stretch { offset, map });
            self.is_refused = self.stretch.is_none();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs::OpenOptions;

    use super::*;

    #[test]
    fn bytes_in_one_stretch_of_the_file_are_read_and_no_others() {
        let file = tempfile::tempfile().unwrap();
        file.set_len(STRETCH_BYTES + 100).unwrap();
        sys::file::write_all_at(&file, b"records", STRETCH_BYTES - 4).unwrap();
        let kept = KeptFile::new(file.try_clone().unwrap().into());
        let (mut end, mut bytes) = (MappedEnd::default(), [0; 4]);
        assert!(end.read(&kept, STRETCH_BYTES - 4, &mut bytes));
        assert_eq!(&bytes, b"reco");
        assert!(!end.read(&kept, STRETCH_BYTES - 3, &mut bytes), "they lie in two stretches");
        assert!(end.read(&kept, STRETCH_BYTES, &mut bytes[..3]));
        assert_eq!(&bytes[..3], b"rds");
        assert!(!end.read(&kept, STRETCH_BYTES + 97, &mut bytes), "the file ends before");
        file.set_len(STRETCH_BYTES + 101).unwrap();
        assert!(end.read(&kept, STRETCH_BYTES + 97, &mut bytes), "it has grown");
    }

    #[test]
    fn a_file_that_may_not_be_mapped_is_left_to_system_calls() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("file");
        std::fs::write(&path, b"records").unwrap();
        let file = OpenOptions::new().append(true).open(path).unwrap();
        assert!(!MappedEnd::default().read(&KeptFile::new(file.into()), 0, &mut [0; 4]));
    }
}
