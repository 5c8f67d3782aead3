//! Tables for a terminal, never wider than 100 columns.

use comfy_table::presets::NOTHING;
use comfy_table::{CellAlignment, ContentArrangement, Table};

use crate::stats::Spread;

/// The width that everything fits in.
pub(crate) const WIDTH: usize = 100;

/// Where a column's cells stand.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Align {
    Left,
    Right,
}

/// Heading and alignment of each column.
pub(crate) type Columns<'a> = &'a [(&'a str, Align)];

/// A cell with nothing in it.
fn dash() -> String {
    String::from("–")
}

/// How a number is written.
pub(crate) type Writing = fn(f64) -> String;

/// The middle of `samples`, written by `number`.
pub(crate) fn median_as(number: Writing, samples: &[f64]) -> String {
    Spread::of(samples).map_or_else(dash, |spread| number(spread.median))
}

/// The smallest and the largest of `samples`, written by `number`.
pub(crate) fn range_as(number: Writing, samples: &[f64]) -> String {
    let text = |spread: Spread| format!("{} … {}", number(spread.min), number(spread.max));
    Spread::of(samples).map_or_else(dash, text)
}

/// A title, unless it is empty, and a table under it.
pub(crate) fn titled(
    title: &str,
    columns: Columns<'_>,
    rows: impl Iterator<Item = Vec<String>>,
) -> String {
    let mut table = Table::new();
    // Dynamic, so that a cell that is too long breaks instead of the line.
    table.load_style(NOTHING).set_content_arrangement(ContentArrangement::Dynamic);
    table.set_width(WIDTH as u16);
    table.set_header(columns.iter().map(|(heading, _)| *heading));
    table.add_rows(rows);
    for (column, (_, align)) in table.column_iter_mut().zip(columns) {
        column.set_cell_alignment(match align {
            Align::Left => CellAlignment::Left,
            Align::Right => CellAlignment::Right,
        });
    }
    let title = if title.is_empty() { String::new() } else { wrapped(title) };
    format!("\n{title}{}\n", table.trim_fmt())
}

/// A number with about three digits that count.
pub(crate) fn number(value: f64) -> String {
    let decimals = match value.abs() {
        0.0 => 0,
        size if size >= 100.0 => 0,
        size if size >= 10.0 => 1,
        size if size >= 0.1 => 2,
        size if size >= 0.001 => 4,
        _ => 6,
    };
    format!("{value:.decimals$}")
}

/// A whole number without decimals; the middle of two of them may be none.
pub(crate) fn count(value: f64) -> String {
    if value.fract() == 0.0 { format!("{value:.0}") } else { number(value) }
}

/// The text in lines that fit, those after the first indented.
pub(crate) fn wrapped(text: &str) -> String {
    lines(text, WIDTH, "    ") + "\n"
}

/// The text in lines of at most `width`, as far as its words allow, those after the first indented.
pub(crate) fn lines(text: &str, width: usize, indent: &str) -> String {
    let mut lines = String::new();
    let mut filled = 0;
    for word in text.split_whitespace() {
        let len = word.chars().count();
        if filled > 0 && filled + 1 + len > width {
            lines.push('\n');
            lines.push_str(indent);
            filled = indent.len();
        } else if filled > 0 {
            lines.push(' ');
            filled += 1;
        }
        lines.push_str(word);
        filled += len;
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_keep_about_three_digits() {
        let numbers = [0.0, 0.000_02, 0.0123, 0.921, 15.04, 123.4, 65_000.0];
        let texts = ["0", "0.000020", "0.0123", "0.92", "15.0", "123", "65000"];
        assert_eq!(numbers.map(number), texts);
    }

    #[test]
    fn long_text_is_broken_between_words() {
        let text = "word ".repeat(60);
        assert!(wrapped(&text).lines().all(|line| line.chars().count() <= WIDTH));
        assert_eq!(wrapped(&text).split_whitespace().count(), 60);
    }
}
