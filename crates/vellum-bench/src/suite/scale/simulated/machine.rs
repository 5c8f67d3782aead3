//! Cores that append without a pause, each by the steps of `tail_word` in the library: their
//! changes to the tail word and to the `confirmed` of their slots. The order of events is that of
//! their moments.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::line::{Asked, Line, Moment, Numbers};

/// The costs of the machine and its appends, in nanoseconds.
#[derive(Clone, Copy, Debug)]
pub(super) struct Costs {
    /// Until a core that wants a line of another core has it.
    pub(super) transfer: u64,
    /// From a look at the tail word to the exchange.
    pub(super) reserve: u64,
    /// From the exchange to the next look.
    pub(super) fill: u64,
    /// Records in the range that a process maps at a time, and the time of mapping it.
    pub(super) mapped_records: u64,
    pub(super) mapping: u64,
}

/// An exchange, or another locked instruction, of a line that is there.
const LOCKED: u64 = 5;
/// What 1024 turns of a pause take, and how often that at most (`tail_word::Rivals`).
const BACK_OFF: u64 = 14_800;
const CHANGES_MAX: u64 = 28;

/// The back-off of a writer that has lost the tail word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BackOff {
    /// Stays away for always the same time, and looks.
    Fixed,
    /// As the library: stays away for longer where others take turns, and comes back with the line.
    Learning,
}

/// The step that a core does next. The line that it needs is there then.
#[derive(Clone, Copy)]
enum Step {
    Look,
    ReadProof,
    RaiseProof,
    /// Fetches the tail word to write, after a pause.
    Take,
    Exchange,
    Fill,
    Return,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct TailWord {
    tail: u64,
    winner: usize,
}

struct Core {
    step: Step,
    is_under_way: bool,
    /// Comes back from a pause.
    is_back: bool,
    seen: TailWord,
    begun: Moment,
    appended: u64,
    mapped: Option<u64>,
    last_rival: usize,
    changes: u64,
}

/// The outcome of a run.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Outcome {
    pub(super) ns: f64,
    /// For each record.
    pub(super) transfers: f64,
    pub(super) exchanges: f64,
    /// Records until another core wins.
    pub(super) in_a_row: f64,
    /// How long an append took, and the longest, with those that were not over.
    pub(super) p99: u64,
    pub(super) longest: u64,
    /// The appends of the core that appended least, as a part of its fair share.
    pub(super) least_share: f64,
}

pub(super) struct Machine {
    costs: Costs,
    back_off: BackOff,
    numbers: Numbers,
    tail_line: Line,
    record_line: Line,
    proof_lines: Vec<Line>,
    proofs: Vec<u64>,
    word: TailWord,
    cores: Vec<Core>,
    exchanges: u64,
    changes: u64,
    times: Vec<u64>,
}

impl Machine {
    pub(super) fn new(cores: usize, costs: Costs, back_off: BackOff, seed: u64) -> Machine {
        let core = |index| Core {
            step: Step::Look,
            is_under_way: false,
            is_back: false,
            seen: TailWord::default(),
            begun: index as u64,
            appended: 0,
            mapped: None,
            last_rival: index,
            changes: 0,
        };
        Machine {
            costs,
            back_off,
            numbers: Numbers::new(seed),
            tail_line: Line::default(),
            record_line: Line::default(),
            proof_lines: vec![Line::default(); cores],
            proofs: vec![0; cores],
            word: TailWord::default(),
            cores: (0..cores).map(core).collect(),
            exchanges: 0,
            changes: 0,
            times: Vec::new(),
        }
    }

    /// Has the cores append so many records together.
    pub(super) fn append(mut self, records: usize) -> Outcome {
        let first = self.cores.iter().enumerate().map(|(index, core)| Reverse((core.begun, index)));
        let mut events: BinaryHeap<Reverse<(Moment, usize)>> = first.collect();
        let mut end = 0;
        while self.times.len() < records {
            let Some(Reverse((now, index))) = events.pop() else { break };
            events.push(Reverse((self.go_on(index, now), index)));
            end = now;
        }
        self.outcome(end)
    }

    /// Does the next step of a core, if its line is there. Returns when it continues.
    fn go_on(&mut self, index: usize, now: Moment) -> Moment {
        match self.fetch(index, now) {
            Asked::At(moment) => moment,
            Asked::There => self.step(index, now),
        }
    }

