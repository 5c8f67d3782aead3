//! The traps that `vellum advise` finds, as causes: one rule for both.

use crate::advise::{Severity, Surroundings, traps};
use crate::cause::Cause;
use crate::doctor::evidence::{Finding, Weight};

/// What was found around the directory, by the rules of `vellum advise`.
pub(in crate::doctor) fn around(surroundings: &Surroundings) -> Vec<Finding> {
    let finding = |trap: crate::advise::Trap| {
        let weight = weight(trap.cause, trap.severity);
        Finding::new(trap.cause, weight, trap.what)
    };
    traps(surroundings).into_iter().map(finding).collect()
}

/// What a trap is to programs that are not Vellum: one that a log of Vellum refuses may suit them.
fn weight(cause: Cause, severity: Severity) -> Weight {
    match (cause, severity) {
        (Cause::NetworkFilesystem | Cause::Fuse, _) => Weight::Reason,
        (Cause::NoFua | Cause::Quota | Cause::LoopDevice, _) => Weight::Note,
        (_, Severity::Danger) => Weight::Danger,
        (_, Severity::Cost) => Weight::Reason,
        (_, Severity::Note) => Weight::Note,
    }
}

impl Cause {
    /// Can it be why writes of these programs are slow? None writes less than a block past the page
    /// cache.
    pub(in crate::doctor) fn explains_figures(self) -> bool {
        self != Cause::EmulatedSectors
    }

    /// Is it what the directory is on, and nothing that was measured?
    pub(in crate::doctor) fn is_of_place(self) -> bool {
        matches!(
            self,
            Cause::CgroupLimit
                | Cause::Misaligned
                | Cause::DataJournal
                | Cause::SyncMount
                | Cause::CopyOnWrite
                | Cause::Compression
                | Cause::NearlyFull
                | Cause::NetworkFilesystem
                | Cause::Fuse
                | Cause::Overlay
                | Cause::NoExtents
        )
    }
}
