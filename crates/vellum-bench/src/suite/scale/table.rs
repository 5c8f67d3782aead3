//! The tables: the growing number of each, and its figures.

use std::path::Path;

use super::{Config, limits, line, logs, processes, segments, simulated};
use crate::error::{Error, Result};
use crate::names::named;
use crate::report::Better;
use crate::setting::Setting;
use crate::ways::{WayName, vellum_log};

named! {
    /// The number that grows.
    #[non_exhaustive]
    pub enum ScaleTable, "is not a table" {
        /// Logs that one process has open.
        Logs = "logs",
        /// Processes that share one log.
        Processes = "processes",
        /// Segments of one log.
        Segments = "segments",
        /// Nothing grows: the cost of a cache line that two cores want.
        Line = "line",
        /// Cores, in a computation.
        Simulated = "simulated",
    }
}

/// A way, and the number that grows.
#[derive(Clone, Copy, Debug)]
pub(super) struct Entry {
    pub(super) way: WayName,
    pub(super) count: u32,
}

/// A column of a table.
pub(super) struct Figure {
    pub(super) name: &'static str,
    pub(super) unit: &'static str,
    pub(super) better: Better,
    /// Whether it is also shown as a multiple of the first number of the table.
    pub(super) grows: bool,
}

impl Figure {
    /// A cost: the lower, the better.
    pub(super) const fn cost(name: &'static str, unit: &'static str) -> Figure {
        Figure { name, unit, better: Better::Lower, grows: false }
    }

    /// A cost that should be the same whatever the number is.
    pub(super) const fn steady(name: &'static str, unit: &'static str) -> Figure {
        Figure { grows: true, ..Figure::cost(name, unit) }
    }
}

impl ScaleTable {
    pub(super) fn title(self) -> &'static str {
        match self {
            ScaleTable::Logs => "logs open in one process",
            ScaleTable::Processes => "processes on one log",
            ScaleTable::Segments => "segments in one log",
            ScaleTable::Line => "a cache line between two cores",
            ScaleTable::Simulated => simulated::TITLE,
        }
    }

    pub(super) fn figures(self) -> &'static [Figure] {
        match self {
            ScaleTable::Logs => &logs::FIGURES,
            ScaleTable::Processes => &processes::FIGURES,
            ScaleTable::Segments => &segments::FIGURES,
            ScaleTable::Line | ScaleTable::Simulated => &[],
        }
    }

    fn counts(self, config: &Config) -> &[u32] {
        match self {
            ScaleTable::Logs => &config.logs,
            ScaleTable::Processes => &config.processes,
            ScaleTable::Segments => &config.segments,
            ScaleTable::Line | ScaleTable::Simulated => &[],
        }
    }

    /// A file has no segments.
    fn takes(self, way: WayName) -> bool {
        self != ScaleTable::Segments || segments::layout(way).is_some()
    }

    /// Every way with every number, in the order of their turns.
    pub(super) fn entries(self, config: &Config) -> Vec<Entry> {
        let ways = || config.ways.iter().copied().filter(|way| self.takes(*way));
        let entries = |count: &u32| {
            let count = *count;
            ways().map(move |way| Entry { way, count })
        };
        self.counts(config).iter().flat_map(entries).collect()
    }

    pub(super) fn turns(self, config: &Config) -> usize {
        match self {
            ScaleTable::Line => line::TURNS,
            ScaleTable::Simulated => simulated::TURNS,
            _ => self.entries(config).len(),
        }
    }

    pub(super) fn check(self, config: &Config) -> Result<()> {
        let counts = self.counts(config);
        super::check_unique(counts, "number")?;
        if matches!(self, ScaleTable::Line | ScaleTable::Simulated) {
            return Ok(());
        }
        let most = match self {
            ScaleTable::Processes => processes::PROCESSES_MAX,
            _ => 100_000,
        };
        match counts.iter().find(|count| !(1..=most).contains(*count)) {
            Some(count) => {
                Err(Error::invalid(format!("{count} {self}: there can be from 1 to {most}")))
            }
            None if counts.is_empty() => {
                Err(Error::invalid(format!("at least one number of {self} is needed")))
            }
            None => Ok(()),
        }
    }

    /// Whether the limits of this system allow so many.
    pub(super) fn probe(self, entry: Entry) -> Result<()> {
        match self {
            ScaleTable::Logs => limits::check_logs(entry.count),
            ScaleTable::Processes => limits::check_processes(entry.count),
            _ => Ok(()),
        }
    }

    /// The most bytes of disk for the largest case.
    pub(super) fn disk_bytes(self, config: &Config) -> u64 {
        let most = u64::from(self.counts(config).iter().copied().max().unwrap_or(0));
        let setting = Setting::new(1, config.records, super::RECORD_BYTES);
        match self {
            ScaleTable::Logs => most * logs::LOG_BYTES_MAX + setting.total_bytes(),
            ScaleTable::Segments => most * segments::SEGMENT_DISK_BYTES,
            _ => vellum_log::disk_bytes(&setting),
        }
    }

    /// One turn: the figures of this table, in their order.
    pub(super) fn measure(self, entry: Entry, records: u64, dir: &Path) -> Result<Vec<f64>> {
        match self {
            ScaleTable::Logs => logs::measure(entry, records, dir),
            ScaleTable::Processes => processes::measure(entry, records, dir),
            ScaleTable::Segments => segments::measure(entry, dir),
            ScaleTable::Line | ScaleTable::Simulated => Ok(Vec::new()),
        }
    }
}
