//! `vellum advise`.

use std::path::Path;
use std::time::Duration;

use anyhow::bail;
use vellum_bench::advise::{self, Advised, Config, check_replaceable};
use vellum_command::outcome::{Outcome, Result};

use super::bench::{self, Form};
use crate::args::AdviseArgs;
use vellum_doctor::progress::BenchBar;
use vellum_doctor::scratch::Scratch;

const SECONDS: u32 = 60;
const SECONDS_QUICK: u32 = 10;

/// Measures and advises.
pub(super) fn run(args: &AdviseArgs) -> Result<Outcome> {
    if args.write {
        vellum_advice::check_directory(&args.dir)?;
    }
    if args.write && !args.force {
        check_replaceable(&args.dir)?;
    }
    let outputs = bench::open(&args.output)?;
    let scratch = Scratch::new("advise", &args.dir)?;
    let advised = advise::run(&config(args, scratch.path()), &mut BenchBar::default())?;
    drop(scratch);
    let toml = store(args, &advised)?;
    outputs.write(&(advised.text() + &toml), |form| written(&advised, form))?;
    judge(&advised)
}

/// Writes the advice down if that is wanted; reports the result.
fn store(args: &AdviseArgs, advised: &Advised) -> Result<String> {
    if args.write {
        let path = advised.write(&args.dir, args.force)?;
        return Ok(format!("\nWritten to {}.\n", path.display()));
    }
    let toml = advised.to_toml();
    let settings =
        toml.lines().filter(|line| !line.starts_with('#')).map(|line| format!("  {line}\n"));
    let settings: String = settings.collect();
    Ok(format!(
        "\n{} with --write, and the reasons as comments:\n{settings}",
        vellum_advice::FILE_NAME
    ))
}

fn config(args: &AdviseArgs, dir: &Path) -> Config {
    let mut config = Config::new(dir);
    let seconds = if args.quick { SECONDS_QUICK } else { args.seconds.unwrap_or(SECONDS) };
    config.time = Duration::from_secs(seconds.into());
    if !args.purposes.is_empty() {
        config.purposes.clone_from(&args.purposes);
    }
    config
}

fn written(advised: &Advised, form: Form) -> Result<String> {
    match form {
        Form::Json => Ok(advised.to_json()?),
        Form::Markdown => Ok(advised.to_markdown()),
        Form::Html => Ok(advised.to_html()),
    }
}

/// A way that can't be gone here is no failure, but one that lost something is.
fn judge(advised: &Advised) -> Result<Outcome> {
    let ways = advised.report.failures().filter_map(|row| row.value("way"));
    let ways: Vec<&str> = ways.collect();
    if ways.is_empty() {
        return Ok(Outcome::Good);
    }
    bail!("failed: {}; the reasons are in the report", ways.join("; "))
}
