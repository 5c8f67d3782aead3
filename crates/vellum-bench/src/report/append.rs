//! The cases of the suite `append`, and their table.

use super::case::{Outcome, ToRow};
use super::row::{Better, Row};
use super::table::{Align, Columns, dash, median, number, place_name, range, titled};
use crate::setting::Setting;
use crate::ways::WayName;

/// One way in one setting.
#[derive(Clone, Debug)]
pub struct Case {
    /// The type of the filesystem.
    pub filesystem: String,
    /// Was the filesystem made for the run, in memory?
    pub scratch: bool,
    /// The way.
    pub name: WayName,
    /// How many processes appended at once.
    pub processes: u32,
    /// How many records each of them appended.
    pub records: u64,
    /// The length of each record.
    pub bytes: usize,
    /// Wall time divided by the records of all processes: the cost of a record to the machine, not
    /// the time one process waits for one. Round by round; empty unless every round was good.
    pub ns_per_record: Vec<f64>,
    /// How many times as fast as `write` in the same round: above 1 is faster. Empty if `write`
    /// did not run too.
    pub ratio_to_write: Vec<f64>,
    /// Syscalls for each record, counted in a run of one process without a clock. What a process
    /// does only once (the first mapping, say) is in it.
    pub syscalls_per_record: Option<f64>,
    /// Why there is no count of syscalls.
    pub syscalls_reason: Option<String>,
    /// Page faults of all processes, minor and major, under the clock, for each record, round by
    /// round.
    pub page_faults_per_record: Vec<f64>,
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

    fn place_and_setting(&self) -> (String, Setting) {
        (place_name(&self.filesystem, self.scratch), self.setting())
    }
}

impl ToRow for Case {
    fn to_row(&self) -> Row {
        let per_record = "per record";
        let row = Row::new(title(self.setting()))
            .key("filesystem", place_name(&self.filesystem, self.scratch))
            .key("processes", self.processes)
            .key("records", self.records)
            .key("bytes", self.bytes)
            .key("way", self.name)
            .metric("time", "ns/record", Better::Lower, self.ns_per_record.clone())
            .metric("speed against write", "x", Better::Higher, self.ratio_to_write.clone())
            .metric("syscalls", per_record, Better::Lower, Vec::from_iter(self.syscalls_per_record))
            .metric(
                "page faults",
                per_record,
                Better::Neither,
                self.page_faults_per_record.clone(),
            );
        let (skipped, failed) = (self.skipped.clone(), self.failed.clone());
        Row { verified: self.verified, skipped, failed, ..row }
    }

    fn outcome(&self) -> Outcome<'_> {
        Outcome {
            verified: self.verified,
            skipped: self.skipped.as_deref(),
            failed: self.failed.as_deref(),
        }
    }

    /// A table for each setting.
    fn tables(cases: &[Case]) -> String {
        let settings =
            cases.chunk_by(|one, other| one.place_and_setting() == other.place_and_setting());
        let table = |cases: &[Case]| {
            let (place, setting) = cases[0].place_and_setting();
            titled(&format!("{place}, {}", title(setting)), COLUMNS, cases.iter().map(row))
        };
        settings.map(table).collect()
    }

    fn notes(cases: &[Case]) -> Vec<String> {
        let notes = cases.iter().flat_map(|case| {
            let (name, outcome) = (case.name, case.outcome());
            let note = match outcome.failed {
                Some(_) => outcome.note(&format!("{name} {}", case.setting())),
                None => outcome.note(name.as_str()),
            };
            let uncounted = case.syscalls_reason.iter();
            note.into_iter()
                .chain(uncounted.map(move |why| format!("no syscalls of {name}: {why}")))
        });
        notes.collect()
    }
}

fn title(setting: Setting) -> String {
    let Setting { processes, records, bytes } = setting;
    format!("{processes} processes × {records} records × {bytes} B")
}

const COLUMNS: Columns<'static> = &[
    ("way", Align::Left),
    ("ns/record", Align::Right),
    ("min … max", Align::Right),
    ("× write", Align::Right),
    ("min … max", Align::Right),
    ("syscalls", Align::Right),
    ("faults", Align::Right),
    ("verified", Align::Left),
];

fn row(case: &Case) -> Vec<String> {
    vec![
        case.name.to_string(),
        median(&case.ns_per_record),
        range(&case.ns_per_record),
        median(&case.ratio_to_write),
        range(&case.ratio_to_write),
        case.syscalls_per_record.map_or_else(dash, number),
        median(&case.page_faults_per_record),
        case.outcome().verdict().to_string(),
    ]
}

#[cfg(test)]
#[path = "append_tests.rs"]
mod tests;
