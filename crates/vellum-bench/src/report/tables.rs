//! The tables of a report for a terminal.

use super::Report;
use super::group::{Figure, Group};
use super::table::{Align, WIDTH, Writing, lines, median_as, range_as, titled, wrapped};

/// A heading is broken where it gets longer than this: figures are narrow.
const HEADING_WIDTH: usize = 16;

impl Report {
    /// Tables for a terminal, at most 100 columns wide, with the conditions above and the warnings
    /// and reasons below.
    pub fn table(&self) -> String {
        let all = |lines: &[String]| lines.iter().map(|line| wrapped(line)).collect::<String>();
        let tables: String = Group::all(&self.cases).iter().map(table).collect();
        let mut foot = all(&self.notes());
        if !foot.is_empty() {
            foot.insert(0, '\n');
        }
        [all(&self.lines()), tables, foot].concat()
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

/// The rows of a group: what doesn't fit beside the rest stands in further blocks, with the keys
/// again.
fn table(group: &Group<'_>) -> String {
    let keys = key_columns(group);
    let columns = columns(group);
    let verdicts = verdicts(group);
    let blocks = blocks(&keys, &columns, verdicts.as_ref());
    let block = |(index, block): (usize, &Vec<&Column>)| {
        let title = match (index, &verdicts) {
            (0, None) => format!("{}, all verified", group.title()),
            (0, Some(_)) => group.title(),
            _ => String::new(),
        };
        let headings: Vec<(&str, Align)> =
            block.iter().map(|column| (column.heading.as_str(), column.align)).collect();
        let row = |row: usize| block.iter().map(|column| column.cells[row].clone()).collect();
        titled(&title, &headings, (0..group.rows.len()).map(row))
    };
    blocks.iter().enumerate().map(block).collect()
}

/// Shares out the columns to blocks that fit. The verdicts stand at the end of the first.
fn blocks<'a>(
    keys: &'a [Column],
    columns: &'a [Column],
    verdicts: Option<&'a Column>,
) -> Vec<Vec<&'a Column>> {
    let key_width: usize = keys.iter().map(Column::width).sum();
    let mut width = key_width + verdicts.map_or(0, Column::width);
    let mut blocks: Vec<Vec<&Column>> = Vec::new();
    let mut block: Vec<&Column> = keys.iter().collect();
    let end_of_first = |blocks: &[Vec<&Column>]| verdicts.filter(|_| blocks.is_empty());
    for column in columns {
        if width + column.width() > WIDTH && block.len() > keys.len() {
            block.extend(end_of_first(&blocks));
            blocks.push(std::mem::replace(&mut block, keys.iter().collect()));
            width = key_width;
        }
        width += column.width();
        block.push(column);
    }
    block.extend(end_of_first(&blocks));
    blocks.push(block);
    blocks
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

/// The metrics: the first with its range, the others without.
fn columns(group: &Group<'_>) -> Vec<Column> {
    let cells = |figure: &Figure<'_>, cell: fn(Writing, &[f64]) -> String| {
        let number = group.number(figure);
        group.rows.iter().map(|row| cell(number, figure.samples(row))).collect()
    };
    let mut columns = Vec::new();
    for (index, figure) in group.figures().iter().enumerate() {
        let heading = match figure.unit {
            "" => lines(figure.name, HEADING_WIDTH, ""),
            unit => lines(figure.name, HEADING_WIDTH, "") + "\n" + unit,
        };
        columns.push(Column::new(heading, Align::Right, cells(figure, median_as)));
        if index == 0 {
            columns.push(Column::new("min … max", Align::Right, cells(figure, range_as)));
        }
    }
    columns
}

/// What became of the rows, if there is one of which it has to be said.
fn verdicts(group: &Group<'_>) -> Option<Column> {
    let verdicts = group.rows.iter().map(|row| row.verdict().to_string());
    let column = || Column::new("verified", Align::Left, verdicts.collect());
    (!group.is_verified()).then(column)
}

#[cfg(test)]
#[path = "tables_tests.rs"]
mod tests;
