//! The place of a value on a chart, and the round numbers that are written beside it.

use super::super::number::short;
use super::text_width;

/// One of the two directions of a chart, over `from..to` in its units.
#[derive(Clone, Debug)]
pub(super) struct Axis {
    kind: Kind,
    /// The ends, as [`Kind::place`] puts them.
    low: f64,
    high: f64,
    from: f64,
    to: f64,
    /// Values with the text at them.
    pub(super) ticks: Vec<(f64, String)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Linear,
    Log,
    /// 90, 99, 99.9 and so on are equally far apart.
    Nines,
}

impl Kind {
    fn place(self, value: f64) -> f64 {
        match self {
            Kind::Linear => value,
            Kind::Log => value.log10(),
            Kind::Nines => -(1.0 - value / 100.0).max(1e-9).log10(),
        }
    }
}

/// The smallest and the largest of those that can be drawn.
fn ends(values: &[f64]) -> Option<(f64, f64)> {
    let finite = values.iter().copied().filter(|value| value.is_finite());
    finite.fold(None, |ends, value| match ends {
        None => Some((value, value)),
        Some((low, high)) => Some((value.min(low), value.max(high))),
    })
}

impl Axis {
    /// From zero to above the largest of `values`, with about `count` ticks.
    pub(super) fn from_zero(values: &[f64], count: usize, (from, to): (f64, f64)) -> Axis {
        let (low, high) = ends(values).unwrap_or((0.0, 1.0));
        let (low, high) = (low.min(0.0), high.max(0.0));
        let high = if high > low { high } else { 1.0 };
        let (step, first, last) = round_ends(low, high, count);
        let count = (last - first) as usize;
        let ticks = (0..=count).map(|index| (first + index as f64) * step);
        let ticks = ticks.map(|value| (value, short(value))).collect();
        Axis { kind: Kind::Linear, low: first * step, high: last * step, from, to, ticks }
    }

    /// Equal factors are equally far apart. Needs values above zero; others are left out.
    pub(super) fn log(values: &[f64], (from, to): (f64, f64)) -> Axis {
        let positive: Vec<f64> = values.iter().copied().filter(|value| *value > 0.0).collect();
        let (low, high) = ends(&positive).unwrap_or((1.0, 10.0));
        let low = round_down(low);
        let high = round_up(if high > low * 1.001 { high } else { low * 10.0 });
        let kind = Kind::Log;
        let ticks = log_ticks(low, high).into_iter().map(|value| (value, short(value))).collect();
        Axis { kind, low: kind.place(low), high: kind.place(high), from, to, ticks }
    }

    /// The steps that were measured, equal factors equally far apart; of many, some have a text.
    pub(super) fn steps(steps: &[(f64, String)], (from, to): (f64, f64)) -> Axis {
        let values: Vec<f64> = steps.iter().map(|(value, _)| *value).collect();
        let kind = if values.iter().all(|value| *value > 0.0) { Kind::Log } else { Kind::Linear };
        let (low, high) = ends(&values).unwrap_or((1.0, 2.0));
        let (low, high) = (kind.place(low), kind.place(high));
        let high = if high > low { high } else { low + 1.0 };
        let mut axis = Axis { kind, low, high, from, to, ticks: steps.to_vec() };
        axis.thin();
        axis
    }

    /// Leaves out ticks that have no room for their text beside the one before; the last stays.
    fn thin(&mut self) {
        let mut kept: Vec<(f64, String)> = Vec::new();
        for tick in std::mem::take(&mut self.ticks).into_iter().rev() {
            let room = kept.last().map(|next| self.at(next.0) - self.at(tick.0));
            if room.is_none_or(|room| room >= text_width(&tick.1) + 10.0) {
                kept.push(tick);
            }
        }
        kept.reverse();
        self.ticks = kept;
    }

    /// Shares in percent, the rarer the farther apart; the whole is put one step after the rest.
    pub(super) fn percentiles(values: &[f64], (from, to): (f64, f64)) -> Axis {
        let kind = Kind::Nines;
        let partial: Vec<f64> = values.iter().copied().filter(|value| *value < 100.0).collect();
        let (low, high) = ends(&partial).unwrap_or((0.0, 90.0));
        let has_whole = values.iter().any(|value| *value >= 100.0);
        let (low, inner) = (kind.place(low.max(0.0)), kind.place(high));
        let high = if has_whole { inner + 0.7 } else { inner.max(low + 1.0) };
        let usual = [0.0, 50.0, 90.0, 99.0, 99.9, 99.99, 99.999, 99.9999];
        let inside = usual.into_iter().filter(|value| (low..=inner).contains(&kind.place(*value)));
        let mut ticks: Vec<(f64, String)> =
            inside.map(|value| (value, value.to_string())).collect();
        if has_whole {
            ticks.push((100.0, String::from("max")));
        }
        Axis { kind, low, high, from, to, ticks }
    }

