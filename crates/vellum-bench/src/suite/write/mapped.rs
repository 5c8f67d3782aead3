//! Table `mmap`: stores into a file that is mapped shared.
//!
//! Each thread stores into a contiguous share of the file. The mappings are made before the clock
//! starts; that they are removed counts as part of the sync, for a program waits for it.

use std::fs::File;
use std::io;

use super::clock::{once, together};
use super::config::{Config, Table};
use super::entry::{Entry, Job, Sample, Site};
use super::source::Source;
use super::state::State;
use crate::error::{Context, Error, Result};
use crate::sys::{FileMap, MapPart};

/// Shares are whole pages.
const PAGE_BYTES: u64 = 4096;
/// Stored, and made ready, at a time: the pages that the kernel has cleared are still in the cache
/// when the store comes.
const PIECE_BYTES: usize = 256 << 10;

/// How many mappings there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Maps {
    One,
    EachThread,
    EachThreadAndDescriptor,
}

impl Maps {
    const ALL: [Maps; 3] = [Maps::One, Maps::EachThread, Maps::EachThreadAndDescriptor];

    fn as_str(self) -> &'static str {
        match self {
            Maps::One => "one map",
            Maps::EachThread => "map per thread",
            Maps::EachThreadAndDescriptor => "map and fd per thread",
        }
    }
}

struct Mapped {
    maps: Maps,
    populate: bool,
    state: State,
    threads: u32,
}

impl Job for Mapped {
    fn run(&self, site: &Site<'_>) -> Result<Sample> {
        let (file, preparation) = self.state.make(&site.file(), site.bytes)?;
        let mut maps = Vec::new();
        let mapping = once(|| {
            maps = self.map(&file, site).map_err(unmapped)?;
            Ok(())
        })?;
        let shares = shares(site.bytes, self.threads);
        let parts = match maps.as_mut_slice() {
            [map] => map.parts(shares.iter().map(|(_, len)| *len as usize)),
            maps => maps.iter_mut().map(FileMap::whole).collect(),
        };
        let workers = parts.into_iter().zip(&shares).map(|(mut part, (first, len))| {
            let mut source = Source::new(PIECE_BYTES, site.round);
            move || store(&mut part, *first, *len as usize, &mut source, self.populate)
        });
        let write = together(workers.collect())?;
        let sync = once(|| {
            drop(maps);
            file.sync_all().trying("fsync")
        })?;
        Ok(Sample::new(preparation + mapping.time.as_nanos() as u64, write, sync))
    }
}

impl Mapped {
    fn map(&self, file: &File, site: &Site<'_>) -> io::Result<Vec<FileMap>> {
        if self.maps == Maps::One {
            return Ok(vec![FileMap::new(file, site.bytes as usize)?]);
        }
        let map = |(first, len): (u64, u64)| {
            if self.maps == Maps::EachThread {
                return FileMap::at(file, first, len as usize);
            }
            // The mapping keeps the file open by itself.
            let own = File::options().read(true).write(true).open(site.file())?;
            FileMap::at(&own, first, len as usize)
        };
        shares(site.bytes, self.threads).into_iter().map(map).collect()
    }
}

/// Where a file can't be mapped shared, as on many FUSE mounts, the kernel says that there is no
/// such device.
fn unmapped(error: io::Error) -> Error {
    let is_unmappable = error.raw_os_error() == Some(libc::ENODEV);
    let what = if is_unmappable { "files can't be mapped shared here" } else { "mmap" };
    Error::os_or_unsupported(what, error)
}

/// A page that is not to be had kills the process that stores to it; the call says "bad address"
/// instead.
fn unpopulated(error: io::Error) -> Error {
    let is_no_page = error.raw_os_error() == Some(libc::EFAULT);
    let what = if is_no_page { "no page was to be had (MADV_POPULATE_WRITE)" } else { "madvise" };
    Error::os_or_unsupported(what, error)
}

/// Stores as one thread.
fn store(
    part: &mut MapPart<'_>,
    first: u64,
    len: usize,
    source: &mut Source,
    populate: bool,
) -> Result<()> {
    for offset in (0..len).step_by(PIECE_BYTES) {
        let len = PIECE_BYTES.min(len - offset);
        if populate {
            part.populate(offset, len).map_err(unpopulated)?;
        }
        part.store(offset, source.piece(first + offset as u64, len));
    }
    Ok(())
}

/// Where the share of each thread begins, and how long it is.
pub(super) fn shares(bytes: u64, threads: u32) -> Vec<(u64, u64)> {
    let (pages, threads) = (bytes / PAGE_BYTES, u64::from(threads));
    let begin = |thread: u64| thread * pages / threads * PAGE_BYTES;
    (0..threads).map(|thread| (begin(thread), begin(thread + 1) - begin(thread))).collect()
}

/// The cases of the table. With one thread a map for each is the one map.
pub(super) fn entries(config: &Config) -> Vec<Entry> {
    let mut entries = Vec::new();
    for state in [State::Sparse, State::Preallocated] {
        for maps in Maps::ALL {
            for populate in [false, true] {
                let counts = config.threads.iter().copied();
                for threads in counts.filter(|threads| maps == Maps::One || *threads > 1) {
                    let case = Entry::new(Table::Mmap, Mapped { maps, populate, state, threads })
                        .key("way", maps.as_str())
                        .key("populate", if populate { "yes" } else { "no" })
                        .key("state", state);
                    entries.push(case.threads(threads));
                }
            }
        }
    }
    entries
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_the_whole_file_without_gaps() {
        for (bytes, threads) in [(1 << 20, 1), (1 << 20, 3), (1 << 20, 256), ((1 << 20) + 4096, 7)]
        {
            let shares = shares(bytes, threads);
            let end = shares.iter().fold(0, |end, (first, len)| {
                assert!(*first == end && *len > 0);
                first + len
            });
            assert_eq!((shares.len(), end), (threads as usize, bytes));
        }
    }
}
