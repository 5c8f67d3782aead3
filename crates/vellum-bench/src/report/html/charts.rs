//! Which charts a table gets: bars always, lines where a key grows, and the charts of the rows
//! themselves.

use std::collections::BTreeSet;

use super::super::group::{Figure, Group};
use super::super::{Better, Case, Series};
use super::chart::{Bar, Bars, Chart, LOOKS, Line, Lines, Point, XAxis, spans_decades, wants_log};
use super::loads::rivals;
use super::names::{WAYS, row_name};
use crate::bytes::quantity;
use crate::stats::Spread;

/// The keys that lines go over.
const GROWING: [&str; 6] = ["chunk", "threads", "depth", "logs", "processes", "segments"];
/// So many metrics of a table are drawn as bars, and so many as lines.
const MOST_METRICS: usize = 3;
const MOST_METRICS_AS_LINES: usize = 2;
/// So many charts of one kind a table gets.
const MOST_CHARTS: usize = 12;
/// From this factor between the least and the greatest round on, bars are drawn on a log scale.
const LOG_FACTOR: f64 = 500.0;
/// For times this is enough: one stalled round would make everything else a dot.
const LOG_FACTOR_OF_TIMES: f64 = 30.0;

/// The charts of a table, and how many were left out.
pub(super) fn charts(suite: &str, group: &Group<'_>) -> (Vec<Chart>, usize) {
    let headlines = headlines(group);
    let rivals = rivals(suite, group);
    let of_load = |(load, group): &(String, Group<'_>)| {
        let bars = headlines.iter().filter_map(|figure| bars(load, group, figure));
        bars.collect::<Vec<Chart>>()
    };
    let mut charts: Vec<Chart> = rivals.iter().flat_map(of_load).collect();
    let mut left_out = 0;
    let mut add = |mut more: Vec<Chart>| {
        left_out += more.len().saturating_sub(MOST_CHARTS);
        more.truncate(MOST_CHARTS);
        charts.append(&mut more);
    };
    for key in GROWING {
        for figure in headlines.iter().take(MOST_METRICS_AS_LINES) {
            add(by_key(group, figure, key, headlines.first()));
        }
    }
    for name in series_names(group) {
        add(by_series(group, name));
    }
    (charts, left_out)
}

/// The metrics that are worth a chart: those that can be good or bad, ratios last.
pub(super) fn headlines<'a>(group: &Group<'a>) -> Vec<Figure<'a>> {
    let judged =
        group.figures().into_iter().filter(|figure| better(group, figure) != Better::Neither);
    let (ratios, plain): (Vec<_>, Vec<_>) = judged.partition(|figure| figure.unit == "x");
    let mut chosen = if plain.is_empty() { ratios } else { plain };
    if chosen.is_empty() {
        chosen = group.figures();
    }
    chosen.truncate(MOST_METRICS);
    chosen
}

/// Which way is good in this metric.
pub(super) fn better(group: &Group<'_>, figure: &Figure<'_>) -> Better {
    let metric = group.rows.iter().find_map(|row| figure.of(row));
    metric.map_or(Better::Neither, |metric| metric.better)
}

/// The spread of those samples that are numbers.
pub(super) fn spread(row: &Case, figure: &Figure<'_>) -> Option<Spread> {
    let samples = figure.samples(row).iter().copied();
    Spread::of(&samples.filter(|sample| sample.is_finite()).collect::<Vec<f64>>())
}

/// A bar for each row of a load.
fn bars(load: &str, group: &Group<'_>, figure: &Figure<'_>) -> Option<Chart> {
    let keys = group.key_columns();
    let bar = |row: &&Case| {
        let outcome = match row.reason() {
            Some(reason) => Err(format!("{}: {reason}", row.verdict())),
            None => Ok(spread(row, figure)?),
        };
        Some(Bar { name: row_name(row, &keys), is_own: row.is_own(), outcome })
    };
    let bars: Vec<Bar> = group.rows.iter().filter_map(bar).collect();
    let spreads = bars.iter().filter_map(|bar| bar.outcome.as_ref().ok());
    let ends: Vec<f64> = spreads.flat_map(|spread| [spread.min, spread.max]).collect();
    let factor = if is_time(figure.unit) { LOG_FACTOR_OF_TIMES } else { LOG_FACTOR };
    let chart = Bars {
        title: titled(figure.name, load),
        unit: figure.unit.to_string(),
        better: better(group, figure),
        is_log: spans_decades(&ends, factor),
        bars,
    };
    chart.chart()
}

