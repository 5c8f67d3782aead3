//! Rows that are shown together: those of one table on one filesystem.

use super::case::{Case, Key, Metric};
use super::table::{Writing, count, number};

/// The key that every row has first.
const FILESYSTEM: &str = "filesystem";

/// Rows with the same heading and filesystem.
pub(crate) struct Group<'a> {
    pub(crate) rows: Vec<&'a Case>,
}

/// A metric as a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Figure<'a> {
    pub(crate) name: &'a str,
    pub(crate) unit: &'a str,
}

impl<'a> Group<'a> {
    /// All rows, in the order in which their tables begin.
    pub(crate) fn all(rows: &'a [Case]) -> Vec<Group<'a>> {
        let mut groups: Vec<Group<'a>> = Vec::new();
        for row in rows {
            let heading = heading(row);
            match groups.iter_mut().find(|group| group.heading() == Some(heading)) {
                Some(group) => group.rows.push(row),
                None => groups.push(Group { rows: vec![row] }),
            }
        }
        groups
    }

    fn heading(&self) -> Option<(&'a str, &'a str)> {
        self.rows.first().map(|row| heading(row))
    }

    /// The table, the filesystem, and the keys that are the same in all rows.
    pub(crate) fn title(&self) -> String {
        let Some((filesystem, table)) = self.heading() else { return String::new() };
        let columns = self.key_columns();
        let same = self.rows[0]
            .keys
            .iter()
            .filter(|key| key.name != FILESYSTEM && !columns.contains(&key.name.as_str()));
        let same = same.map(|Key { name, value }| format!("{name} {value}"));
        let parts = [table, filesystem].into_iter().filter(|part| !part.is_empty());
        let parts: Vec<String> = parts.map(String::from).chain(same).collect();
        parts.join(", ")
    }

    /// The names of the keys that tell the rows apart, one at least.
    pub(crate) fn key_columns(&self) -> Vec<&'a str> {
        let mut names: Vec<&str> = Vec::new();
        for key in self.rows.iter().flat_map(|row| &row.keys) {
            if key.name != FILESYSTEM && !names.contains(&key.name.as_str()) {
                names.push(&key.name);
            }
        }
        let varies = |name: &&str| {
            let value = self.rows[0].value(name);
            self.rows.iter().any(|row| row.value(name) != value)
        };
        let varying: Vec<&str> = names.iter().copied().filter(varies).collect();
        if varying.is_empty() { names.last().copied().into_iter().collect() } else { varying }
    }

    /// The metrics of any row, each once. The time of a commit is there for each round; older
    /// results have the same quantiles of all rounds together too.
    pub(crate) fn figures(&self) -> Vec<Figure<'a>> {
        let mut figures = Vec::new();
        for metric in self.rows.iter().flat_map(|row| &row.metrics) {
            let figure = Figure { name: &metric.name, unit: &metric.unit };
            if !figures.contains(&figure) {
                figures.push(figure);
            }
        }
        let is_there = |name: &str| figures.iter().any(|figure: &Figure<'_>| figure.name == name);
        let is_second = |figure: &Figure<'_>| {
            let quantile = figure.name.strip_prefix("all latencies, ");
            quantile.is_some_and(|quantile| is_there(&format!("latency {quantile}")))
        };
        figures.iter().copied().filter(|figure| !is_second(figure)).collect()
    }

    /// The heading of the column of findings, if any row has one.
    pub(crate) fn finding(&self) -> Option<&'a str> {
        self.rows.iter().find_map(|row| row.finding.as_ref()).map(|finding| finding.name.as_str())
    }

    /// How the numbers of a metric are written: counts have no decimals.
    pub(crate) fn number(&self, figure: &Figure<'_>) -> Writing {
        let mut samples = self.rows.iter().flat_map(|row| figure.samples(row));
        let is_count = figure.unit.is_empty() && samples.all(|sample| sample.fract() == 0.0);
        if is_count { count } else { number }
    }

    /// Was every row run, and everything found that should be there?
    pub(crate) fn is_verified(&self) -> bool {
        self.rows.iter().all(|row| row.verdict() == Case::VERIFIED)
    }

    /// Why rows have no numbers; rows with the same reason in one note.
    pub(crate) fn notes(&self) -> Vec<String> {
        let mut reasons: Vec<(&str, &str, Vec<&Case>)> = Vec::new();
        for row in &self.rows {
            let Some(reason) = row.reason() else { continue };
            let verdict = row.verdict();
            match reasons.iter_mut().find(|known| (known.0, known.1) == (verdict, reason)) {
                Some((.., rows)) => rows.push(row),
                None => reasons.push((verdict, reason, vec![row])),
            }
        }
        let note = |(verdict, reason, rows): (&str, &str, Vec<&Case>)| {
            format!("{verdict} {}: {reason}", self.names(&rows))
        };
        reasons.into_iter().map(note).collect()
    }

    /// `table, ext4: pwrite 4 KiB; pwrite 64 KiB`, or how many there are.
    fn names(&self, rows: &[&Case]) -> String {
        const NAMED_MAX: usize = 4;
        let columns = self.key_columns();
        let name = |row: &&Case| {
            let values = columns.iter().map(|name| row.value(name).unwrap_or("–"));
            values.collect::<Vec<&str>>().join(" ")
        };
        let mut names: Vec<String> = rows.iter().take(NAMED_MAX).map(name).collect();
        if let Some(more) = rows.len().checked_sub(NAMED_MAX).filter(|more| *more > 0) {
            names.push(format!("and {more} more"));
        }
        format!("{}: {}", self.title(), names.join("; "))
    }
}

impl Figure<'_> {
    /// This metric of `row`.
    pub(crate) fn of<'a>(&self, row: &'a Case) -> Option<&'a Metric> {
        row.metrics
            .iter()
            .find(|metric| (metric.name.as_str(), metric.unit.as_str()) == (self.name, self.unit))
    }

    /// The samples of `row`; empty where it has no such metric.
    pub(crate) fn samples<'a>(&self, row: &'a Case) -> &'a [f64] {
        self.of(row).map_or(&[], |metric| &metric.samples)
    }
}

/// The finding of a row.
pub(crate) fn finding_of(row: &Case) -> &str {
    row.finding.as_ref().map_or("–", |finding| &finding.value)
}

fn heading(row: &Case) -> (&str, &str) {
    (row.value(FILESYSTEM).unwrap_or(""), &row.table)
}
