//! The outcomes of the cases: a line for each, and one for all.

use std::fmt;
use std::sync::atomic::Ordering;
use std::time::Instant;

use super::report::{Phase, word};
use super::scenario::Case;
use crate::trace::{SharedPage, Stop};

/// The sums of all cases.
#[derive(Debug)]
pub(super) struct Totals {
    pub(super) points: u64,
    torn: u64,
    instructions: u64,
    slow: u64,
    slowest_ns: u64,
    pub(super) faults: u64,
    known: u64,
    is_injected: bool,
    /// Cases of a sample that the time was too short for.
    pub(super) untried: usize,
    pub(super) start: Instant,
}

impl Totals {
    /// Before the first case.
    pub(super) fn new(is_injected: bool) -> Totals {
        Totals {
            points: 0,
            torn: 0,
            instructions: 0,
            slow: 0,
            slowest_ns: 0,
            faults: 0,
            known: 0,
            is_injected,
            untried: 0,
            start: Instant::now(),
        }
    }

    /// Takes in a finished case, and prints its line.
    pub(super) fn add(&mut self, case: &Case, page: &SharedPage, stop: Stop) {
        let load = |index: usize| page.word(index).load(Ordering::SeqCst);
        let is_ended = stop == Stop::Exited(0);
        if !is_ended {
            print_end(case, page, stop);
        }
        let faults = load(word::FAULTS) + u64::from(!is_ended);
        self.points += load(word::POINTS);
        self.torn += load(word::TORN);
        self.instructions += load(word::INSTRUCTIONS);
        self.slow += load(word::SLOW);
        self.slowest_ns = self.slowest_ns.max(load(word::SLOWEST_NS));
        self.faults += faults;
        self.known += load(word::KNOWN);
        let done = if self.is_injected { failed(&load) } else { killed(&load) };
        let found = if faults > 0 { format!(", {faults} FAULTS") } else { String::new() };
        println!("{case:<42} {:>3} calls {done}{found}", load(word::CALLS));
    }

    fn fmt_kills(&self, f: &mut fmt::Formatter<'_>, seconds: f64) -> fmt::Result {
        write!(
            f,
            "{} processes killed ({} of them in the middle of a write) at {} instructions; \
             survivors took at most {:.1} ms, {} of them longer than 250 ms; {} faults; {:.1} s",
            self.points,
            self.torn,
            self.instructions,
            self.slowest_ns as f64 / 1e6,
            self.slow,
            self.faults,
            seconds
        )
    }
}

/// Prints why a case did not come to its end, and how to see that again.
fn print_end(case: &Case, page: &SharedPage, stop: Stop) {
    let phase = page.word(word::PHASE).load(Ordering::SeqCst);
    let what = match stop {
        Stop::Killed(_) if phase == Phase::Survive as u64 => "the survivor is held up",
        Stop::Killed(_) if phase == Phase::Fail as u64 => "the operation does not end",
        Stop::Killed(_) => "the test itself is stuck or was killed",
        _ => "the test failed",
    };
    println!("FAULT: {case} at {}: {what} ({stop:?})", page.text());
    println!("       vellum-killpoints --case {case} {}", page.text());
}

/// The work of a case whose system calls fail.
fn failed(load: &impl Fn(usize) -> u64) -> String {
    let how = if load(word::IS_COMPLETE) == 0 { "a sample" } else { "all" };
    format!("{:>6} failed ({how})", load(word::POINTS))
}

/// The work of a case whose victims are killed.
fn killed(load: &impl Fn(usize) -> u64) -> String {
    let extent = match (load(word::IS_COMPLETE), load(word::LONG_STRETCHES)) {
        (0, _) => "a sample",
        (_, 0) => "all",
        _ => "all but long fills",
    };
    format!(
        "{:>6} instructions {:>6} points ({extent}), {:>3} torn, slowest {:>6.1} ms",
        load(word::INSTRUCTIONS),
        load(word::POINTS),
        load(word::TORN),
        load(word::SLOWEST_NS) as f64 / 1e6
    )
}

impl fmt::Display for Totals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = self.start.elapsed().as_secs_f64();
        if self.is_injected {
            let Totals { points, faults, known, .. } = self;
            write!(
                f,
                "{points} calls failed; {faults} faults, {known} known ones; {seconds:.1} s"
            )?;
        } else {
            self.fmt_kills(f, seconds)?;
        }
        match self.untried {
            0 => Ok(()),
            count => write!(f, "; no time for {count} cases"),
        }
    }
}
