//! A table: for a terminal, never wider than 100 columns, and as Markdown.

use std::ops::Range;

use comfy_table::presets::NOTHING;
use comfy_table::{CellAlignment, ContentArrangement, Table};

use super::markdown_text::{cell, line};
use crate::stats::Spread;

/// The width that everything fits in.
pub(crate) const WIDTH: usize = 100;

/// A heading is broken where it gets longer than this.
const HEADING_WIDTH: usize = 16;

/// The side of a column's cells.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Align {
    Left,
    Right,
}

/// The text above a column.
pub(crate) struct Heading {
    name: String,
    unit: String,
    align: Align,
}

impl Heading {
    pub(crate) fn new(name: &str, unit: &str, align: Align) -> Heading {
        Heading { name: name.into(), unit: unit.into(), align }
    }

    /// In lines, for figures are narrow.
    fn text(&self) -> String {
        let name = lines(&self.name, HEADING_WIDTH, "");
        if self.unit.is_empty() { name } else { name + "\n" + &self.unit }
    }
}

/// A table, whatever it is shown as.
pub(crate) struct Sheet {
    pub(crate) title: String,
    pub(crate) headings: Vec<Heading>,
    pub(crate) rows: Vec<Vec<String>>,
    /// So many columns tell the rows apart: they come first.
    pub(crate) keys: usize,
    /// The number of columns at the end of the part that is seen first.
    pub(crate) ends: usize,
}

impl Sheet {
    /// For a terminal. Columns that do not fit beside the rest are in further blocks, with the keys
    /// again.
    pub(crate) fn to_text(&self) -> String {
        let blocks = self.blocks();
        let titles = [self.title.as_str()].into_iter().chain(std::iter::repeat(""));
        let texts = blocks.iter().zip(titles).map(|(block, title)| self.block(title, block));
        texts.collect()
    }

    /// Which columns each block has.
    fn blocks(&self) -> Vec<Vec<usize>> {
        let sum = |columns: Range<usize>| columns.map(|column| self.width(column)).sum::<usize>();
        let (keys, ends) = (0..self.keys, self.headings.len() - self.ends..self.headings.len());
        let mut blocks: Vec<Vec<usize>> = vec![keys.clone().collect()];
        let mut width = sum(keys.clone()) + sum(ends.clone());
        for column in keys.end..ends.start {
            if width + self.width(column) > WIDTH && blocks[blocks.len() - 1].len() > self.keys {
                blocks.push(keys.clone().collect());
                width = sum(keys.clone());
            }
            width += self.width(column);
            blocks.last_mut().into_iter().for_each(|block| block.push(column));
        }
        blocks[0].extend(ends);
        blocks
    }

    /// With the blanks on both sides.
    fn width(&self, column: usize) -> usize {
        let heading = self.headings[column].text();
        let texts = heading.lines().chain(self.rows.iter().map(|row| row[column].as_str()));
        texts.map(|text| text.chars().count()).max().unwrap_or(0) + 2
    }

    fn block(&self, title: &str, columns: &[usize]) -> String {
        let mut table = Table::new();
        // Dynamic, so that a cell that is too long breaks instead of the line.
        table.load_style(NOTHING).set_content_arrangement(ContentArrangement::Dynamic);
        table.set_width(WIDTH as u16);
        table.set_header(columns.iter().map(|column| self.headings[*column].text()));
        table.add_rows(self.rows.iter().map(|row| columns.iter().map(|column| &row[*column])));
        for (shown, column) in table.column_iter_mut().zip(columns) {
            shown.set_cell_alignment(match self.headings[*column].align {
                Align::Left => CellAlignment::Left,
                Align::Right => CellAlignment::Right,
            });
        }
        let title = if title.is_empty() { String::new() } else { wrapped(title) };
        format!("\n{title}{}\n", table.trim_fmt())
    }

    /// As Markdown, with a heading.
    pub(crate) fn to_markdown(&self) -> String {
        let heading = |heading: &Heading| cell(&format!("{} {}", heading.name, heading.unit));
        let rule = |heading: &Heading| match heading.align {
            Align::Left => String::from(":--"),
            Align::Right => String::from("--:"),
        };
        let head = line(self.headings.iter().map(heading)) + &line(self.headings.iter().map(rule));
        let rows = self.rows.iter().map(|row| line(row.iter().map(|text| cell(text))));
        format!("\n## {}\n\n{head}{}", cell(&self.title), rows.collect::<String>())
    }
}

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

/// A number with about three digits that count, as every table has them.
pub fn number(value: f64) -> String {
    let decimals = match value.abs() {
        0.0 => 0,
        size if size >= 99.95 => 0,
        size if size >= 9.995 => 1,
        size if size >= 0.0995 => 2,
        size if size >= 0.000_995 => 4,
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