/// How the rows of a group are laid out over charts and lines.
struct Layout<'a> {
    line_keys: Vec<&'a str>,
    chart_keys: Vec<&'a str>,
    /// The names of the lines that have a look of their own.
    looks: Vec<String>,
}

impl<'a> Layout<'a> {
    /// For lines over `x`, or over something that each row has of its own.
    fn new(group: &Group<'a>, x: Option<&str>, figure: Option<&Figure<'_>>) -> Layout<'a> {
        let mut chart_keys = group.key_columns();
        chart_keys.retain(|key| Some(*key) != x);
        let preferred = WAYS.iter().find_map(|name| chart_keys.iter().position(|key| key == name));
        let mut line_keys = Vec::new();
        if !chart_keys.is_empty() {
            line_keys.push(chart_keys.remove(preferred.unwrap_or(0)));
        }
        // Yes and no, or with and without: told apart within a chart while there is room.
        while let Some(index) = chart_keys.iter().rposition(|key| {
            let with = [&line_keys[..], &[key]].concat();
            distinct(group, &[key]) <= 2 && distinct(group, &with) <= LOOKS
        }) {
            line_keys.push(chart_keys.remove(index));
        }
        let looks = looks(group, &line_keys, figure);
        Layout { line_keys, chart_keys, looks }
    }

    /// The rows of each chart, with their common keys.
    fn charts(&self, group: &Group<'a>) -> Vec<(String, Vec<&'a Case>)> {
        let mut charts: Vec<(String, Vec<&Case>)> = Vec::new();
        for row in &group.rows {
            let name = row_name(row, &self.chart_keys);
            match charts.iter_mut().find(|(known, _)| *known == name) {
                Some((_, rows)) => rows.push(row),
                None => charts.push((name, vec![row])),
            }
        }
        charts
    }

    /// One line for each name; its points are those of all rows of that name.
    fn lines(&self, rows: &[&Case], points: impl Fn(&Case) -> Vec<Point>) -> Vec<Line> {
        let mut lines: Vec<Line> = Vec::new();
        for row in rows {
            let name = row_name(row, &self.line_keys);
            let points = points(row);
            match lines.iter_mut().find(|line| line.name == name) {
                Some(line) => line.points.extend(points),
                None => {
                    let look = self.looks.iter().position(|known| *known == name);
                    lines.push(Line { name, look, points });
                }
            }
        }
        for line in &mut lines {
            line.points.sort_by(|one, other| one.x.total_cmp(&other.x));
        }
        lines.retain(|line| !line.points.is_empty());
        lines
    }
}

fn distinct(group: &Group<'_>, keys: &[&str]) -> usize {
    group.rows.iter().map(|row| row_name(row, keys)).collect::<BTreeSet<String>>().len()
}

/// The names of the lines in their order; of too many, the best.
fn looks(group: &Group<'_>, keys: &[&str], figure: Option<&Figure<'_>>) -> Vec<String> {
    let mut names: Vec<(String, f64)> = Vec::new();
    for row in &group.rows {
        let name = row_name(row, keys);
        let merit =
            figure.and_then(|figure| merit(group, row, figure)).unwrap_or(f64::NEG_INFINITY);
        match names.iter_mut().find(|(known, _)| *known == name) {
            Some((_, best)) => *best = best.max(merit),
            None => names.push((name, merit)),
        }
    }
    let mut merits: Vec<f64> = names.iter().map(|(_, merit)| *merit).collect();
    merits.sort_by(|one, other| other.total_cmp(one));
    let least = merits.get(LOOKS - 1).copied().unwrap_or(f64::NEG_INFINITY);
    names.retain(|(_, merit)| *merit >= least);
    names.into_iter().map(|(name, _)| name).take(LOOKS).collect()
}

