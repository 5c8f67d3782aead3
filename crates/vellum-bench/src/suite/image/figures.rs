//! The figures of one run of a case, and their way from the process that ran to its parent.

use std::time::{Duration, Instant};

use hdrhistogram::Histogram;

use crate::error::{Error, Result};

/// Latencies are told for these.
pub(super) const PERCENTILES: [f64; 12] =
    [1.0, 10.0, 25.0, 50.0, 75.0, 90.0, 95.0, 99.0, 99.5, 99.9, 99.99, 100.0];

/// A run is cut into as many steps for each ten seconds, or in all if it is shorter; so a step of
/// such a run is a quarter of a second. A tenth of a run is a whole number of steps.
const STEPS: u64 = 40;
const STEPS_UNIT_SECONDS: u64 = 10;
/// More than this no picture shows.
const STEPS_MAX: u64 = 10 * STEPS;

/// Latencies are kept to so many digits, up to so many nanoseconds.
const DIGITS: u8 = 3;
const LATENCY_NS_MAX: u64 = 600_000_000_000;

/// The clock of a run, and its times.
pub(super) struct Meter {
    begun: Instant,
    duration: Duration,
    steps: Vec<u64>,
    latencies: Histogram<u64>,
}

impl Meter {
    /// Starts the clock.
    pub(super) fn start(duration: Duration) -> Result<Meter> {
        let steps = vec![0; step_count(duration)];
        let latencies = Histogram::new_with_bounds(1, LATENCY_NS_MAX, DIGITS)
            .map_err(|error| Error::failed(format!("keep latencies: {error}")))?;
        Ok(Meter { begun: Instant::now(), duration, steps, latencies })
    }

    /// Has the time passed?
    pub(super) fn is_over(&self) -> bool {
        self.begun.elapsed() >= self.duration
    }

    /// A write begun at `begun` is done. A write that is done when the time has passed has a
    /// latency, but counts for no rate.
    pub(super) fn note(&mut self, begun: Instant, now: Instant) {
        let nanos = now.duration_since(begun).as_nanos() as u64;
        self.latencies.saturating_record(nanos.max(1));
        let share = now.duration_since(self.begun).as_secs_f64() / self.duration.as_secs_f64();
        let step = (share * self.steps.len() as f64) as usize;
        if let Some(step) = self.steps.get_mut(step) {
            *step += 1;
        }
    }

    /// The figures of this run.
    pub(super) fn figures(&self) -> Figures {
        let step_seconds = self.duration.as_secs_f64() / self.steps.len() as f64;
        let micros =
            |percentile| self.latencies.value_at_quantile(percentile / 100.0) as f64 / 1000.0;
        Figures {
            making_ms: 0.0,
            extents: None,
            rate: self.steps.iter().sum::<u64>() as f64 / self.duration.as_secs_f64(),
            latency_us: PERCENTILES.map(micros),
            rates: self.steps.iter().map(|count| *count as f64 / step_seconds).collect(),
        }
    }
}

/// How many steps a run of this length is cut into.
pub(super) fn step_count(duration: Duration) -> usize {
    (duration.as_secs() / STEPS_UNIT_SECONDS * STEPS).clamp(STEPS, STEPS_MAX) as usize
}

/// The figures of one run of a case.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Figures {
    /// The time to make and sync the image.
    pub(super) making_ms: f64,
    /// In how many pieces the image lay in the end; `None` where the filesystem can't tell.
    pub(super) extents: Option<u64>,
    /// Writes per second, over the whole run.
    pub(super) rate: f64,
    /// For each of [`PERCENTILES`].
    pub(super) latency_us: [f64; PERCENTILES.len()],
    /// Writes per second, in each step of the run; no numbers if that is not known.
    pub(super) rates: Vec<f64>,
}

impl Figures {
    /// How many numbers tell the figures of such a run.
    pub(super) fn count(duration: Duration) -> usize {
        3 + PERCENTILES.len() + step_count(duration)
    }

    /// As numbers. One more than the extents is told, and 0 for none.
    pub(super) fn tell(&self) -> Vec<f64> {
        let extents = self.extents.map_or(0, |extents| extents + 1);
        let first = [self.making_ms, extents as f64, self.rate];
        first.iter().chain(&self.latency_us).chain(&self.rates).copied().collect()
    }

