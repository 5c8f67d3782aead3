//! The work of `doctor`.

use std::path::Path;
use std::time::Duration;

use anyhow::Context;
use vellum_bench::ErrorKind;
use vellum_bench::doctor::{self, Config, Diagnosis, Program, Verdict, iocost};
use vellum_command::files;
use vellum_command::outcome::{self, Outcome, Result};
use vellum_command::output::{self, say};
use vellum_command::signals::{Asked, INTERRUPTING};

use crate::args::{CompareArgs, DoctorArgs, DoctorCommand};
use crate::ending::ended_by_signals;
use crate::lies;
use crate::outputs::Outputs;
use crate::page;
use crate::progress::BenchBar;
use crate::scratch::Scratch;

/// Without a program to judge.
const SECONDS: u64 = 60;
const SECONDS_QUICK: u32 = 10;
/// A record of a program of one's own, unless something else is asked for.
const BYTES: u64 = 4096;
/// The limit of etcd for p99, unless the user asks for another one.
const GOAL: Duration = Duration::from_millis(10);
/// No result of a run is longer.
const RESULT_BYTES_MAX: u64 = 1 << 28;
/// The word in the name of the directory of a run.
const PURPOSE: &str = "doctor";

/// The form in which a diagnosis is written.
#[derive(Clone, Copy)]
enum Form {
    Json,
    Junit,
    Html,
}

/// Does what the command line asks for.
///
/// # Errors
///
/// The directory or a file can't be used, or a program is not known.
pub fn run(args: &DoctorArgs) -> Result<Outcome> {
    if let Some(DoctorCommand::Compare(args)) = &args.command {
        return compare(args);
    }
    if args.lies.lies {
        return lies::run(args);
    }
    if args.iocost {
        return limits(args);
    }
    let programs = programs(args)?;
    let outputs = Outputs::of(&[
        (Form::Json, &args.json),
        (Form::Junit, &args.junit),
        (Form::Html, &args.html),
    ])?;
    let scratch = Scratch::new(PURPOSE, &args.dir)?;
    let mut config = Config::new(scratch.path(), programs);
    config.shown = args.dir.canonicalize().unwrap_or_else(|_| args.dir.clone());
    let needed = config.time;
    config.time = time(args).unwrap_or(needed);
    say(told(config.time, needed));
    config.accepted.clone_from(&args.accept);
    let asked = ended_by_signals()?;
    let measured = doctor::run(&config, &mut BenchBar::default());
    drop(scratch);
    unless_ended(&asked, measured, |diagnosis: Diagnosis| {
        outputs.write(&diagnosis.text(), |form| written(&diagnosis, &config.shown, form))?;
        let interruption = diagnosis.report.interruption();
        Ok(interruption.map_or(judged(diagnosis.verdict()), |told| ended(&asked, told)))
    })
}

/// Lines under which a log keeps its p99 beside a neighbour.
fn limits(args: &DoctorArgs) -> Result<Outcome> {
    let scratch = Scratch::new(PURPOSE, &args.dir)?;
    let goal = args.p99.unwrap_or(GOAL);
    let config = iocost::Config {
        directory: scratch.path().into(),
        time: time(args).unwrap_or(Duration::from_secs(SECONDS)),
        goal,
    };
    let asked = ended_by_signals()?;
    let measured = iocost::run(&config, &mut BenchBar::default());
    drop(scratch);
    unless_ended(&asked, measured, |text| {
        output::print(&text)?;
        Ok(Outcome::Good)
    })
}

/// Hands over the result of a run, unless a signal ended it before there was one.
fn unless_ended<T>(
    asked: &Asked,
    measured: vellum_bench::Result<T>,
    report: impl FnOnce(T) -> Result<Outcome>,
) -> Result<Outcome> {
    match measured {
        Err(error) if error.kind() == ErrorKind::Interrupted => Ok(ended(asked, &error)),
        Err(error) => Err(error.into()),
        Ok(measured) => report(measured),
    }
}

