//! The requests of a neighbour, for which ours wait: both go through one queue.

use std::time::Duration;

use super::{Kind, Operation, Pace, time_of};

#[derive(Debug)]
pub(crate) struct Neighbour {
    /// Of the device, in a second.
    bandwidth: u64,
    /// Of one request of the neighbour's.
    bytes: u64,
    /// Between two of them on average.
    pause: Duration,
    /// When the next of them comes.
    next: Duration,
    /// When the device has done all that was asked.
    free: Duration,
    random: fastrand::Rng,
}

impl Neighbour {
    /// One that asks for `share` of the bandwidth, at random times. None without a bandwidth.
    pub(crate) fn new(bandwidth: u64, share: f64, bytes: u64, seed: u64) -> Option<Neighbour> {
        let rate = bandwidth as f64 * share.clamp(0.0, 0.95);
        let pause = Duration::from_secs_f64(bytes as f64 / rate.max(1.0));
        let random = fastrand::Rng::with_seed(seed);
        let mut neighbour = Neighbour {
            bandwidth,
            bytes,
            pause,
            next: Duration::ZERO,
            free: Duration::ZERO,
            random,
        };
        neighbour.next = neighbour.pause();
        (bandwidth > 0).then_some(neighbour)
    }

    /// The time to the next request: exponential, so that they come in crowds.
    fn pause(&mut self) -> Duration {
        self.pause.mul_f64(-(1.0 - self.random.f64()).ln())
    }

    /// Puts the neighbour's requests until then into the queue.
    fn let_in(&mut self, at: Duration) {
        while self.next <= at {
            self.free = self.free.max(self.next) + time_of(self.bytes, self.bandwidth);
            let pause = self.pause();
            self.next += pause;
        }
    }
}

impl Pace for Neighbour {
    fn done(&mut self, operation: &Operation, at: Duration) -> Duration {
        self.let_in(at);
        let own = if operation.kind == Kind::Flush { 0 } else { operation.len };
        self.free = self.free.max(at) + time_of(own, self.bandwidth);
        self.free
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{ms, write};
    use super::*;

    /// How long 1000 writes of 1 MB take that are asked for one after the other, of a device that
    /// takes 1 GB in a second.
    fn time_beside(share: f64) -> Duration {
        let mut neighbour = Neighbour::new(1_000_000_000, share, 256 << 10, 3).unwrap();
        (0..1000).fold(ms(0), |at, _| neighbour.done(&write(1_000_000), at))
    }

    #[test]
    fn what_the_neighbour_takes_is_missing() {
        let beside = [0.0, 0.5, 0.8].map(|share| time_beside(share).as_secs_f64());
        assert!((0.99..1.01).contains(&beside[0]), "{beside:?}");
        assert!((1.8..2.2).contains(&beside[1]), "{beside:?}");
        assert!((4.2..5.8).contains(&beside[2]), "{beside:?}");
    }
}
