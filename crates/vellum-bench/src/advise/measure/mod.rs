//! Ways against each other, for one purpose: all take turns in each round, the first of which is
//! not counted; whatever is written is read back and compared after each turn.
//!
//! The number of rounds is fixed, because a choice needs so many to be sure; how much is done in a
//! turn follows from the time there is: the first round tells what a turn costs besides.

use std::time::{Duration, Instant};

use super::Purpose;
use super::way::Way;
use crate::error::{Error, Result};
use crate::suite::Arena;

mod default;
pub(super) mod file;
pub(super) mod log;
pub(super) mod wal;

/// So much of a round's time is planned; the rest is for what nobody foresees.
const PLANNED_SHARE: f64 = 0.85;

/// How long commits took, in microseconds, in each round. Ways are not compared by it.
#[derive(Clone, Debug, Default)]
pub(super) struct Times {
    /// As `4 threads`.
    pub(super) threads: String,
    pub(super) p50: Vec<f64>,
    pub(super) p99: Vec<f64>,
}

/// What is measured for one purpose.
pub(super) trait Field {
    fn purpose(&self) -> Purpose;

    /// The ways, the default first and then the simplest first.
    fn ways(&self) -> Vec<Way>;

    /// What each way is measured by, in the order in which [`Field::turn`] tells it: a name and a
    /// unit. More is better.
    fn figures(&self) -> Vec<(String, &'static str)>;

    /// `Err` with the reason if the way can't be gone here.
    fn probe(&mut self, way: usize) -> std::result::Result<(), String>;

    /// One turn of a way: all its figures. Everything written has been verified.
    fn turn(&mut self, way: usize, round: u32) -> Result<Vec<f64>>;

    /// How long single commits of a way took in each counted round.
    fn times(&self, _way: usize) -> Vec<Times> {
        Vec::new()
    }

    /// The first round took `spent`; from now on a round should take `budget`.
    fn fit(&mut self, spent: Duration, budget: Duration);
}

/// A way, and for each round one number for each figure.
pub(super) type Entrant = crate::suite::Entrant<Way, Vec<f64>>;

/// The ways of `field`, before their first turn.
pub(super) fn enter(field: &mut dyn Field) -> Vec<Entrant> {
    let (title, ways) = (field.purpose().title(), field.ways());
    let mut enter = |(index, way): (usize, Way)| {
        let probed = field.probe(index).map_err(Error::unsupported);
        Entrant::new(format!("{title}: {way}"), way, probed)
    };
    ways.into_iter().enumerate().map(&mut enter).collect()
}

/// All ways take a turn in each round of `arena`, in about `budget`.
pub(super) fn contest(
    field: &mut dyn Field,
    entrants: &mut [Entrant],
    budget: Duration,
    arena: &mut Arena<'_>,
) -> Result<()> {
    let begun = Instant::now();
    for round in 0..=arena.rounds {
        arena.round(round, entrants, |_, turn| field.turn(turn.index, turn.round))?;
        if round == 0 {
            let left = budget.saturating_sub(begun.elapsed()).mul_f64(PLANNED_SHARE);
            field.fit(begun.elapsed(), left / arena.rounds);
        }
    }
    Ok(())
}
