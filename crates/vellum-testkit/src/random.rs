//! Numbers that a seed decides, so that a run can be repeated.

use vellum::Layout;

/// A generator (splitmix64). Written by hand: a seed in a report draws the same for ever, which no
/// crate promises from one version to the next.
#[derive(Clone, Debug)]
pub struct Random {
    state: u64,
}

impl Random {
    /// The generator with this seed.
    pub fn new(seed: u64) -> Random {
        Random { state: seed }
    }

    /// The next number.
    pub fn next_u64(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mixed(self.state)
    }

    /// A number below `limit`, which is not 0.
    pub fn below(&mut self, limit: u64) -> u64 {
        self.next_u64() % limit
    }

    /// A number of one byte.
    pub fn byte(&mut self) -> u8 {
        self.next_u64() as u8
    }

    /// One of `items`, which are not none.
    pub fn pick<'a, T>(&mut self, items: &'a [T]) -> &'a T {
        &items[self.below(items.len() as u64) as usize]
    }

    /// Puts `items` into a random order.
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            items.swap(last, self.below(last as u64 + 1) as usize);
        }
    }

    /// Appends bytes to `bytes` until it has `len`.
    pub fn extend(&mut self, bytes: &mut Vec<u8>, len: usize) {
        while bytes.len() < len {
            let drawn = self.next_u64().to_le_bytes();
            let count = drawn.len().min(len - bytes.len());
            bytes.extend_from_slice(&drawn[..count]);
        }
    }

    /// Appends bytes to `record` until it has `len`; in a text log, letters and then a newline.
    pub fn finish_record(&mut self, record: &mut Vec<u8>, len: usize, layout: Layout) {
        let start = record.len();
        self.extend(record, len);
        if layout == Layout::Text {
            record[start..].iter_mut().for_each(|byte| *byte = b'a' + *byte % 26);
            record[len - 1] = b'\n';
        }
    }
}

/// A number that looks random and depends on every bit of `number`.
pub fn mixed(number: u64) -> u64 {
    let mixed = (number ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}
