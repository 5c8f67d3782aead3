//! The figures themselves, in tables that can be sorted.

use maud::{Markup, html};

use super::super::Case;
use super::super::group::{Figure, Group, finding_of};
use super::charts::spread;
use super::number::{number, range};
use crate::bytes::quantity;

/// A table longer than this scrolls in its box.
const LONG: usize = 24;

/// All rows of a group, with every figure.
pub(super) fn table(group: &Group<'_>) -> Markup {
    let (keys, figures) = (group.key_columns(), group.figures());
    let class = if group.rows.len() > LONG { "scroll long" } else { "scroll" };
    html! {
        p .wide hidden { "This table is wider than the page: it scrolls sideways." }
        div class=(class) tabindex="0" role="region" aria-label=(format!("Figures: {}", group.title())) {
            table .figures {
                thead {
                    tr {
                        @for key in &keys { (heading(key, "", key_class(group, key))) }
                        @for figure in &figures { (heading(figure.name, figure.unit, "number")) }
                        @if let Some(name) = group.finding() { (heading(name, "", "")) }
                        (heading("verified", "", ""))
                    }
                }
                tbody { @for row in &group.rows { (line(group, row, &keys, &figures)) } }
            }
        }
    }
}

fn heading(name: &str, unit: &str, class: &str) -> Markup {
    html! {
        th scope="col" aria-sort="none" class=[non_empty(class)] {
            button type="button" {
                (name)
                @if !unit.is_empty() && unit != name { " " span .unit { (unit) } }
            }
        }
    }
}

/// Values that are numbers are at the right.
fn key_class(group: &Group<'_>, key: &str) -> &'static str {
    let mut values = group.rows.iter().filter_map(|row| row.value(key));
    if values.all(|value| quantity(value).is_some()) { "number" } else { "" }
}

fn non_empty(class: &str) -> Option<&str> {
    (!class.is_empty()).then_some(class)
}

fn line(group: &Group<'_>, row: &Case, keys: &[&str], figures: &[Figure<'_>]) -> Markup {
    let class = if row.failed.is_some() { "failed" } else { "skipped" };
    let has_finding = group.finding().is_some();
    html! {
        @match row.reason() {
            Some(reason) => tr class=(class) {
                (key_cells(group, row, keys))
                td .reason colspan=(figures.len() + 1 + usize::from(has_finding)) {
                    strong { (row.verdict()) } " " (reason)
                }
            },
            None => tr class=[row.is_own().then_some("own")] {
                (key_cells(group, row, keys))
                @for figure in figures { (cell(row, figure)) }
                @if has_finding {
                    td data-sort=(finding_of(row)) { (finding_of(row)) }
                }
                td data-sort=(row.verdict()) { (row.verdict()) }
            },
        }
    }
}

fn key_cells(group: &Group<'_>, row: &Case, keys: &[&str]) -> Markup {
    html! {
        @for (index, key) in keys.iter().enumerate() {
            @let value = row.value(key).unwrap_or("–");
            @let sort = quantity(value).map_or_else(|| value.to_string(), |number| number.to_string());
            @if index == 0 {
                th scope="row" class=[non_empty(key_class(group, key))] data-sort=(sort) { (value) }
            } @else {
                td class=[non_empty(key_class(group, key))] data-sort=(sort) { (value) }
            }
        }
    }
}

/// The median, and the range where there is one.
fn cell(row: &Case, figure: &Figure<'_>) -> Markup {
    let Some(spread) = spread(row, figure) else {
        return html! { td .number data-sort="" { "–" } };
    };
    html! {
        td .number data-sort=(spread.median) {
            (number(spread.median))
            @if let Some(range) = range(&spread) { span .range { (range) } }
        }
    }
}
