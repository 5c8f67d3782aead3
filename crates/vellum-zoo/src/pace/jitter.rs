//! Times that differ from request to request: their logarithms are normally distributed.

use std::f64::consts::TAU;
use std::time::Duration;

use super::{Operation, Pace};

#[derive(Debug)]
pub(crate) struct Jitter {
    median: Duration,
    sigma: f64,
    random: fastrand::Rng,
}

impl Jitter {
    /// Half of the requests take longer than `median`, and one in six longer than `median` times
    /// *e* to the power of `sigma`.
    pub(crate) fn new(median: Duration, sigma: f64, seed: u64) -> Jitter {
        Jitter { median, sigma, random: fastrand::Rng::with_seed(seed) }
    }

    /// A number from the normal distribution.
    fn normal(&mut self) -> f64 {
        let (radius, angle) = (1.0 - self.random.f64(), self.random.f64());
        (-2.0 * radius.ln()).sqrt() * (TAU * angle).cos()
    }
}

impl Pace for Jitter {
    fn done(&mut self, _: &Operation, at: Duration) -> Duration {
        at + self.median.mul_f64((self.sigma * self.normal()).exp())
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{FLUSH, ms};
    use super::*;

    #[test]
    fn half_of_the_requests_take_longer_than_the_median_and_a_sixth_longer_than_a_sigma() {
        let mut jitter = Jitter::new(ms(10), 1.0, 7);
        let times: Vec<Duration> = (0..10_000).map(|_| jitter.done(&FLUSH, ms(0))).collect();
        let share = |more: Duration| times.iter().filter(|time| **time > more).count();
        assert!((4800..5200).contains(&share(ms(10))), "{}", share(ms(10)));
        let sigma = ms(10).mul_f64(std::f64::consts::E);
        assert!((1450..1720).contains(&share(sigma)), "{}", share(sigma));
        let again = Jitter::new(ms(10), 1.0, 7).done(&FLUSH, ms(0));
        assert_eq!(again, times[0], "the seed decides");
    }
}