    /// From such numbers.
    pub(super) fn told(numbers: &[f64]) -> Figures {
        let (first, rest) = numbers.split_at(3);
        let (latencies, rates) = rest.split_at(PERCENTILES.len());
        Figures {
            making_ms: first[0],
            extents: (first[1] as u64).checked_sub(1),
            rate: first[2],
            latency_us: std::array::from_fn(|index| latencies[index]),
            rates: rates.to_vec(),
        }
    }

    /// Writes per second in the first and in the last tenth of the run.
    pub(super) fn ends(&self) -> (f64, f64) {
        let tenth = (self.rates.len() / 10).max(1).min(self.rates.len());
        (mean(&self.rates[..tenth]), mean(&self.rates[self.rates.len() - tenth..]))
    }

    /// Writes per second until so many seconds after the start, of a run that took `duration`.
    /// `None` if it was no longer than that, or if its steps are.
    pub(super) fn first(&self, seconds: f64, duration: Duration) -> Option<f64> {
        let step_seconds = duration.as_secs_f64() / self.rates.len() as f64;
        let steps = (seconds / step_seconds).round() as usize;
        (1..self.rates.len()).contains(&steps).then(|| mean(&self.rates[..steps]))
    }

    /// So many microseconds or less took so large a share.
    pub(super) fn latency_at(&self, percentile: f64) -> f64 {
        let index = PERCENTILES.iter().position(|one| *one == percentile);
        index.map_or(f64::NAN, |index| self.latency_us[index])
    }
}

fn mean(rates: &[f64]) -> f64 {
    rates.iter().sum::<f64>() / rates.len().max(1) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_arrive_as_they_were_left() {
        let figures = Figures {
            making_ms: 1.5,
            extents: Some(0),
            rate: 20.0,
            latency_us: std::array::from_fn(|index| index as f64),
            rates: (0..40).map(f64::from).collect(),
        };
        assert_eq!(figures.tell().len(), Figures::count(Duration::from_secs(1)));
        assert_eq!(Figures::told(&figures.tell()), figures);
        let unknown = Figures { extents: None, ..figures.clone() };
        assert_eq!(Figures::told(&unknown.tell()), unknown);
        assert_eq!(figures.ends(), (1.5, 37.5));
        assert_eq!(figures.latency_at(50.0), 3.0);
    }

    #[test]
    fn writes_count_in_the_step_in_which_they_are_done() {
        let mut meter = Meter::start(Duration::from_secs(4)).unwrap();
        let begun = meter.begun;
        let at = |millis| begun + Duration::from_millis(millis);
        meter.note(at(0), at(50));
        meter.note(at(0), at(150));
        meter.note(at(149), at(150));
        meter.note(at(3000), at(4001));
        let figures = meter.figures();
        assert_eq!(figures.rates[..3], [10.0, 20.0, 0.0]);
        assert_eq!(figures.rate, 0.75, "the last came too late to count");
        assert!((figures.latency_us[11] - 1_001_000.0).abs() < 2000.0, "but it took long");
    }

    #[test]
    fn the_first_second_and_the_first_minute_are_told_where_there_is_more() {
        let run = |seconds| {
            let duration = Duration::from_secs(seconds);
            let mut meter = Meter::start(duration).unwrap();
            meter.steps.iter_mut().zip(1..).for_each(|(step, number)| *step = number);
            (meter.figures(), duration)
        };
        let (second, duration) = run(1);
        assert_eq!(second.first(1.0, duration), None, "all of it");
        let (ten, duration) = run(10);
        assert_eq!(ten.first(1.0, duration), Some(10.0), "4 steps, of 1 to 4 writes");
        assert_eq!(ten.first(60.0, duration), None);
        let (two_minutes, duration) = run(120);
        let minute = two_minutes.first(60.0, duration).unwrap();
        assert!((minute - 335.0).abs() < 1e-6, "{minute}: 200 of 400 steps, of 1 to 200 writes");
        let (hour, duration) = run(3600);
        assert_eq!(hour.first(1.0, duration), None, "a step has nine");
    }

    #[test]
    fn steps_are_a_quarter_of_a_second_unless_a_run_is_short_or_very_long() {
        let steps = [1, 10, 60, 3600].map(|seconds| step_count(Duration::from_secs(seconds)));
        assert_eq!(steps, [40, 40, 240, 400]);
    }
}
