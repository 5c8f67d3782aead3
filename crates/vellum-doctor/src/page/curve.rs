//! How long writes took over time, as a drawing that is as wide as the page. Its text is beside it
//! in the page's own size, so that a phone shows it as large as a screen does.

use maud::{Markup, html};
use vellum_bench::doctor::{Figure, Judged, Tick};

/// The drawing, in its own units. It is stretched to the page.
const WIDTH: f64 = 1000.0;
const HEIGHT: f64 = 240.0;
/// A pause longer than so many ticks was the turn of another program.
const GAP: f64 = 1.5;
/// So many slow stretches are told by their times.
const STRETCHES_MAX: usize = 6;

/// A line of the drawing, which looks as it is called, and its figure of a tick in milliseconds.
type Figured = (&'static str, fn(&Tick) -> f64);

const LINES: [Figured; 3] = [
    ("max", |tick| tick.max_us / 1e3),
    ("p99", |tick| tick.p99_us / 1e3),
    ("p50", |tick| tick.p50_us / 1e3),
];

/// The curve of a program, if anything was measured.
pub(super) fn curve(judged: &Judged) -> Option<Markup> {
    let ticks: Vec<&Tick> = judged.ticks.iter().filter(|tick| tick.operations > 0).collect();
    let scale = Scale::of(&ticks, &limits(judged))?;
    let slow = stretches(judged, &ticks);
    let told = told(&slow);
    let view_box = format!("0 0 {} {}", px(WIDTH), px(HEIGHT));
    Some(html! {
        h3 { "Over time" }
        figure {
            div .plot {
                svg viewBox=(view_box) preserveAspectRatio="none" role="img"
                    aria-label={ "Times of writes of " (judged.name) " over time. " (told) } {
                    @for (from, to) in &slow {
                        rect .slow x=(px(scale.x(*from))) y="0" height=(px(HEIGHT))
                            width=(px((scale.x(*to) - scale.x(*from)).max(2.0))) {}
                    }
                    @for decade in scale.decades() { (across("grid", scale.y(decade))) }
                    @for (_, _, limit_ms) in limits(judged) { (across("limit", scale.y(limit_ms))) }
                    @for (name, figure) in LINES { (line(&ticks, &scale, name, figure)) }
                }
                @for decade in scale.decades() {
                    span .decade style={ "top:" (percent(scale.y(decade) / HEIGHT)) } { (short(decade)) " ms" }
                }
                @for (name, what, limit_ms) in limits(judged) {
                    span .limit-name .(what) style={ "top:" (percent(scale.y(limit_ms) / HEIGHT)) } {
                        (name) ": " (what) " " (short(limit_ms)) " ms"
                    }
                }
            }
            div .axis { span { "0 s" } span { (format!("{:.0} s", scale.end_s)) } }
            figcaption {
                @for (name, _) in LINES {
                    span .key { svg viewBox="0 0 24 8" aria-hidden="true" { (across_key(name)) } (name) }
                }
                span .key { span .swatch {} "slow stretch" }
            }
            p .hint { (told) }
        }
    })
}

/// The limits of p99: it is good up to the first one, and bad beyond the second one.
fn limits(judged: &Judged) -> Vec<(&'static str, &'static str, f64)> {
    let limit = judged.limits.iter().map(|one| &one.limit).find(|one| one.figure == Figure::P99);
    let both = limit.map(|limit| [("p99", "good", limit.good_ms), ("p99", "bad", limit.bad_ms)]);
    both.into_iter().flatten().collect()
}

/// Where values are in the drawing: seconds to the right, milliseconds up, each decade as high.
struct Scale {
    end_s: f64,
    low: f64,
    high: f64,
}

impl Scale {
    fn of(ticks: &[&Tick], limits: &[(&str, &str, f64)]) -> Option<Scale> {
        let last = ticks.last()?;
        let times = ticks.iter().flat_map(|tick| [tick.p50_us / 1e3, tick.max_us / 1e3]);
        let values = times.chain(limits.iter().map(|(.., limit_ms)| *limit_ms));
        let values: Vec<f64> = values.filter(|value| value.is_finite() && *value > 0.0).collect();
        let least = values.iter().copied().fold(f64::INFINITY, f64::min);
        let most = values.iter().copied().fold(0.0, f64::max);
        let (low, high) = (least.log10().floor(), most.log10().ceil());
        let is_drawable = low.is_finite() && high.is_finite();
        let high = if high > low { high } else { low + 1.0 };
        is_drawable.then(|| Scale { end_s: (last.at_ms + last.span_ms) / 1e3, low, high })
    }

    fn x(&self, seconds: f64) -> f64 {
        WIDTH * seconds / self.end_s.max(1e-3)
    }

    fn y(&self, value_ms: f64) -> f64 {
        let place = (value_ms.max(1e-9).log10() - self.low) / (self.high - self.low);
        HEIGHT * (1.0 - place.clamp(0.0, 1.0))
    }

    fn decades(&self) -> Vec<f64> {
        (self.low as i32..=self.high as i32).map(|power| 10_f64.powi(power)).collect()
    }
}

/// A line of one figure. It ends where another program had its turn.
fn line(ticks: &[&Tick], scale: &Scale, look: &str, figure: fn(&Tick) -> f64) -> Markup {
    let mut parts: Vec<Vec<(f64, f64)>> = Vec::new();
    let mut end_ms = f64::NEG_INFINITY;
    for tick in ticks {
        let (from, to) = (tick.at_ms / 1e3, (tick.at_ms + tick.span_ms) / 1e3);
        let y = scale.y(figure(tick));
        if tick.at_ms > end_ms + (GAP - 1.0) * tick.span_ms || parts.is_empty() {
            // A part of one tick is seen too.
            parts.push(vec![(scale.x(from), y)]);
        }
        if let Some(part) = parts.last_mut() {
            part.push((scale.x((from + to) / 2.0), y));
        }
        end_ms = tick.at_ms + tick.span_ms;
    }
    html! {
        @for part in parts {
            polyline .line .(look) points=(part.iter().map(|(x, y)| format!("{},{}", px(*x), px(*y)))
                .collect::<Vec<_>>().join(" ")) {}
        }
    }
}

/// From when to when, in seconds, the program waited longer than is good.
fn stretches(judged: &Judged, ticks: &[&Tick]) -> Vec<(f64, f64)> {
    let good = |figure: Figure| {
        let limit = judged.limits.iter().map(|one| &one.limit).find(|one| one.figure == figure);
        limit.map_or(f64::INFINITY, |limit| limit.good_ms * 1e3)
    };
    let (p99_us, longest_us, flush_us) =
        (good(Figure::P99), good(Figure::Max), good(Figure::FlushP99));
    let flush_us = flush_us.min(good(Figure::FlushMax));
    let is_slow = |tick: &&&Tick| {
        tick.p99_us > p99_us || tick.max_us > longest_us || tick.flush_max_us > flush_us
    };
    let mut slow: Vec<(f64, f64)> = Vec::new();
    for tick in ticks.iter().filter(is_slow) {
        let (from, to) = (tick.at_ms / 1e3, (tick.at_ms + tick.span_ms) / 1e3);
        match slow.last_mut() {
            Some((_, end)) if from <= *end + (GAP - 1.0) * tick.span_ms / 1e3 => *end = to,
            _ => slow.push((from, to)),
        }
    }
    slow
}

fn told(slow: &[(f64, f64)]) -> String {
    if slow.is_empty() {
        return "No stretch was slow.".to_owned();
    }
    let shown = slow.iter().take(STRETCHES_MAX).map(|(from, to)| format!("{from:.1} to {to:.1} s"));
    let shown = shown.collect::<Vec<String>>().join(", ");
    match slow.len().saturating_sub(STRETCHES_MAX) {
        0 => format!("Slow stretches: {shown}."),
        more => format!("Slow stretches: {shown}, and {more} more."),
    }
}

fn across(class: &str, y: f64) -> Markup {
    html! { line .(class) x1="0" x2=(px(WIDTH)) y1=(px(y)) y2=(px(y)) {} }
}

fn across_key(look: &str) -> Markup {
    html! { line .line .(look) x1="0" x2="24" y1="4" y2="4" {} }
}

/// A place with one decimal.
fn px(value: f64) -> String {
    let text = format!("{:.1}", value + 0.0);
    text.strip_suffix(".0").map(str::to_owned).unwrap_or(text)
}

fn percent(share: f64) -> String {
    format!("{:.1}%", share * 100.0)
}

/// A number without digits that say nothing.
fn short(value: f64) -> String {
    format!("{}", (value * 1e4).round() / 1e4)
}
