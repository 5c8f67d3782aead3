//! `vellum bench compare`.

use std::path::PathBuf;

use clap::{Args, ValueHint};

use crate::args::examples;

/// What got faster or slower from one run to another?
///
/// Compares two files that --json wrote. Each figure has the ratio of its medians, above 1 is
/// better, with the 95 % interval of a rank test, and a verdict: "faster" or "slower" where chance
/// is ruled out for all figures together, "perhaps" where only the rounds of the figure itself say
/// so, "no difference seen", or "not sure" with the range of all pairs of rounds: to be sure takes
/// 4 rounds on each side, and --rounds 5 or more is better.
///
/// Two machines can be compared as well: the second is told against the first.
///
/// Conditions that were not the same are shown first. A machine that was slower as a whole during
/// one of the runs can't be told from a change of the program.
#[derive(Args, Debug)]
#[command(after_help = examples::BENCH_COMPARE)]
pub(crate) struct BenchCompareArgs {
    /// The earlier run
    #[arg(value_name = "A.json", value_hint = ValueHint::FilePath)]
    pub(crate) before: PathBuf,
    /// The later run
    #[arg(value_name = "B.json", value_hint = ValueHint::FilePath)]
    pub(crate) after: PathBuf,
    /// Leave out the figures without a difference
    #[arg(long)]
    pub(crate) changed: bool,
    /// Exit with 1 if anything got slower, or worse in another way, by more than this, for sure
    #[arg(long, value_name = "PERCENT", value_parser = percent)]
    pub(crate) fail_on_slower: Option<f64>,
    /// Write the comparison as JSON to a file; `-` prints it instead of the table
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) json: Option<PathBuf>,
    /// Write the comparison as Markdown to a file, or print it with `-`
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) markdown: Option<PathBuf>,
}

fn percent(text: &str) -> Result<f64, String> {
    let percent: Option<f64> = text.trim_end_matches('%').parse().ok();
    let percent = percent.filter(|percent| percent.is_finite() && *percent >= 0.0);
    percent.ok_or_else(|| "write a number that is not negative, as 10".into())
}
