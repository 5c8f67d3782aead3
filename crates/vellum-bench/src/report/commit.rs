//! The cases of the suite `commit`, and their tables.

use serde::Serialize;

use super::Report;
use super::table::{Align, Columns, number, place_name, titled};
use crate::latency::Latency;
use crate::stats::Spread;

/// One case in one cell of the matrix.
#[derive(Clone, Debug, Serialize)]
pub struct Case {
    /// Its name.
    pub case: String,
    /// Was the space that it wrote to made ready before the clock started?
    pub prepared: bool,
    /// Is it another engine?
    pub peer: bool,
    /// The type of the filesystem.
    pub filesystem: String,
    /// Was the filesystem made for the run, in memory?
    pub scratch: bool,
    /// The length of each record.
    pub bytes: usize,
    /// How many threads of each process committed.
    pub threads: u32,
    /// How many processes.
    pub processes: u32,
    /// How many commits the latencies are of: those of all rounds.
    pub commits: u64,
    /// Commits of all threads a second: the median of the rounds. `null` unless all were good.
    pub commits_per_second: Option<f64>,
    /// The same with its spread over the rounds.
    pub commits_per_second_spread: Option<Spread>,
    /// What single commits took, those of all rounds taken together.
    pub latency_us: Option<Latency>,
    /// Syncs, or synchronous writes, for each commit: the median of the rounds. `null` where the
    /// case can't count them.
    pub syncs_per_commit: Option<f64>,
    /// Commits a second, as a multiple of `direct-dsync` in the same round. `null` if that did not
    /// run.
    pub ratio_to_limit: Option<Spread>,
    /// The same of the peer whose median was best. `null` if none ran.
    pub ratio_to_best_peer: Option<Spread>,
    /// How many files the log had after the last round.
    pub files: Option<u64>,
    /// Their lengths together.
    pub file_bytes: Option<u64>,
    /// The extents of all of them: pieces that lie in one place. `null` where the filesystem can't
    /// tell.
    pub extents: Option<u64>,
    /// Speed of reading them in order after they were dropped from the page cache, at most 256 MiB
    /// of them. `null` on a filesystem that is memory.
    pub cold_read_mib_per_second: Option<f64>,
    /// Was every acknowledged record that the case keeps found in each round?
    pub verified: bool,
    /// Why the case was not run at all.
    pub skipped: Option<String>,
    /// What went wrong. Such a case has no numbers.
    pub failed: Option<String>,
}

impl Case {
    /// Cases of which this is the same are compared with each other.
    fn cell(&self) -> (&str, bool, usize, u32, u32) {
        (&self.filesystem, self.scratch, self.bytes, self.threads, self.processes)
    }

    fn title(&self) -> String {
        let processes = match self.processes {
            1 => String::new(),
            count => format!("{count} processes × "),
        };
        let plural = if self.threads == 1 { "" } else { "s" };
        let place = place_name(&self.filesystem, self.scratch);
        format!("{} B, {processes}{} thread{plural}, {place}", self.bytes, self.threads)
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

    /// Two tables for each cell, at most 100 columns wide: latencies, then speed and files; the
    /// conditions above, warnings and reasons below.
    pub fn table(&self) -> String {
        let mut text = self.head();
        for cases in self.cases.chunk_by(|one, other| one.cell() == other.cell()) {
            text.push_str(&titled(&cases[0].title(), LATENCY_COLUMNS, cases.iter().map(latencies)));
            text.push_str(&titled("", SPEED_COLUMNS, cases.iter().map(speeds)));
        }
        let reasons = self.cases.iter().flat_map(|case| {
            let failed = case.failed.iter();
            let failed = failed.map(|why| format!("FAILED {}, {}: {why}", case.case, case.title()));
            let skipped = case.skipped.iter();
            failed.chain(skipped.map(|why| format!("skipped {}: {why}", case.case)))
        });
        text.push_str(&self.foot(reasons));
        text
    }
}

const LATENCY_COLUMNS: Columns = &[
    ("case", Align::Left),
    ("prepared", Align::Left),
    ("avg", Align::Right),
    ("min", Align::Right),
    ("max", Align::Right),
    ("stddev", Align::Right),
    ("out%", Align::Right),
    ("p50", Align::Right),
    ("p99", Align::Right),
];

const SPEED_COLUMNS: Columns = &[
    ("case", Align::Left),
    ("prep", Align::Left),
    ("commits/s", Align::Right),
    ("syncs", Align::Right),
    ("× limit", Align::Right),
    ("min–max", Align::Right),
    ("× peer", Align::Right),
    ("extents", Align::Right),
    ("MiB/s", Align::Right),
    ("verified", Align::Left),
];

fn latencies(case: &Case) -> Vec<String> {
    let latency = |part: fn(&Latency) -> String| case.latency_us.as_ref().map_or_else(dash, part);
    vec![
        case.case.clone(),
        if case.prepared { "yes" } else { "no" }.to_string(),
        latency(|latency| duration(latency.avg)),
        latency(|latency| duration(latency.min)),
        latency(|latency| duration(latency.max)),
        latency(|latency| duration(latency.stddev)),
        latency(|latency| format!("{:.2}%", latency.outlier_percent)),
        latency(|latency| duration(latency.p50)),
        latency(|latency| duration(latency.p99)),
    ]
}

fn speeds(case: &Case) -> Vec<String> {
    let median = |spread: Option<Spread>| spread.map_or_else(dash, |spread| number(spread.median));
    let short = |ratio: f64| if ratio < 0.1 { number(ratio) } else { format!("{ratio:.2}") };
    let range =
        case.ratio_to_limit.map(|ratio| format!("{}–{}", short(ratio.min), short(ratio.max)));
    vec![
        case.case.clone(),
        if case.prepared { "yes" } else { "no" }.to_string(),
        case.commits_per_second.map_or_else(dash, number),
        case.syncs_per_commit.map_or_else(dash, number),
        median(case.ratio_to_limit),
        range.unwrap_or_else(dash),
        median(case.ratio_to_best_peer),
        case.extents.map_or_else(dash, |count| count.to_string()),
        case.cold_read_mib_per_second.map_or_else(dash, number),
        case.verdict().to_string(),
    ]
}

fn dash() -> String {
    String::from("–")
}

/// A time with its unit and four digits that count: `807.4us`, `1.441ms`, `25.00ms`.
pub(super) fn duration(micros: f64) -> String {
    let (value, unit) = match micros {
        micros if micros < 999.95 => (micros, "us"),
        micros if micros < 999_950.0 => (micros / 1e3, "ms"),
        _ => (micros / 1e6, "s"),
    };
    let decimals = match value {
        value if value >= 99.995 => 1,
        value if value >= 9.9995 => 2,
        _ => 3,
    };
    format!("{value:.decimals$}{unit}")
}

#[cfg(test)]
#[path = "commit_tests.rs"]
mod tests;
