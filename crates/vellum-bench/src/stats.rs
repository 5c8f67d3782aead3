//! Minimum, median and maximum of a few samples.

use serde::Serialize;

/// Where the middle of some samples lies, and how far they spread.
///
/// No mean: with five rounds a single slow one would move it, and it is the spread that tells
/// whether the median can be trusted.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Spread {
    /// The smallest sample.
    pub min: f64,
    /// The middle sample, or the mean of the two middle ones.
    pub median: f64,
    /// The largest sample.
    pub max: f64,
}

impl Spread {
    /// Sums up `samples`; `None` if there are none.
    pub fn of(samples: &[f64]) -> Option<Spread> {
        let mut sorted = samples.to_vec();
        sorted.sort_by(f64::total_cmp);
        let (min, max) = (*sorted.first()?, *sorted.last()?);
        let upper = sorted.len() / 2;
        let lower = (sorted.len() - 1) / 2;
        let median = f64::midpoint(sorted[lower], sorted[upper]);
        Some(Spread { min, median, max })
    }
}

/// How many times as much `of` is as `to`, round by round; nothing if one of them has no rounds.
pub(crate) fn ratios(of: &[f64], to: &[f64]) -> Vec<f64> {
    of.iter().zip(to).map(|(of, to)| of / to).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_samples_have_no_spread() {
        assert_eq!(Spread::of(&[]), None);
    }

    #[test]
    fn one_sample_is_all_three() {
        let spread = Spread { min: 7.0, median: 7.0, max: 7.0 };
        assert_eq!(Spread::of(&[7.0]), Some(spread));
    }

    #[test]
    fn odd_number_of_samples_has_a_middle_one() {
        let spread = Spread { min: 1.0, median: 3.0, max: 100.0 };
        assert_eq!(Spread::of(&[100.0, 1.0, 3.0]), Some(spread));
    }

    #[test]
    fn even_number_of_samples_takes_the_mean_of_the_two_in_the_middle() {
        let spread = Spread { min: 1.0, median: 2.5, max: 9.0 };
        assert_eq!(Spread::of(&[3.0, 9.0, 1.0, 2.0]), Some(spread));
    }
}
