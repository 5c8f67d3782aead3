//! The choices without advice, in the form of advice.

use std::path::Path;

use rustix::fs::OFlags;
use vellum::advice::Method;
use vellum::internal::{OsResult, PREFAULT_BYTES_DEFAULT, knowledge};
use vellum::{Fill, Preallocate, Result};
use vellum_sys::filesystem::Filesystem;

use crate::{Advice, FileAdvice, LogAdvice};

/// A piece of a large file; more at a time was no faster.
const PIECE_BYTES: u64 = 1 << 20;
/// In a mapping smaller pieces are better, whose zeroed pages are still in the processor's cache
/// when the bytes come: 7.9 GB/s on tmpfs against 6.6 with 2 MiB.
const MAPPED_PIECE_BYTES: u64 = 256 << 10;

impl Advice {
    /// The choices in `dir` without advice: they follow from its filesystem, without any
    /// measurement. `None` where it depends on the file or the machine.
    ///
    /// # Errors
    ///
    /// As of the operating system where there is no such directory.
    pub fn known(dir: impl AsRef<Path>) -> Result<Advice> {
        let dir = dir.as_ref();
        let flags = OFlags::RDONLY | OFlags::DIRECTORY;
        let fd = vellum_sys::file::open(dir, flags, 0).or_os("open the directory", dir)?;
        let filesystem = Filesystem::of(&fd).or_os("tell the filesystem of", dir)?;
        Ok(advice(filesystem))
    }
}

/// The advice for a filesystem.
fn advice(filesystem: Filesystem) -> Advice {
    let file = file(filesystem);
    if knowledge::refusal(filesystem).is_some() {
        return Advice { file, ..Advice::default() };
    }
    let wal = log(filesystem, Fill::Staged);
    let log = log(filesystem, knowledge::fill(filesystem, Preallocate::Auto));
    Advice { wal, log, file }
}

fn log(filesystem: Filesystem, fill: Fill) -> LogAdvice {
    let preparation = knowledge::preparation(filesystem, Preallocate::Auto, fill);
    // By name it is an error where there is no `fallocate`.
    let is_certain = fill == Fill::Staged || filesystem.allocates();
    LogAdvice {
        preallocate: Some(if is_certain { preparation.preallocate } else { Preallocate::Auto }),
        fill: Some(fill),
        segment_capacity_bytes: Some(knowledge::segment_capacity_bytes(fill)),
        prefault_bytes: Some(PREFAULT_BYTES_DEFAULT),
    }
}

/// For a file that is synced. The number of threads depends on the machine, and is left open.
fn file(filesystem: Filesystem) -> FileAdvice {
    let method = knowledge::method(filesystem, true);
    let piece_bytes = if method == Method::Mapped { MAPPED_PIECE_BYTES } else { PIECE_BYTES };
    FileAdvice { method: Some(method), piece_bytes: Some(piece_bytes), threads: None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_known_to_be_mapped_where_that_is_dangerous() {
        for magic in [0xef53, 0x5846_5342, 0x0102_1994, 0x9123_683e, 0x794c_7630, 0x6969, 1] {
            let filesystem = Filesystem::from_magic(magic);
            let advice = advice(filesystem);
            assert_eq!(advice.log.fill.is_none(), knowledge::refusal(filesystem).is_some());
            let is_hazardous = filesystem.mapping_hazard().is_some();
            assert!(!is_hazardous || advice.log.fill != Some(Fill::Mapped));
            assert!(!is_hazardous || advice.file.method != Some(Method::Mapped));
        }
    }
}
