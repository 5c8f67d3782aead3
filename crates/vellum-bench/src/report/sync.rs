//! The cases of the suite `sync`, and their table.

use super::case::{Outcome, ToRow};
use super::row::{Better, Row};
use super::table::{Align, Columns, median, place_name, range, size, titled};
use crate::suite::sync::SyncWay;

/// One way on one filesystem.
#[derive(Clone, Debug)]
pub struct Case {
    /// The way.
    pub case: SyncWay,
    /// The type of the filesystem.
    pub filesystem: String,
    /// Was the filesystem made for the run, in memory?
    pub scratch: bool,
    /// How much was written.
    pub bytes: u64,
    /// In pieces of how many bytes; `one-write` writes them in one call.
    pub piece_bytes: usize,
    /// How often it was synced.
    pub syncs: u64,
    /// What all took, round by round. Empty unless every round was good.
    pub milliseconds: Vec<f64>,
    /// How many times as long as `growing` in the same round: below 1 is faster. Empty if that did
    /// not run, and for another amount.
    pub time_ratio_to_growing: Vec<f64>,
    /// Was everything found in the file in each round?
    pub verified: bool,
    /// Why this system can't do it. Such a case has no numbers.
    pub skipped: Option<String>,
    /// What went wrong. Such a case has no numbers.
    pub failed: Option<String>,
}

impl Case {
    fn place(&self) -> String {
        place_name(&self.filesystem, self.scratch)
    }
}

impl ToRow for Case {
    /// In the common form, another amount stands in a table of its own.
    fn to_row(&self) -> Row {
        let (amount, piece) = (size(self.bytes), size(self.piece_bytes as u64));
        let ratio = self.time_ratio_to_growing.clone();
        let row = Row::new(format!("{amount} in pieces of {piece}"))
            .key("filesystem", self.place())
            .key("bytes", self.bytes)
            .key("piece bytes", self.piece_bytes)
            .key("syncs", self.syncs)
            .key("case", self.case)
            .metric("time", "ms", Better::Lower, self.milliseconds.clone())
            .metric("time against growing", "x", Better::Lower, ratio);
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

    /// A table for each filesystem.
    fn tables(cases: &[Case]) -> String {
        let places = cases.chunk_by(|one, other| one.place() == other.place());
        let table = |cases: &[Case]| titled(&cases[0].place(), COLUMNS, cases.iter().map(row));
        places.map(table).collect()
    }

    fn notes(cases: &[Case]) -> Vec<String> {
        let note =
            |case: &Case| case.outcome().note(&format!("{} on {}", case.case, case.filesystem));
        cases.iter().filter_map(note).collect()
    }
}

const COLUMNS: Columns<'static> = &[
    ("case", Align::Left),
    ("KiB", Align::Right),
    ("syncs", Align::Right),
    ("ms", Align::Right),
    ("min … max", Align::Right),
    ("time/growing", Align::Right),
    ("min … max", Align::Right),
    ("verified", Align::Left),
];

fn row(case: &Case) -> Vec<String> {
    vec![
        case.case.to_string(),
        (case.bytes >> 10).to_string(),
        case.syncs.to_string(),
        median(&case.milliseconds),
        range(&case.milliseconds),
        median(&case.time_ratio_to_growing),
        range(&case.time_ratio_to_growing),
        case.outcome().verdict().to_string(),
    ]
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::super::Report;
    use super::*;
    use crate::conditions::Conditions;

    fn case(way: SyncWay) -> Case {
        let samples = vec![12_345.6, 123_456.7, 1234.5];
        Case {
            case: way,
            filesystem: "btrfs".into(),
            scratch: true,
            bytes: 10 << 30,
            piece_bytes: 4096,
            syncs: 2_621_440,
            milliseconds: samples.clone(),
            time_ratio_to_growing: samples,
            verified: true,
            skipped: None,
            failed: None,
        }
    }

    fn report(cases: Vec<Case>) -> Report<Case> {
        let conditions = Conditions::now(Path::new("/"), &vellum::Options::new());
        Report { suite: "sync", conditions, rounds: 3, warnings: Vec::new(), cases }
    }

    #[test]
    fn the_table_has_the_promised_shape() {
        let mut cases = SyncWay::ALL.map(case).to_vec();
        cases[1].skipped = Some("this disk is a stone ".repeat(20));
        cases[2].failed = Some("lost".into());
        let report = report(cases);
        let table = report.table();
        assert!(table.lines().all(|line| line.chars().count() <= 100), "{table}");
        assert!(table.contains("skipped overwrite on btrfs: this disk"), "{table}");
        assert_eq!(report.failures().count(), 1);
    }

    #[test]
    fn every_figure_is_in_the_common_form() {
        let row = case(SyncWay::Growing).to_row();
        assert_eq!(row.table, "10 GiB in pieces of 4 KiB");
        let keys = ["filesystem", "bytes", "piece bytes", "syncs", "case"];
        let values = keys.map(|name| row.value(name).unwrap());
        let bytes = (10_u64 << 30).to_string();
        assert_eq!(values, ["btrfs, loop device in memory", &bytes, "4096", "2621440", "growing"]);
        let medians = row.metrics.iter().map(|metric| metric.spread().unwrap().median);
        assert_eq!(medians.collect::<Vec<f64>>(), [12_345.6, 12_345.6]);
    }
}
