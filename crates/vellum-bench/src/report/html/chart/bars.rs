//! A bar for each row, the best first: the median, and a whisker from minimum to maximum.
//!
//! The name is above its bar, so that long ones have room on a phone too.

use maud::{Markup, html};

use super::super::number::{number, range};
use super::axis::Axis;
use super::{Chart, WIDTH, fitting, line, px, text, text_width};
use crate::report::Better;
use crate::stats::Spread;

/// So many bars are drawn.
const MOST: usize = 14;
/// From one bar to the next.
const PITCH: f64 = 33.0;
const THICKNESS: f64 = 8.0;
/// Below the bars, for the numbers of the axis.
const FOOT: f64 = 20.0;
/// Left and right of the bars, so that half of a tick's text has room.
const EDGE: f64 = 12.0;

/// A row as a bar.
#[derive(Clone, Debug)]
pub(in super::super) struct Bar {
    pub(in super::super) name: String,
    /// Is it one of Vellum's?
    pub(in super::super) is_own: bool,
    /// Its figures, or why there are none.
    pub(in super::super) outcome: Result<Spread, String>,
}

/// The data of a chart of bars.
#[derive(Clone, Debug)]
pub(in super::super) struct Bars {
    pub(in super::super) title: String,
    pub(in super::super) unit: String,
    pub(in super::super) better: Better,
    /// Are equal factors to be equally far apart?
    pub(in super::super) is_log: bool,
    pub(in super::super) bars: Vec<Bar>,
}

impl Bars {
    /// The chart; `None` if there is no bar to draw.
    pub(in super::super) fn chart(mut self) -> Option<Chart> {
        self.sort();
        let all = self.bars.len();
        self.bars.truncate(MOST);
        let height = self.bars.len() as f64 * PITCH + FOOT;
        let spreads: Vec<Spread> =
            self.bars.iter().filter_map(|bar| bar.outcome.as_ref().ok().copied()).collect();
        if spreads.is_empty() {
            return None;
        }
        let axis = self.axis(&spreads);
        Some(Chart {
            note: self.note(all),
            description: self.description(),
            height,
            drawing: html! {
                (grid(&axis, height))
                @for (index, bar) in self.bars.iter().enumerate() {
                    (drawn(bar, &axis, index as f64 * PITCH))
                }
            },
            legend: Markup::default(),
            title: self.title,
        })
    }

    /// The best first, those without figures last.
    fn sort(&mut self) {
        let better = self.better;
        self.bars.sort_by(|one, other| match (&one.outcome, &other.outcome) {
            (Ok(one), Ok(other)) if better == Better::Higher => other.median.total_cmp(&one.median),
            (Ok(one), Ok(other)) => one.median.total_cmp(&other.median),
            (one, other) => one.is_err().cmp(&other.is_err()),
        });
    }

    fn axis(&self, spreads: &[Spread]) -> Axis {
        let ends = (EDGE, WIDTH - EDGE);
        let values: Vec<f64> = spreads.iter().flat_map(|one| [one.min, one.max]).collect();
        if self.is_log { Axis::log(&values, ends) } else { Axis::from_zero(&values, 4, ends) }
    }

    fn note(&self, all: usize) -> String {
        let unit = if self.unit == self.title { "" } else { &self.unit };
        let mut parts = vec![unit.to_string()];
        match self.better {
            Better::Higher => parts.push(String::from("more is better")),
            Better::Lower => parts.push(String::from("less is better")),
            Better::Neither => {}
        }
        if self.is_log {
            parts.push(String::from("log scale"));
        }
        if all > self.bars.len() {
            parts.push(format!("the first {} of {all}", self.bars.len()));
        }
        parts.retain(|part| !part.is_empty());
        parts.join(" · ")
    }

    fn description(&self) -> String {
        let told = self.bars.iter().map(|bar| match &bar.outcome {
            Ok(spread) => format!("{}: {}", bar.name, number(spread.median)),
            Err(why) => format!("{}: {why}", bar.name),
        });
        let told: Vec<String> = told.collect();
        format!("Bars of {} in {}. {}.", self.title, self.unit, told.join("; "))
    }
}

fn grid(axis: &Axis, height: f64) -> Markup {
    let foot = height - FOOT + 2.0;
    html! {
        g .axis {
            @for (value, label) in &axis.ticks {
                (line("grid", (axis.at(*value), 0.0), (axis.at(*value), foot)))
                (text("tick middle", (axis.at(*value), height - 4.0), label))
            }
        }
    }
}

/// A name, a value and a bar in `PITCH` units below `top`.
fn drawn(bar: &Bar, axis: &Axis, top: f64) -> Markup {
    let base = top + 13.0;
    let value = match &bar.outcome {
        Ok(spread) => number(spread.median),
        Err(why) => why.split(':').next().unwrap_or_default().to_string(),
    };
    let name = fitting(&bar.name, WIDTH - 2.0 * EDGE - text_width(&value) - 14.0);
    html! {
        g .bar .own[bar.is_own] data-tip=(tip(bar)) {
            rect .hit x="0" y=(px(top)) width=(px(WIDTH)) height=(px(PITCH)) {}
            (text("name", (EDGE, base), &name))
            (text("value end", (WIDTH - EDGE, base), &value))
            @match &bar.outcome {
                Ok(spread) => (measured(spread, axis, top + 18.0)),
                Err(why) => {
                    @let reason = why.split_once(": ").map_or(why.as_str(), |(_, reason)| reason);
                    (text("reason", (EDGE, base + 14.0), &fitting(reason, WIDTH - 2.0 * EDGE)))
                },
            }
        }
    }
}

fn measured(spread: &Spread, axis: &Axis, top: f64) -> Markup {
    let (start, end) = (EDGE, axis.at(spread.median));
    let (low, high) = (axis.at(spread.min), axis.at(spread.max));
    let middle = top + THICKNESS / 2.0;
    let whisker = format!(
        "M{low} {up}V{down}M{low} {middle}H{high}M{high} {up}V{down}",
        low = px(low),
        high = px(high),
        up = px(middle - 3.5),
        down = px(middle + 3.5),
        middle = px(middle),
    );
    html! {
        rect .mark x=(px(start)) y=(px(top)) width=(px((end - start).max(1.0)))
            height=(px(THICKNESS)) rx="1.5" {}
        @if high - low > 0.5 { path .whisker d=(whisker) {} }
    }
}

fn tip(bar: &Bar) -> String {
    match &bar.outcome {
        Ok(spread) => {
            let range = range(spread).map(|range| format!(" ({range})")).unwrap_or_default();
            format!("{}: {}{range}", bar.name, number(spread.median))
        }
        Err(why) => format!("{}: {why}", bar.name),
    }
}
