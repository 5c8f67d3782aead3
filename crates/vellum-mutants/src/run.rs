//! Runs the tests with one mutant after the other.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use anyhow::Result;

use crate::Arguments;
use crate::areas::Area;
use crate::build;
use crate::mutate::Mutant;
use crate::programs::{self, Test};
use crate::results::{Results, SURVIVES};

/// Tests that take as long together without a mutant are run before the others.
const FIRST: Duration = Duration::from_secs(1);
/// How many times as long the next ones take.
const GROWTH: u32 = 4;

/// Some of the mutants, drawn at random.
pub(crate) fn drawn(mut mutants: Vec<&Mutant>, count: Option<usize>, seed: u64) -> Vec<&Mutant> {
    let Some(count) = count else { return mutants };
    let mut state = seed;
    let mut drawn = Vec::new();
    while drawn.len() < count && !mutants.is_empty() {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        drawn.push(mutants.remove((state >> 33) as usize % mutants.len()));
    }
    drawn
}

/// The tests of an area that were built.
pub(crate) struct Trial<'a> {
    copy: &'a Path,
    programs: Vec<PathBuf>,
    /// The quickest first.
    tests: Vec<Test>,
}

impl Trial<'_> {
    pub(crate) fn begin<'a>(
        area: &Area,
        copy: &'a Path,
        arguments: &Arguments,
        mutants: usize,
    ) -> Result<Trial<'a>> {
        let mut programs = Vec::new();
        for tests in area.tests {
            programs.push((build::program(copy, &arguments.work, tests)?, tests.names));
        }
        let tests = programs::tests(&programs, copy, mutants, arguments.jobs)?;
        let programs = programs.into_iter().map(|(path, _)| path).collect();
        Ok(Trial { copy, programs, tests })
    }

    /// Runs the tests that come to the place of a mutant, and returns the one that noticed it.
    fn notices(&self, mutant: &Mutant) -> Result<Option<String>> {
        let reach: Vec<&Test> =
            self.tests.iter().filter(|test| test.reaches(mutant.number)).collect();
        for together in batches(&reach) {
            for (number, program) in self.programs.iter().enumerate() {
                let own: Vec<&Test> =
                    together.iter().copied().filter(|test| test.program == number).collect();
                if own.is_empty() {
                    continue;
                }
                let noticed = programs::notices(program, self.copy, &own, mutant.number)?;
                if noticed.is_some() {
                    return Ok(noticed);
                }
            }
        }
        Ok(None)
    }
}

/// Splits tests into those that are run together.
fn batches<'a, 'b>(tests: &'a [&'b Test]) -> Vec<&'a [&'b Test]> {
    let (mut batches, mut left, mut limit) = (Vec::new(), tests, FIRST);
    while !left.is_empty() {
        let mut sum = Duration::ZERO;
        let is_beyond = |test: &&Test| {
            sum += test.took;
            sum > limit
        };
        let count = left.iter().position(is_beyond).unwrap_or(left.len()).max(1);
        let (batch, rest) = left.split_at(count);
        batches.push(batch);
        left = rest;
        limit *= GROWTH;
    }
    batches
}

/// Tries mutants of an area, and prints which of them no test noticed.
pub(crate) fn area(
    trial: &Trial<'_>,
    jobs: usize,
    results: &Results,
    mutants: &[&Mutant],
) -> Result<()> {
    let (next, done, begun) = (AtomicUsize::new(0), AtomicUsize::new(0), Instant::now());
    let work = || -> Result<()> {
        while let Some(mutant) = mutants.get(next.fetch_add(1, Ordering::Relaxed)) {
            let noticed = trial.notices(mutant)?;
            let by = noticed.as_deref().unwrap_or(SURVIVES);
            results.add(mutant, by)?;
            let done = done.fetch_add(1, Ordering::Relaxed) + 1;
            let left = begun.elapsed() / done as u32 * (mutants.len() - done) as u32;
            let minutes = left.as_secs().div_ceil(60);
            println!("{done}/{}, {minutes} min left\t{by}\t{mutant}", mutants.len());
        }
        Ok(())
    };
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..jobs).map(|_| scope.spawn(work)).collect();
        threads.into_iter().try_for_each(|thread| thread.join().expect("no thread panics"))
    })
}
