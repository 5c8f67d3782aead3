//! `vellum-mutants`: what the tests of the library notice.
//!
//! Every comparison, every sum and every function of some files is changed, in a copy of the
//! repository: `a < b` becomes `(if mutant(17) { a <= b } else { a < b })`. `VELLUM_MUTANT=17`
//! chooses one of the changes when the tests run. So hundreds of mutants cost one build, and
//! processes that a test starts have the same change.
//!
//! A mutant that no test notices is a test that is missing, or code that makes no difference.

mod areas;
mod build;
mod mutate;
mod run;

use std::path::PathBuf;

use anyhow::Result;
use clap::Parser;

/// Change the library in small ways, and count which changes its tests notice.
#[derive(Parser)]
pub(crate) struct Arguments {
    /// Where the changes are made: shared, format, segment, recovery or commit; all of them if none
    /// is named.
    areas: Vec<String>,
    /// How many mutants of each area to try, drawn at random; all of them if not given.
    #[arg(long)]
    sample: Option<usize>,
    /// What the drawing begins with.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Mutants to try at the same time.
    #[arg(long, default_value_t = 2)]
    jobs: usize,
    /// Where the copy of the repository and its builds are.
    #[arg(long, default_value = "target/mutants")]
    work: PathBuf,
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
        let all = mutants.len();
        let tried = run::drawn(mutants, arguments.sample, arguments.seed);
        run::area(area, &copy, &arguments, &tried, all)?;
    }
    Ok(())
}
