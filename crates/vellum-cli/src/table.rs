//! Text for people: columns, byte counts, plurals.

use std::fmt::Write;
use std::time::Duration;

use anstyle::{AnsiColor, Style};
use rustix::termios::tcgetwinsize;
use vellum_command::stdio;

/// How headings look.
pub(crate) const HEADING: Style = Style::new().bold();
/// How something that needs attention looks.
pub(crate) const ALERT: Style = AnsiColor::Red.on_default().bold();

/// Where the cells of a column stand.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Align {
    Left,
    Right,
}

/// Lines of cells under a heading each, in columns as wide as they need to be.
pub(crate) struct Table {
    columns: Vec<(&'static str, Align)>,
    rows: Vec<Vec<String>>,
}

impl Table {
    /// A table without lines.
    pub(crate) fn new(columns: &[(&'static str, Align)]) -> Table {
        Table { columns: columns.to_vec(), rows: Vec::new() }
    }

    /// The table without the columns of these names.
    pub(crate) fn without(mut self, names: &[&str]) -> Table {
        let is_kept: Vec<bool> =
            self.columns.iter().map(|(name, _)| !names.contains(name)).collect();
        let keep = |index: &mut usize| {
            *index += 1;
            is_kept[*index - 1]
        };
        for row in &mut self.rows {
            let mut index = 0;
            row.retain(|_| keep(&mut index));
        }
        let mut index = 0;
        self.columns.retain(|_| keep(&mut index));
        self
    }

    /// Adds a line.
    pub(crate) fn row<const N: usize>(&mut self, cells: [String; N]) {
        debug_assert_eq!(N, self.columns.len());
        self.rows.push(cells.into());
    }

    /// The table as text, each line indented by two spaces.
    pub(crate) fn render(&self) -> String {
        let headings: Vec<String> = self.columns.iter().map(|(name, _)| (*name).into()).collect();
        let mut text = format!("{HEADING}{}{HEADING:#}\n", self.line(&headings));
        for row in &self.rows {
            text.push_str(&self.line(row));
            text.push('\n');
        }
        text
    }

    fn width(&self, column: usize) -> usize {
        let widths = self.rows.iter().map(|row| row[column].chars().count());
        widths.chain([self.columns[column].0.chars().count()]).max().unwrap_or(0)
    }

    fn line(&self, cells: &[String]) -> String {
        let mut line = String::new();
        for (index, (cell, (_, align))) in cells.iter().zip(&self.columns).enumerate() {
            let width = self.width(index);
            let _ = match align {
                Align::Left => write!(line, "  {cell:<width$}"),
                Align::Right => write!(line, "  {cell:>width$}"),
            };
        }
        line.truncate(line.trim_end().len());
        line
    }
}

/// A number of bytes as people read it: exact while short, else three digits and a binary unit.
pub(crate) fn bytes(count: u64) -> String {
    const UNITS: [&str; 5] = ["KiB", "MiB", "GiB", "TiB", "PiB"];
    if count < 1024 {
        return format!("{count} B");
    }
    let mut value = count as f64 / 1024.0;
    let mut unit = 0;
    while value >= 1023.5 && unit + 1 < UNITS.len() {
        value /= 1024.0;
        unit += 1;
    }
    let decimals = usize::from(value < 9.95);
    let number = format!("{value:.decimals$}");
    format!("{} {}", number.strip_suffix(".0").unwrap_or(&number), UNITS[unit])
}

/// The most characters in a line, on a terminal that is wide enough.
const LINE_WIDTH_MAX: usize = 100;
/// Text in shorter lines cannot be read.
const LINE_WIDTH_MIN: usize = 40;

/// How many characters a line of text has at most.
pub(crate) fn line_width() -> usize {
    let columns = terminal_size().map_or(LINE_WIDTH_MAX, |(columns, _)| columns);
    columns.clamp(LINE_WIDTH_MIN, LINE_WIDTH_MAX)
}

/// Columns and rows, where standard output is a terminal that tells them.
pub(crate) fn terminal_size() -> Option<(usize, usize)> {
    let size = tcgetwinsize(stdio::stdout()).ok()?;
    (size.ws_col > 0 && size.ws_row > 0).then_some((size.ws_col.into(), size.ws_row.into()))
}

/// `text` in lines of no more than `width` characters, as far as its words allow.
pub(crate) fn lines(text: &str, width: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split(' ') {
        match lines.last_mut() {
            Some(line) if line.chars().count() + 1 + word.chars().count() <= width => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.into()),
        }
    }
    lines
}

/// `1 record`, `2 records`.
pub(crate) fn count(count: u64, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}

/// A time that has passed, in the largest unit that does not make it nothing.
pub(crate) fn age(ago: Duration) -> String {
    let seconds = ago.as_secs();
    let units = [(86_400, "d"), (3600, "h"), (60, "min")];
    let unit = units.into_iter().find(|(unit, _)| seconds >= 2 * unit);
    let (unit, name) = unit.unwrap_or((1, "s"));
    format!("{} {name} ago", seconds / unit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn byte_counts_are_short_and_never_a_thousand_of_a_unit() {
        let counts = [0, 1023, 1024, 4096, 12_700, 1_048_575, 1 << 20, 3 << 19, 64 << 20, 1 << 40];
        let texts = [
            "0 B", "1023 B", "1 KiB", "4 KiB", "12 KiB", "1 MiB", "1 MiB", "1.5 MiB", "64 MiB",
            "1 TiB",
        ];
        assert_eq!(counts.map(bytes), texts);
    }

    #[test]
    fn long_text_is_broken_between_words() {
        assert_eq!(lines("one two three", 8), ["one two", "three"]);
        assert_eq!(lines("incomprehensible words", 5), ["incomprehensible", "words"]);
        assert_eq!(lines("one two three", 13), ["one two three"]);
    }

    #[test]
    fn columns_are_as_wide_as_their_widest_cell() {
        let mut table = Table::new(&[("a", Align::Left), ("long", Align::Right)]);
        table.row(["wide".into(), "1".into()]);
        let plain = anstream::adapter::strip_str(&table.render()).to_string();
        assert_eq!(plain, "  a     long\n  wide     1\n");
        let plain = anstream::adapter::strip_str(&table.without(&["a"]).render()).to_string();
        assert_eq!(plain, "  long\n     1\n");
    }

    #[test]
    fn ages_are_told_in_units_of_which_there_are_some() {
        for (seconds, text) in [
            (0, "0 s ago"),
            (119, "119 s ago"),
            (120, "2 min ago"),
            (7200, "2 h ago"),
            (200_000, "2 d ago"),
        ] {
            assert_eq!(age(Duration::from_secs(seconds)), text);
        }
    }
}
