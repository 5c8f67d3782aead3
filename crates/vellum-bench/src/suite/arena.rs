//! One place of a run, and the entrants that take turns there.

use std::fs;
use std::path::Path;

use super::settle;
use crate::error::{Context, Error, ErrorKind, Result};
use crate::interrupt;
use crate::place::Place;
use crate::progress::{Event, Progress};
use crate::report::Case;

/// One of the places of a run.
pub(crate) struct Arena<'a> {
    pub(crate) place: &'a Place<'a>,
    /// How many rounds are counted. A warm-up precedes them.
    pub(crate) rounds: u32,
    pub(super) tally: Tally,
    progress: &'a mut dyn Progress,
    warnings: &'a mut Vec<String>,
}

/// How many rounds of all contests are over, and how many there should be.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Tally {
    pub(super) finished: u64,
    pub(super) planned: u64,
}

/// A turn of an entrant.
#[derive(Clone, Copy)]
pub(crate) struct Turn<'a> {
    /// An empty directory. It is removed after the turn.
    pub(crate) dir: &'a Path,
    /// 0 is the warm-up.
    pub(crate) round: u32,
    /// Which entrant it is.
    pub(crate) index: usize,
}

impl<'a> Arena<'a> {
    pub(crate) fn new(
        place: &'a Place<'a>,
        rounds: u32,
        progress: &'a mut dyn Progress,
        warnings: &'a mut Vec<String>,
    ) -> Arena<'a> {
        Arena { place, rounds, tally: Tally::default(), progress, warnings }
    }

    /// Adds a warning to the report, unless it is there already.
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

    /// Runs `work` in an empty directory, then removes the directory and syncs the filesystem.
    ///
    /// The inner result is that of `work`. The outer result is an error of the place, which would
    /// affect every other entrant too. A run that is to end does no more work, and the removal of
    /// its directory removes this one: processes that die may still write there.
    pub(crate) fn aside<T>(&self, work: impl FnOnce(&Path) -> Result<T>) -> Result<Result<T>> {
        if interrupt::is_asked() {
            return Ok(Err(Error::interrupted()));
        }
        let dir = self.place.dir.join("turn");
        fs::create_dir(&dir).context(|| format!("make {}", dir.display()))?;
        let result = work(&dir);
        if result.is_err() && interrupt::is_asked() {
            return Ok(Err(Error::interrupted()));
        }
        fs::remove_dir_all(&dir).context(|| format!("remove {}", dir.display()))?;
        settle(self.place.dir)?;
        Ok(result)
    }

    /// All entrants take turns, in a warm-up and in each round. Where the run is to end, only the
    /// rounds count that are over, for each round should have met all entrants.
    pub(crate) fn rounds<W, S>(
        &mut self,
        entrants: &mut [Entrant<W, S>],
        mut measure: impl FnMut(&mut W, Turn<'_>) -> Result<S>,
    ) -> Result<()> {
        self.tally.planned += u64::from(self.rounds);
        for round in 0..=self.rounds {
            match self.round(round, entrants, &mut measure) {
                Err(error) if error.kind() == ErrorKind::Interrupted => {
                    let finished = round.saturating_sub(1) as usize;
                    entrants.iter_mut().for_each(|entrant| entrant.interrupt(finished));
                    break;
                }
                result => result?,
            }
            self.tally.finished += u64::from(round > 0);
        }
        Ok(())
    }

    /// Each entrant takes a turn, unless it was skipped or has failed; see [`order`].
    ///
    /// # Errors
    ///
    /// One of the place; or the run is to end.
    pub(crate) fn round<W, S>(
        &mut self,
        round: u32,
        entrants: &mut [Entrant<W, S>],
        mut measure: impl FnMut(&mut W, Turn<'_>) -> Result<S>,
    ) -> Result<()> {
        if interrupt::is_asked() {
            return Err(Error::interrupted());
        }
        for index in order(round, entrants.len()) {
            let entrant = &mut entrants[index];
            if !entrant.is_good() {
                self.progress.event(&Event::Omitted { steps: 1 });
                continue;
            }
            let stage = if round == 0 { "warm-up".into() } else { format!("round {round}") };
            let what = format!("{}, {}, {stage}", self.place.filesystem, entrant.name);
            self.progress.event(&Event::Measuring { what: &what });
            let way = &mut entrant.way;
            let sample = self.aside(|dir| measure(way, Turn { dir, round, index }))?;
            if let Err(error) = &sample {
                if error.kind() == ErrorKind::Interrupted {
                    return Err(error.clone());
                }
                self.progress.event(&Event::Warning(&format!("{what} failed: {error}")));
            }
            entrant.take(sample, round);
        }
        Ok(())
    }
}

/// The order of turns. The effects of a turn, such as memory that the host has to find again, must
/// not always fall to the same entrant. So over the rounds each entrant comes at each place, and
/// behind each other one: the Latin square that is balanced for neighbours (Williams, 1949), a row
/// a round. For an odd number of entrants it takes rows backwards, too.
fn order(round: u32, count: usize) -> impl Iterator<Item = usize> {
    let round = round as usize;
    let is_backwards = count % 2 == 1 && round % 2 == 1;
    (0..count).map(move |turn| {
        let turn = if is_backwards { count - 1 - turn } else { turn };
        // 0, 1, count - 1, 2, count - 2, …
        let row = if turn % 2 == 1 { turn.div_ceil(2) } else { count - turn / 2 };
        (row + round) % count
    })
}

/// A participant of a contest, and its results.
#[derive(Clone, Debug)]
pub(crate) struct Entrant<W, S> {
    pub(crate) way: W,
    name: String,
    /// One for each counted round; empty if the entrant was skipped or has failed.
    samples: Vec<S>,
    end: Option<End>,
}

/// Why an entrant takes no more turns.
#[derive(Clone, Debug)]
enum End {
    /// This system can't do it, or the run ended before it could be measured.
    Skipped(String),
    Failed(String),
}

impl<W, S> Entrant<W, S> {
    /// `name` is shown as progress. An error in `probed` skips the entrant, or fails it.
    pub(crate) fn new(name: impl Into<String>, way: W, probed: Result<()>) -> Entrant<W, S> {
        let end = probed.err().map(|error| End::of(&error));
        Entrant { way, name: name.into(), samples: Vec::new(), end }
    }

    pub(crate) fn is_good(&self) -> bool {
        self.end.is_none()
    }

    /// Why it takes no more turns.
    pub(crate) fn reason(&self) -> Option<&str> {
        match &self.end {
            Some(End::Skipped(reason) | End::Failed(reason)) => Some(reason),
            None => None,
        }
    }

    pub(crate) fn take(&mut self, sample: Result<S>, round: u32) {
        match sample {
            Ok(sample) if round > 0 => self.samples.push(sample),
            Ok(_) => {}
            Err(error) => {
                self.samples.clear();
                // The warm-up worked, so this system can do it.
                self.end = Some(if round == 0 { End::of(&error) } else { End::failed(&error) });
            }
        }
    }

    /// The run ends after so many rounds.
    fn interrupt(&mut self, finished: usize) {
        self.samples.truncate(finished);
        if self.is_good() && self.samples.is_empty() {
            self.end = Some(End::of(&Error::interrupted()));
        }
    }

    /// One sample for each counted round; empty unless all rounds were good.
    pub(crate) fn samples(&self) -> &[S] {
        &self.samples
    }

    /// A figure of each sample.
    pub(crate) fn figures(&self, figure: impl Fn(&S) -> f64) -> Vec<f64> {
        self.samples.iter().map(figure).collect()
    }

    /// `case` with the outcome of this entrant.
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
            ErrorKind::Unsupported | ErrorKind::Interrupted => End::Skipped(error.to_string()),
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
