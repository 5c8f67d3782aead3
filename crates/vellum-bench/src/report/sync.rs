//! The cases of the suite `sync`, and their table.

use serde::Serialize;

use super::Report;
use super::table::{Align, Columns, number, place_name, titled};
use crate::stats::Spread;
use crate::suite::sync::SyncWay;

/// One way on one filesystem.
#[derive(Clone, Debug, Serialize)]
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
    /// What all took. `null` unless every round was good.
    pub milliseconds: Option<Spread>,
    /// How many times as long as `growing` in the same round: below 1 is faster. `null` if that did
    /// not run, and for another amount.
    pub time_ratio_to_growing: Option<Spread>,
    /// Was everything found in the file in each round?
    pub verified: bool,
    /// Why this system can't do it. Such a case has no numbers.
    pub unsupported: Option<String>,
    /// What went wrong. Such a case has no numbers.
    pub failed: Option<String>,
}

impl Case {
    fn place(&self) -> (&str, bool) {
        (&self.filesystem, self.scratch)
    }

    fn verdict(&self) -> &'static str {
        match self {
            Case { failed: Some(_), .. } => "FAILED",
            Case { unsupported: Some(_), .. } => "unsupported",
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

    /// A table for each filesystem, at most 100 columns wide, with the conditions above and the
    /// warnings and reasons below.
    pub fn table(&self) -> String {
        let mut text = self.head();
        for cases in self.cases.chunk_by(|one, other| one.place() == other.place()) {
            let title = place_name(&cases[0].filesystem, cases[0].scratch);
            text.push_str(&titled(&title, COLUMNS, cases.iter().map(row)));
        }
        let reasons = self.cases.iter().flat_map(|case| {
            let name = format!("{} on {}", case.case, case.filesystem);
            let failed = case.failed.iter().map(|why| format!("FAILED {name}: {why}"));
            let unsupported = case.unsupported.iter();
            let unsupported = unsupported.map(|why| format!("unsupported {name}: {why}"));
            failed.chain(unsupported).collect::<Vec<String>>()
        });
        text.push_str(&self.foot(reasons));
        text
    }
}

const COLUMNS: Columns = &[
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
    let median = |spread: Option<Spread>| spread.map_or_else(dash, |spread| number(spread.median));
    let range = |spread: Option<Spread>| {
        spread
            .map_or_else(dash, |spread| format!("{} … {}", number(spread.min), number(spread.max)))
    };
    vec![
        case.case.to_string(),
        (case.bytes >> 10).to_string(),
        case.syncs.to_string(),
        median(case.milliseconds),
        range(case.milliseconds),
        median(case.time_ratio_to_growing),
        range(case.time_ratio_to_growing),
        case.verdict().to_string(),
    ]
}

fn dash() -> String {
    String::from("–")
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use serde_json::Value;

    use super::*;
    use crate::conditions::Conditions;

    fn case(way: SyncWay) -> Case {
        let spread = Some(Spread { min: 1234.5, median: 12_345.6, max: 123_456.7 });
        Case {
            case: way,
            filesystem: "btrfs".into(),
            scratch: true,
            bytes: 10 << 30,
            piece_bytes: 4096,
            syncs: 2_621_440,
            milliseconds: spread,
            time_ratio_to_growing: spread,
            verified: true,
            unsupported: None,
            failed: None,
        }
    }

    #[test]
    fn json_and_table_have_the_promised_shape() {
        let mut cases = SyncWay::ALL.map(case).to_vec();
        cases[1].unsupported = Some("this disk is a stone ".repeat(20));
        cases[2].failed = Some("lost".into());
        let conditions = Conditions::now(Path::new("/"), &vellum::Options::new());
        let report = Report { suite: "sync", conditions, rounds: 5, warnings: Vec::new(), cases };
        let table = report.table();
        assert!(table.lines().all(|line| line.chars().count() <= 100), "{table}");
        assert!(table.contains("unsupported overwrite on btrfs: this disk"), "{table}");
        assert_eq!(report.failures().count(), 1);
        let json: Value = serde_json::from_str(&report.to_json().unwrap()).unwrap();
        for key in ["case", "filesystem", "bytes", "syncs", "milliseconds", "verified"] {
            assert!(!json["cases"][0][key].is_null(), "{key}");
        }
        for key in ["min", "median", "max"] {
            assert!(json["cases"][0]["time_ratio_to_growing"][key].is_number(), "{key}");
        }
    }
}
