//! The speed of more cores, computed: cores that append by the protocol's steps, on a machine whose
//! cache lines take a while from core to core (`docs/benchmarks.md`).
//!
//! Nothing is measured and nothing is written. Each round has another seed, so a run can be
//! repeated to the last digit.

use crate::error::Result;
use crate::report::{Better, Case};
use crate::suite::{Arena, Entrant};

mod line;
mod machine;

use machine::{BackOff, Costs, Machine, Outcome};

pub(super) const TITLE: &str = "cores that append, simulated";
/// How many records all cores append together.
const RECORDS: usize = 200_000;
const CORES: [usize; 7] = [1, 2, 4, 8, 16, 32, 64];
pub(super) const TURNS: usize = KINDS.len() * BACK_OFFS.len() * CORES.len();

/// A hand-over has two transfers: a core reads the line, and gets it for itself alone.
const NEAR: u64 = 73 / 2;
/// Between the clusters of one processor, and between processors.
const FAR: u64 = 2 * NEAR;
const FURTHER: u64 = 3 * NEAR;

/// The kinds of records, and how far the cores are from each other. Fitted to one core and to two.
const KINDS: [(&str, Costs); 4] = [
    ("text, 1 B", TEXT_1),
    ("framed, 128 B", FRAMED_128),
    ("framed, 128 B, far", Costs { transfer: FAR, ..FRAMED_128 }),
    ("framed, 128 B, further", Costs { transfer: FURTHER, ..FRAMED_128 }),
];
const TEXT_1: Costs =
    Costs { transfer: NEAR, reserve: 3, fill: 3, mapped_records: 4096, mapping: 4000 };
const FRAMED_128: Costs =
    Costs { transfer: NEAR, reserve: 4, fill: 16, mapped_records: 480, mapping: 12_000 };

const BACK_OFFS: [(&str, BackOff); 2] =
    [("fixed", BackOff::Fixed), ("learning", BackOff::Learning)];

/// Which machine, with which number of cores.
#[derive(Clone, Copy)]
struct Test {
    kind: (&'static str, Costs),
    back_off: (&'static str, BackOff),
    cores: usize,
}

pub(super) fn contest(arena: &mut Arena<'_>) -> Result<Vec<Case>> {
    let mut entrants: Vec<Entrant<Test, Outcome>> = tests().map(entrant).collect();
    arena.rounds(&mut entrants, |test, turn| {
        let Test { kind: (_, costs), back_off: (_, back_off), cores } = *test;
        Ok(Machine::new(cores, costs, back_off, turn.round.into()).append(RECORDS))
    })?;
    Ok(entrants.iter().map(|entrant| case(entrant, arena)).collect())
}

fn tests() -> impl Iterator<Item = Test> {
    let with = move |kind, back_off| CORES.map(|cores| Test { kind, back_off, cores });
    KINDS.into_iter().flat_map(move |kind| BACK_OFFS.map(|back_off| with(kind, back_off)).concat())
}

fn entrant(test: Test) -> Entrant<Test, Outcome> {
    let Test { kind: (kind, _), back_off: (back_off, _), cores } = test;
    Entrant::new(format!("simulated: {kind}, {back_off}, {cores} cores"), test, Ok(()))
}

fn case(entrant: &Entrant<Test, Outcome>, arena: &Arena<'_>) -> Case {
    let Test { kind: (kind, _), back_off: (back_off, _), cores } = entrant.way;
    let figures = |figure: fn(&Outcome) -> f64| entrant.figures(figure);
    // No row is there to beat another.
    let better = Better::Neither;
    let case = arena
        .case(TITLE)
        .key("way", kind)
        .key("back-off", back_off)
        .key("cores", cores)
        .metric("time", "ns/record", better, figures(|outcome| outcome.ns))
        .metric("transfers", "/record", better, figures(|outcome| outcome.transfers))
        .metric("exchanges", "/record", better, figures(|outcome| outcome.exchanges))
        .metric("records in a row", "", better, figures(|outcome| outcome.in_a_row))
        .metric("append p99", "us", better, figures(|outcome| outcome.p99 as f64 / 1e3))
        .metric("longest append", "us", better, figures(|outcome| outcome.longest as f64 / 1e3))
        .metric("least share", "x", better, figures(|outcome| outcome.least_share));
    entrant.case(case)
}

#[cfg(test)]
mod tests;
