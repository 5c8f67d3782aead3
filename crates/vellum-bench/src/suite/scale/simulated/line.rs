//! Cache lines of a machine with many cores: the cores that have a copy, and how long others wait
//! for it.

use std::ops::Range;

/// Nanoseconds since the beginning.
pub(super) type Moment = u64;

/// A line. All cores may have copies of it, or one core alone, which may then write.
#[derive(Clone, Default)]
pub(super) struct Line {
    /// A bit for each core.
    copies: u128,
    is_for_one: bool,
    arrives_at: Moment,
    pub(super) transfers: u64,
}

/// The answer to a core that wants a line.
pub(super) enum Asked {
    /// The core has the line.
    There,
    /// The request is under way, and gets to the line then at the earliest.
    At(Moment),
}

impl Line {
    /// A core wants to read or write the line. `way` is how long a request or a line is under way.
    pub(super) fn ask(&self, core: usize, writes: bool, now: Moment, way: u64) -> Asked {
        let has_copy = self.copies & 1 << core != 0;
        match self.copies == 0 || has_copy && (self.is_for_one || !writes) {
            true => Asked::There,
            false => Asked::At(now + way),
        }
    }

    /// The request has got to the line. It waits until the line has arrived where it goes before.
    pub(super) fn move_on(&mut self, now: Moment, way: u64) -> Asked {
        if self.arrives_at > now {
            return Asked::At(self.arrives_at + way);
        }
        self.arrives_at = now + way;
        self.transfers += 1;
        Asked::There
    }

    /// The core has the line now. The one that had it alone keeps a copy, unless this one writes.
    pub(super) fn give(&mut self, core: usize, writes: bool) {
        let others = if writes { 0 } else { self.copies };
        self.copies = others | 1 << core;
        self.is_for_one = others & !(1 << core) == 0;
    }

    pub(super) fn arrives_at(&self) -> Moment {
        self.arrives_at
    }
}

/// Numbers that are the same in each run with the same seed.
pub(super) struct Numbers(fastrand::Rng);

impl Numbers {
    pub(super) fn new(seed: u64) -> Numbers {
        Numbers(fastrand::Rng::with_seed(seed))
    }

    /// From the half of `mean` to one and a half of it: no step takes always the same time.
    pub(super) fn around(&mut self, mean: u64) -> u64 {
        self.within(mean / 2..mean + mean.div_ceil(2) + 1)
    }

    pub(super) fn within(&mut self, range: Range<u64>) -> u64 {
        self.0.u64(range)
    }
}
