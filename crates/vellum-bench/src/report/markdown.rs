//! A report as Markdown, for an issue or a page of documentation.

use super::Report;
use super::case::Case;
use super::group::{Figure, Group};
use super::table::{median_as, range_as};

impl Report {
    /// The report as Markdown: conditions, a table for each filesystem and heading, the reasons of
    /// what has no numbers, the warnings.
    pub fn to_markdown(&self) -> String {
        let groups = Group::all(&self.cases);
        let tables: String = groups.iter().map(table).collect();
        let mut foot = list(self.notes().into_iter());
        if !foot.is_empty() {
            foot.insert(0, '\n');
        }
        let conditions = list(self.conditions().into_iter());
        format!("# vellum bench {}\n\n{conditions}{tables}{foot}", self.suite)
    }

    fn conditions(&self) -> Vec<String> {
        let mut lines = self.lines();
        lines.push(String::from("shown are medians"));
        if let Some([load, ..]) = self.conditions.load_average {
            lines.push(format!("load average {load:.2} before the start"));
        }
        lines
    }
}

fn table(group: &Group<'_>) -> String {
    let (keys, figures) = (group.key_columns(), group.figures());
    let mut headings: Vec<String> = keys.iter().map(|name| cell(name)).collect();
    let mut rules = vec![":--"; keys.len()];
    for (index, Figure { name, unit }) in figures.iter().enumerate() {
        headings.push(cell(&[*name, *unit].join(" ")));
        rules.push("--:");
        if index == 0 {
            headings.push("min … max".into());
            rules.push("--:");
        }
    }
    headings.push("verified".into());
    rules.push(":--");
    let rules: Vec<String> = rules.into_iter().map(String::from).collect();
    let rows = group.rows.iter().map(|row| line(&cells(group, row, &keys)));
    let rows: String = rows.collect();
    format!("\n## {}\n\n{}{}{rows}", cell(&group.title()), line(&headings), line(&rules))
}

fn cells(group: &Group<'_>, row: &Case, keys: &[&str]) -> Vec<String> {
    let mut cells: Vec<String> =
        keys.iter().map(|name| cell(row.value(name).unwrap_or("–"))).collect();
    for (index, figure) in group.figures().iter().enumerate() {
        let (number, samples) = (group.number(figure), figure.samples(row));
        cells.push(median_as(number, samples));
        if index == 0 {
            cells.push(range_as(number, samples));
        }
    }
    cells.push(row.verdict().into());
    cells
}

/// A row of a table.
pub(crate) fn line(cells: &[String]) -> String {
    format!("| {} |\n", cells.join(" | "))
}

/// A list.
pub(crate) fn list(items: impl Iterator<Item = String>) -> String {
    items.map(|item| format!("- {}\n", cell(&item))).collect()
}

/// Text that Markdown shows as it is: no sign in it breaks a table or becomes a style.
pub(crate) fn cell(text: &str) -> String {
    let mut cell = String::new();
    for sign in text.trim().chars() {
        if matches!(sign, '|' | '\\' | '`' | '*' | '_' | '<' | '>' | '[' | ']' | '#') {
            cell.push('\\');
        }
        cell.push(if sign == '\n' { ' ' } else { sign });
    }
    cell
}

#[cfg(test)]
#[path = "markdown_tests.rs"]
mod tests;
