//! Lines over chunk sizes, threads, percentiles or time.

use maud::{Markup, html};

use super::super::number::number;
use super::axis::Axis;
use super::marks::{class, dashes, shape, swatch};
use super::{Chart, WIDTH, line, px, spans_decades, text, text_width};

/// From the top of the chart to the frame, and how high that is.
const TOP: f64 = 10.0;
const PLOT: f64 = 210.0;
/// Below the frame, for the numbers and the name of the axis.
const FOOT: f64 = 38.0;
/// Right of the frame, so that half of a tick's text has room.
const RIGHT: f64 = 16.0;
/// A line with more points than this has marks at some of them only, and a tip for those.
const MARKED: usize = 24;
/// Beyond this number of points, those between two drawn ones are shown by their least and their
/// greatest.
const DRAWN: usize = 320;

/// One point of a line, with its meaning in words.
#[derive(Clone, Debug)]
pub(in super::super) struct Point {
    pub(in super::super) x: f64,
    pub(in super::super) y: f64,
    /// From minimum to maximum, where there were several rounds.
    pub(in super::super) range: Option<(f64, f64)>,
}

/// One line.
#[derive(Clone, Debug)]
pub(in super::super) struct Line {
    pub(in super::super) name: String,
    /// Grey if it has none of its own.
    pub(in super::super) look: Option<usize>,
    pub(in super::super) points: Vec<Point>,
}

/// The horizontal axis of the lines.
#[derive(Clone, Debug)]
pub(in super::super) enum XAxis {
    /// The values that a key has, with its words.
    Steps(Vec<(f64, String)>),
    Percentiles,
    /// From zero on.
    Plain,
}

/// The data of a chart of lines.
#[derive(Clone, Debug)]
pub(in super::super) struct Lines {
    pub(in super::super) title: String,
    /// Name or unit of the two directions.
    pub(in super::super) x_name: String,
    pub(in super::super) unit: String,
    pub(in super::super) x: XAxis,
    /// Are equal factors to be equally far apart?
    pub(in super::super) is_log: bool,
    pub(in super::super) lines: Vec<Line>,
}

impl Lines {
    /// The chart; `None` if no line has a point.
    pub(in super::super) fn chart(mut self) -> Option<Chart> {
        let is_log = self.is_log;
        for line in &mut self.lines {
            line.points.retain(|point| {
                point.x.is_finite() && point.y.is_finite() && (!is_log || point.y > 0.0)
            });
        }
        self.lines.retain(|line| !line.points.is_empty());
        if self.lines.is_empty() {
            return None;
        }
        let (x, y) = self.axes();
        let is_step = matches!(self.x, XAxis::Steps(_));
        Some(Chart {
            note: [self.unit.as_str(), if is_log { "log scale" } else { "" }]
                .into_iter()
                .filter(|part| !part.is_empty())
                .collect::<Vec<&str>>()
                .join(" · "),
            description: self.description(),
            height: TOP + PLOT + FOOT,
            drawing: html! {
                (grid(&x, &y, &self.x_name))
                // Those with a look of their own lie over the grey ones.
                @for (index, line) in self.lines.iter().enumerate().rev() {
                    (self.drawn(index, line, (&x, &y), is_step))
                }
            },
            legend: legend(&self.lines),
            title: self.title,
        })
    }

    fn axes(&self) -> (Axis, Axis) {
        let points = || self.lines.iter().flat_map(|line| &line.points);
        let ends = |point: &Point| point.range.unwrap_or((point.y, point.y));
        let ys: Vec<f64> =
            points().flat_map(|point| [point.y, ends(point).0, ends(point).1]).collect();
        let span = (TOP + PLOT, TOP);
        let y = if self.is_log { Axis::log(&ys, span) } else { Axis::from_zero(&ys, 4, span) };
        let widest = y.ticks.iter().map(|(_, label)| text_width(label)).fold(0.0, f64::max);
        let span = (widest + 12.0, WIDTH - RIGHT);
        let xs: Vec<f64> = points().map(|point| point.x).collect();
        let x = match &self.x {
            XAxis::Steps(steps) => Axis::steps(steps, span),
            XAxis::Percentiles => Axis::percentiles(&xs, span),
            XAxis::Plain => Axis::from_zero(&xs, 5, span),
        };
        (x, y)
    }

    fn description(&self) -> String {
        let names: Vec<&str> = self.lines.iter().map(|line| line.name.as_str()).collect();
        let (title, x) = (&self.title, &self.x_name);
        format!("Lines of {title} in {}, by {x}: {}.", self.unit, names.join(", "))
    }

