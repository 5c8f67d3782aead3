//! The content of a disk: a file as its medium, and before that a cache that a power cut empties.
//!
//! The bytes in the file count as those that survive, wherever the file is: it is never synced.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::FileExt;

use rustix::fs::{SeekFrom, seek};

/// Bytes of a block of the cache.
pub(crate) const BLOCK_LEN: usize = 4096;
/// The unit that a medium writes whole or not at all.
const SECTOR_LEN: usize = 512;

type Block = Box<[u8; BLOCK_LEN]>;

/// How a cache behaves.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct CacheRule {
    /// A flush is answered, and nothing is written.
    pub(crate) lies: bool,
    /// Blocks that fit; the oldest are written to the medium when more come.
    pub(crate) blocks_max: usize,
    /// The share of blocks that reach the medium when the power goes.
    pub(crate) kept: f64,
    /// Whether the last of those is torn: some of its sectors are new, others old.
    pub(crate) is_torn: bool,
    /// So many blocks that were flushed last are lost with the power too.
    pub(crate) flushed_lost: usize,
}

/// The effect of a power cut on the cache.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cut {
    /// Blocks of 4096 bytes that were in the cache and are gone.
    pub forgotten: u64,
    /// Blocks that reached the medium nevertheless.
    pub kept: u64,
    /// Blocks of which a part did.
    pub torn: u64,
    /// Blocks that were flushed before, and have their content of before that.
    pub flushed_lost: u64,
}

/// The medium and its cache.
#[derive(Debug)]
pub(crate) struct Store {
    file: File,
    len: u64,
    cache: Option<Cache>,
}

#[derive(Debug)]
struct Cache {
    rule: CacheRule,
    /// Content, and when it came into the cache.
    blocks: HashMap<u64, (u64, Block)>,
    /// By when they came.
    order: BTreeMap<u64, u64>,
    arrivals: u64,
    /// The former content of the blocks that were flushed last.
    before: VecDeque<(u64, Block)>,
}

impl Store {
    /// With this medium, which has its length.
    pub(crate) fn new(file: File, rule: Option<CacheRule>) -> io::Result<Store> {
        let len = seek(&file, SeekFrom::End(0))?;
        let cache = rule.map(|rule| Cache {
            rule,
            blocks: HashMap::new(),
            order: BTreeMap::new(),
            arrivals: 0,
            before: VecDeque::new(),
        });
        Ok(Store { file, len, cache })
    }

    pub(crate) fn len_bytes(&self) -> u64 {
        self.len
    }

    pub(crate) fn descriptor(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }

    pub(crate) fn read(&self, offset: u64, len: usize) -> io::Result<Vec<u8>> {
        let rest = self.len.saturating_sub(offset);
        let mut bytes = vec![0; len.min(usize::try_from(rest).unwrap_or(usize::MAX))];
        self.file.read_exact_at(&mut bytes, offset)?;
        if let Some(cache) = self.cache.as_ref().filter(|cache| !cache.blocks.is_empty()) {
            for (index, start, part) in spans(offset, bytes.len()) {
                if let Some((_, block)) = cache.blocks.get(&index) {
                    let len = part.len();
                    bytes[part].copy_from_slice(&block[start..start + len]);
                }
            }
        }
        Ok(bytes)
    }

    pub(crate) fn write(&mut self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        if offset + bytes.len() as u64 > self.len {
            return Err(rustix::io::Errno::IO.into());
        }
        let Some(cache) = &mut self.cache else { return self.file.write_all_at(bytes, offset) };
        for (index, start, part) in spans(offset, bytes.len()) {
            let block = cache.block(index, &self.file)?;
            block[start..start + part.len()].copy_from_slice(&bytes[part]);
        }
        while cache.blocks.len() > cache.rule.blocks_max {
            cache.write_oldest(&self.file)?;
        }
        Ok(())
    }

    pub(crate) fn flush(&mut self) -> io::Result<()> {
        let Some(cache) = self.cache.as_mut().filter(|cache| !cache.rule.lies) else {
            return Ok(());
        };
        while !cache.blocks.is_empty() {
            cache.write_oldest(&self.file)?;
        }
        Ok(())
    }

    /// The power goes.
    pub(crate) fn cut(&mut self, random: &mut fastrand::Rng) -> io::Result<Cut> {
        match &mut self.cache {
            Some(cache) => cache.cut(&self.file, random),
            None => Ok(Cut::default()),
        }
    }
}

impl Cache {
    /// A block of the cache, to be changed.
    fn block(&mut self, index: u64, file: &File) -> io::Result<&mut Block> {
        if !self.blocks.contains_key(&index) {
            let block = read_block(file, index)?;
            self.arrivals += 1;
            self.order.insert(self.arrivals, index);
            self.blocks.insert(index, (self.arrivals, block));
        }
        let (_, block) = self.blocks.get_mut(&index).expect("it was just put there");
        Ok(block)
    }

    /// Takes the block that came first.
    fn take_oldest(&mut self) -> Option<(u64, Block)> {
        let (_, index) = self.order.pop_first()?;
        self.blocks.remove(&index).map(|(_, block)| (index, block))
    }

