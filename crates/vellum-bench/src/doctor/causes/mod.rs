//! Why a disk is as it is: causes found around it, in the shape of what was measured, and in the
//! machine that measured.
//!
//! ```text
//! around    what advise finds as traps          shape     the figures over time
//! tester    the processors, and the two halves  calls     what single calls cost
//! ```
//!
//! A rule that explains another's finding silences it ([`EXPLAINS`]): a throttle is no jitter.

use std::io;

use super::evidence::{Evidence, Finding, Weight};
use super::trials::is_of_device;
use crate::cause::Cause;

mod around;
mod calls;
mod shape;
mod tester;

pub(super) use around::around;
pub(super) use shape::is_flat;

/// Where the first is found, the others are what follows from it.
const EXPLAINS: [(Cause, &[Cause]); 14] = [
    (Cause::BusyMachine, &[Cause::HalvesDiffer]),
    (Cause::Steal, &[Cause::HalvesDiffer]),
    (Cause::WriteErrors, &[Cause::HalvesDiffer, Cause::Stalls, Cause::Jitter]),
    (Cause::Memory, &[Cause::TooFast, Cause::TesterBound, Cause::EmulatedSectors]),
    (
        Cause::Neighbour,
        &[
            Cause::BudgetEnds,
            Cause::Throttle,
            Cause::Stalls,
            Cause::Jitter,
            Cause::HalvesDiffer,
            Cause::SlowFlush,
            Cause::SlowDevice,
            Cause::SlowsDown,
            Cause::SlowJournal,
            Cause::FirstWrites,
            Cause::Sleeps,
            Cause::EmulatedSectors,
        ],
    ),
    (
        Cause::CgroupLimit,
        &[
            Cause::Throttle,
            Cause::BudgetEnds,
            Cause::Jitter,
            Cause::Stalls,
            Cause::SlowFlush,
            Cause::SlowJournal,
            Cause::FirstWrites,
            Cause::Sleeps,
            Cause::SlowDevice,
            Cause::HalvesDiffer,
        ],
    ),
    (
        Cause::BudgetEnds,
        &[
            Cause::Throttle,
            Cause::HalvesDiffer,
            Cause::SlowsDown,
            Cause::Jitter,
            Cause::Stalls,
            Cause::SlowFlush,
            Cause::SlowDevice,
            Cause::SlowJournal,
            Cause::FirstWrites,
            Cause::Sleeps,
            Cause::EmulatedSectors,
        ],
    ),
    (
        Cause::Throttle,
        &[
            Cause::Jitter,
            Cause::Stalls,
            Cause::SlowFlush,
            Cause::SlowDevice,
            Cause::HalvesDiffer,
            Cause::SlowJournal,
            Cause::FirstWrites,
            Cause::Sleeps,
            Cause::EmulatedSectors,
        ],
    ),
    (Cause::Stalls, &[Cause::HalvesDiffer]),
    (
        Cause::Jitter,
        &[Cause::SlowFlush, Cause::SlowDevice, Cause::HalvesDiffer, Cause::EmulatedSectors],
    ),
    (Cause::EmulatedSectors, &[Cause::SlowDevice]),
    (Cause::SlowFlush, &[Cause::NoFua]),
    (Cause::SlowJournal, &[Cause::Jitter]),
    (Cause::SlowsDown, &[Cause::HalvesDiffer]),
];

impl Cause {
    /// Does it belong to the disk, in whose turn it ever was seen?
    pub(super) fn is_of_disk(self) -> bool {
        matches!(self, Cause::LostWrites | Cause::WriteErrors)
    }
}

/// What the measurement of a program shows, with what was found around it.
pub(super) fn causes(evidence: &Evidence<'_>, around: &[Finding]) -> Vec<Finding> {
    let mut found = around.to_vec();
    let is_limited = around.iter().any(|one| one.cause == Cause::CgroupLimit);
    found.extend(shape::causes(evidence, is_limited));
    found.extend(calls::causes(evidence));
    found.extend(tester::causes(evidence));
    explained(found)
}

/// The finding of an experiment that failed beside the programs, if the device is at fault.
pub(super) fn failed_beside(failure: &io::Error) -> Option<Finding> {
    let what = || format!("a write beside the programs failed: {failure}");
    is_of_device(failure).then(|| Finding::new(Cause::WriteErrors, Weight::Danger, what()))
}

/// Leaves out what follows from something else that was found, and what is found twice.
fn explained(found: Vec<Finding>) -> Vec<Finding> {
    // Others that use the processors explain nothing where their turns do not count.
    let is_left_out = |one: &Finding| one.weight == Weight::Note && one.cause.is_of_machine();
    let explains = |one: &Finding, cause| one.cause == cause && !is_left_out(one);
    let has = |cause| found.iter().any(|one| explains(one, cause));
    let explained: Vec<Cause> = EXPLAINS
        .into_iter()
        .filter(|(cause, _)| has(*cause))
        .flat_map(|(_, others)| others.iter().copied())
        .collect();
    let mut kept: Vec<Finding> = Vec::new();
    for finding in &found {
        let is_known = kept.iter().any(|one| one.cause == finding.cause);
        // What the device says of itself is a fact, whatever follows from what.
        if !is_known && (finding.weight == Weight::Note || !explained.contains(&finding.cause)) {
            kept.push(finding.clone());
        }
    }
    kept.sort_by_key(|finding| (finding.weight, finding.cause));
    kept
}

#[cfg(test)]
mod made;
#[cfg(test)]
mod tests;
