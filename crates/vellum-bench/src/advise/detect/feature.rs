//! What the kernel can do on a filesystem, found out by doing it.
//!
//! In a process of its own: a filesystem that fails a store through a mapping kills who stores.

use std::fs::{self, File};
use std::io::IoSlice;
use std::path::Path;
use std::time::Duration;

use rustix::fs::{AtFlags, CWD, FallocateFlags, StatxFlags, fallocate, statx};
use rustix::io::{ReadWriteFlags, pwritev2};
use serde::Serialize;

use crate::error::{Context, Result};
use crate::process::figures;
use crate::sys::{FileMap, WRITE_ZEROES};
use crate::ways::{Way, direct::Direct};

/// `RWF_DONTCACHE`: through the page cache, which forgets it once it is written.
const DONTCACHE: ReadWriteFlags = ReadWriteFlags::from_bits_retain(0x80);

const BYTES: usize = 1 << 20;
const PIECE_BYTES: usize = 4096;
const LIMIT: Duration = Duration::from_secs(20);

/// Something that the kernel can or can't do on this filesystem.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Feature {
    /// As the manuals call it.
    pub name: &'static str,
    /// Does it work here?
    pub works: bool,
    /// Why not.
    pub reason: Option<String>,
}

type Probe = fn(&Path) -> Result<()>;

/// What is tried, in this order.
const PROBES: [(&str, Probe); 10] = [
    ("fallocate", |dir| allocate(dir, FallocateFlags::empty())),
    ("FALLOC_FL_KEEP_SIZE", |dir| allocate(dir, FallocateFlags::KEEP_SIZE)),
    ("FALLOC_FL_ZERO_RANGE", |dir| allocate(dir, FallocateFlags::ZERO_RANGE)),
    ("FALLOC_FL_WRITE_ZEROES", |dir| allocate(dir, WRITE_ZEROES)),
    ("FALLOC_FL_COLLAPSE_RANGE", collapse),
    ("O_DIRECT", |dir| Direct.probe(dir).map_err(crate::Error::failed)),
    ("RWF_DONTCACHE", dont_cache),
    ("mmap", map),
    ("MADV_POPULATE_WRITE", populate),
    ("io_uring", |_| io_uring::IoUring::new(2).map(drop).context(|| "set up a ring")),
];

/// Tries everything in the directory `dir`, which is empty and is so again then.
pub(super) fn probe(dir: &Path) -> Result<Vec<Feature>> {
    let mut features = Vec::new();
    for (name, probe) in PROBES {
        let tried = figures(LIMIT, 1, || probe(dir).map(|()| Vec::new()));
        let _ = fs::remove_file(dir.join(FILE_NAME));
        let reason = tried.err().map(|error| error.to_string());
        features.push(Feature { name, works: reason.is_none(), reason });
    }
    Ok(features)
}

/// The largest of the units that direct writes must be multiples of; `None` where nobody says.
pub(super) fn direct_alignment(dir: &Path) -> Option<u32> {
    let path = dir.join(FILE_NAME);
    File::create_new(&path).ok()?;
    let found = statx(CWD, &path, AtFlags::empty(), StatxFlags::DIOALIGN);
    let _ = fs::remove_file(&path);
    let found = found.ok()?;
    let is_told = found.stx_mask & StatxFlags::DIOALIGN.bits() != 0;
    let unit = found.stx_dio_offset_align.max(found.stx_dio_mem_align);
    (is_told && unit > 0).then_some(unit)
}

const FILE_NAME: &str = "feature";

fn create(dir: &Path) -> Result<File> {
    let file = File::options().read(true).write(true).create_new(true).open(dir.join(FILE_NAME));
    file.context(|| "create a file")
}

fn allocate(dir: &Path, flags: FallocateFlags) -> Result<()> {
    fallocate(create(dir)?, flags, 0, BYTES as u64).context(|| "fallocate")
}

fn collapse(dir: &Path) -> Result<()> {
    let file = create(dir)?;
    file.set_len(BYTES as u64).context(|| "set the length")?;
    fallocate(&file, FallocateFlags::COLLAPSE_RANGE, 0, BYTES as u64 / 2).context(|| "fallocate")
}

fn dont_cache(dir: &Path) -> Result<()> {
    let piece = [1; PIECE_BYTES];
    let written = pwritev2(create(dir)?, &[IoSlice::new(&piece)], 0, DONTCACHE);
    written.map(drop).context(|| "pwritev2")
}

fn map(dir: &Path) -> Result<()> {
    let file = create(dir)?;
    file.set_len(BYTES as u64).context(|| "set the length")?;
    let mut map = FileMap::new(&file, BYTES).context(|| "mmap")?;
    map.store_and_sync(0, &[1; PIECE_BYTES]).context(|| "msync")
}

fn populate(dir: &Path) -> Result<()> {
    let file = create(dir)?;
    file.set_len(BYTES as u64).context(|| "set the length")?;
    let mut map = FileMap::new(&file, BYTES).context(|| "mmap")?;
    map.whole().populate(0, BYTES).context(|| "madvise")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_local_filesystem_maps_and_nothing_is_left_behind() {
        let dir = tempfile::tempdir().unwrap();
        let features = probe(dir.path()).unwrap();
        assert_eq!(features.len(), PROBES.len());
        assert!(features.iter().find(|feature| feature.name == "mmap").unwrap().works);
        assert!(features.iter().all(|feature| feature.works != feature.reason.is_some()));
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
    }
}
