//! How long single calls took: the columns of a latency table.

use vellum_command::samples::quantile;

/// The distribution of many latencies, in microseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Latency {
    /// The mean.
    pub(crate) avg: f64,
    /// The shortest.
    pub(crate) min: f64,
    /// The longest.
    pub(crate) max: f64,
    /// The standard deviation, of all samples as the whole population.
    pub(crate) stddev: f64,
    /// How many of a hundred samples are outliers in Tukey's sense: more than one and a half times
    /// the distance between the quartiles below the lower or above the upper one.
    pub(crate) outlier_percent: f64,
    /// Half of the samples are not longer than this.
    pub(crate) p50: f64,
    /// 99 of a hundred samples are not longer than this.
    pub(crate) p99: f64,
    /// 999 of a thousand samples are not longer than this.
    pub(crate) p999: f64,
}

/// Tukey's fences are so many times the distance between the quartiles away from them.
const FENCE: f64 = 1.5;

impl Latency {
    /// Sums up samples in nanoseconds, which are sorted; `None` if there are none.
    pub(crate) fn of(nanos: &mut [u64]) -> Option<Latency> {
        nanos.sort_unstable();
        let (min, max) = (*nanos.first()? as f64, *nanos.last()? as f64);
        let count = nanos.len() as f64;
        let avg = nanos.iter().map(|nanos| *nanos as f64).sum::<f64>() / count;
        let square = |nanos: &u64| (*nanos as f64 - avg).powi(2);
        let stddev = (nanos.iter().map(square).sum::<f64>() / count).sqrt();
        let at = |share| quantile(nanos, share).unwrap_or(0) as f64;
        let (lower, upper) = (at(0.25), at(0.75));
        let reach = (upper - lower) * FENCE;
        let low = nanos.partition_point(|nanos| (*nanos as f64) < lower - reach);
        let high = nanos.partition_point(|nanos| *nanos as f64 <= upper + reach);
        let outliers = (low + nanos.len() - high) as f64;
        Some(Latency {
            avg: avg / 1000.0,
            min: min / 1000.0,
            max: max / 1000.0,
            stddev: stddev / 1000.0,
            outlier_percent: outliers / count * 100.0,
            p50: at(0.5) / 1000.0,
            p99: at(0.99) / 1000.0,
            p999: at(0.999) / 1000.0,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_samples_have_no_latency() {
        assert_eq!(Latency::of(&mut []), None);
    }

    #[test]
    fn a_hundred_steps_have_the_quantiles_of_their_ranks() {
        let mut nanos: Vec<u64> = (1..=100).rev().map(|step| step * 1000).collect();
        let latency = Latency::of(&mut nanos).unwrap();
        assert_eq!((latency.min, latency.p50, latency.p99, latency.max), (1.0, 50.0, 99.0, 100.0));
        assert_eq!(latency.p999, 100.0);
        assert_eq!((latency.avg, latency.outlier_percent), (50.5, 0.0));
        assert!((latency.stddev - 28.866).abs() < 0.001);
    }

    #[test]
    fn what_lies_far_beyond_the_quartiles_is_an_outlier() {
        let mut nanos = [100, 101, 102, 103, 104, 105, 106, 107, 108, 900];
        assert_eq!(Latency::of(&mut nanos).unwrap().outlier_percent, 10.0);
        let mut same = [5; 8];
        assert_eq!(Latency::of(&mut same).unwrap().outlier_percent, 0.0);
    }
}
