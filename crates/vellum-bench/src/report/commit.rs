//! The cases of the suite `commit`, and their tables.

use super::case::{Outcome, ToRow};
use super::row::{Better, Row};
use super::table::{Align, Columns, dash, median, number, place_name, titled};
use crate::latency::Latency;
use crate::stats::Spread;

/// One case in one cell of the matrix.
#[derive(Clone, Debug)]
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
    /// Commits of all threads a second, round by round. Empty unless all rounds were good.
    pub commits_per_second: Vec<f64>,
    /// What single commits took, those of all rounds taken together.
    pub latency_us: Option<Latency>,
    /// The same of each round by itself.
    pub round_latencies_us: Vec<Latency>,
    /// Syncs, or synchronous writes, for each commit, round by round. Empty where the case can't
    /// count them.
    pub syncs_per_commit: Vec<f64>,
    /// Commits a second, as a multiple of `direct-dsync` in the same round. Empty if that did not
    /// run.
    pub ratio_to_limit: Vec<f64>,
    /// The same of the peer whose median was best. Empty if none ran.
    pub ratio_to_best_peer: Vec<f64>,
    /// How many files the log had after the last round.
    pub files: Option<u64>,
    /// Their lengths together.
    pub file_bytes: Option<u64>,
    /// The extents of all of them: pieces that lie in one place. `None` where the filesystem
    /// can't tell.
    pub extents: Option<u64>,
    /// Speed of reading them in order after they were dropped from the page cache, at most 256 MiB
    /// of them. `None` on a filesystem that is memory.
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
        let Case { bytes, threads, .. } = self;
        format!("{bytes} B, {processes}{threads} thread{plural}, {}", self.place())
    }

    fn place(&self) -> String {
        place_name(&self.filesystem, self.scratch)
    }

    /// Speeds and counts.
    fn with_speeds(&self, row: Row) -> Row {
        let count = |count: Option<u64>| count.map(|count| count as f64).into_iter().collect();
        let cold_read = Vec::from_iter(self.cold_read_mib_per_second);
        let (higher, neither) = (Better::Higher, Better::Neither);
        row.metric("speed", "commits/s", higher, self.commits_per_second.clone())
            .metric("speed against direct-dsync", "x", higher, self.ratio_to_limit.clone())
            .metric("speed against the best peer", "x", higher, self.ratio_to_best_peer.clone())
            .metric("syncs", "per commit", neither, self.syncs_per_commit.clone())
            .metric("files", "", neither, count(self.files))
            .metric("file bytes", "bytes", neither, count(self.file_bytes))
            .metric("extents", "", neither, count(self.extents))
            .metric("cold read", "MiB/s", higher, cold_read)
    }

    /// Those of the rounds, which can be compared, and those of all taken together.
    fn with_latencies(&self, row: Row) -> Row {
        let (lower, neither) = (Better::Lower, Better::Neither);
        let rounds = |part: fn(&Latency) -> f64| self.round_latencies_us.iter().map(part).collect();
        let row = row.metric("latency p50", "us", lower, rounds(|latency| latency.p50)).metric(
            "latency p99",
            "us",
            lower,
            rounds(|latency| latency.p99),
        );
        let Some(all) = self.latency_us else { return row };
        row.metric("all commits", "", neither, vec![self.commits as f64])
            .metric("all latencies, avg", "us", lower, vec![all.avg])
            .metric("all latencies, min", "us", lower, vec![all.min])
            .metric("all latencies, max", "us", lower, vec![all.max])
            .metric("all latencies, stddev", "us", lower, vec![all.stddev])
            .metric("all latencies, outliers", "%", neither, vec![all.outlier_percent])
            .metric("all latencies, p50", "us", lower, vec![all.p50])
            .metric("all latencies, p99", "us", lower, vec![all.p99])
    }
}

impl ToRow for Case {
    fn to_row(&self) -> Row {
        let yes_or_no = |is: bool| if is { "yes" } else { "no" };
        let row = Row::new(format!("records of {} B", self.bytes))
            .key("filesystem", self.place())
            .key("bytes", self.bytes)
            .key("processes", self.processes)
            .key("threads", self.threads)
            .key("case", &self.case)
            .key("prepared", yes_or_no(self.prepared))
            .key("peer", yes_or_no(self.peer));
        let row = self.with_latencies(self.with_speeds(row));
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

    /// Two tables for each cell: latencies, then speed and files.
    fn tables(cases: &[Case]) -> String {
        let mut text = String::new();
        for cases in cases.chunk_by(|one, other| one.cell() == other.cell()) {
            text.push_str(&titled(&cases[0].title(), LATENCY_COLUMNS, cases.iter().map(latencies)));
            text.push_str(&titled("", SPEED_COLUMNS, cases.iter().map(speeds)));
        }
        text
    }

    fn notes(cases: &[Case]) -> Vec<String> {
        let note = |case: &Case| match case.failed {
            Some(_) => case.outcome().note(&format!("{}, {}", case.case, case.title())),
            None => case.outcome().note(&case.case),
        };
        cases.iter().filter_map(note).collect()
    }
}

const LATENCY_COLUMNS: Columns<'static> = &[
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

const SPEED_COLUMNS: Columns<'static> = &[
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
    let short = |ratio: f64| if ratio < 0.1 { number(ratio) } else { format!("{ratio:.2}") };
    let range = Spread::of(&case.ratio_to_limit)
        .map(|ratio| format!("{}–{}", short(ratio.min), short(ratio.max)));
    vec![
        case.case.clone(),
        if case.prepared { "yes" } else { "no" }.to_string(),
        median(&case.commits_per_second),
        median(&case.syncs_per_commit),
        median(&case.ratio_to_limit),
        range.unwrap_or_else(dash),
        median(&case.ratio_to_best_peer),
        case.extents.map_or_else(dash, |count| count.to_string()),
        case.cold_read_mib_per_second.map_or_else(dash, number),
        case.outcome().verdict().to_string(),
    ]
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
