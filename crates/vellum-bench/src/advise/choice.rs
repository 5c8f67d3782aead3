//! Which of several ways is the one to take: a pure function of what was measured.
//!
//! Each way has one score for each round: how many times as fast it was as the default, in that
//! round. Two ways are compared round by round, so that whatever made a round slow for all of them
//! plays no part.
//!
//! **A beats B** iff A was faster in so many rounds that a coin would hardly do it ([`LEVEL`]), the
//! ratio's median is beyond [`MARGIN`], and A's median score is higher too. Every "beats" goes up
//! in the median score, so it can't go in a circle: there is always somebody whom nobody beats.
//!
//! One in twenty such comparisons between equals would come out by chance if it were for the level
//! alone, and there are several of them; the margin is what makes a false alarm rare, and harmless,
//! for who is mistaken for the faster one is as fast.
//!
//! What is chosen is beaten by nobody. If that holds for the default, it is the default: a change
//! that shows no difference is not worth making. Else, of those that come within the margin of the
//! best and beat the default, it is the first, for ways are listed the simplest first.

use serde::Serialize;

use crate::stats::Spread;

/// No more than this may be the chance that a coin, thrown once for each round, does as well.
pub(super) const LEVEL: f64 = 0.05;

/// Whoever is not faster by so much is not worth a change.
pub(super) const MARGIN: f64 = 1.05;

/// How one way did against another, round by round.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Evidence {
    /// How many times as fast as the other.
    pub ratio: Spread,
    /// In how many rounds it was faster.
    pub faster_rounds: u32,
    /// Of how many.
    pub rounds: u32,
    /// The chance that a coin would come up for it in as many rounds.
    pub chance: f64,
    /// Is it faster beyond noise?
    pub is_sure: bool,
}

impl Evidence {
    /// Compares the scores of two ways, which are those of the same rounds; `None` without any.
    pub(super) fn of(ours: &[f64], theirs: &[f64]) -> Option<Evidence> {
        let ratios: Vec<f64> = ours.iter().zip(theirs).map(|(our, their)| our / their).collect();
        let ratio = Spread::of(&ratios)?;
        let faster = ratios.iter().filter(|ratio| **ratio > 1.0).count() as u32;
        let rounds = ratios.len() as u32;
        let chance = coin(faster, rounds);
        let is_sure = chance <= LEVEL && ratio.median >= MARGIN && median(ours) > median(theirs);
        Some(Evidence { ratio, faster_rounds: faster, rounds, chance, is_sure })
    }
}

/// Whether the first way is faster than the second beyond noise.
pub(super) fn beats(ours: &[f64], theirs: &[f64]) -> bool {
    Evidence::of(ours, theirs).is_some_and(|evidence| evidence.is_sure)
}

/// The chance of `successes` or more in `throws` of a coin.
fn coin(successes: u32, throws: u32) -> f64 {
    // From the last row of Pascal's triangle, built as shares of all outcomes.
    let mut shares = vec![1.0_f64];
    for _ in 0..throws {
        let mut next = vec![0.0; shares.len() + 1];
        for (index, share) in shares.iter().enumerate() {
            next[index] += share / 2.0;
            next[index + 1] += share / 2.0;
        }
        shares = next;
    }
    shares.iter().skip(successes as usize).sum()
}

fn median(samples: &[f64]) -> f64 {
    Spread::of(samples).map_or(f64::NEG_INFINITY, |spread| spread.median)
}

/// What is to be taken, and who came next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Choice {
    /// By place in the list.
    pub(super) chosen: usize,
    /// The best of the others.
    pub(super) next: Option<usize>,
}

/// Chooses among ways, each with its scores, the simplest first; `None` stands for a way without
/// numbers. The first way that has some is the default.
pub(super) fn choose(scores: &[Option<&[f64]>]) -> Option<Choice> {
    let measured: Vec<(usize, &[f64])> = scores
        .iter()
        .enumerate()
        .filter_map(|(place, scores)| scores.map(|scores| (place, scores)))
        .filter(|(_, scores)| !scores.is_empty())
        .collect();
    let (default, default_scores) = *measured.first()?;
    let is_beaten = |place: usize, scores: &[f64]| {
        measured.iter().any(|(other, theirs)| *other != place && beats(theirs, scores))
    };
    let chosen = if is_beaten(default, default_scores) {
        let unbeaten: Vec<(usize, &[f64])> =
            measured.iter().copied().filter(|(place, scores)| !is_beaten(*place, scores)).collect();
        simplest_of_the_best(&unbeaten, default_scores)?
    } else {
        default
    };
    let others = measured.iter().filter(|(place, _)| *place != chosen);
    let next = others.max_by(|(_, ours), (_, theirs)| median(ours).total_cmp(&median(theirs)));
    Some(Choice { chosen, next: next.map(|(place, _)| *place) })
}

/// The first that is as good as the best and better than the default; else the best.
fn simplest_of_the_best(unbeaten: &[(usize, &[f64])], default: &[f64]) -> Option<usize> {
    let (best, best_scores) =
        unbeaten.iter().max_by(|(_, ours), (_, theirs)| median(ours).total_cmp(&median(theirs)))?;
    let is_as_good = |scores: &[f64]| median(scores) * MARGIN >= median(best_scores);
    let simplest = unbeaten.iter().find(|(_, scores)| is_as_good(scores) && beats(scores, default));
    Some(simplest.map_or(*best, |(place, _)| *place))
}

#[cfg(test)]
#[path = "choice_tests.rs"]
mod tests;
