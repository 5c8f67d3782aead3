//! Tables for a terminal from cases in the common form.

use super::case::{Outcome, ToRow};
use super::group::{Figure, Group};
use super::row::Row;
use super::table::{Align, WIDTH, median, range, titled};

impl ToRow for Row {
    fn to_row(&self) -> Row {
        self.clone()
    }

    fn outcome(&self) -> Outcome<'_> {
        Row::outcome(self)
    }

    fn tables(cases: &[Row]) -> String {
        Group::all(cases).iter().map(table).collect()
    }

    fn notes(cases: &[Row]) -> Vec<String> {
        Group::all(cases).iter().flat_map(Group::notes).collect()
    }
}

/// A column with all its cells.
struct Column {
    heading: String,
    align: Align,
    cells: Vec<String>,
}

impl Column {
    fn new(heading: impl Into<String>, align: Align, cells: Vec<String>) -> Column {
        Column { heading: heading.into(), align, cells }
    }

    /// With the blanks on both sides.
    fn width(&self) -> usize {
        let texts = self.heading.lines().chain(self.cells.iter().map(String::as_str));
        texts.map(|text| text.chars().count()).max().unwrap_or(0) + 2
    }
}

/// The rows of a group: what doesn't fit beside the rest stands in a second block, with the keys
/// again.
fn table(group: &Group<'_>) -> String {
    let keys = key_columns(group);
    let mut blocks: Vec<Vec<&Column>> = vec![Vec::new()];
    let key_width: usize = keys.iter().map(Column::width).sum();
    let mut width = key_width;
    let columns = columns(group);
    for column in &columns {
        if width + column.width() > WIDTH && width > key_width {
            blocks.push(Vec::new());
            width = key_width;
        }
        width += column.width();
        if let Some(block) = blocks.last_mut() {
            block.push(column);
        }
    }
    let mut text = String::new();
    for (index, block) in blocks.into_iter().enumerate() {
        let title = if index == 0 { group.title() } else { String::new() };
        let columns: Vec<&Column> = keys.iter().chain(block).collect();
        let headings: Vec<(&str, Align)> =
            columns.iter().map(|column| (column.heading.as_str(), column.align)).collect();
        let row = |row: usize| columns.iter().map(|column| column.cells[row].clone()).collect();
        text.push_str(&titled(&title, &headings, (0..group.rows.len()).map(row)));
    }
    text
}

fn key_columns(group: &Group<'_>) -> Vec<Column> {
    let column = |name: &str| {
        let values: Vec<&str> =
            group.rows.iter().map(|row| row.value(name).unwrap_or("–")).collect();
        let is_number = |value: &&str| value.starts_with(|first: char| first.is_ascii_digit());
        let align = if values.iter().all(is_number) { Align::Right } else { Align::Left };
        Column::new(name, align, values.iter().map(|value| value.to_string()).collect())
    };
    group.key_columns().into_iter().map(column).collect()
}

/// All but the keys: the first metric with its range, the others without, and the verdict.
fn columns(group: &Group<'_>) -> Vec<Column> {
    let cells = |figure: &Figure<'_>, cell: fn(&[f64]) -> String| {
        group.rows.iter().map(|row| cell(figure.samples(row))).collect()
    };
    let mut columns = Vec::new();
    for (index, figure) in group.figures().iter().enumerate() {
        let heading = match figure.unit {
            "" => figure.name.to_string(),
            unit => format!("{}\n{unit}", figure.name),
        };
        columns.push(Column::new(heading, Align::Right, cells(figure, median)));
        if index == 0 {
            columns.push(Column::new("min … max", Align::Right, cells(figure, range)));
        }
    }
    let verdicts = group.rows.iter().map(|row| row.outcome().verdict().to_string());
    columns.push(Column::new("verified", Align::Left, verdicts.collect()));
    columns
}

#[cfg(test)]
#[path = "tables_tests.rs"]
mod tests;
