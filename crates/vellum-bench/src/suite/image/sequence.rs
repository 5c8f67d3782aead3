//! In which order the blocks of an image are written: at random, the same for every case.
//!
//! Each pass over the image writes each block once, as fio does unless it is told otherwise. So it
//! is known how much of a sparse image is allocated after so many writes, and two writes to the
//! same block are far apart.

/// A pass over the blocks of an image, again and again.
pub(super) struct Sequence {
    order: Vec<u32>,
    position: usize,
}

/// Any number; the same in every run, so that runs can be compared.
const SEED: u64 = 0x5eed_0f00_d15c_0001;

impl Sequence {
    /// For an image of so many blocks.
    pub(super) fn new(blocks: u32) -> Sequence {
        let mut order: Vec<u32> = (0..blocks).collect();
        fastrand::Rng::with_seed(SEED).shuffle(&mut order);
        Sequence { order, position: 0 }
    }

    /// The next block to be written.
    pub(super) fn next_block(&mut self) -> u32 {
        let block = self.order[self.position];
        self.position = (self.position + 1) % self.order.len();
        block
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_pass_has_each_block_once_in_no_order() {
        let mut sequence = Sequence::new(1000);
        let mut pass = || -> Vec<u32> { (0..1000).map(|_| sequence.next_block()).collect() };
        let first = pass();
        let steps = first.windows(2).filter(|two| two[0].abs_diff(two[1]) < 8).count();
        assert!(steps < 40, "{steps} of 1000 steps are short");
        assert_eq!(pass(), first, "the same for every case");
        let mut sorted = first;
        sorted.sort_unstable();
        assert_eq!(sorted, (0..1000).collect::<Vec<u32>>());
    }
}
