//! Reading the bytes of a running log as they are on its device.

use std::sync::Arc;

use crate::files::raw;
use crate::log::state::core::Core;
use crate::shared::commit;
use crate::{Lsn, Result};

pub(crate) use raw::{Piece, first_kept};

/// Where reading is, in a running log.
pub(crate) struct Raw {
    core: Arc<Core>,
    raw: raw::Raw,
}

impl Raw {
    pub(crate) fn new(core: Arc<Core>) -> Raw {
        Raw { raw: raw::Raw::new(Arc::clone(&core)), core }
    }

    /// Reads one piece from `from` on, below what is durable.
    pub(crate) fn read(&mut self, from: Lsn, buf: &mut [u8]) -> Result<Piece> {
        self.raw.read(from, buf, commit::durable(&self.core.words().commits))
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use std::fs::OpenOptions;
    use std::os::unix::fs::FileExt;

    use super::*;
    use crate::log::append::Append;
    use crate::log::commit::Commit;
    use crate::log::open::enter;
    use crate::{Options, Tuning};

    #[test]
    fn what_is_skipped_is_shipped_as_zeros_whatever_the_file_holds_there() {
        let dir = tempfile::tempdir().unwrap();
        let options = Options::wal().tuning(Tuning::new().segment_capacity_bytes(65536));
        let log = Arc::new(enter::open(&dir.path().join("log"), &options).unwrap());
        let append = || Append::of(&log).append_record(&vec![b'x'; 40_000]).unwrap();
        let (first, second) = (append(), append());
        Commit::of(&log).commit(second).unwrap();
        let end = log.files.segment_end(first);
        assert_eq!(second, end, "the rest of the segment is skipped");
        let header_len = log.files.geometry.layout.file_header_len();
        let rest = [b'y'; 1000];
        let file = OpenOptions::new().write(true).open(log.segment_path(first)).unwrap();
        file.write_all_at(&rest, header_len + 65536 - rest.len() as u64).unwrap();

        let mut shipped = vec![1; 65536];
        let mut raw = Raw::new(Arc::clone(&log));
        let mut at = first;
        while at < end {
            let begin = (at.get() - first.get()) as usize;
            let room = shipped.len().min(begin + 30_000);
            at = raw.read(at, &mut shipped[begin..room]).unwrap().next;
        }
        let len = (end.get() - first.get()) as usize;
        assert_eq!(shipped[len - 20_000..len], [0; 20_000], "by one reader, piece by piece");
        let mut again = vec![1; 1500];
        let from = Lsn::new(end.get() - 1500);
        let piece = Raw::new(Arc::clone(&log)).read(from, &mut again).unwrap();
        assert_eq!((piece.len, again), (1500, vec![0; 1500]), "by one that begins in the middle");
    }
}
