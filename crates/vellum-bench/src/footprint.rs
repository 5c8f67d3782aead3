//! The footprint of a log on the disk: its files, the number of their extents, and the speed of
//! reading them when nothing of them is in memory.

use std::fs::{self, File};
use std::io::{self, Read};
use std::num::NonZeroU64;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Instant;

use rustix::fs::{Advice, fadvise};

use crate::error::{Context, Result};
use crate::sys;

/// No more than this is read back cold: enough for a figure.
const READ_BYTES_MAX: u64 = 256 << 20;
/// Read in pieces of this size.
const PIECE_BYTES: usize = 1 << 20;

/// The files of a log after a round.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Footprint {
    /// How many files.
    pub(crate) files: u64,
    /// Their lengths together.
    pub(crate) file_bytes: u64,
    /// The extents of all of them; `None` where the filesystem can't tell.
    pub(crate) extents: Option<u64>,
    /// Speed of reading them in order after they were dropped from the page cache; `None` on a
    /// filesystem that is memory.
    pub(crate) cold_read_mib_per_second: Option<f64>,
}

/// Looks at all files below `dir`, in the order of their names. Everything must have been synced.
pub(crate) fn of(dir: &Path) -> Result<Footprint> {
    let mut paths = Vec::new();
    collect(dir, &mut paths).context(|| format!("list {}", dir.display()))?;
    paths.sort();
    let mut footprint =
        Footprint { files: 0, file_bytes: 0, extents: Some(0), cold_read_mib_per_second: None };
    for path in &paths {
        let file = File::open(path).context(|| format!("open {}", path.display()))?;
        footprint.files += 1;
        footprint.file_bytes +=
            file.metadata().context(|| format!("look at {}", path.display()))?.len();
        let extents = sys::extents(&file).ok();
        footprint.extents = footprint.extents.zip(extents).map(|(sum, extents)| sum + extents);
    }
    if !is_memory(dir) {
        footprint.cold_read_mib_per_second =
            cold_read(&paths).context(|| format!("read the files in {}", dir.display()))?;
    }
    Ok(footprint)
}

/// How much of the disk the files below `dir` take, in bytes.
pub(crate) fn disk_bytes(dir: &Path) -> Result<u64> {
    let mut paths = Vec::new();
    collect(dir, &mut paths).context(|| format!("list {}", dir.display()))?;
    let blocks = |path: &PathBuf| fs::metadata(path).map(|metadata| metadata.blocks());
    // One that goes meanwhile takes nothing.
    Ok(paths.iter().filter_map(|path| blocks(path).ok()).sum::<u64>() * 512)
}

fn collect(dir: &Path, paths: &mut Vec<PathBuf>) -> io::Result<()> {
    for entry in fs::read_dir(dir)? {
        let entry = entry?;
        let kind = entry.file_type()?;
        if kind.is_dir() {
            collect(&entry.path(), paths)?;
        } else if kind.is_file() {
            paths.push(entry.path());
        }
    }
    Ok(())
}

fn is_memory(dir: &Path) -> bool {
    let kind = crate::conditions::filesystem_of(dir).map(|filesystem| filesystem.kind);
    matches!(kind.as_deref(), Some("tmpfs" | "ramfs"))
}

/// MiB per second; `None` if there is nothing to read.
fn cold_read(paths: &[PathBuf]) -> io::Result<Option<f64>> {
    let files = paths.iter().map(File::open).collect::<io::Result<Vec<File>>>()?;
    for file in &files {
        fadvise(file, 0, None::<NonZeroU64>, Advice::DontNeed)?;
    }
    let mut piece = vec![0; PIECE_BYTES];
    let mut read = 0;
    let begun = Instant::now();
    for mut file in files {
        while read < READ_BYTES_MAX {
            let len = file.read(&mut piece)?;
            if len == 0 {
                break;
            }
            read += len as u64;
        }
    }
    let seconds = begun.elapsed().as_secs_f64();
    Ok((read > 0).then(|| read as f64 / f64::from(1 << 20) / seconds))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_files_of_a_log_are_found_and_measured() {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("inner")).unwrap();
        fs::write(dir.path().join("a"), [1; 8192]).unwrap();
        fs::write(dir.path().join("inner/b"), [2; 100]).unwrap();
        let footprint = of(dir.path()).unwrap();
        assert_eq!((footprint.files, footprint.file_bytes), (2, 8292));
        assert!(footprint.extents.is_none_or(|extents| extents >= 1));
        assert!(footprint.cold_read_mib_per_second.is_none_or(|speed| speed > 0.0));
    }
}
