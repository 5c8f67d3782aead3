//! Figures of samples: minimum, median, maximum and quantiles. They are exact, because the samples
//! are there; a histogram would round them.

use serde::Serialize;

/// The middle of some samples, and how far they spread.
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

/// The smallest of `sorted` that so large a share of them does not exceed; `None` of none.
pub fn quantile<T: Copy>(sorted: &[T], share: f64) -> Option<T> {
    let rank = (share * sorted.len() as f64).ceil() as usize;
    sorted.get(rank.max(1) - 1).copied()
}

/// The same of values in any order; 0 of none.
pub fn quantile_of(values: &[f64], share: f64) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    quantile(&sorted, share).unwrap_or(0.0)
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

    #[test]
    fn a_quantile_is_a_sample_of_its_rank() {
        let hundred: Vec<u64> = (1..=100).collect();
        let shares = [0.0, 0.5, 0.99, 0.999, 1.0].map(|share| quantile(&hundred, share).unwrap());
        assert_eq!(shares, [1, 50, 99, 100, 100]);
        assert_eq!(quantile::<u64>(&[], 0.5), None);
    }

    #[test]
    fn values_in_any_order_have_quantiles_too() {
        assert_eq!(quantile_of(&[], 0.5), 0.0);
        let values: Vec<f64> = (1..=100).rev().map(f64::from).collect();
        let shares = [0.0, 0.5, 0.99, 1.0].map(|share| quantile_of(&values, share));
        assert_eq!(shares, [1.0, 50.0, 99.0, 100.0]);
        assert_eq!(quantile_of(&[1.0, 2.0], 1.0), 2.0);
    }
}
