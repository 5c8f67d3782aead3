//! Series made for tests: sound disks with noise, and disks with one fault.

use crate::doctor::series::{Series, Tick};

/// How long a write takes on a sound disk.
const USUAL_US: f64 = 800.0;

/// A tick in which writes took about `p50_us`.
pub(super) fn tick(index: usize, p50_us: f64, rng: &mut fastrand::Rng) -> Tick {
    let p50_us = p50_us * (0.85 + 0.3 * rng.f64());
    let max_us = p50_us * (2.0 + 10.0 * rng.f64());
    Tick {
        at_ms: index as f64 * 1000.0,
        span_ms: 1000.0,
        operations: (900_000.0 / p50_us) as u64,
        mean_us: p50_us * 1.1,
        p10_us: p50_us * 0.8,
        p50_us,
        p90_us: p50_us * 1.4,
        p99_us: p50_us * 2.0,
        p999_us: max_us,
        max_us,
        write_p50_us: 10.0,
        flush_max_us: 0.0,
    }
}

/// Ticks in which the usual time is changed by `shape`, of which each gets its place.
pub(super) fn shaped(seed: u64, shape: impl Fn(usize, &mut Tick)) -> Series {
    let mut rng = fastrand::Rng::with_seed(seed);
    let ticks = (0..54).map(|index| {
        let mut tick = tick(index, USUAL_US, &mut rng);
        shape(index, &mut tick);
        tick
    });
    Series::of_ticks(ticks.collect())
}

pub(super) fn sound(seed: u64) -> Series {
    shaped(seed, |_, _| {})
}

/// All times of a tick, so many times as long.
pub(super) fn slow(tick: &mut Tick, times: f64) {
    let Tick { mean_us, p10_us, p50_us, p90_us, p99_us, p999_us, max_us, .. } = tick;
    for time in [mean_us, p10_us, p50_us, p90_us, p99_us, p999_us, max_us] {
        *time *= times;
    }
    tick.operations = (tick.operations as f64 / times) as u64;
}

/// As many writes in each tick as are allowed.
pub(super) fn throttled(seed: u64) -> Series {
    shaped(seed, |_, tick| {
        slow(tick, 12.0);
        (tick.operations, tick.mean_us) = (100, 10_000.0);
    })
}
