//! Is the disk good enough for a program: from figures, limits and causes to one word, one
//! sentence, and one line to paste.

use std::path::Path;

use serde::{Deserialize, Serialize};

use super::evidence::{Finding, Weight};
use super::program::{Figure, Limit, Program};
use super::series::{Failure, Series, Tick};
use crate::advise::Surroundings;
use crate::cause::Cause;

/// In so much of the time writes may take longer than is good by the first limit …
const SLOW_SHARE_GOOD: f64 = 0.05;
/// … and in so much longer than is bad. Both are ours.
const SLOW_SHARE_BAD: f64 = 0.1;

/// Is a disk good enough for a program?
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// Yes.
    Good,
    /// Only just, or not always.
    Marginal,
    /// The machine was too busy to tell.
    CannotTell,
    /// No.
    NotGoodEnough,
}

impl Verdict {
    /// That of one figure.
    pub(super) fn of(limit: &Limit, value_ms: f64) -> Verdict {
        if value_ms <= limit.good_ms {
            Verdict::Good
        } else if value_ms <= limit.bad_ms {
            Verdict::Marginal
        } else {
            Verdict::NotGoodEnough
        }
    }

    /// For people.
    pub fn words(self) -> &'static str {
        match self {
            Verdict::Good => "good",
            Verdict::Marginal => "marginal",
            Verdict::CannotTell => "cannot tell",
            Verdict::NotGoodEnough => "not good enough",
        }
    }
}

/// A limit, and what was measured.
#[derive(Clone, Debug, Serialize)]
pub struct Measured {
    /// What is limited, and by how much.
    #[serde(flatten)]
    pub limit: Limit,
    /// What was measured.
    pub value_ms: f64,
    /// What that comes to.
    pub verdict: Verdict,
}

/// What was found for one program.
#[derive(Clone, Debug, Serialize)]
pub struct Judged {
    /// Its name.
    pub name: String,
    /// What of it waits for the disk.
    pub about: String,
    /// Where it is written that it writes so.
    pub source: String,
    /// Is the disk good enough?
    pub verdict: Verdict,
    /// Why, in a sentence.
    pub reason: String,
    /// What to change, as a line to paste; nothing if it is good and nothing was found.
    pub change: Option<String>,
    /// The figures that are limited.
    pub limits: Vec<Measured>,
    /// The share of the time in which a write took longer than the first limit allows; nothing
    /// where writes come by a schedule.
    pub slow_share: Option<f64>,
    /// What was found, the worst first.
    pub causes: Vec<Finding>,
    /// Calls that failed.
    pub failures: Vec<Failure>,
    /// How many writes were measured.
    pub operations: u64,
    /// The figures over time.
    pub ticks: Vec<Tick>,
}

impl Judged {
    /// The verdict and why, in one line.
    pub fn line(&self) -> String {
        let Judged { name, verdict, reason, .. } = self;
        format!("{name}: {}. {}.", verdict.words(), reason.trim_end_matches('.'))
    }
}

/// The names of places in the lines to paste, quoted for a shell.
#[derive(Clone, Debug)]
pub(super) struct Places {
    dir: String,
    mount: String,
    /// What is mounted: a partition is not its disk.
    source: String,
    device: String,
}

impl Places {
    pub(super) fn of(dir: &Path, around: &Surroundings) -> Places {
        let mount = around.filesystem.as_ref().map(|it| it.mount_point.display().to_string());
        let source = around.filesystem.as_ref().map(|it| it.source.clone());
        let device = around.disks.first().map(|disk| disk.name.clone());
        Places {
            dir: quoted(&dir.display().to_string()),
            mount: quoted(&mount.unwrap_or_else(|| "MOUNT".into())),
            source: quoted(&source.unwrap_or_else(|| "/dev/DEVICE".into())),
            device: quoted(&device.unwrap_or_else(|| "DEVICE".into())),
        }
    }
}

/// A name of others as one word of a shell, in a line of its own.
fn quoted(name: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "/._-:=+,@%".contains(c);
    if !name.is_empty() && name.chars().all(is_plain) {
        return name.to_owned();
    }
    let shown = vellum::internal::escaped(name).to_string();
    if shown == name {
        return format!("'{}'", name.replace('\'', "'\\''"));
    }
    let byte = |byte: &u8| match byte {
        b' '..=b'~' if !b"'\\".contains(byte) => char::from(*byte).to_string(),
        byte => format!("\\x{byte:02x}"),
    };
    format!("$'{}'", name.as_bytes().iter().map(byte).collect::<String>())
}

