//! Samples of two ways against each other.

pub use vellum_command::samples::Spread;

/// How many times as much `of` is as `to`, round by round; nothing if one of them has no rounds.
pub(crate) fn ratios(of: &[f64], to: &[f64]) -> Vec<f64> {
    of.iter().zip(to).map(|(of, to)| of / to).collect()
}
