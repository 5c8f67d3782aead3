//! A campaign: workers in some worlds, kills and stops, and the check of the promises.
//!
//! The process that runs it has one thread and is in a world like ours. It hears all workers
//! through one pipe, which ends when the last of them is gone.

use std::path::Path;

use super::check::{self, What};
use super::crew::Crew;
use super::ledger::{Keeps, Ledger};
use super::shape::Shape;
use super::surroundings::Surroundings;
use super::table::{self, Kind, World};

/// The parts of a campaign; the same parts do the same again, but for the speed of each process.
pub(crate) struct Campaign {
    pub(crate) worlds: Vec<&'static World>,
    pub(crate) shape: Shape,
    pub(crate) seed: u64,
}

/// Counts of passed checks in a campaign.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Tally {
    pub(crate) records: u64,
    pub(crate) kills: u64,
    pub(crate) refusals: u64,
}

impl Campaign {
    /// Runs it below `base`, which it makes. The faults, if any.
    pub(crate) fn run(&self, base: &Path) -> anyhow::Result<Result<Tally, Vec<String>>> {
        let mut surroundings = Surroundings::make(base, &self.worlds)?;
        let mut crew = Crew::new(self, base)?;
        crew.work(&mut surroundings)?;
        crew.end()?;
        surroundings.pause(self.shape)?;
        // No other process is there now.
        let mut faults = crew.faults;
        let (ledger, image) = (crew.ledger, crew.image);
        let mut last = Crew::new(self, base)?;
        last.ledger = ledger;
        last.start(crew.next_worker.next_multiple_of(2), &surroundings, true)?;
        last.attend()?;
        last.end()?;
        faults.append(&mut last.faults);
        let mut ledger = last.ledger;
        faults.extend(self.unexpected(&ledger));
        faults.extend(surroundings.check().err());
        let keeps = self.keeps();
        if faults.is_empty() {
            let log = surroundings.log();
            faults.extend(check::check(&log, self.shape, &ledger, keeps, What::Log)?);
        }
        if faults.is_empty()
            && let Some(path) = surroundings.image()?
        {
            let mut promised = image.unwrap_or_else(|| ledger.clone());
            // Records that were trimmed while it was made may be there or not.
            promised.trimmed = ledger.trimmed;
            promised.appended.iter_mut().for_each(|(key, record)| {
                record.is_cut |= ledger.appended.get(key).is_some_and(|now| now.is_cut);
            });
            let (shape, keeps) = (self.shape, Keeps::Committed);
            let found = check::check(&path, shape, &promised, keeps, self.image_kind())?;
            faults.extend(found.map(|fault| format!("of the image: {fault}")));
        }
        let refusals = ledger.failures.len() as u64;
        let records = std::mem::take(&mut ledger.appended).len() as u64;
        Ok(match faults.is_empty() {
            true => Ok(Tally { records, kills: crew.kills, refusals }),
            false => Err(faults),
        })
    }

    /// The kind of an image, by how it was taken.
    fn image_kind(&self) -> What {
        if self.has(Kind::Snapshot) {
            What::Snapshot
        } else if self.has(Kind::CopyLiving) {
            What::Copy
        } else {
            What::Image
        }
    }

    /// Why it is known to fail.
    pub(crate) fn known(&self) -> Option<&'static str> {
        self.worlds.iter().find_map(|world| world.kind.known(self.shape))
    }

    fn keeps(&self) -> Keeps {
        let all = self.worlds.iter().all(|world| world.kind.keeps() == Keeps::Appended);
        if all { Keeps::Appended } else { Keeps::Committed }
    }

    /// Errors of workers that may not have any, or not of this kind.
    fn unexpected(&self, ledger: &Ledger) -> Option<String> {
        let is_fault = |side: char, kind: &str| {
            let worker = (side as usize - 'a' as usize) / 2;
            let may_fail = self.worlds.iter().any(|world| world.kind.may_fail(worker));
            !may_fail || ["Poisoned", "Corrupt"].contains(&kind)
        };
        let mut failures = ledger.failures.iter().filter(|one| is_fault(one.side, &one.kind));
        let first = failures.next()?;
        let more = match failures.count() {
            0 => String::new(),
            count => format!(" (and {count} more errors)"),
        };
        let (side, what, kind, words) = (first.side, &first.what, &first.kind, &first.words);
        Some(format!("worker {side}: {what} failed, {kind}: {words}{more}"))
    }

    /// Whether one of its worlds is of this kind.
    pub(super) fn has(&self, kind: Kind) -> bool {
        table::has(&self.worlds, kind)
    }
}