    /// The place of `value`; the nearer end if it is beyond.
    pub(super) fn at(&self, value: f64) -> f64 {
        let share = (self.kind.place(value) - self.low) / (self.high - self.low);
        let share = if share.is_nan() { 0.0 } else { share.clamp(0.0, 1.0) };
        self.from + share * (self.to - self.from)
    }
}

/// A round step, and how many of them the ends are from zero: those of about `count` steps that
/// leave the least room unused.
fn round_ends(low: f64, high: f64, count: usize) -> (f64, f64, f64) {
    let fit = |count: usize| {
        let step = round_up((high - low).max(f64::MIN_POSITIVE * 1e20) / count as f64);
        (step, (low / step).floor(), (high / step - 1e-9).ceil())
    };
    let room = |(step, first, last): &(f64, f64, f64)| (last - first) * step;
    let fits = [count - 1, count, count + 1].map(fit);
    fits.into_iter().min_by(|one, other| room(one).total_cmp(&room(other))).unwrap_or(fit(count))
}

fn round_up(value: f64) -> f64 {
    let decade = 10_f64.powf(value.log10().floor());
    let steps = [1.0, 2.0, 5.0, 10.0].map(|step| step * decade);
    steps.into_iter().find(|step| *step >= value * (1.0 - 1e-9)).unwrap_or(10.0 * decade)
}

fn round_down(value: f64) -> f64 {
    let decade = 10_f64.powf(value.log10().floor());
    let steps = [5.0, 2.0, 1.0].map(|step| step * decade);
    steps.into_iter().find(|step| *step <= value * (1.0 + 1e-9)).unwrap_or(decade)
}

/// Powers of ten, and 2 and 5 between them where there are few.
fn log_ticks(low: f64, high: f64) -> Vec<f64> {
    let (first, last) = (low.log10().floor() as i32, high.log10().ceil() as i32);
    let decades = high.log10() - low.log10();
    let steps: &[f64] = if decades <= 2.0 { &[1.0, 2.0, 5.0] } else { &[1.0] };
    let every = ((decades / 6.0).ceil() as usize).max(1);
    let all = (first..=last).step_by(every);
    let all = all.flat_map(|power| steps.iter().map(move |step| step * 10_f64.powi(power)));
    all.filter(|value| (low * 0.999..=high * 1.001).contains(value)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(axis: &Axis) -> Vec<&str> {
        axis.ticks.iter().map(|(_, text)| text.as_str()).collect()
    }

    #[test]
    fn ticks_are_round() {
        assert_eq!(texts(&Axis::from_zero(&[4.97], 4, (0.0, 1.0))), ["0", "1", "2", "3", "4", "5"]);
        assert_eq!(texts(&Axis::from_zero(&[0.3], 3, (0.0, 1.0))), ["0", "0.1", "0.2", "0.3"]);
        assert_eq!(
            texts(&Axis::from_zero(&[65_000.0], 4, (0.0, 1.0))),
            ["0", "20k", "40k", "60k", "80k"]
        );
        assert_eq!(texts(&Axis::log(&[3.0, 40.0], (0.0, 1.0))), ["2", "5", "10", "20", "50"]);
        assert_eq!(
            texts(&Axis::log(&[0.02, 3000.0], (0.0, 1.0))),
            ["0.1", "1", "10", "100", "1000"]
        );
    }

    #[test]
    fn nothing_lies_outside() {
        let strange = [f64::NAN, f64::INFINITY, -1.0, 0.0, 1e-300, 1e300, 5.0];
        for values in [&[][..], &[0.0], &[7.0], &[1e-300], &[1e300], &[-3.0], &strange] {
            let axes = [
                Axis::from_zero(values, 4, (10.0, 20.0)),
                Axis::log(values, (10.0, 20.0)),
                Axis::percentiles(values, (10.0, 20.0)),
                Axis::steps(
                    &values.iter().map(|value| (*value, String::new())).collect::<Vec<_>>(),
                    (10.0, 20.0),
                ),
            ];
            for axis in axes {
                assert!(axis.ticks.len() < 20, "{axis:?}");
                let ticks = axis.ticks.iter().map(|(value, _)| *value);
                for value in ticks.chain(strange) {
                    assert!((10.0..=20.0).contains(&axis.at(value)), "{value} {axis:?}");
                }
            }
        }
    }

    #[test]
    fn rare_events_have_room() {
        let axis = Axis::percentiles(&[50.0, 90.0, 99.0, 99.9, 100.0], (0.0, 100.0));
        assert_eq!(texts(&axis), ["50", "90", "99", "99.9", "max"]);
        let [a, b, c] = [90.0, 99.0, 99.9].map(|value| axis.at(value));
        assert!(((b - a) - (c - b)).abs() < 0.1);
        assert_eq!(axis.at(100.0), 100.0);
    }
}