    /// A line with its whiskers and marks.
    fn drawn(
        &self,
        index: usize,
        line: &Line,
        (x, y): (&Axis, &Axis),
        has_whiskers: bool,
    ) -> Markup {
        let points = thinned(&line.points);
        let place = |point: &Point| (x.at(point.x), y.at(point.y));
        let every = if points.len() > MARKED { points.len().div_ceil(6) } else { 1 };
        // Lines have their marks at different places, so that none hides another's.
        let first = if every > 1 { (index * every / 4) % every } else { 0 };
        html! {
            g class={ "line " (class(line.look)) } data-line=(index) {
                path .stroke d=(path(points.iter().map(place))) stroke-dasharray=[dashes(line.look)] {}
                @if has_whiskers { path .whisker d=(whiskers(&points, x, y)) {} }
                @for point in points.iter().skip(first).step_by(every) {
                    (shape(line.look, place(point), Some(&self.tip(line, point))))
                }
            }
        }
    }

    fn tip(&self, line: &Line, point: &Point) -> String {
        let x = match &self.x {
            XAxis::Steps(steps) => {
                let step = steps.iter().find(|(value, _)| *value == point.x);
                step.map_or_else(|| number(point.x), |(_, word)| word.clone())
            }
            XAxis::Percentiles if point.x >= 100.0 => String::from("max"),
            XAxis::Percentiles => format!("p{}", point.x),
            XAxis::Plain => format!("{} {}", number(point.x), self.x_name),
        };
        let range = point.range.filter(|(low, high)| low < high);
        let range = range.map(|(low, high)| format!(" ({} … {})", number(low), number(high)));
        format!(
            "{}, {x}: {} {}{}",
            line.name,
            number(point.y),
            self.unit,
            range.unwrap_or_default()
        )
    }
}

fn grid(x: &Axis, y: &Axis, x_name: &str) -> Markup {
    let foot = TOP + PLOT;
    let (left, right) = (x.at(f64::NEG_INFINITY), WIDTH - RIGHT);
    html! {
        g .axis {
            @for (value, label) in &y.ticks {
                (line("grid", (left, y.at(*value)), (right, y.at(*value))))
                (text("tick end", (left - 6.0, y.at(*value) + 4.0), label))
            }
            @for (value, label) in &x.ticks {
                (line("notch", (x.at(*value), foot), (x.at(*value), foot + 4.0)))
                (text("tick middle", (x.at(*value), foot + 17.0), label))
            }
            (text("axis-name end", (right, foot + 33.0), x_name))
        }
    }
}

fn path(places: impl Iterator<Item = (f64, f64)>) -> String {
    let mut path = String::new();
    for (index, (x, y)) in places.enumerate() {
        path.push_str(if index == 0 { "M" } else { "L" });
        path.push_str(&format!("{} {}", px(x), px(y)));
    }
    path
}

fn whiskers(points: &[Point], x: &Axis, y: &Axis) -> String {
    let ranges = points.iter().filter_map(|point| Some((point.x, point.range?)));
    let drawn = ranges.filter(|(_, (low, high))| (y.at(*low) - y.at(*high)).abs() > 1.0);
    drawn
        .map(|(at, (low, high))| format!("M{} {}V{}", px(x.at(at)), px(y.at(low)), px(y.at(high))))
        .collect()
}

/// Of too many points the least and the greatest of each stretch, in their order.
fn thinned(points: &[Point]) -> Vec<Point> {
    if points.len() <= DRAWN {
        return points.to_vec();
    }
    let stretches = points.chunks((points.len() * 2).div_ceil(DRAWN));
    let kept = stretches.flat_map(|stretch| {
        let indexed = || stretch.iter().enumerate();
        let least = indexed().min_by(|one, other| one.1.y.total_cmp(&other.1.y)).map(|(i, _)| i);
        let most = indexed().max_by(|one, other| one.1.y.total_cmp(&other.1.y)).map(|(i, _)| i);
        let mut kept: Vec<usize> = least.into_iter().chain(most).collect();
        kept.sort_unstable();
        kept.dedup();
        kept.into_iter().map(|index| stretch[index].clone())
    });
    kept.collect()
}

/// Names with their marks; the grey ones are counted.
fn legend(lines: &[Line]) -> Markup {
    let others = lines.iter().filter(|line| line.look.is_none()).count();
    html! {
        ul .legend {
            @for (index, line) in lines.iter().enumerate().filter(|(_, line)| line.look.is_some()) {
                li data-line=(index) { (swatch(line.look)) " " (line.name) }
            }
            @if others > 0 {
                li { (swatch(None)) " " (others) " more, named in the table" }
            }
        }
    }
}

/// Whether figures this far apart are drawn on a log scale.
pub(in super::super) fn wants_log(lines: &[Line], factor: f64) -> bool {
    let ys: Vec<f64> = lines.iter().flat_map(|line| &line.points).map(|point| point.y).collect();
    spans_decades(&ys, factor)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn peaks_outlive_the_thinning() {
        let point =
            |x: u32| Point { x: x.into(), y: if x == 777 { 9.0 } else { 1.0 }, range: None };
        let points: Vec<Point> = (0..10_000).map(point).collect();
        let thinned = thinned(&points);
        assert!(thinned.len() <= DRAWN);
        assert!(thinned.iter().any(|point| point.y == 9.0));
        assert!(thinned.is_sorted_by(|one, other| one.x < other.x));
    }
}
