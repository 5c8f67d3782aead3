//! One place of a run, and the entrants that take turns in it.

use std::fs;
use std::path::Path;

use super::settle;
use crate::error::{Context, Error, ErrorKind, Result};
use crate::place::Place;
use crate::progress::{Event, Progress};
use crate::report::Case;

/// One of the places of a run.
pub(crate) struct Arena<'a> {
    pub(crate) place: &'a Place<'a>,
    /// How many are counted, after one that is not.
    pub(crate) rounds: u32,
    progress: &'a mut dyn Progress,
    warnings: &'a mut Vec<String>,
}

/// A turn of an entrant.
#[derive(Clone, Copy)]
pub(crate) struct Turn<'a> {
    /// An empty directory, which is removed afterwards.
    pub(crate) dir: &'a Path,
    /// The warm-up is 0.
    pub(crate) round: u32,
    /// The number of the entrant.
    pub(crate) index: usize,
}

impl<'a> Arena<'a> {
    pub(crate) fn new(
        place: &'a Place<'a>,
        rounds: u32,
        progress: &'a mut dyn Progress,
        warnings: &'a mut Vec<String>,
    ) -> Arena<'a> {
        Arena { place, rounds, progress, warnings }
    }

    /// Says why the numbers should be taken with care; once, however often it is noticed.
    pub(crate) fn warn(&mut self, warning: String) {
        if !self.warnings.contains(&warning) {
            self.progress.event(&Event::Warning(&warning));
            self.warnings.push(warning);
        }
    }

    /// A case of this place, without numbers yet.
    pub(crate) fn case(&self, table: impl Into<String>) -> Case {
        Case::new(table).key("filesystem", self.place.name())
    }

    /// Does something in an empty directory, which is gone afterwards, and all that was done in it
    /// settled. The inner result is that of `work`; the outer one, that of the place, would meet
    /// everybody else as well.
    pub(crate) fn aside<T>(&self, work: impl FnOnce(&Path) -> Result<T>) -> Result<Result<T>> {
        let dir = self.place.dir.join("turn");
        fs::create_dir(&dir).context(|| format!("make {}", dir.display()))?;
        let result = work(&dir);
        fs::remove_dir_all(&dir).context(|| format!("remove {}", dir.display()))?;
        settle(self.place.dir)?;
        Ok(result)
    }

    /// Has all entrants take turns, in a warm-up and in each round. Who can't go on is left out.
    pub(crate) fn rounds<W, S>(
        &mut self,
        entrants: &mut [Entrant<W, S>],
        mut measure: impl FnMut(&mut W, Turn<'_>) -> Result<S>,
    ) -> Result<()> {
        for round in 0..=self.rounds {
            for (index, entrant) in entrants.iter_mut().enumerate() {
                if entrant.end.is_some() {
                    self.progress.event(&Event::Omitted { steps: 1 });
                    continue;
                }
                let stage = if round == 0 { "warm-up".into() } else { format!("round {round}") };
                let what = format!("{}, {}, {stage}", self.place.filesystem, entrant.name);
                self.progress.event(&Event::Measuring { what: &what });
                let way = &mut entrant.way;
                let sample = self.aside(|dir| measure(way, Turn { dir, round, index }))?;
                if let Err(error) = &sample {
                    self.progress.event(&Event::Warning(&format!("{what} failed: {error}")));
                }
                entrant.take(sample, round);
            }
        }
        Ok(())
    }
}

/// A way to do it that takes part in a contest, and how it did.
pub(crate) struct Entrant<W, S> {
    pub(crate) way: W,
    name: String,
    /// One for each counted round, unless there is a reason why not.
    samples: Vec<S>,
    end: Option<End>,
}

/// Why an entrant takes part no more.
enum End {
    /// It can't be done here.
    Skipped(String),
    Failed(String),
}

impl<W, S> Entrant<W, S> {
    /// `name` is for whoever watches; `probed` says if it can be done here.
    pub(crate) fn new(name: impl Into<String>, way: W, probed: Result<()>) -> Entrant<W, S> {
        let end = probed.err().map(|error| End::of(&error));
        Entrant { way, name: name.into(), samples: Vec::new(), end }
    }

    fn take(&mut self, sample: Result<S>, round: u32) {
        match sample {
            Ok(sample) if round > 0 => self.samples.push(sample),
            Ok(_) => {}
            Err(error) => {
                self.samples.clear();
                // What could be done in a round can be done.
                let is_first = round == 0;
                self.end = Some(if is_first { End::of(&error) } else { End::failed(&error) });
            }
        }
    }

    /// One sample for each round; none unless all were good.
    pub(crate) fn samples(&self) -> &[S] {
        &self.samples
    }

    /// A figure of each sample.
    pub(crate) fn figures(&self, figure: impl Fn(&S) -> f64) -> Vec<f64> {
        self.samples.iter().map(figure).collect()
    }

    /// `case`, with what became of the entrant.
    pub(crate) fn case(&self, case: Case) -> Case {
        let (skipped, failed) = match &self.end {
            None => (None, None),
            Some(End::Skipped(reason)) => (Some(reason.clone()), None),
            Some(End::Failed(reason)) => (None, Some(reason.clone())),
        };
        Case { verified: self.end.is_none(), skipped, failed, ..case }
    }
}

impl End {
    fn of(error: &Error) -> End {
        match error.kind() {
            ErrorKind::Unsupported => End::Skipped(error.to_string()),
            _ => End::failed(error),
        }
    }

    fn failed(error: &Error) -> End {
        End::Failed(error.to_string())
    }
}

#[cfg(test)]
#[path = "arena_tests.rs"]
mod tests;
