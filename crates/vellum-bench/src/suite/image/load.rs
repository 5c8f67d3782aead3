//! The load: random writes of a block, so many at a time, by the cluster rules of qcow2.
//!
//! A write has a slot from its beginning to its end, and there are as many slots as the depth says.
//!
//! ```text
//! free → begun ──→ (its cluster is being initialised: waits) ──→ on its way → done → free
//!            └──→ on its way, with the initialising of its cluster before it ──┘
//! ```
//!
//! **Invariants.** A block has at most one write on its way, for the order of two would not be
//! known; a block that is still on its way is skipped. Nothing is written to a cluster from when
//! its initialising begins until the write that began it has been done.

use std::time::{Duration, Instant};

use super::content::{BLOCK_BYTES, Stamp, fill};
use super::figures::Meter;
use super::sequence::Sequence;
use super::state::FirstTouch;
use crate::error::Result;
use crate::queue::{WriteQueue, Zero};

/// The unit in which qcow2 allocates.
pub(super) const CLUSTER_BYTES: usize = 64 << 10;
const CLUSTER_BLOCKS: u32 = (CLUSTER_BYTES / BLOCK_BYTES) as u32;

/// The blocks to write.
#[derive(Clone, Copy, Debug)]
pub(super) struct Load {
    /// The length of the image.
    pub(super) blocks: u32,
    /// How many writes are on their way at a time.
    pub(super) depth: usize,
    pub(super) first_touch: FirstTouch,
    /// For how long.
    pub(super) duration: Duration,
    /// But no more writes than this.
    pub(super) writes_max: u64,
    /// Tells the content from that of all others.
    pub(super) run: u64,
}

impl Load {
    /// How many bytes a write has at most.
    pub(super) fn write_bytes_max(&self) -> usize {
        match self.first_touch {
            FirstTouch::WholeCluster => CLUSTER_BYTES,
            FirstTouch::Plain | FirstTouch::ZeroRange => BLOCK_BYTES,
        }
    }

    /// Writes, and waits until everything is done. Returns how often each block was written, and
    /// the times.
    pub(super) fn run(&self, queue: &mut dyn WriteQueue) -> Result<(Vec<u32>, Meter)> {
        let mut writer = Writer::new(self, queue);
        let mut done = Vec::with_capacity(self.depth);
        let mut meter = Meter::start(self.duration)?;
        let mut left = self.writes_max;
        loop {
            if !meter.is_over() {
                left = writer.begin(left)?;
            }
            if writer.free.len() == self.depth {
                return Ok((writer.generations, meter));
            }
            writer.queue.wait(&mut done)?;
            let now = Instant::now();
            for slot in done.drain(..) {
                meter.note(writer.slots[slot].begun, now);
                writer.end(slot)?;
            }
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Cluster {
    Untouched,
    BeingTouched,
    Touched,
}

#[derive(Clone, Copy)]
struct Slot {
    block: u32,
    begun: Instant,
    /// Is this the write that initialises its cluster?
    is_first: bool,
}

struct Writer<'a> {
    load: &'a Load,
    queue: &'a mut dyn WriteQueue,
    sequence: Sequence,
    slots: Vec<Slot>,
    free: Vec<usize>,
    /// Slots that wait for their clusters, first come first.
    waiting: Vec<usize>,
    clusters: Vec<Cluster>,
    generations: Vec<u32>,
    on_its_way: Vec<bool>,
}

impl Writer<'_> {
    fn new<'a>(load: &'a Load, queue: &'a mut dyn WriteQueue) -> Writer<'a> {
        let cluster = match load.first_touch {
            FirstTouch::Plain => Cluster::Touched,
            FirstTouch::ZeroRange | FirstTouch::WholeCluster => Cluster::Untouched,
        };
        let slot = Slot { block: 0, begun: Instant::now(), is_first: false };
        Writer {
            load,
            queue,
            sequence: Sequence::new(load.blocks),
            slots: vec![slot; load.depth],
            free: (0..load.depth).collect(),
            waiting: Vec::with_capacity(load.depth),
            clusters: vec![cluster; load.blocks.div_ceil(CLUSTER_BLOCKS) as usize],
            generations: vec![0; load.blocks as usize],
            on_its_way: vec![false; load.blocks as usize],
        }
    }

    /// Begins a write in each free slot, but no more than `left`; returns how many are left then.
    fn begin(&mut self, mut left: u64) -> Result<u64> {
        while left > 0
            && let Some(slot) = self.free.pop()
        {
            let mut block = self.sequence.next_block();
            while self.on_its_way[block as usize] {
                block = self.sequence.next_block();
            }
            self.on_its_way[block as usize] = true;
            self.slots[slot] = Slot { block, begun: Instant::now(), is_first: false };
            self.send(slot)?;
            left -= 1;
        }
        Ok(left)
    }

    /// Hands in the write of a slot, as soon as its cluster allows.
    fn send(&mut self, slot: usize) -> Result<()> {
        let block = self.slots[slot].block;
        let cluster = &mut self.clusters[(block / CLUSTER_BLOCKS) as usize];
        match cluster {
            Cluster::BeingTouched => {
                self.waiting.push(slot);
                return Ok(());
            }
            Cluster::Untouched => {
                *cluster = Cluster::BeingTouched;
                self.slots[slot].is_first = true;
            }
            Cluster::Touched => {}
        }
        let generation = self.generations[block as usize] + 1;
        let stamp = Stamp { block, generation };
        if self.slots[slot].is_first {
            return self.initialise(slot, stamp);
        }
        fill(&mut self.queue.buffer(slot)[..BLOCK_BYTES], stamp, self.load.run);
        self.queue.write(slot, 0..BLOCK_BYTES, offset_of(block))
    }

    /// The first write to a cluster.
    fn initialise(&mut self, slot: usize, stamp: Stamp) -> Result<()> {
        let first = stamp.block - stamp.block % CLUSTER_BLOCKS;
        let blocks = CLUSTER_BLOCKS.min(self.load.blocks - first) as usize;
        let len = blocks * BLOCK_BYTES;
        let buffer = self.queue.buffer(slot);
        if self.load.first_touch == FirstTouch::WholeCluster {
            buffer[..len].fill(0);
            let place = (stamp.block - first) as usize * BLOCK_BYTES;
            fill(&mut buffer[place..place + BLOCK_BYTES], stamp, self.load.run);
            return self.queue.write(slot, 0..len, offset_of(first));
        }
        fill(&mut buffer[..BLOCK_BYTES], stamp, self.load.run);
        let zero = Zero { offset: offset_of(first), len: len as u64 };
        self.queue.zero_and_write(slot, zero, 0..BLOCK_BYTES, offset_of(stamp.block))
    }

    /// The write of a slot has been done.
    fn end(&mut self, slot: usize) -> Result<()> {
        let Slot { block, is_first, .. } = self.slots[slot];
        self.generations[block as usize] += 1;
        self.on_its_way[block as usize] = false;
        self.free.push(slot);
        if !is_first {
            return Ok(());
        }
        let cluster = block / CLUSTER_BLOCKS;
        self.clusters[cluster as usize] = Cluster::Touched;
        for slot in std::mem::take(&mut self.waiting) {
            if self.slots[slot].block / CLUSTER_BLOCKS == cluster {
                self.send(slot)?;
            } else {
                self.waiting.push(slot);
            }
        }
        Ok(())
    }
}

fn offset_of(block: u32) -> u64 {
    u64::from(block) * BLOCK_BYTES as u64
}
