//! When one way counts as faster than another: the one rule of reports and of advice.
//!
//! Two ways of a run took turns, so they are compared round by round: a cause that made a round
//! slow for both plays no part. Each has one score for each round, of which more is better. **A
//! beats B** if A was better in so many rounds that a coin would hardly do it ([`LEVEL`]), the
//! ratio's median is beyond [`MARGIN`], and A's median score is higher too. Every "beats" goes up
//! in the median score, so it can't go in a circle: there is always a way that no other beats.
//!
//! One in twenty such comparisons between equals would come out by chance if it were for the level
//! alone, and there are several of them; the margin makes a false alarm rare, and harmless, because
//! a way that is mistaken for the faster one is as fast.
//!
//! Two runs share no rounds. [`crate::Comparison`] compares them by another test, at the same level
//! for all figures together, and without the margin.

use serde::Serialize;

use crate::stats::Spread;

/// No more than this may be the chance that a coin, thrown once for each round, does as well.
pub(crate) const LEVEL: f64 = 0.05;

/// A way that is not faster by so much is not worth a change.
pub(crate) const MARGIN: f64 = 1.05;

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
    pub(crate) fn of(ours: &[f64], theirs: &[f64]) -> Option<Evidence> {
        let ratios: Vec<f64> = ours.iter().zip(theirs).map(|(our, their)| our / their).collect();
        let ratio = Spread::of(&ratios)?;
        let faster = ratios.iter().filter(|ratio| **ratio > 1.0).count() as u32;
        let rounds = ratios.len() as u32;
        let chance = coin(faster, rounds);
        let is_sure = chance <= LEVEL && ratio.median >= MARGIN && median(ours) > median(theirs);
        Some(Evidence { ratio, faster_rounds: faster, rounds, chance, is_sure })
    }
}

/// Was the first way better in every round, by the margin, in rounds so few that a coin would do as
/// well?
pub(crate) fn leads(ours: &[f64], theirs: &[f64]) -> bool {
    Evidence::of(ours, theirs).is_some_and(|it| {
        it.chance > LEVEL && it.faster_rounds == it.rounds && it.ratio.median >= MARGIN
    })
}

/// Whether the first way is faster than the second beyond noise.
pub(crate) fn beats(ours: &[f64], theirs: &[f64]) -> bool {
    Evidence::of(ours, theirs).is_some_and(|evidence| evidence.is_sure)
}

/// The verdict of the rule on a way against another, in words; `None` without rounds of both.
pub(crate) fn verdict(ours: &[f64], theirs: &[f64]) -> Option<&'static str> {
    let sides =
        [(ours, theirs, "faster", "likely faster"), (theirs, ours, "slower", "likely slower")];
    let of_side = |(one, other, sure, likely)| match () {
        () if beats(one, other) => Some(sure),
        () if leads(one, other) => Some(likely),
        () => None,
    };
    match ours.len().min(theirs.len()) {
        0 => None,
        1 => Some("one round only"),
        _ => Some(sides.into_iter().find_map(of_side).unwrap_or("within noise")),
    }
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

pub(crate) fn median(samples: &[f64]) -> f64 {
    Spread::of(samples).map_or(f64::NEG_INFINITY, |spread| spread.median)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_coin_is_fair() {
        assert_eq!(coin(0, 0), 1.0);
        assert_eq!(coin(5, 5), 1.0 / 32.0);
        assert_eq!(coin(6, 7), 8.0 / 128.0);
        assert_eq!(coin(0, 9), 1.0);
    }

    #[test]
    fn a_verdict_says_on_which_side_and_how_sure() {
        let of = |ours: f64, rounds| verdict(&vec![ours; rounds], &vec![1.0; rounds]);
        assert_eq!([of(2.0, 5), of(2.0, 4)], [Some("faster"), Some("likely faster")]);
        assert_eq!([of(0.5, 5), of(0.5, 4)], [Some("slower"), Some("likely slower")]);
        assert_eq!([of(1.04, 9), of(2.0, 1)], [Some("within noise"), Some("one round only")]);
        assert_eq!(of(2.0, 0), None);
    }

    #[test]
    fn rounds_that_are_few_lead_and_do_not_beat() {
        assert!(leads(&[2.0; 4], &[1.0; 4]) && !beats(&[2.0; 4], &[1.0; 4]));
        assert!(beats(&[2.0; 5], &[1.0; 5]) && !leads(&[2.0; 5], &[1.0; 5]));
        assert!(!leads(&[2.0, 0.9], &[1.0; 2]) && !leads(&[1.04; 2], &[1.0; 2]));
    }
}
