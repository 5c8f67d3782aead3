//! Latencies counted in logarithmic buckets.
//!
//! The buckets of the processes of a race are in shared memory, a set for each of them, so that
//! counting one costs two plain memory accesses to memory of one's own. A histogram from a library
//! would be in the memory of a process that ends.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::error::Result;
use crate::shared::Shared;

/// Each power of two has so many buckets: a value is known to 1/32.
const PARTS_SHIFT: u32 = 5;
const PARTS: u64 = 1 << PARTS_SHIFT;
/// Beyond 2^40 ns, eighteen minutes, nothing is told apart.
const EXPONENT_MAX: u32 = 40;
const BUCKETS: usize = ((EXPONENT_MAX - PARTS_SHIFT + 1) as usize) * PARTS as usize;

/// The bucket of a latency.
fn bucket(nanos: u64) -> usize {
    let nanos = nanos.min((1 << EXPONENT_MAX) - 1);
    let shift = (u64::BITS - nanos.leading_zeros()).saturating_sub(PARTS_SHIFT + 1);
    (u64::from(shift) * PARTS + (nanos >> shift)) as usize
}

/// The largest latency of a bucket.
fn value(bucket: usize) -> u64 {
    let bucket = bucket as u64;
    let shift = (bucket / PARTS).saturating_sub(1);
    let part = bucket - shift * PARTS;
    ((part + 1) << shift) - 1
}

/// Histograms that the processes of a race share. Each is counted in by one process; the parent
/// reads when all have ended, which orders everything.
pub(crate) struct Histograms {
    counts: Shared<AtomicU64>,
}

impl Histograms {
    /// `count` empty ones.
    pub(crate) fn new(count: usize) -> Result<Histograms> {
        Ok(Histograms { counts: Shared::new(count * BUCKETS)? })
    }

    /// Counts a latency in the histogram `index`.
    pub(crate) fn count(&self, index: usize, nanos: u64) {
        let word = &self.counts[index * BUCKETS + bucket(nanos)];
        word.store(word.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
    }

    /// All of them that are named, as one.
    pub(crate) fn sum(&self, indexes: impl IntoIterator<Item = usize>) -> Histogram {
        let mut histogram = Histogram::default();
        for index in indexes {
            let counts = &self.counts[index * BUCKETS..(index + 1) * BUCKETS];
            for (sum, count) in histogram.counts.iter_mut().zip(counts) {
                *sum += count.load(Ordering::Relaxed);
            }
        }
        histogram
    }
}

/// How often which latency was seen.
#[derive(Clone, Debug)]
pub(crate) struct Histogram {
    counts: Vec<u64>,
}

impl Default for Histogram {
    fn default() -> Histogram {
        Histogram { counts: vec![0; BUCKETS] }
    }
}

impl Histogram {
    pub(crate) fn count(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// Counts `times` latencies of `nanos`.
    pub(crate) fn note(&mut self, nanos: u64, times: u64) {
        self.counts[bucket(nanos)] += times;
    }

    /// The share of all that is longer; `None` of nothing.
    pub(crate) fn share_beyond(&self, nanos: u64) -> Option<f64> {
        let all = self.count();
        let beyond: u64 = self.counts[bucket(nanos) + 1..].iter().sum();
        (all > 0).then(|| beyond as f64 / all as f64)
    }

    pub(crate) fn add(&mut self, other: &Histogram) {
        self.counts.iter_mut().zip(&other.counts).for_each(|(sum, count)| *sum += count);
    }

    /// The latency in nanoseconds that so large a share does not exceed, to 1/32; `None` of none.
    pub(crate) fn quantile(&self, share: f64) -> Option<u64> {
        let rank = ((share * self.count() as f64).ceil() as u64).max(1);
        let mut seen = 0;
        let reached = self.counts.iter().position(|count| {
            seen += count;
            seen >= rank
        });
        reached.map(value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_latency_is_known_to_a_part_in_32() {
        for exponent in 0..EXPONENT_MAX {
            for nanos in [1 << exponent, (1 << exponent) + 1, (1_u64 << exponent) * 2 - 1] {
                let told = value(bucket(nanos));
                assert!(told >= nanos && told <= nanos + nanos / PARTS, "{nanos}: {told}");
            }
        }
        assert_eq!(bucket(u64::MAX), BUCKETS - 1);
    }

    #[test]
    fn quantiles_are_those_of_the_sum() {
        let all = Histograms::new(3).unwrap();
        (0..99).for_each(|_| all.count(0, 1000));
        all.count(2, 1_000_000);
        let sum = all.sum([0, 2]);
        assert_eq!(sum.count(), 100);
        assert!((1000..1040).contains(&sum.quantile(0.99).unwrap()));
        assert!((1_000_000..1_040_000).contains(&sum.quantile(0.999).unwrap()));
        assert_eq!(all.sum([1]).quantile(0.5), None);
    }
}
