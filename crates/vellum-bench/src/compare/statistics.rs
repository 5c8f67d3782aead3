//! Are two series of rounds different, or only noisy?
//!
//! Rounds are few and their figures have no shape that could be relied on, so nothing here supposes
//! one. Both answers come from the same thought: if nothing changed, every way to deal the rounds
//! of both runs out to two sides was as likely as the one that was seen.
//!
//! - [`interval`] is the interval of a rank test (Mann and Whitney's, exact): by what factor could
//!   one side be multiplied so that the test would see no difference? It holds 1 if there is none.
//! - [`chances`] takes all figures of a comparison together (Westfall and Young's largest t): in
//!   which share of the ways to deal would *any* figure stand out as much as this one does? So a
//!   run of 800 figures has no more false alarms than one of a single figure.
//!
//! Written by hand: no crate has both for samples of so few rounds, and they are short.
//!
//! Both see only how rounds differ within a run. A change of the machine between two runs is a
//! difference to them.

use fastrand::Rng;

/// How often chance may be taken for a difference.
pub(super) const ALPHA: f64 = crate::faster::LEVEL;

/// So many ways to deal are tried. The smallest chance that can be told is one in this many.
const DEALS: usize = 2000;

/// Beyond so many pairs the exact distribution takes long, and the normal one is as good.
const EXACT_PAIRS_MAX: usize = 2500;

/// The 95 % interval of the factor from `before` to `after`, which are positive; `None` where the
/// rounds are too few for any.
pub(super) fn interval(before: &[f64], after: &[f64]) -> Option<[f64; 2]> {
    let left_out = left_out(before.len(), after.len())?;
    let ratios = before.iter().flat_map(|before| after.iter().map(move |after| after / before));
    let mut ratios: Vec<f64> = ratios.collect();
    ratios.sort_by(f64::total_cmp);
    Some([ratios[left_out], ratios[ratios.len() - 1 - left_out]])
}

/// The smallest and the largest factor from a round before to a round after.
pub(super) fn range(before: &[f64], after: &[f64]) -> [f64; 2] {
    let ratios = before.iter().flat_map(|before| after.iter().map(move |after| after / before));
    ratios.fold([f64::INFINITY, 0.0], |[low, high], ratio| [low.min(ratio), high.max(ratio)])
}

/// One figure of so many has no overlap by chance alone: two of all the ways to deal the rounds.
pub(super) fn apart_by_chance(before: usize, after: usize) -> f64 {
    let ways = (1..=after).map(|one| (before + one) as f64 / one as f64).product::<f64>();
    ways / 2.0
}

/// How many of the pairs, in order, lie outside the interval at either end: the largest number that
/// the statistic U does not exceed with a probability of at most 2.5 %.
fn left_out(before: usize, after: usize) -> Option<usize> {
    let pairs = before * after;
    if pairs > EXACT_PAIRS_MAX {
        let deviation = (pairs as f64 * (before + after + 1) as f64 / 12.0).sqrt();
        return Some((pairs as f64 / 2.0 - 1.96 * deviation).max(0.0) as usize);
    }
    let mut probability = 0.0;
    let mut left_out = None;
    for (u, share) in distribution(before, after).into_iter().enumerate() {
        probability += share;
        if probability > ALPHA / 2.0 {
            break;
        }
        left_out = Some(u);
    }
    left_out
}

/// With which probability U is 0, 1, … if both sides are alike: the ways to deal are counted by
/// where the largest of all rounds is, on one side (above all rounds of the other) or on the other.
fn distribution(before: usize, after: usize) -> Vec<f64> {
    let mut shares = vec![vec![1.0]; after + 1];
    for one in 1..=before {
        let mut next = vec![vec![1.0]];
        for other in 1..=after {
            let total = (one + other) as f64;
            let mut share = vec![0.0; one * other + 1];
            for (u, above) in shares[other].iter().enumerate() {
                share[u + other] += above * one as f64 / total;
            }
            for (u, below) in next[other - 1].iter().enumerate() {
                share[u] += below * other as f64 / total;
            }
            next.push(share);
        }
        shares = next;
    }
    shares.pop().unwrap_or_default()
}

/// The rounds of one figure on both sides; all positive.
#[derive(Debug)]
pub(super) struct Figure {
    /// Figures with the same number were measured in the same rounds, and are dealt out alike.
    pub(super) run: usize,
    pub(super) before: Vec<f64>,
    pub(super) after: Vec<f64>,
}

/// For each figure, the chance that any of all would stand out so much if nothing had changed.
pub(super) fn chances(figures: &[Figure]) -> Vec<f64> {
    let figures: Vec<Logs> = figures.iter().map(Logs::of).collect();
    let order = |count: usize| (0..count).collect::<Vec<usize>>();
    let seen: Vec<f64> =
        figures.iter().map(|figure| figure.t(&order(figure.samples.len()))).collect();
    let mut deals: Vec<(usize, usize, usize)> = figures.iter().map(|figure| figure.deal).collect();
    deals.sort_unstable();
    deals.dedup();
    // The same in each run.
    let mut random = Rng::with_seed(0x5eed);
    let mut shuffled = |count: usize| {
        let mut order = order(count);
        random.shuffle(&mut order);
        order
    };
    let mut reached = vec![1_usize; figures.len()];
    for _ in 0..DEALS {
        let orders: Vec<Vec<usize>> =
            deals.iter().map(|(_, before, after)| shuffled(before + after)).collect();
        let t = |figure: &Logs| {
            let deal = deals.binary_search(&figure.deal).unwrap_or(0);
            figure.t(&orders[deal])
        };
        let largest = figures.iter().map(t).fold(0.0, f64::max);
        for (reached, seen) in reached.iter_mut().zip(&seen) {
            // Sums in another order differ in the last digits.
            *reached += usize::from(largest >= seen * (1.0 - 1e-9));
        }
    }
    reached.into_iter().map(|reached| reached as f64 / (DEALS + 1) as f64).collect()
}

/// The rounds of a figure as logarithms, because it is factors that are looked for, around their
/// mean.
struct Logs {
    deal: (usize, usize, usize),
    samples: Vec<f64>,
    squares: f64,
}

impl Logs {
    fn of(figure: &Figure) -> Logs {
        let samples = figure.before.iter().chain(&figure.after).map(|sample| sample.ln());
        let mut samples: Vec<f64> = samples.collect();
        let mean = samples.iter().sum::<f64>() / samples.len() as f64;
        samples.iter_mut().for_each(|sample| *sample -= mean);
        let squares = samples.iter().map(|sample| sample.powi(2)).sum();
        Logs { deal: (figure.run, figure.before.len(), figure.after.len()), samples, squares }
    }

    /// How far the sides are apart, by Student's measure, if the samples are dealt out in `order`.
    /// One side tells all: the sums of both are zero, and their squares are what they are.
    fn t(&self, order: &[usize]) -> f64 {
        let (_, before, after) = self.deal;
        let sum: f64 = order[..before].iter().map(|index| self.samples[*index]).sum();
        let shares = 1.0 / before as f64 + 1.0 / after as f64;
        // Where the rounds of a side are alike, the rest is rounding.
        let within = (self.squares - sum.powi(2) * shares).max(self.squares * 1e-9);
        let degrees = (before + after).saturating_sub(2).max(1) as f64;
        let apart = sum.abs() * shares;
        if apart < 1e-12 { 0.0 } else { apart / (within / degrees * shares).sqrt() }
    }
}

#[cfg(test)]
#[path = "statistics_tests.rs"]
mod tests;
