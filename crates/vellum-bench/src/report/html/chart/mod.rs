//! Charts as SVG. They are written by hand: a chart crate would bring fonts or a script, and its
//! colours could not follow the page.
//!
//! All are as wide as a phone and are beside each other on a larger screen, so that their text has
//! the same size everywhere. Colours are classes, so that they follow the page's; no chart tells
//! anything by colour alone.

use maud::{Markup, html};

mod axis;
mod bars;
mod lines;
mod marks;

pub(super) use bars::{Bar, Bars};
pub(super) use lines::{Line, Lines, Point, XAxis, wants_log};
pub(super) use marks::LOOKS;

/// How wide every chart is, in its own units.
const WIDTH: f64 = 420.0;

/// A chart with its texts.
#[derive(Clone, Debug)]
pub(super) struct Chart {
    /// The subject of the chart.
    pub(super) title: String,
    /// The unit, the good direction, and special facts.
    pub(super) note: String,
    /// The same in a sentence, for readers that can't see it.
    description: String,
    height: f64,
    drawing: Markup,
    legend: Markup,
}

impl Chart {
    /// The chart as element number `id` of the page.
    pub(super) fn markup(&self, id: usize) -> Markup {
        let (title_id, note_id) = (format!("figure-{id}"), format!("figure-{id}-note"));
        let view_box = format!("0 0 {} {}", px(WIDTH), px(self.height));
        html! {
            figure {
                figcaption {
                    span .title id=(title_id) { (self.title) }
                    @if !self.note.is_empty() { " " span .note { (self.note) } }
                }
                svg viewBox=(view_box) width=(px(WIDTH)) height=(px(self.height)) role="img"
                    aria-labelledby=(title_id) aria-describedby=(note_id) {
                    desc id=(note_id) { (self.description) }
                    (self.drawing)
                }
                (self.legend)
            }
        }
    }
}

/// A length or place with one decimal.
fn px(value: f64) -> String {
    debug_assert!(value.is_finite(), "a place that is none");
    let text = format!("{:.1}", value + 0.0);
    text.strip_suffix(".0").map(str::to_string).unwrap_or(text)
}

/// About how wide a text is in the size that charts use.
fn text_width(text: &str) -> f64 {
    text.chars().count() as f64 * 6.4
}

/// As much of the text as has room.
fn fitting(text: &str, width: f64) -> String {
    let room = (width / 6.4).max(1.0) as usize;
    if text.chars().count() <= room {
        return text.to_string();
    }
    text.chars().take(room - 1).chain(['…']).collect()
}

fn line(class: &str, (x1, y1): (f64, f64), (x2, y2): (f64, f64)) -> Markup {
    html! { line class=(class) x1=(px(x1)) y1=(px(y1)) x2=(px(x2)) y2=(px(y2)) {} }
}

fn text(class: &str, (x, y): (f64, f64), text: &str) -> Markup {
    html! { text class=(class) x=(px(x)) y=(px(y)) { (text) } }
}

/// Whether rows this far apart are drawn with equal factors at equal distances.
pub(super) fn spans_decades(values: &[f64], factor: f64) -> bool {
    let positive = || values.iter().copied().filter(|value| value.is_finite() && *value > 0.0);
    let low = positive().fold(f64::INFINITY, f64::min);
    let high = positive().fold(0.0, f64::max);
    high > low * factor
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_text_is_cut_where_it_has_no_room() {
        assert_eq!(fitting("short", 100.0), "short");
        assert_eq!(fitting("a very long name", 64.0), "a very lo…");
        assert_eq!(fitting("äöü", 0.0), "…");
    }

    #[test]
    fn places_are_short() {
        assert_eq!([0.0, -0.0, 12.0, 12.34].map(px), ["0", "0", "12", "12.3"]);
    }

    #[test]
    fn only_what_spans_decades_is_drawn_so() {
        assert!(spans_decades(&[0.1, 500.0], 200.0));
        assert!(!spans_decades(&[1.0, 50.0, 0.0, f64::INFINITY], 200.0));
        assert!(!spans_decades(&[], 200.0));
    }
}
