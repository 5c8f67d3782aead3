//! The tables of a report.

use super::Report;
use super::group::{Figure, Group, finding_of};
use super::table::{Align, Heading, Sheet, Writing, median_as, range_as, wrapped};

impl Report {
    /// Tables for a terminal, at most 100 columns wide, with the conditions above and the warnings
    /// and reasons below.
    pub fn table(&self) -> String {
        let all = |lines: &[String]| lines.iter().map(|line| wrapped(line)).collect::<String>();
        let tables: String = Group::all(&self.cases).iter().map(text).collect();
        let mut foot = all(&self.notes());
        if !foot.is_empty() {
            foot.insert(0, '\n');
        }
        [all(&self.lines()), tables, foot].concat()
    }
}

/// That all is well is said once, and not in each row.
fn text(group: &Group<'_>) -> String {
    if !group.is_verified() {
        return group.sheet(true).to_text();
    }
    let mut sheet = group.sheet(false);
    sheet.title.push_str(", all verified");
    sheet.to_text()
}

impl Group<'_> {
    /// The keys that differ, then the metrics: the first with its range, the others without.
    pub(crate) fn sheet(&self, has_verdicts: bool) -> Sheet {
        let keys = self.key_columns();
        let key = |name: &&str| Heading::new(name, "", self.key_align(name));
        let mut headings: Vec<Heading> = keys.iter().map(key).collect();
        let value = |name: &&str, row: usize| self.rows[row].value(name).unwrap_or("–").to_string();
        let mut rows: Vec<Vec<String>> = (0..self.rows.len())
            .map(|row| keys.iter().map(|name| value(name, row)).collect())
            .collect();
        let mut column = |heading: Heading, cells: Vec<String>| {
            headings.push(heading);
            rows.iter_mut().zip(cells).for_each(|(row, cell)| row.push(cell));
        };
        for (index, figure) in self.figures().iter().enumerate() {
            let Figure { name, unit } = figure;
            column(Heading::new(name, unit, Align::Right), self.cells(figure, median_as));
            if index == 0 {
                let heading = Heading::new("min … max", "", Align::Right);
                column(heading, self.cells(figure, range_as));
            }
        }
        if let Some(name) = self.finding() {
            let findings = self.rows.iter().map(|row| finding_of(row).to_string());
            column(Heading::new(name, "", Align::Left), findings.collect());
        }
        if has_verdicts {
            let verdicts = self.rows.iter().map(|row| row.verdict().to_string());
            column(Heading::new("verified", "", Align::Left), verdicts.collect());
        }
        let ends = usize::from(has_verdicts) + usize::from(self.finding().is_some());
        Sheet { title: self.title(), headings, rows, keys: keys.len(), ends }
    }

    /// Numbers are at the right.
    fn key_align(&self, name: &str) -> Align {
        let is_number = |value: &str| value.starts_with(|first: char| first.is_ascii_digit());
        let all = self.rows.iter().all(|row| row.value(name).is_some_and(is_number));
        if all { Align::Right } else { Align::Left }
    }

    fn cells(&self, figure: &Figure<'_>, cell: fn(Writing, &[f64]) -> String) -> Vec<String> {
        let number = self.number(figure);
        self.rows.iter().map(|row| cell(number, figure.samples(row))).collect()
    }
}

#[cfg(test)]
#[path = "tables_tests.rs"]
mod tests;