fn merit(group: &Group<'_>, row: &Case, figure: &Figure<'_>) -> Option<f64> {
    let median = spread(row, figure)?.median;
    Some(if better(group, figure) == Better::Lower { -median } else { median })
}

/// A metric over a key whose values are numbers: a chart for each state, a line for each way.
///
/// Lines look the same in the charts of all metrics: the `first` says which have a look.
fn by_key(
    group: &Group<'_>,
    figure: &Figure<'_>,
    key: &str,
    first: Option<&Figure<'_>>,
) -> Vec<Chart> {
    let layout = Layout::new(group, Some(key), first);
    let chart = |(name, rows): (String, Vec<&Case>)| {
        let steps = steps(&rows, key);
        if steps.len() < 2 {
            return None;
        }
        let point = |row: &Case| {
            let (x, spread) = (quantity(row.value(key)?)?, spread(row, figure)?);
            Some(Point { x, y: spread.median, range: Some((spread.min, spread.max)) })
        };
        let lines = layout.lines(&rows, |row| point(row).into_iter().collect());
        let is_time = is_time(figure.unit);
        let chart = Lines {
            title: titled(&format!("{} by {key}", figure.name), &name),
            x_name: key.to_string(),
            unit: figure.unit.to_string(),
            x: XAxis::Steps(steps),
            is_log: is_time && wants_log(&lines, LOG_FACTOR_OF_TIMES),
            lines,
        };
        chart.chart()
    };
    layout.charts(group).into_iter().filter_map(chart).collect()
}

/// The values of the key that are numbers, each once, in order.
fn steps(rows: &[&Case], key: &str) -> Vec<(f64, String)> {
    let words = rows.iter().filter_map(|row| row.value(key));
    let mut steps: Vec<(f64, String)> =
        words.filter_map(|word| Some((quantity(word)?, word.to_string()))).collect();
    steps.sort_by(|one, other| one.0.total_cmp(&other.0));
    steps.dedup_by(|one, other| one.0 == other.0);
    steps
}

fn series_names<'a>(group: &Group<'a>) -> Vec<&'a str> {
    let mut names = Vec::new();
    for series in group.rows.iter().flat_map(|row| &row.series) {
        if !names.contains(&series.name.as_str()) {
            names.push(series.name.as_str());
        }
    }
    names
}

/// The charts of rows under this name, over each other.
fn by_series(group: &Group<'_>, name: &str) -> Vec<Chart> {
    let find = |row: &Case| row.series.iter().find(|series| series.name == name).cloned();
    let Some(sample) = group.rows.iter().find_map(|row| find(row)) else { return Vec::new() };
    let headlines = headlines(group);
    let layout = Layout::new(group, None, headlines.first());
    let points = |row: &Case| find(row).map(|series| points(&series)).unwrap_or_default();
    let is_percentiles = name.contains("percentile");
    let chart = |(common, rows): (String, Vec<&Case>)| {
        let lines = layout.lines(&rows, points);
        let wants_log =
            is_percentiles || is_time(&sample.y) && wants_log(&lines, LOG_FACTOR_OF_TIMES);
        let chart = Lines {
            title: titled(name, &common),
            x_name: sample.x.clone(),
            unit: sample.y.clone(),
            x: if is_percentiles { XAxis::Percentiles } else { XAxis::Plain },
            is_log: wants_log,
            lines,
        };
        chart.chart()
    };
    layout.charts(group).into_iter().filter_map(chart).collect()
}

fn points(series: &Series) -> Vec<Point> {
    series.points.iter().map(|[x, y]| Point { x: *x, y: *y, range: None }).collect()
}

fn titled(title: &str, rest: &str) -> String {
    if rest.is_empty() { title.to_string() } else { format!("{title}, {rest}") }
}

fn is_time(unit: &str) -> bool {
    matches!(unit.split([' ', '/']).next(), Some("ns" | "us" | "µs" | "ms" | "s"))
}