/// Judges one program. Causes in `accepted` are told and do not count; `longest_ms` is the longest
/// wait of any program that waits for this disk.
pub(super) fn judge(
    program: &Program,
    series: Series,
    mut causes: Vec<Finding>,
    accepted: &[Cause],
    longest_ms: Option<f64>,
    places: &Places,
) -> Judged {
    let limits: Vec<Measured> =
        program.limits.iter().filter_map(|limit| measured(limit, &series, longest_ms)).collect();
    let by_limits = limits.iter().map(|one| one.verdict).max().unwrap_or(Verdict::NotGoodEnough);
    let slow_share = slow_share(program, &series);
    let by_time = slow_share.map_or(Verdict::Good, |share| of_time(share, program, &series));
    let by_figures = by_limits.max(by_time);
    if by_figures == Verdict::Good {
        causes.iter_mut().for_each(explain_nothing);
        causes.sort_by_key(|one| (one.weight, one.cause));
    }
    let counts = |one: &&Finding| !accepted.contains(&one.cause);
    let danger = causes.iter().filter(counts).find(|one| one.weight == Weight::Danger);
    let has_no_figure = limits.is_empty();
    let worst = limits.iter().max_by(|one, other| severity(one).total_cmp(&severity(other)));
    let explains = |one: &&Finding| one.weight == Weight::Reason;
    let explained = causes.iter().filter(counts).find(explains);
    // Figures that nothing of the disk explains may be those of the machine.
    let machine = causes.iter().filter(counts).find(|one| one.cause.is_of_machine());
    let is_measured = explained.is_some_and(|one| !one.cause.is_of_place());
    let machine = machine.filter(|_| by_figures != Verdict::Good && !is_measured);
    let verdict = match (danger, machine) {
        (Some(_), _) => Verdict::NotGoodEnough,
        (None, Some(_)) => Verdict::CannotTell,
        (None, None) => by_figures,
    };
    let primary = danger.or(machine).or(explained);
    let reason = match (danger, worst) {
        (Some(danger), _) => danger.what.clone(),
        (None, Some(_)) if by_time > by_limits => reason_of_time(program, slow_share, primary),
        (None, Some(worst)) => reason(program, worst, verdict, primary),
        (None, None) => String::from("nothing could be measured"),
    };
    let change = program.change_for(primary.map(|one| one.cause));
    let change = change.filter(|_| verdict != Verdict::Good || has_no_figure);
    let outlasted = outlasted(primary, &limits, &series);
    let is_told = verdict != Verdict::CannotTell;
    Judged {
        name: program.name.clone(),
        about: program.about.clone(),
        source: program.source.clone(),
        verdict,
        reason: if is_told { with_care(reason, &causes, accepted) } else { reason },
        change: change.map(|line| filled(&line, outlasted, &series, places)),
        limits,
        slow_share,
        causes,
        failures: series.failures.clone(),
        operations: series.operations(),
        ticks: series.ticks,
    }
}

/// How long a heartbeat has to outlast, in milliseconds: rare stalls are not in p99.9.
fn outlasted(primary: Option<&Finding>, limits: &[Measured], series: &Series) -> f64 {
    if primary.is_none_or(|one| one.cause != Cause::Stalls) {
        return series.figure_ms(Figure::P999).unwrap_or(0.0);
    }
    let longest = limits.iter().find(|one| one.limit.figure == Figure::Max);
    let longest = longest.map(|one| one.value_ms).or_else(|| series.figure_ms(Figure::Max));
    longest.unwrap_or(0.0)
}

/// Where all figures are good, what a disk lies under is no reason for anything.
fn explain_nothing(finding: &mut Finding) {
    if finding.weight == Weight::Reason && finding.cause.is_of_place() {
        finding.weight = Weight::Note;
    }
}

/// The share of the time in which a write took longer than the first limit allows.
fn slow_share(program: &Program, series: &Series) -> Option<f64> {
    let limit = program.limits.first().filter(|_| program.pattern.rate.is_none())?;
    series.share_beyond(limit.good_ms)
}

