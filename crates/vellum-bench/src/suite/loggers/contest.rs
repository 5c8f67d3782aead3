//! All loggers against each other in one cell, and the rows that come of it.

use std::fs;
use std::time::Duration;

use super::BASELINE;
use super::contender::Contender;
use super::round::{Cell, Sample, measure};
use crate::error::{Context, Result};
use crate::place::Place;
use crate::progress::{Event, Progress};
use crate::report::{Better, Row, place_name};
use crate::suite::settle;

/// A cell in one place.
pub(super) struct Run<'a> {
    pub(super) place: &'a Place<'a>,
    pub(super) cell: Cell,
    pub(super) limit: Duration,
    pub(super) progress: &'a mut dyn Progress,
}

/// A logger in the cell.
struct Entrant<'a> {
    contender: &'a dyn Contender,
    samples: Vec<Sample>,
    skipped: Option<String>,
    failed: Option<String>,
}

impl Run<'_> {
    /// Runs a warm-up, which is not counted, and so many rounds.
    pub(super) fn contest(&mut self, chosen: &[&dyn Contender], rounds: u32) -> Result<Vec<Row>> {
        let mut entrants: Vec<Entrant<'_>> =
            chosen.iter().map(|contender| Entrant::new(*contender)).collect();
        for round in 0..=rounds {
            for entrant in &mut entrants {
                if entrant.is_good() {
                    self.step(entrant, round)?;
                } else {
                    self.progress.event(&Event::Omitted { steps: 1 });
                }
            }
        }
        let base = entrants.iter().find(|one| one.contender.name() == BASELINE);
        let base = base.map(|entrant| entrant.figures(|sample| sample.wall_ns as f64));
        let base = base.unwrap_or_default();
        Ok(entrants.iter().map(|entrant| self.row(entrant, &base)).collect())
    }

    /// One turn. An error of the logger is noted in the entrant.
    fn step(&mut self, entrant: &mut Entrant<'_>, round: u32) -> Result<()> {
        let Cell { threads, bytes, .. } = self.cell;
        let what = format!("{threads} threads {bytes} B {} {round}", entrant.contender.name());
        self.progress.event(&Event::Measuring { what: &what });
        let dir = self.place.dir.join("round");
        fs::create_dir(&dir).context(|| format!("make {}", dir.display()))?;
        settle(&dir)?;
        let result = measure(entrant.contender, self.cell, &dir, self.limit);
        fs::remove_dir_all(&dir).context(|| format!("remove {}", dir.display()))?;
        match result {
            Ok(sample) if round > 0 => entrant.samples.push(sample),
            Ok(_) => {}
            Err(error) => {
                self.progress.event(&Event::Warning(&format!("{what} failed: {error}")));
                entrant.failed = Some(error.to_string());
            }
        }
        Ok(())
    }

    fn row(&self, entrant: &Entrant<'_>, base_ns: &[f64]) -> Row {
        let Cell { threads, records, bytes } = self.cell;
        let total = self.cell.total_records() as f64;
        let wall = entrant.figures(|sample| sample.wall_ns as f64);
        let ratios = base_ns.iter().zip(&wall).map(|(base, own)| base / own).collect();
        let calls = entrant.figures(|sample| sample.calls_ns as f64 / total);
        let dropped = entrant.figures(|sample| sample.dropped as f64 / total * 100.0);
        let wall = wall.into_iter().map(|ns| ns / total).collect();
        let row = Row::new(format!("{threads} threads × {records} records × {bytes} B"))
            .key("filesystem", place_name(self.place.filesystem, self.place.is_scratch))
            .key("threads", threads)
            .key("records", records)
            .key("bytes", bytes)
            .key("logger", entrant.contender.name())
            .metric("time", "ns/record", Better::Lower, wall)
            .metric("speed against write", "x", Better::Higher, ratios)
            .metric("until the calls returned", "ns/record", Better::Lower, calls)
            .metric("dropped", "%", Better::Lower, dropped);
        let (skipped, failed) = (entrant.skipped.clone(), entrant.failed.clone());
        Row { verified: entrant.is_good(), skipped, failed, ..row }
    }
}

impl<'a> Entrant<'a> {
    fn new(contender: &'a dyn Contender) -> Entrant<'a> {
        let skipped = contender.missing();
        Entrant { contender, samples: Vec::new(), skipped, failed: None }
    }

    fn is_good(&self) -> bool {
        self.skipped.is_none() && self.failed.is_none()
    }

    /// A figure of each round; nothing unless all rounds were good.
    fn figures(&self, figure: impl Fn(&Sample) -> f64) -> Vec<f64> {
        let samples = if self.is_good() { self.samples.as_slice() } else { &[] };
        samples.iter().map(figure).collect()
    }
}
