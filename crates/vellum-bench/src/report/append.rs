//! The cases of the suite `append`, and their table.

use serde::Serialize;

use super::Report;
use super::table::{Align, Columns, number, place_name, titled};
use crate::setting::Setting;
use crate::stats::Spread;
use crate::ways::WayName;

/// One way in one setting.
#[derive(Clone, Debug, Serialize)]
pub struct Case {
    /// The way.
    pub name: WayName,
    /// The filesystem.
    pub filesystem: String,
    /// Was the filesystem made for this run, in memory?
    pub scratch: bool,
    /// How many processes appended at once.
    pub processes: u32,
    /// How many records each of them appended.
    pub records: u64,
    /// The length of each record.
    pub bytes: usize,
    /// Wall time divided by the records of all processes: the cost of a record to the machine, not
    /// the time one process waits for one. `null` unless every round was good.
    pub ns_per_record: Option<Spread>,
    /// How many times as fast as `write` in the same round: above 1 is faster. `null` if `write`
    /// did not run too.
    pub ratio_to_write: Option<Spread>,
    /// Syscalls for each record, counted in a run of one process without a clock. What a process
    /// does only once (the first mapping, say) is in it.
    pub syscalls_per_record: Option<f64>,
    /// Why there is no count of syscalls.
    pub syscalls_reason: Option<String>,
    /// Page faults of all processes, minor and major, under the clock, for each record; the median
    /// of the rounds.
    pub page_faults_per_record: Option<f64>,
    /// Was every record of every round found in the log: once, whole, and in order?
    pub verified: bool,
    /// Why the way was not run at all.
    pub skipped: Option<String>,
    /// What went wrong. Such a case has no numbers.
    pub failed: Option<String>,
}

impl Case {
    fn setting(&self) -> Setting {
        Setting::new(self.processes, self.records, self.bytes)
    }

    /// Is it in the same table?
    fn is_beside(&self, other: &Case) -> bool {
        let place = |case: &Case| (case.filesystem.clone(), case.scratch);
        self.setting() == other.setting() && place(self) == place(other)
    }

    fn verdict(&self) -> &'static str {
        match self {
            Case { failed: Some(_), .. } => "FAILED",
            Case { skipped: Some(_), .. } => "skipped",
            Case { verified: true, .. } => "yes",
            _ => "no",
        }
    }
}

impl Report<Case> {
    /// The cases that failed. A program that finds any should say so by its exit code.
    pub fn failures(&self) -> impl Iterator<Item = &Case> {
        self.cases.iter().filter(|case| case.failed.is_some())
    }

    /// A table for each setting, at most 100 columns wide, with the conditions above and the
    /// warnings and reasons below.
    pub fn table(&self) -> String {
        let mut text = self.head();
        let mut rest = self.cases.as_slice();
        while let Some(first) = rest.first() {
            let len = rest.iter().take_while(|case| case.is_beside(first)).count();
            let (cases, others) = rest.split_at(len);
            text.push_str(&setting_table(first, cases));
            rest = others;
        }
        let notes = self.notes();
        if !notes.is_empty() {
            text.push('\n');
            notes.iter().for_each(|note| text.push_str(&super::table::wrapped(note)));
        }
        text
    }

    /// What can't be said in a cell.
    fn notes(&self) -> Vec<String> {
        let mut notes: Vec<String> = Vec::new();
        for case in &self.cases {
            let (name, setting) = (case.name, case.setting());
            let failed = case.failed.iter().map(|why| format!("FAILED {name} {setting}: {why}"));
            let skipped = case.skipped.iter().map(|why| format!("skipped {name}: {why}"));
            let uncounted =
                case.syscalls_reason.iter().map(|why| format!("no syscalls of {name}: {why}"));
            for note in failed.chain(skipped).chain(uncounted) {
                if !notes.contains(&note) {
                    notes.push(note);
                }
            }
        }
        notes.extend(self.warnings.iter().map(|warning| format!("warning: {warning}")));
        notes
    }
}

const COLUMNS: Columns = &[
    ("way", Align::Left),
    ("ns/record", Align::Right),
    ("min … max", Align::Right),
    ("× write", Align::Right),
    ("min … max", Align::Right),
    ("syscalls", Align::Right),
    ("faults", Align::Right),
    ("verified", Align::Left),
];

fn setting_table(first: &Case, cases: &[Case]) -> String {
    let title = format!(
        "{}, {} processes × {} records × {} B",
        place_name(&first.filesystem, first.scratch),
        first.processes,
        first.records,
        first.bytes
    );
    titled(&title, COLUMNS, cases.iter().map(row))
}

fn row(case: &Case) -> Vec<String> {
    let median = |spread: Option<Spread>| spread.map_or_else(dash, |spread| number(spread.median));
    let range = |spread: Option<Spread>| {
        spread
            .map_or_else(dash, |spread| format!("{} … {}", number(spread.min), number(spread.max)))
    };
    vec![
        case.name.to_string(),
        median(case.ns_per_record),
        range(case.ns_per_record),
        median(case.ratio_to_write),
        range(case.ratio_to_write),
        case.syscalls_per_record.map_or_else(dash, number),
        case.page_faults_per_record.map_or_else(dash, number),
        case.verdict().to_string(),
    ]
}

fn dash() -> String {
    String::from("–")
}

#[cfg(test)]
#[path = "append_tests.rs"]
mod tests;
