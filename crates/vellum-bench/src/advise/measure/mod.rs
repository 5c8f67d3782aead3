//! Ways against each other, for one purpose: all take turns in each round, the first of which is
//! not counted; whatever is written is read back and compared after each turn.
//!
//! The number of rounds is fixed, because a choice needs so many to be sure; how much is done in a
//! turn follows from the time there is: the first round tells what a turn costs besides.

use std::time::{Duration, Instant};

use super::Purpose;
use super::way::Way;
use crate::error::Result;
use crate::progress::{Event, Progress};

mod default;
pub(super) mod file;
pub(super) mod log;
pub(super) mod wal;

/// So much of a round's time is planned; the rest is for what nobody foresees.
const PLANNED_SHARE: f64 = 0.85;

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

    /// The first round took `spent`; from now on a round should take `budget`.
    fn fit(&mut self, spent: Duration, budget: Duration);
}

/// How a way did.
#[derive(Clone, Debug)]
pub(super) struct Entrant {
    pub(super) way: Way,
    /// For each figure a sample for each round; empty without numbers.
    pub(super) figures: Vec<Vec<f64>>,
    pub(super) skipped: Option<String>,
    pub(super) failed: Option<String>,
}

/// The ways of `field`, before their first turn; those that can't be gone here say why.
pub(super) fn enter(field: &mut dyn Field) -> Vec<Entrant> {
    let count = field.figures().len();
    let ways = field.ways();
    let mut enter = |(index, way): (usize, Way)| {
        let skipped = field.probe(index).err();
        Entrant { way, figures: vec![Vec::new(); count], skipped, failed: None }
    };
    ways.into_iter().enumerate().map(&mut enter).collect()
}

/// Has all that entered take a turn in each of `rounds`, in about `budget`.
pub(super) fn contest(
    field: &mut dyn Field,
    entrants: &mut [Entrant],
    rounds: u32,
    budget: Duration,
    progress: &mut dyn Progress,
) {
    let begun = Instant::now();
    for round in 0..=rounds {
        for (index, entrant) in entrants.iter_mut().enumerate() {
            if entrant.runs() {
                let stage = if round == 0 { "warm-up".into() } else { format!("round {round}") };
                let what = format!("{}: {}, {stage}", field.purpose().title(), entrant.way);
                progress.event(&Event::Measuring { what: &what });
                entrant.take(field.turn(index, round), round);
            }
        }
        if round == 0 {
            let left = budget.saturating_sub(begun.elapsed()).mul_f64(PLANNED_SHARE);
            field.fit(begun.elapsed(), left / rounds);
        }
    }
}

impl Entrant {
    pub(super) fn runs(&self) -> bool {
        self.skipped.is_none() && self.failed.is_none()
    }

    fn take(&mut self, turn: Result<Vec<f64>>, round: u32) {
        match turn {
            Ok(_) if round == 0 => {}
            Ok(samples) => {
                let figures = self.figures.iter_mut().zip(samples);
                figures.for_each(|(figure, sample)| figure.push(sample));
            }
            Err(error) => {
                self.figures.iter_mut().for_each(Vec::clear);
                self.failed = Some(error.to_string());
            }
        }
    }
}
