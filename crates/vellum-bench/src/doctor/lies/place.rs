//! Where the block of each number lies, and what is in it.
//!
//! One in three is appended to a file that grows, and flushed by fdatasync. One in three
//! overwrites a block of a file that is there, through O_DSYNC. One in three is a new file, which
//! is flushed by fsync, as its directory is. So a number is enough to find its block, and a
//! witness that knows the highest number knows all promises.

use std::path::{Path, PathBuf};

use vellum_sys::Dir;

/// Bytes of a block.
pub(super) const BLOCK_LEN: usize = 4096;
pub(super) const SECTOR_LEN: usize = 512;
/// Blocks of a file that grows, before the next one begins. Two of those are kept.
const GROWN_BLOCKS: u64 = 1024;
const GROWN_KEPT: u64 = 2;
/// Blocks that are overwritten in turn.
pub(super) const OVERWRITTEN_BLOCKS: u64 = 64;
/// New files that are kept.
const NEW_KEPT: u64 = 256;
/// No file is longer.
pub(super) const FILE_LEN_MAX: u64 = GROWN_BLOCKS * BLOCK_LEN as u64;

/// How a block is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    /// Appended, and fdatasync.
    Grown,
    /// In the place of an older one, through O_DSYNC.
    Overwritten,
    /// A file of its own, and fsync of it and of its directory.
    New,
}

/// The place of a block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) way: Way,
    /// The name of its file.
    pub(super) name: String,
    /// Where in the file, in bytes.
    pub(super) offset: u64,
    /// The file that goes before this block is written.
    pub(super) removed: Option<String>,
    /// The first number that takes this place or removes its file.
    pub(super) until: u64,
}

/// The file that is overwritten.
pub(super) const OVERWRITTEN: &str = "overwritten";

/// Where the block of a number lies; numbers begin with 1.
pub(super) fn place(number: u64) -> Place {
    let turn = (number - 1) / 3;
    match (number - 1) % 3 {
        0 => {
            let (file, block) = (turn / GROWN_BLOCKS, turn % GROWN_BLOCKS);
            let old = file.checked_sub(GROWN_KEPT).filter(|_| block == 0);
            Place {
                way: Way::Grown,
                name: format!("grown-{file}"),
                offset: block * BLOCK_LEN as u64,
                removed: old.map(|old| format!("grown-{old}")),
                until: (file + GROWN_KEPT) * GROWN_BLOCKS * 3 + 1,
            }
        }
        1 => Place {
            way: Way::Overwritten,
            name: OVERWRITTEN.into(),
            offset: turn % OVERWRITTEN_BLOCKS * BLOCK_LEN as u64,
            removed: None,
            until: number + OVERWRITTEN_BLOCKS * 3,
        },
        _ => Place {
            way: Way::New,
            name: format!("new-{turn}"),
            offset: 0,
            removed: turn.checked_sub(NEW_KEPT).map(|old| format!("new-{old}")),
            until: number + NEW_KEPT * 3,
        },
    }
}

/// The numbers up to `promised` whose blocks must be there when blocks up to `begun` may have been
/// begun: a block that is being overwritten may be torn on any disk.
pub(super) fn required(promised: u64, begun: u64) -> Vec<u64> {
    let longest = (GROWN_KEPT + 1) * GROWN_BLOCKS * 3;
    let first = promised.saturating_sub(longest).max(1);
    (first..=promised).filter(|number| place(*number).until > begun).collect()
}

/// What is in the block of a number: each sector says whose it is.
pub(super) fn content(run: u64, number: u64) -> Vec<u8> {
    (0..BLOCK_LEN / SECTOR_LEN).flat_map(|index| sector(run, number, index)).collect()
}

/// One sector of it.
pub(super) fn sector(run: u64, number: u64, index: usize) -> [u8; SECTOR_LEN] {
    let mut bytes = [0; SECTOR_LEN];
    fastrand::Rng::with_seed(run ^ (number << 3 | index as u64)).fill(&mut bytes);
    bytes[..8].copy_from_slice(&run.to_le_bytes());
    bytes[8..16].copy_from_slice(&number.to_le_bytes());
    bytes
}

/// Which number a sector says that it is of, if its run is this.
pub(super) fn number_of(run: u64, sector: &[u8]) -> Option<u64> {
    let word = |at: usize| Some(u64::from_le_bytes(sector.get(at..at + 8)?.try_into().ok()?));
    (word(0)? == run).then(|| word(8)).flatten()
}

/// The run and the number of a block that is whole, wherever it was found.
pub fn whole(block: &[u8]) -> Option<(u64, u64)> {
    let run = u64::from_le_bytes(block.get(..8)?.try_into().ok()?);
    let number = number_of(run, block)?;
    (block == content(run, number)).then_some((run, number))
}

/// The directory of the blocks, if it is there and no link.
pub(super) fn opened_in(tested: &Path) -> rustix::io::Result<Dir> {
    Dir::open(tested)?.subdirectory(Path::new(super::DIR_NAME))
}

/// The path of the directory of the blocks.
pub(super) fn dir_in(tested: &Path) -> PathBuf {
    tested.join(super::DIR_NAME)
}
