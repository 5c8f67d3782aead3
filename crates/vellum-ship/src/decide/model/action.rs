//! The events of a world.

use super::explore::Allowed;
use super::world::World;

/// A kind of step, or its result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Action {
    Starts,
    Answers,
    Retries,
    Lands,
    Dies,
    DiesSending,
    PowerCut,
    Appends,
    Commits,
    Ships,
    ShipsGap,
    Saves,
    Rotates,
    Restores,
    TakesOver,
    Truncates,
    Trims,
    Overruns,
    Merges,
    MergesLate,
    Closes,
    PlansDeletion,
    Deletes,
    OldFile,
    Copied,
    RestoreBegins,
    RestorerReads,
    // The result of a step.
    Won,
    Lost,
    Moved,
    Fenced,
    Diverged,
}

impl Action {
    pub(super) const ALL: [Action; 32] = {
        use Action::*;
        [
            Starts,
            Answers,
            Retries,
            Lands,
            Dies,
            DiesSending,
            PowerCut,
            Appends,
            Commits,
            Ships,
            ShipsGap,
            Saves,
            Rotates,
            Restores,
            TakesOver,
            Truncates,
            Trims,
            Overruns,
            Merges,
            MergesLate,
            Closes,
            PlansDeletion,
            Deletes,
            OldFile,
            Copied,
            RestoreBegins,
            RestorerReads,
            Won,
            Lost,
            Moved,
            Fenced,
            Diverged,
        ]
    };
}

/// Actions that must have happened at least once where so many are allowed. A scenario in which one
/// of them never happens would prove less than it says.
pub(super) fn expected(world: &World, allowed: Allowed) -> Vec<Action> {
    use Action::*;
    let World { left, actors, .. } = world;
    let when = |is: bool, actions: &[Action]| if is { actions.to_vec() } else { Vec::new() };
    let floats = left.floats > 0;
    [
        when(true, &[Starts, Answers, Ships, Saves]),
        when(left.crashes > 0, &[Dies]),
        when(floats, &[Retries, Lands]),
        when(floats && left.crashes > 0, &[DiesSending]),
        when(floats && left.merges > 0, &[MergesLate]),
        when(left.power_cuts > 0, &[PowerCut, Commits]),
        when(left.forks > 0, &[Truncates]),
        when(actors.iter().any(|actor| (actor.log.len() as u64) < left.cells), &[Appends]),
        when(left.claims > 0, &[Rotates, TakesOver, Won, Closes]),
        when(left.claims > 1, &[Lost]),
        when(left.claims > 0 && actors.iter().any(|actor| actor.saved.is_none()), &[Restores]),
        when(left.claims > 0 && allowed.fenced, &[Fenced]),
        when(left.claims > 0 && allowed.diverged, &[Moved]),
        when(allowed.diverged, &[Diverged]),
        when(left.claims > 0 && left.merges + left.retains > 0, &[PlansDeletion, Deletes]),
        when(left.trims > 0, &[Trims]),
        when(left.overruns > 0, &[Overruns, ShipsGap]),
        when(left.merges > 0, &[Merges]),
        when(left.restores > 0, &[RestoreBegins, RestorerReads]),
        when(left.old_files > 0, &[OldFile]),
        when(left.copies > 0, &[Copied]),
    ]
    .concat()
}

/// Which of them happened, and how often.
#[derive(Clone, Debug, Default)]
pub(super) struct Taken([u64; Action::ALL.len()]);

impl Taken {
    pub(super) fn add(&mut self, action: Action) {
        self.0[action as usize] += 1;
    }

    pub(super) fn count(&self, action: Action) -> u64 {
        self.0[action as usize]
    }

    pub(super) fn told(&self) -> String {
        let taken = Action::ALL.iter().filter(|action| self.count(**action) > 0);
        let told = taken.map(|action| format!("{action:?} {}", self.count(*action)));
        told.collect::<Vec<_>>().join(", ")
    }
}