    /// Which line the next step needs, and whether to write.
    fn line(&mut self, index: usize) -> Option<(&mut Line, bool)> {
        let Core { step, seen, .. } = self.cores[index];
        match step {
            Step::Look => Some((&mut self.tail_line, false)),
            Step::Take | Step::Exchange => Some((&mut self.tail_line, true)),
            Step::ReadProof => Some((&mut self.proof_lines[seen.winner], false)),
            Step::RaiseProof => Some((&mut self.proof_lines[seen.winner], true)),
            Step::Fill => Some((&mut self.record_line, true)),
            Step::Return => None,
        }
    }

    fn fetch(&mut self, index: usize, now: Moment) -> Asked {
        let way = self.numbers.around(self.costs.transfer) / 2;
        let is_under_way = self.cores[index].is_under_way;
        let Some((line, writes)) = self.line(index) else { return Asked::There };
        let asked = match is_under_way {
            true => line.move_on(now, way),
            false => line.ask(index, writes, now, way),
        };
        if let Asked::There = asked {
            line.give(index, writes);
        }
        self.cores[index].is_under_way = matches!(asked, Asked::At(_));
        asked
    }

    fn step(&mut self, index: usize, now: Moment) -> Moment {
        let (word, costs) = (self.word, self.costs);
        let arrived = self.line(index).map_or(now, |(line, _)| line.arrives_at().max(now));
        let core = &mut self.cores[index];
        match core.step {
            Step::Look => {
                core.seen = word;
                core.step = core.after_look(index);
                arrived + self.numbers.around(costs.reserve)
            }
            Step::ReadProof => {
                core.step = match self.proofs[core.seen.winner] < core.seen.tail {
                    true => Step::RaiseProof,
                    false => core.after_proof(),
                };
                arrived
            }
            Step::RaiseProof => {
                let proof = &mut self.proofs[core.seen.winner];
                *proof = core.seen.tail.max(*proof);
                core.step = core.after_proof();
                arrived + LOCKED
            }
            Step::Take => {
                (core.seen, core.is_back) = (word, false);
                core.step = core.after_look(index);
                arrived + LOCKED
            }
            Step::Exchange => arrived + LOCKED + self.exchange(index),
            Step::Fill => {
                core.step = Step::Return;
                let part = core.seen.tail / costs.mapped_records;
                let is_mapped = core.mapped.replace(part) == Some(part);
                let mapping = if is_mapped { 0 } else { costs.mapping };
                arrived + self.numbers.around(costs.fill) + self.numbers.around(mapping)
            }
            Step::Return => {
                self.times.push(now - core.begun);
                core.appended += 1;
                (core.begun, core.step) = (now, Step::Look);
                now
            }
        }
    }

    /// Exchanges the tail word. Returns how long the core stays away then.
    fn exchange(&mut self, index: usize) -> u64 {
        self.exchanges += 1;
        let core = &mut self.cores[index];
        if self.word == core.seen {
            self.changes += u64::from(core.seen.winner != index);
            self.word = TailWord { tail: core.seen.tail + 1, winner: index };
            core.step = Step::Fill;
            return 0;
        }
        core.step = Step::Look;
        let mut pause = BACK_OFF;
        if self.back_off == BackOff::Learning {
            core.is_back = true;
            pause += BACK_OFF / 4 * core.changes_after(self.word.winner);
        }
        self.numbers.within(pause / 8 * 7..pause / 8 * 9)
    }

    fn outcome(mut self, end: Moment) -> Outcome {
        let records = self.times.len() as f64;
        let least = self.cores.iter().map(|core| core.appended).min().unwrap_or(0);
        self.times.extend(self.cores.iter().map(|core| end.saturating_sub(core.begun)));
        self.times.sort_unstable();
        let lines = self.proof_lines.iter().chain([&self.tail_line, &self.record_line]);
        Outcome {
            ns: end as f64 / records,
            transfers: lines.map(|line| line.transfers).sum::<u64>() as f64 / records,
            exchanges: self.exchanges as f64 / records,
            in_a_row: records / self.changes.max(1) as f64,
            p99: self.times[self.times.len() * 99 / 100],
            longest: self.times.last().copied().unwrap_or(0),
            least_share: least as f64 * self.cores.len() as f64 / records,
        }
    }
}

impl Core {
    fn after_look(&self, index: usize) -> Step {
        if self.seen.winner == index { self.after_proof() } else { Step::ReadProof }
    }

    fn after_proof(&self) -> Step {
        if self.is_back { Step::Take } else { Step::Exchange }
    }

    /// As `tail_word::Rivals`: how often in a row it was another winner than the time before.
    fn changes_after(&mut self, winner: usize) -> u64 {
        let is_other = std::mem::replace(&mut self.last_rival, winner) != winner;
        self.changes = if is_other { (self.changes + 1).min(CHANGES_MAX) } else { 0 };
        self.changes
    }
}
