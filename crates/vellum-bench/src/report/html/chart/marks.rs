//! The marks that tell the lines of a chart apart: a colour, a shape, and for half of them dashes.

use maud::{Markup, html};

use super::px;

/// So many lines have a look of their own; others are grey.
pub(in super::super) const LOOKS: usize = 8;

/// The class of the colour.
pub(super) fn class(look: Option<usize>) -> String {
    look.map_or_else(|| String::from("other"), |look| format!("c{}", look % LOOKS))
}

/// A mark with its middle at a place.
pub(super) fn shape(look: Option<usize>, (x, y): (f64, f64), tip: Option<&str>) -> Markup {
    let (half, path) = outline(look);
    html! { path .mark d=(format!("M{} {}{path}", px(x - half), px(y))) data-tip=[tip] {} }
}

/// The outline of a mark, from the left end of its middle on, and how far left that is.
fn outline(look: Option<usize>) -> (f64, &'static str) {
    let Some(look) = look else {
        return (1.8, "a1.8 1.8 0 1 0 3.6 0a1.8 1.8 0 1 0-3.6 0z");
    };
    match look % LOOKS {
        0 => (3.6, "a3.6 3.6 0 1 0 7.2 0a3.6 3.6 0 1 0-7.2 0z"), // circle
        1 => (3.3, "v-3.3h6.6v6.6h-6.6z"),                       // square
        2 => (4.4, "l4.4-4.4 4.4 4.4-4.4 4.4z"),                 // diamond
        3 => (4.3, "m0 3.3l4.3-7.4 4.3 7.4z"),                   // triangle
        4 => (4.3, "m0-3.3l4.3 7.4 4.3-7.4z"),                   // triangle upside down
        5 => (3.8, "v-1.3h2.5v-2.5h2.6v2.5h2.5v2.6h-2.5v2.5h-2.6v-2.5h-2.5z"), // plus
        6 => (4.2, "l2.1-3.7h4.2l2.1 3.7-2.1 3.7h-4.2z"),        // hexagon
        _ => (4.4, "v-1.9h8.8v3.8h-8.8z"),                       // dash
    }
}

/// The dashes of the line.
pub(super) fn dashes(look: Option<usize>) -> Option<&'static str> {
    match look.map(|look| look % LOOKS) {
        Some(4) => Some("9 3"),
        Some(5) => Some("3 3"),
        Some(6) => Some("10 3 3 3"),
        Some(7) => Some("6 2"),
        _ => None,
    }
}

/// A piece of line with a mark, for the legend.
pub(super) fn swatch(look: Option<usize>) -> Markup {
    html! {
        svg class=(class(look)) viewBox="0 0 28 12" width="28" height="12" aria-hidden="true" {
            path .stroke d="M0 6h28" stroke-dasharray=[dashes(look)] {}
            (shape(look, (14.0, 6.0), None))
        }
    }
}
