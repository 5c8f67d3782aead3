//! The moment at which the power goes, and the part of the disk's cache that reaches the medium
//! then.
//!
//! Everything before the last flush that was completed is on the medium. Of what was written
//! after it, anything may be: nothing, all, some writes and not others, some pages, some sectors.

use std::fmt;

use super::image::{BLOCK_LEN, Image, SECTOR_LEN};
use super::ranges::Ranges;
use super::recording::{Event, Recording};
use crate::random::Random;

/// The writes without a flush behind them that reach the medium.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unflushed {
    /// None of them.
    Dropped,
    /// All of them.
    Kept,
    /// Some writes, each of them whole.
    Writes,
    /// Some pieces of 4 KiB.
    Pieces,
    /// Some sectors.
    Sectors,
    /// The first ones, in order; the last of those is torn.
    Torn,
}

/// The bytes of a lost block.
const LOST: u8 = 0xdb;

const UNFLUSHED: [Unflushed; 6] = [
    Unflushed::Dropped,
    Unflushed::Kept,
    Unflushed::Writes,
    Unflushed::Pieces,
    Unflushed::Sectors,
    Unflushed::Torn,
];

/// One power cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cut {
    /// So many events of the recording have happened.
    pub position: usize,
    /// The fate of the disk's cache.
    pub unflushed: Unflushed,
    /// Decides which writes, pieces or sectors.
    pub seed: u64,
}

impl fmt::Display for Cut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let unflushed = match self.unflushed {
            Unflushed::Dropped => "unflushed writes dropped",
            Unflushed::Kept => "unflushed writes kept",
            Unflushed::Writes => "some unflushed writes kept",
            Unflushed::Pieces => "some unflushed pages kept",
            Unflushed::Sectors => "some unflushed sectors kept",
            Unflushed::Torn => "the last of the unflushed writes torn",
        };
        write!(f, "behind event {}, {unflushed}", self.position)
    }
}

/// Random cuts, in the order of their positions: 40 % right behind an acknowledgement, 20 % at a
/// flush, the rest anywhere.
pub fn random_cuts(recording: &Recording, count: usize, random: &mut Random) -> Vec<Cut> {
    let (mut behind_acknowledged, mut at_flush) = (Vec::new(), Vec::new());
    for (index, event) in recording.events.iter().enumerate() {
        match event {
            Event::Acknowledged(_) => behind_acknowledged.push(index + 1),
            Event::Flush | Event::Lost => at_flush.extend([index, index + 1]),
            _ => {}
        }
    }
    let mut cuts: Vec<Cut> = (0..count)
        .map(|_| {
            let preferred: &[usize] = match random.below(10) {
                0..4 => &behind_acknowledged,
                4..6 => &at_flush,
                _ => &[],
            };
            let anywhere = random.below(recording.events.len() as u64 + 1) as usize;
            let position = if preferred.is_empty() { anywhere } else { *random.pick(preferred) };
            let unflushed = *random.pick(&UNFLUSHED);
            Cut { position, unflushed, seed: random.next_u64() }
        })
        .collect();
    cuts.sort_by_key(|cut| cut.position);
    cuts
}

/// Every image that dropped writes can leave, each at the position where most is asked of it.
///
/// Between two flushes the image with all later writes dropped is the same at every position, and
/// an acknowledgement only adds to what must be in it. So the last position before the next flush
/// represents all of them, and so does the one before each record is dropped.
pub fn exhaustive_cuts(recording: &Recording) -> Vec<Cut> {
    let (mut cuts, mut has_unflushed) = (Vec::new(), false);
    let cut = |position| Cut { position, unflushed: Unflushed::Dropped, seed: 0 };
    for (position, event) in recording.events.iter().enumerate() {
        match event {
            Event::Write(..) => has_unflushed = true,
            Event::Acknowledged(_) => {}
            Event::Flush | Event::Lost | Event::Dropped(_) if !has_unflushed => {}
            Event::Flush | Event::Lost => {
                cuts.push(cut(position));
                has_unflushed = false;
            }
            Event::Dropped(_) => cuts.push(cut(position)),
        }
    }
    cuts.push(cut(recording.events.len()));
    cuts
}

/// Walks a recording forward and makes the images of its cuts; each costs only the changed blocks.
#[derive(Debug)]
pub struct Walk<'a> {
    recording: &'a Recording,
    /// Offsets of blocks that are written whole or not at all.
    undivided: &'a [u64],
    /// The smallest piece of a write that arrives or not.
    sector_len: usize,
    /// Whether a piece of a block that is interrupted takes all of the block with it.
    is_coarse: bool,
    position: usize,
    medium: Image,
    /// Indices of the writes that no flush has covered.
    unflushed: Vec<usize>,
    /// The promises of the workload up to here.
    pub acknowledged: Ranges,
    /// The ranges that it has announced to delete.
    pub dropped: Ranges,
}

