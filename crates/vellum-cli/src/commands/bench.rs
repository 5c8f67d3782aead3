//! `vellum bench`: measurements, a function for each suite.

use std::fs::File;
use std::io::{self, Write};
use std::path::Path;

use anyhow::{Context, bail};
use vellum_bench::append::{self, Config, Report};
use vellum_bench::{Setting, WayName};

use crate::lowargs::BenchAppendArgs;
use crate::outcome::{Outcome, Result};
use crate::output;
use crate::progress::BenchBar;
use crate::scratch::Scratch;

const QUICK_ROUNDS: u32 = 2;
const QUICK_SHARE: u64 = 5;
const QUICK_WAYS: [WayName; 5] =
    [WayName::VellumFramed, WayName::VellumText, WayName::Write, WayName::Writev, WayName::Stdio];

/// Runs the suite `append`.
pub(super) fn append(args: BenchAppendArgs) -> Result<Outcome> {
    let sink = args.json.as_deref().map(Sink::open).transpose()?;
    let scratch = Scratch::new("bench", &args.dir)?;
    let report = append::run(&config(&args, scratch.path()), &mut BenchBar::default())?;
    match sink {
        Some(Sink::Stdout) => output::print(&report.to_json()?)?,
        Some(Sink::File(file, path)) => {
            // The table first: it is there whatever becomes of the file.
            output::print(&report.table())?;
            overwrite(&file, &report.to_json()?)
                .with_context(|| format!("cannot write {}", path.display()))?;
        }
        None => output::print(&report.table())?,
    }
    judge(&report)
}

/// Where the JSON goes.
enum Sink<'a> {
    Stdout,
    File(File, &'a Path),
}

impl Sink<'_> {
    /// Before the run, so that minutes of it are not in vain; what the file holds stays till then.
    fn open(path: &Path) -> Result<Sink<'_>> {
        if path == Path::new("-") {
            return Ok(Sink::Stdout);
        }
        let file = File::options().write(true).create(true).truncate(false).open(path);
        Ok(Sink::File(file.with_context(|| format!("cannot write {}", path.display()))?, path))
    }
}

fn overwrite(mut file: &File, text: &str) -> io::Result<()> {
    file.set_len(0)?;
    file.write_all(text.as_bytes())
}

/// A way that failed fails the run: its records were lost, torn or doubled, or it could not go on.
fn judge(report: &Report) -> Result<Outcome> {
    let failures: Vec<String> = report.failures().map(|case| case.name.to_string()).collect();
    if failures.is_empty() {
        return Ok(Outcome::Good);
    }
    bail!("failed: {}; the reasons are in the report", failures.join(", "))
}

fn config(args: &BenchAppendArgs, dir: &Path) -> Config {
    let mut config = Config::new(dir);
    if args.quick {
        config.rounds = QUICK_ROUNDS;
        config.ways = QUICK_WAYS.to_vec();
        for setting in &mut config.settings {
            setting.records /= QUICK_SHARE;
        }
    }
    if let Some(rounds) = args.rounds {
        config.rounds = rounds;
    }
    if !args.ways.is_empty() {
        config.ways.clone_from(&args.ways);
    }
    if !args.settings.is_empty() {
        config.settings.clone_from(&args.settings);
    } else if let Some(settings) = combinations(args) {
        config.settings = settings;
    }
    config
}

/// Every combination of the lists; what has no list is as in the first published setting.
fn combinations(args: &BenchAppendArgs) -> Option<Vec<Setting>> {
    let (processes, records, bytes) = (&args.processes, &args.records, &args.bytes);
    if processes.is_empty() && records.is_empty() && bytes.is_empty() {
        return None;
    }
    let mut usual = Setting::PUBLISHED[0];
    if args.quick {
        usual.records /= QUICK_SHARE;
    }
    let mut settings = Vec::new();
    for &processes in list(processes, &usual.processes) {
        for &records in list(records, &usual.records) {
            for &bytes in list(bytes, &usual.bytes) {
                settings.push(Setting::new(processes, records, bytes));
            }
        }
    }
    Some(settings)
}

fn list<'a, T>(asked_for: &'a [T], usual: &'a T) -> &'a [T] {
    if asked_for.is_empty() { std::slice::from_ref(usual) } else { asked_for }
}