/// How a run ends that a signal cut short.
fn ended(asked: &Asked, told: impl std::fmt::Display) -> Outcome {
    say(told);
    asked.signal().map_or(Outcome::Failed, Outcome::EndedBy)
}

/// The signals that the command takes itself.
pub fn taken(args: &DoctorArgs) -> &'static [i32] {
    let measures = args.command.is_none() && !args.lies.lies;
    if measures || args.lies.is_writer() { &INTERRUPTING } else { &[] }
}

/// The exit code for errors of measurements.
pub fn code(error: &anyhow::Error) -> Option<u8> {
    let kind = error.downcast_ref::<vellum_bench::Error>()?.kind();
    (kind == ErrorKind::InvalidOption).then_some(outcome::USAGE)
}

/// Those that are named, and that of the options.
fn programs(args: &DoctorArgs) -> Result<Vec<Program>> {
    let mut programs = match (args.programs.as_slice(), args.p99) {
        ([], None) => Program::all()?,
        (names, _) => names.iter().map(|name| Program::named(name)).collect::<Result<_, _>>()?,
    };
    if let Some(p99) = args.p99 {
        let bytes = args.bytes.unwrap_or(BYTES);
        programs.push(Program::custom(args.rate, bytes, p99.as_secs_f64() * 1e3));
    }
    Ok(programs)
}

/// The time that was asked for.
fn time(args: &DoctorArgs) -> Option<Duration> {
    let seconds = match (args.quick, args.minutes, args.seconds) {
        (true, _, _) => Some(SECONDS_QUICK),
        (_, Some(minutes), _) => Some(minutes * 60),
        (_, _, seconds) => seconds,
    };
    seconds.map(|seconds| Duration::from_secs(seconds.into()))
}

/// The message before a run begins.
fn told(time: Duration, needed: Duration) -> String {
    let (seconds, needed_seconds) = (time.as_secs(), needed.as_secs());
    if time < needed {
        return format!("{seconds} s; it takes {needed_seconds} s until the verdicts can be sure");
    }
    format!("{seconds} s, after which the verdicts on a good disk are sure")
}

fn written(diagnosis: &Diagnosis, shown: &Path, form: Form) -> Result<String> {
    match form {
        Form::Json => Ok(diagnosis.to_json()?),
        Form::Junit => Ok(diagnosis.to_junit()),
        Form::Html => Ok(page::page(diagnosis, shown)),
    }
}

fn judged(verdict: Verdict) -> Outcome {
    match verdict {
        Verdict::Good => Outcome::Good,
        Verdict::Marginal => Outcome::Marginal,
        Verdict::CannotTell => Outcome::CannotTell,
        Verdict::NotGoodEnough => Outcome::NotGoodEnough,
    }
}

fn compare(args: &CompareArgs) -> Result<Outcome> {
    let (before, after) = (saved(&args.before)?, saved(&args.after)?);
    let outputs = Outputs::of(&[(Form::Json, &args.json)])?;
    let names = [&args.before, &args.after].map(|path| path.display().to_string());
    let compared = doctor::compare((&names[0], &before), (&names[1], &after))?;
    outputs.write(&compared.text(), |_| Ok(compared.to_json()?))?;
    Ok(if compared.is_worse() { Outcome::Marginal } else { Outcome::Good })
}

fn saved(path: &Path) -> Result<String> {
    files::read_text(path, RESULT_BYTES_MAX)
        .with_context(|| format!("cannot read {}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_says_how_long_it_takes_and_what_that_is_worth() {
        let seconds = Duration::from_secs;
        assert!(told(seconds(60), seconds(60)).starts_with("60 s, after which"));
        assert_eq!(
            told(seconds(45), seconds(230)),
            "45 s; it takes 230 s until the verdicts can be sure"
        );
    }
}
