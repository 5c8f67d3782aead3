//! Runs the tests with one mutant after the other.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};

use crate::Arguments;
use crate::areas::{Area, Tests};
use crate::build;
use crate::mutate::Mutant;

/// A test program that takes so many times as long as without a mutant has noticed it.
const PATIENCE: u32 = 5;

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

/// Tests of an area that were built, and how long they take.
struct Program<'a> {
    tests: &'a Tests,
    path: PathBuf,
    limit: Duration,
}

/// Tries mutants of an area, and prints which of them no test noticed.
pub(crate) fn area(
    area: &Area,
    copy: &Path,
    arguments: &Arguments,
    mutants: &[&Mutant],
    all: usize,
) -> Result<()> {
    let mut programs = Vec::new();
    for tests in area.tests {
        let path = build::program(copy, &arguments.work, tests)?;
        let begun = Instant::now();
        let no_limit = Duration::from_secs(3600);
        let program = Program { tests, path, limit: no_limit };
        ensure!(passes(&program, copy, None)?, "the tests of {} fail without a mutant", area.name);
        programs.push(Program {
            limit: begun.elapsed() * PATIENCE + Duration::from_secs(20),
            ..program
        });
    }
    let (next, survivors) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        let work = || {
            while let Some(mutant) = mutants.get(next.fetch_add(1, Ordering::Relaxed)) {
                let is_noticed =
                    |program: &Program<'_>| !passes(program, copy, Some(mutant)).unwrap_or(false);
                let noticed = programs.iter().position(is_noticed);
                println!(
                    "{}\t{}\t{mutant}",
                    area.name,
                    noticed.map_or("SURVIVES".to_owned(), |by| by.to_string())
                );
                if noticed.is_none() {
                    survivors.lock().expect("no thread panics").push(mutant.to_string());
                }
            }
        };
        (0..arguments.jobs).for_each(|_| drop(scope.spawn(work)));
    });
    let left = survivors.into_inner().expect("no thread panics").len();
    println!(
        "{}: {} of {} mutants were noticed, of {all} in all",
        area.name,
        mutants.len() - left,
        mutants.len()
    );
    Ok(())
}

/// Runs the tests with a mutant; those that do not end have noticed it.
fn passes(program: &Program<'_>, copy: &Path, mutant: Option<&Mutant>) -> Result<bool> {
    let mut command = Command::new(&program.path);
    command.args(program.tests.names).current_dir(copy.join("crates/vellum"));
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    if let Some(mutant) = mutant {
        command.env("VELLUM_MUTANT", mutant.number.to_string());
    }
    let mut child = command.spawn()?;
    let begun = Instant::now();
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(status.success());
        }
        if begun.elapsed() > program.limit {
            child.kill()?;
            child.wait()?;
            return Ok(false);
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}