impl<'a> Walk<'a> {
    /// Starts before the first event. The blocks at the offsets `undivided` are never torn.
    pub fn new(recording: &'a Recording, undivided: &'a [u64]) -> Walk<'a> {
        Walk {
            recording,
            undivided,
            sector_len: SECTOR_LEN,
            is_coarse: false,
            position: 0,
            medium: recording.start.clone(),
            unflushed: Vec::new(),
            acknowledged: Ranges::default(),
            dropped: Ranges::default(),
        }
    }

    /// Continues until `position` events have happened.
    pub fn advance_to(&mut self, position: usize) {
        while self.position < position {
            match &self.recording.events[self.position] {
                Event::Write(..) => self.unflushed.push(self.position),
                Event::Flush => {
                    for index in self.unflushed.drain(..) {
                        let (offset, bytes) = write_at(self.recording, index);
                        self.medium.write(offset, bytes);
                    }
                }
                Event::Lost => self.unflushed.clear(),
                Event::Acknowledged(range) => self.acknowledged.insert(range),
                Event::Dropped(range) => self.dropped.insert(range),
            }
            self.position += 1;
        }
    }

    /// How many writes no flush has covered here.
    pub fn unflushed_count(&self) -> usize {
        self.unflushed.len()
    }

    /// The disk after a cut here.
    pub fn image(&self, cut: &Cut) -> Image {
        let mut image = self.medium.clone();
        let mut random = Random::new(cut.seed);
        let keep_in_16 = 1 + random.below(15);
        let torn = random.below(self.unflushed.len().max(1) as u64) as usize;
        for (order, index) in self.unflushed.iter().enumerate() {
            let (offset, bytes) = write_at(self.recording, *index);
            let sector = self.sector_len(offset, bytes.len());
            let unit = match self.unflushed(cut) {
                Unflushed::Dropped => break,
                Unflushed::Torn if order > torn => break,
                Unflushed::Torn if order == torn && self.is_coarse => {
                    interrupt(&mut image, offset, bytes, &mut random);
                    break;
                }
                Unflushed::Torn if order == torn => {
                    let count = random.below(bytes.len().div_ceil(sector) as u64) as usize;
                    image.write(offset, &bytes[..count * sector]);
                    break;
                }
                Unflushed::Kept | Unflushed::Torn => {
                    image.write(offset, bytes);
                    continue;
                }
                Unflushed::Writes => bytes.len().max(1),
                Unflushed::Pieces => BLOCK_LEN,
                Unflushed::Sectors => sector,
            };
            for (piece, at) in bytes.chunks(unit).zip((offset..).step_by(unit)) {
                if random.below(16) < keep_in_16 {
                    image.write(at, piece);
                }
            }
        }
        image
    }

    /// The same with no write torn into less than blocks.
    pub fn torn_by_blocks(self) -> Walk<'a> {
        Walk { sector_len: BLOCK_LEN, ..self }
    }

    /// The same on a disk whose physical sectors are blocks: a write that covers one is never torn,
    /// and a part of one is read, changed and written.
    pub fn by_physical_sectors(self) -> Walk<'a> {
        Walk { sector_len: BLOCK_LEN, is_coarse: true, ..self }
    }

    /// The fate of the cache here. A disk that tears no sector has other ways to tear.
    fn unflushed(&self, cut: &Cut) -> Unflushed {
        match cut.unflushed {
            Unflushed::Sectors if self.is_coarse => Unflushed::Torn,
            unflushed => unflushed,
        }
    }

    /// The length of the parts into which a write may be torn.
    fn sector_len(&self, offset: u64, len: usize) -> usize {
        let end = offset + len as u64;
        let is_undivided = |block: &u64| offset < block + BLOCK_LEN as u64 && *block < end;
        if self.undivided.iter().any(is_undivided) { BLOCK_LEN } else { self.sector_len }
    }

    /// The medium without the writes that no flush has covered.
    pub fn into_medium(self) -> Image {
        self.medium
    }
}

/// Writes the first blocks of a write. The next one is whole, or not begun, or lost with all that
/// was in it if only a part of it was to be written.
fn interrupt(image: &mut Image, offset: u64, bytes: &[u8], random: &mut Random) {
    let block_len = BLOCK_LEN as u64;
    let end = offset + bytes.len() as u64;
    let first = offset / block_len;
    let stopped = first + random.below(end.div_ceil(block_len) - first);
    let (start, limit) = (stopped * block_len, (stopped + 1) * block_len);
    image.write(offset, &bytes[..start.saturating_sub(offset) as usize]);
    if offset > start || end < limit {
        image.write(start, &[LOST; BLOCK_LEN]);
    }
}

fn write_at(recording: &Recording, index: usize) -> (u64, &[u8]) {
    match &recording.events[index] {
        Event::Write(offset, bytes) => (*offset, bytes),
        event => unreachable!("{event:?} is no write"),
    }
}

#[cfg(test)]
mod tests;