    fn write_oldest(&mut self, file: &File) -> io::Result<()> {
        let Some((index, block)) = self.take_oldest() else { return Ok(()) };
        if self.rule.flushed_lost > 0 {
            self.before.push_back((index, read_block(file, index)?));
            while self.before.len() > self.rule.flushed_lost {
                self.before.pop_front();
            }
        }
        file.write_all_at(&block[..], index * BLOCK_LEN as u64)
    }

    fn cut(&mut self, file: &File, random: &mut fastrand::Rng) -> io::Result<Cut> {
        let mut cut = Cut::default();
        // The newest first: a block may have been flushed twice.
        while let Some((index, block)) = self.before.pop_back() {
            file.write_all_at(&block[..], index * BLOCK_LEN as u64)?;
            cut.flushed_lost += 1;
        }
        let mut last = None;
        while let Some((index, block)) = self.take_oldest() {
            if random.f64() >= self.rule.kept {
                cut.forgotten += 1;
            } else if let Some((index, block)) = last.replace((index, block)) {
                file.write_all_at(&block[..], index * BLOCK_LEN as u64)?;
                cut.kept += 1;
            }
        }
        if let Some((index, block)) = last {
            let sectors = BLOCK_LEN / SECTOR_LEN;
            let count = if self.rule.is_torn { random.usize(1..sectors) } else { sectors };
            file.write_all_at(&block[..count * SECTOR_LEN], index * BLOCK_LEN as u64)?;
            *(if self.rule.is_torn { &mut cut.torn } else { &mut cut.kept }) += 1;
        }
        Ok(cut)
    }
}

fn read_block(file: &File, index: u64) -> io::Result<Block> {
    let mut block = Box::new([0; BLOCK_LEN]);
    file.read_exact_at(&mut block[..], index * BLOCK_LEN as u64)?;
    Ok(block)
}

/// Cuts a range of bytes at block boundaries: block, offset in it, and part of the caller's bytes.
fn spans(offset: u64, len: usize) -> impl Iterator<Item = (u64, usize, std::ops::Range<usize>)> {
    let mut done = 0;
    std::iter::from_fn(move || {
        let at = offset + done as u64;
        let start = (at % BLOCK_LEN as u64) as usize;
        let count = (BLOCK_LEN - start).min(len - done);
        let part = done..done + count;
        done += count;
        (count > 0).then_some((at / BLOCK_LEN as u64, start, part))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const RULE: CacheRule =
        CacheRule { lies: false, blocks_max: 8, kept: 0.0, is_torn: false, flushed_lost: 0 };

    fn store(rule: CacheRule) -> Store {
        let file = tempfile::tempfile().unwrap();
        file.set_len(64 * BLOCK_LEN as u64).unwrap();
        Store::new(file, Some(rule)).unwrap()
    }

    fn cut(store: &mut Store) -> Cut {
        store.cut(&mut fastrand::Rng::with_seed(1)).unwrap()
    }

    #[test]
    fn an_honest_cache_loses_what_was_not_flushed() {
        let mut store = store(RULE);
        store.write(100, b"flushed").unwrap();
        store.flush().unwrap();
        store.write(200, b"not").unwrap();
        assert_eq!(store.read(99, 104).unwrap()[100..], [0, b'n', b'o', b't']);
        assert_eq!(cut(&mut store), Cut { forgotten: 1, ..Cut::default() });
        assert_eq!(store.read(100, 7).unwrap(), b"flushed");
        assert_eq!(store.read(200, 3).unwrap(), [0; 3]);
    }

    #[test]
    fn a_lying_cache_loses_what_was_flushed_but_for_what_it_had_no_room_for() {
        let mut store = store(CacheRule { lies: true, ..RULE });
        for block in 0..10 {
            store.write(block * BLOCK_LEN as u64, &[7; BLOCK_LEN]).unwrap();
            store.flush().unwrap();
        }
        assert_eq!(cut(&mut store).forgotten, 8);
        let is_there = |block: u64| store.read(block * BLOCK_LEN as u64, 1).unwrap() == [7];
        assert_eq!((0..10).filter(|block| is_there(*block)).collect::<Vec<_>>(), [0, 1]);
    }

    #[test]
    fn a_block_may_be_torn_and_flushed_ones_may_go_back() {
        let mut store = store(CacheRule { kept: 1.0, is_torn: true, flushed_lost: 1, ..RULE });
        for value in [1, 2, 3] {
            store.write(0, &[value; BLOCK_LEN]).unwrap();
            store.flush().unwrap();
        }
        store.write(BLOCK_LEN as u64, &[9; BLOCK_LEN]).unwrap();
        assert_eq!(cut(&mut store), Cut { torn: 1, flushed_lost: 1, ..Cut::default() });
        assert_eq!(store.read(0, 1).unwrap(), [2]);
        let torn = store.read(BLOCK_LEN as u64, BLOCK_LEN).unwrap();
        assert!(torn.contains(&9) && torn.contains(&0));
    }

    #[test]
    fn nothing_is_written_behind_the_end() {
        let mut store = store(RULE);
        assert!(store.write(store.len_bytes() - 1, &[1, 2]).is_err());
        assert_eq!(store.read(store.len_bytes() - 1, 9).unwrap(), [0]);
    }
}
