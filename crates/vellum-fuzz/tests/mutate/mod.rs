//! Random inputs: some made up, some that are kept ones with changes.

/// A generator of inputs that a seed repeats.
pub(crate) struct Random(u64);

/// The longest input made up: a choice of log and circumstances, and a few edits of six bytes.
const EDITS_MAX: u64 = 5;

impl Random {
    pub(crate) fn new(seed: u64) -> Random {
        Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    fn below(&mut self, limit: usize) -> usize {
        ((self.next() >> 32) % limit.max(1) as u64) as usize
    }

    fn byte(&mut self) -> u8 {
        (self.next() >> 40) as u8
    }

    /// The next input.
    pub(crate) fn input(&mut self, corpus: &[Vec<u8>]) -> Vec<u8> {
        if self.below(2) == 0 {
            let edits = 1 + self.below(EDITS_MAX as usize);
            return (0..2 + 6 * edits).map(|_| self.byte()).collect();
        }
        let mut input = corpus[self.below(corpus.len())].clone();
        for _ in 0..=self.below(4) {
            self.change(&mut input);
        }
        input
    }

    fn change(&mut self, input: &mut Vec<u8>) {
        let at = self.below(input.len());
        match self.below(5) {
            0 => input.insert(at, self.0 as u8),
            1 if !input.is_empty() => drop(input.remove(at)),
            2 => (0..6).for_each(|_| input.push(self.byte())),
            3 if !input.is_empty() => input[at] ^= 1 << self.below(8),
            _ if !input.is_empty() => input[at] = self.byte(),
            _ => {}
        }
    }
}
