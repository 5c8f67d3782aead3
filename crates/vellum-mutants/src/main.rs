//! `vellum-mutants`: the changes that the tests of the library notice.
//!
//! Every comparison, every sum and every function of some files is changed, in a copy of the
//! repository: `a < b` becomes `(if mutant(17) { a <= b } else { a < b })`. `VELLUM_MUTANT=17`
//! chooses one of the changes when the tests run. So hundreds of mutants cost one build, and
//! processes that a test starts have the same change.
//!
//! Each test runs once without a change and tells which of them it reaches. So a change is tried
//! with those tests alone, the quickest first, until one fails.
//!
//! A mutant that no test notices is a test that is missing, or code that makes no difference.
//! `results.tsv` in the working folder has the outcome of each. The next run continues with it.

mod areas;
mod build;
mod mutate;
mod programs;
mod results;
mod run;

use std::path::PathBuf;

use anyhow::Result;
use clap::Parser;

use mutate::Mutant;
use results::{Results, SURVIVES};
use run::Trial;

/// Change the library in small ways, and count which changes its tests notice.
#[derive(Parser)]
pub(crate) struct Arguments {
    /// Where the changes are made: shared, format, segment, recovery or commit; all of them if none
    /// is named.
    areas: Vec<String>,
    /// How many mutants of each area to try, drawn at random; all of them if not given.
    #[arg(long)]
    sample: Option<usize>,
    /// The seed of the draw.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Mutants to try at the same time.
    #[arg(long, default_value_t = 2)]
    jobs: usize,
    /// Where the copy of the repository and its builds are.
    #[arg(long, default_value = "target/mutants")]
    work: PathBuf,
    /// Try those again that no test has noticed before.
    #[arg(long)]
    again: bool,
    /// Only list the mutants.
    #[arg(long)]
    list: bool,
    /// Try only mutants of lines that hold this.
    #[arg(long)]
    only: Option<String>,
}

fn main() -> Result<()> {
    let arguments = Arguments::parse();
    let areas = areas::chosen(&arguments.areas)?;
    let copy = build::copy(&arguments.work)?;
    let files = areas.iter().flat_map(|area| area.files(&copy)).collect();
    let mutants = build::mutate(&copy, files, &arguments.work)?;
    let results = Results::open(&arguments.work, arguments.again)?;
    let last = mutants.iter().map(|mutant| mutant.number).max().unwrap_or(0);
    for area in areas {
        let own = area.files(&copy);
        let mut mutants: Vec<_> =
            mutants.iter().filter(|mutant| own.contains(&mutant.file)).collect();
        if let Some(text) = &arguments.only {
            mutants.retain(|mutant| mutant.to_string().contains(text));
        }
        if arguments.list {
            mutants.iter().for_each(|mutant| println!("{mutant}"));
            continue;
        }
        let all = mutants.clone();
        let mut chosen = run::drawn(mutants, arguments.sample, arguments.seed);
        chosen.retain(|mutant| results.of(mutant).is_none());
        if !chosen.is_empty() {
            let trial = Trial::begin(area, &copy, &arguments, last)?;
            run::area(&trial, arguments.jobs, &results, &chosen)?;
        }
        summary(area.name, &results, &all);
    }
    Ok(())
}

/// Prints what survives, and how many were tried in this run and in those before.
fn summary(area: &str, results: &Results, all: &[&Mutant]) {
    let tried: Vec<_> =
        all.iter().filter_map(|mutant| Some((mutant, results.of(mutant)?))).collect();
    let survivors: Vec<_> = tried.iter().filter(|(_, by)| by == SURVIVES).collect();
    survivors.iter().for_each(|(mutant, _)| println!("survives\t{mutant}"));
    let noticed = tried.len() - survivors.len();
    println!("{area}: {noticed} of {} mutants were noticed, of {} in all", tried.len(), all.len());
}
