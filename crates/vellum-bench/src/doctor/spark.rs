//! A line of small bars: how long writes took over time.

use super::series::Tick;

const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
/// A bar more stands for so many times as long.
const STEP: f64 = 2.0;

/// `width` bars at most, each as high as the p99 of its stretch: a bar more is twice as long, and
/// the lowest stands for the shortest. A blank stands for time in which nothing ended.
pub(super) fn sparkline(ticks: &[Tick], width: usize) -> String {
    let stretch = ticks.len().div_ceil(width.max(1)).max(1);
    let longest = |ticks: &[Tick]| ticks.iter().map(|tick| tick.p99_us).fold(0.0, f64::max);
    let heights: Vec<f64> = ticks.chunks(stretch).map(longest).collect();
    let positive = heights.iter().copied().filter(|height| *height > 0.0);
    let least = positive.fold(f64::INFINITY, f64::min);
    let bar = |height: &f64| match *height {
        height if height <= 0.0 => ' ',
        height => {
            let step = (height / least).log(STEP).round() as usize;
            BARS[step.min(BARS.len() - 1)]
        }
    };
    heights.iter().map(bar).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bar_more_is_twice_as_long() {
        let tick = |p99_us| Tick { p99_us, ..Tick::default() };
        let ticks: Vec<Tick> = [100.0, 210.0, 0.0, 390.0, 100.0, 1e9].map(tick).to_vec();
        assert_eq!(sparkline(&ticks, 10), "▁▂ ▃▁█");
        assert_eq!(sparkline(&ticks, 3), "▁▂█");
        assert_eq!(sparkline(&[], 3), "");
    }
}