/// The verdict on the share of time in which writes took longer than the first limit.
fn of_time(share: f64, program: &Program, series: &Series) -> Verdict {
    let is_bad = |limit: &Limit| {
        series.share_beyond(limit.bad_ms).is_some_and(|share| share > SLOW_SHARE_BAD)
    };
    match share {
        ..=SLOW_SHARE_GOOD => Verdict::Good,
        _ if program.limits.first().is_some_and(is_bad) => Verdict::NotGoodEnough,
        _ => Verdict::Marginal,
    }
}

fn reason_of_time(program: &Program, share: Option<f64>, primary: Option<&Finding>) -> String {
    let good = program.limits.first().map_or(0.0, |limit| limit.good_ms);
    let (percent, good) = (100.0 * share.unwrap_or(0.0), millis(good));
    let cause = primary.map_or_else(String::new, |one| format!(": {}", one.what));
    let name = &program.name;
    format!(
        "in {percent:.0} % of the time a write took longer than the {good} ms that {name} wants{cause}"
    )
}

fn measured(limit: &Limit, series: &Series, longest_ms: Option<f64>) -> Option<Measured> {
    let own_ms = series.figure_ms(limit.figure)?;
    // A stop belongs to the disk, in whose turn it ever fell.
    let longest_ms = longest_ms.filter(|_| limit.figure == Figure::Max);
    let value_ms = longest_ms.map_or(own_ms, |longest| longest.max(own_ms));
    let verdict = Verdict::of(limit, value_ms);
    Some(Measured { limit: limit.clone(), value_ms, verdict })
}

/// How far a figure is beyond its limit.
fn severity(one: &Measured) -> f64 {
    one.verdict as u8 as f64 * 1e9 + one.value_ms / one.limit.good_ms
}

fn reason(
    program: &Program,
    worst: &Measured,
    verdict: Verdict,
    primary: Option<&Finding>,
) -> String {
    let Measured { limit, value_ms, .. } = worst;
    let name = &program.name;
    let (value, figure, good) = (millis(*value_ms), limit.figure, millis(limit.good_ms));
    let figure = match figure {
        Figure::FlushP99 | Figure::FlushMax => format!("{figure} of the other thread"),
        figure => figure.to_string(),
    };
    if verdict == Verdict::Good {
        return format!("{figure} is {value} ms, and {name} wants {good} ms");
    }
    let cause = primary.map_or_else(String::new, |one| format!(": {}", one.what));
    format!("{figure} is {value} ms, and {name} wants {good} ms{cause}")
}

/// A number of milliseconds with three digits that count.
fn millis(value: f64) -> String {
    match value {
        100.0.. => format!("{value:.0}"),
        10.0.. if value.fract() == 0.0 => format!("{value:.0}"),
        10.0.. => format!("{value:.1}"),
        1.0.. if value.fract() == 0.0 => format!("{value:.0}"),
        1.0.. => format!("{value:.2}"),
        _ => format!("{value:.3}"),
    }
}

/// The sentence, with what makes it doubtful.
fn with_care(reason: String, causes: &[Finding], accepted: &[Cause]) -> String {
    let is_care = |one: &&Finding| one.weight == Weight::Care && !accepted.contains(&one.cause);
    match causes.iter().find(is_care) {
        Some(care) => format!("{reason}; take it with care, {}", care.what),
        None => reason,
    }
}

/// Of etcd, in milliseconds.
const HEARTBEAT_DEFAULT: f64 = 100.0;

/// The line with its places filled in.
fn filled(line: &str, outlasted: f64, series: &Series, places: &Places) -> String {
    let p50_us = series.figure_ms(Figure::P50).unwrap_or(0.0) * 1e3;
    // A heartbeat longer than nearly all flushes, in steps of 100 ms; ten of them for an election.
    let heartbeat = ((outlasted / 100.0).ceil() * 100.0).clamp(100.0, 5000.0);
    // The defaults of etcd change nothing.
    let (command, behind) = line.split_once("  #").unwrap_or((line, ""));
    let is_default = heartbeat <= HEARTBEAT_DEFAULT && behind.contains("{heartbeat}");
    let line = if is_default { command } else { line };
    let delay = (p50_us / 2.0).clamp(1.0, 100_000.0);
    line.replace("{dir}", &places.dir)
        .replace("{mount}", &places.mount)
        .replace("{source}", &places.source)
        .replace("{device}", &places.device)
        .replace("{heartbeat}", &format!("{heartbeat:.0}"))
        .replace("{election}", &format!("{:.0}", heartbeat * 10.0))
        .replace("{delay_us}", &format!("{delay:.0}"))
}
