//! Which of several ways is the one to take: a pure function of what was measured.
//!
//! Each way has one score for each round: how many times as fast it was as the default, in that
//! round.
//!
//! Who beats whom is [`crate::faster`]'s to say.
//!
//! What is chosen is beaten by nobody. If that holds for the default, it is the default: a change
//! that shows no difference is not worth making. Else, of those that come within the margin of the
//! best and beat the default, it is the first, for ways are listed the simplest first.

use crate::faster::{MARGIN, beats, median};

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
