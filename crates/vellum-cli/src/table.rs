//! Text for people: columns, lines, plurals.

use std::time::Duration;

use anstyle::{AnsiColor, Style};
pub(crate) use comfy_table::CellAlignment as Align;
use comfy_table::ColumnConstraint;
use comfy_table::presets::NOTHING;
use rustix::termios::tcgetwinsize;
use vellum_command::stdio;
pub(crate) use vellum_command::text::bytes;

/// How headings look.
pub(crate) const HEADING: Style = Style::new().bold();
/// How something that needs attention looks.
pub(crate) const ALERT: Style = AnsiColor::Red.on_default().bold();

/// Lines of cells under a heading each, in columns as wide as they need to be.
pub(crate) struct Table {
    names: Vec<&'static str>,
    table: comfy_table::Table,
}

impl Table {
    /// A table without lines.
    pub(crate) fn new(columns: &[(&'static str, Align)]) -> Table {
        let names: Vec<&str> = columns.iter().map(|(name, _)| *name).collect();
        let mut table = comfy_table::Table::new();
        table.load_style(NOTHING).set_header(&names);
        for (column, (_, align)) in table.column_iter_mut().zip(columns) {
            column.set_padding((2, 0)).set_cell_alignment(*align);
        }
        Table { names, table }
    }

    /// The table without the columns of these names.
    pub(crate) fn without(mut self, names: &[&str]) -> Table {
        for (column, name) in self.table.column_iter_mut().zip(&self.names) {
            if names.contains(name) {
                column.set_constraint(ColumnConstraint::Hidden);
            }
        }
        self
    }

    /// Adds a line.
    pub(crate) fn row<const N: usize>(&mut self, cells: [String; N]) {
        debug_assert_eq!(N, self.names.len());
        self.table.add_row(cells);
    }

    /// The table as text, each line indented by two spaces.
    pub(crate) fn render(&self) -> String {
        let text = self.table.trim_fmt() + "\n";
        let (headings, rows) = text.split_once('\n').unwrap_or((&text, ""));
        format!("{HEADING}{headings}{HEADING:#}\n{rows}")
    }
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
