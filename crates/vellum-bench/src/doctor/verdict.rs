//! Is the disk good enough for a program: from figures, limits and causes to one word, one
//! sentence, and one line to paste.

use std::path::Path;

use serde::{Deserialize, Serialize};

use super::disk;
use super::evidence::{Finding, Weight};
use super::machine::cloud_of;
use super::program::{Figure, Limit, Program};
use super::series::{Failure, Series, Tick};
use super::sureness::{Place, Sureness, of_percentile};
use crate::advise::Surroundings;
use crate::cause::Cause;

/// In so much of the time writes may take longer than is good by the first limit …
const SLOW_SHARE_GOOD: f64 = 0.05;
/// … and in so much longer than is bad. Both are ours.
const SLOW_SHARE_BAD: f64 = 0.1;

/// A smaller share of the time is not told beside a percentile.
const TOLD_PERCENT: f64 = 2.0;

/// Is a disk good enough for a program?
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// Yes.
    Good,
    /// Only just, or not always.
    Marginal,
    /// The machine was too busy to tell, or too little was measured.
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

    /// That of a percentile.
    fn at(place: Place) -> Verdict {
        match place {
            Place::Good => Verdict::Good,
            Place::Unknown => Verdict::CannotTell,
            Place::Between => Verdict::Marginal,
            Place::Bad => Verdict::NotGoodEnough,
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
    /// How sure that is.
    pub sureness: Sureness,
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
    /// How many writes came in a second; nothing where each followed the one before.
    pub rate: Option<f64>,
    /// Is the disk good enough?
    pub verdict: Verdict,
    /// How sure that is.
    pub sureness: Sureness,
    /// Why, in a sentence.
    pub reason: String,
    /// What to change, as a line to paste; nothing if it is good and nothing was found.
    pub change: Option<String>,
    /// The figures that are limited.
    pub limits: Vec<Measured>,
    /// Each figure of writes that was measured, in milliseconds.
    #[serde(skip)]
    pub figures: Vec<(Figure, f64)>,
    /// The share of the time in which a write took longer than the first limit allows, or would
    /// have in the turn of another program.
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
        let Judged { name, verdict, sureness, reason, .. } = self;
        let likely = if *sureness == Sureness::Likely { ", likely" } else { "" };
        format!("{name}: {}{likely}. {}.", verdict.words(), reason.trim_end_matches('.'))
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
    /// Whose disk it is, if it can be told more operations.
    cloud: Option<&'static str>,
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
            cloud: around.disks.iter().find_map(|disk| cloud_of(&disk.name)),
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

/// What was seen of the disk in the turns of other programs.
#[derive(Clone, Debug, Default)]
pub(super) struct OfDisk<'a> {
    /// The longest wait of any program that waits for this disk.
    pub(super) longest_ms: Option<f64>,
    pub(super) others: Vec<&'a Series>,
}

/// Judges one program. Causes in `accepted` are told and do not count.
pub(super) fn judge(
    program: &Program,
    series: &Series,
    mut causes: Vec<Finding>,
    accepted: &[Cause],
    of_disk: &OfDisk<'_>,
    places: &Places,
) -> Judged {
    let figures = Figures::of(program, series, of_disk);
    if figures.verdict == Verdict::Good {
        causes.iter_mut().for_each(explain_nothing);
        causes.sort_by_key(|one| (one.weight, one.cause));
    }
    let counts = |one: &&Finding| !accepted.contains(&one.cause);
    let danger = causes.iter().filter(counts).find(|one| one.weight == Weight::Danger);
    let explains = |one: &&Finding| one.weight == Weight::Reason && one.cause.explains_figures();
    let explained = causes.iter().filter(counts).find(explains);
    // Figures that nothing of the disk explains may be those of the machine.
    let is_of_machine = |one: &&Finding| one.weight == Weight::Care && one.cause.is_of_machine();
    let machine = causes.iter().filter(counts).find(is_of_machine);
    let is_measured = explained.is_some_and(|one| !one.cause.is_of_place());
    let machine = machine.filter(|_| figures.verdict != Verdict::Good && !is_measured);
    let (verdict, sureness) = match (danger, machine) {
        (Some(_), _) => (Verdict::NotGoodEnough, Sureness::Sure),
        (None, Some(_)) => (Verdict::CannotTell, Sureness::CannotTell),
        (None, None) => (figures.verdict, figures.sureness),
    };
    let primary = danger.or(machine).or(explained);
    let reason = match danger {
        Some(danger) => danger.what.clone(),
        None => figures.reason(program, verdict, primary),
    };
    let is_unsure = verdict == Verdict::CannotTell && machine.is_none();
    let changed = if is_unsure { Some(Cause::HalvesDiffer) } else { primary.map(|one| one.cause) };
    let change = program.change_for(changed, places.cloud);
    let change = change.filter(|_| verdict != Verdict::Good || figures.limits.is_empty());
    let outlasted = outlasted(primary, &figures.limits, series);
    let is_told = verdict != Verdict::CannotTell;
    Judged {
        name: program.name.clone(),
        about: program.about.clone(),
        source: program.source.clone(),
        rate: program.pattern.rate,
        verdict,
        sureness,
        reason: if is_told { with_care(reason, &causes, accepted) } else { reason },
        change: change.map(|line| filled(&line, outlasted, series, places)),
        figures: told(&figures.limits, series),
        limits: figures.limits,
        slow_share: figures.slow_share,
        causes,
        failures: series.failures.clone(),
        operations: series.operations(),
        ticks: series.ticks.clone(),
    }
}

/// The figures of `series`, those with a limit as they are told beside it.
fn told(limits: &[Measured], series: &Series) -> Vec<(Figure, f64)> {
    let limited = |figure| limits.iter().find(|one| one.limit.figure == figure);
    let of = |figure| {
        let limited = limited(figure).map(|one| one.value_ms);
        Some((figure, limited.or_else(|| series.figure_ms(figure))?))
    };
    [Figure::P50, Figure::P99, Figure::P999, Figure::Max].into_iter().filter_map(of).collect()
}

/// What the figures alone come to.
struct Figures {
    limits: Vec<Measured>,
    slow_share: Option<f64>,
    /// Is it the share of the time that decides?
    is_of_time: bool,
    verdict: Verdict,
    sureness: Sureness,
}

impl Figures {
    fn of(program: &Program, series: &Series, of_disk: &OfDisk<'_>) -> Figures {
        let measured = |limit| measured(limit, series, of_disk.longest_ms);
        let limits: Vec<Measured> = program.limits.iter().filter_map(measured).collect();
        let (by_limits, sureness) = worst(&limits);
        let beyond = |limit_ms| disk::slow_share(program, series, &of_disk.others, limit_ms);
        let first = program.limits.first();
        let slow_share = first.and_then(|limit| beyond(limit.good_ms));
        let bad_share = first.and_then(|limit| beyond(limit.bad_ms));
        let own = first
            .and_then(|limit| series.share_beyond(limit.good_ms, program.pattern.rate.is_some()));
        // One slow moment of its own decides nothing here either.
        let is_one_moment = limits.first().is_some_and(|one| one.verdict == Verdict::CannotTell)
            && slow_share.unwrap_or(0.0) <= own.unwrap_or(0.0);
        let by_time = match (slow_share.unwrap_or(0.0), bad_share.unwrap_or(0.0)) {
            _ if is_one_moment => Verdict::Good,
            (..=SLOW_SHARE_GOOD, _) => Verdict::Good,
            (_, ..=SLOW_SHARE_BAD) => Verdict::Marginal,
            _ => Verdict::NotGoodEnough,
        };
        let is_known = by_limits != Verdict::CannotTell;
        let is_of_time = by_time != Verdict::Good && (!is_known || by_time > by_limits);
        let (verdict, sureness) =
            if is_of_time { (by_time, Sureness::Likely) } else { (by_limits, sureness) };
        Figures { limits, slow_share, is_of_time, verdict, sureness }
    }

    fn reason(&self, program: &Program, verdict: Verdict, primary: Option<&Finding>) -> String {
        let worst =
            self.limits.iter().max_by(|one, other| severity(one).total_cmp(&severity(other)));
        match worst {
            None => String::from("nothing could be measured"),
            Some(_) if self.is_of_time => reason_of_time(program, self.slow_share, primary),
            Some(worst) => reason(program, worst, verdict, self.slow_share, primary),
        }
    }
}

/// The verdict on all figures together, and how sure it is.
fn worst(limits: &[Measured]) -> (Verdict, Sureness) {
    let is_unsure = |one: &&Measured| one.verdict == Verdict::CannotTell;
    let known = limits.iter().filter(|one| !is_unsure(one));
    let verdict = known.map(|one| one.verdict).max();
    let has_unsure = limits.iter().any(|one| is_unsure(&one));
    match (verdict, has_unsure) {
        (None, false) => (Verdict::NotGoodEnough, Sureness::Sure),
        (None | Some(Verdict::Good), true) => (Verdict::CannotTell, Sureness::CannotTell),
        (Some(Verdict::Good), false) => {
            let least = limits.iter().map(|one| one.sureness).max();
            (Verdict::Good, least.unwrap_or(Sureness::CannotTell))
        }
        (Some(verdict), _) => {
            let those = limits.iter().filter(|one| one.verdict == verdict);
            let surest = those.map(|one| one.sureness).min().unwrap_or(Sureness::Likely);
            let is_doubtful = has_unsure && verdict < Verdict::NotGoodEnough;
            (verdict, if is_doubtful { Sureness::Likely } else { surest })
        }
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
    let mut value_ms = longest_ms.map_or(own_ms, |longest| longest.max(own_ms));
    let told = limit
        .figure
        .quantile()
        .and_then(|quantile| of_percentile(series, quantile, limit.good_ms, limit.bad_ms));
    let (verdict, sureness) = match told {
        Some((place, sureness)) => (Verdict::at(place), sureness),
        None => (Verdict::of(limit, value_ms), Sureness::Sure),
    };
    if verdict == Verdict::Good {
        // Percentiles are known to a part in 32.
        value_ms = value_ms.min(limit.good_ms);
    }
    Some(Measured { limit: limit.clone(), value_ms, verdict, sureness })
}

/// How far a figure is beyond its limit; one of which nothing can be told is the last that decides.
fn severity(one: &Measured) -> f64 {
    let rank = match one.verdict {
        Verdict::Good => 0.0,
        Verdict::CannotTell => 1.0,
        Verdict::Marginal => 2.0,
        Verdict::NotGoodEnough => 3.0,
    };
    rank * 1e9 + one.value_ms / one.limit.good_ms
}

fn reason(
    program: &Program,
    worst: &Measured,
    verdict: Verdict,
    slow_share: Option<f64>,
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
    let percent = 100.0 * slow_share.unwrap_or(0.0);
    let is_told = percent >= TOLD_PERCENT && limit.figure == Figure::P99;
    let time = if is_told { format!(" ({percent:.0} % of the time)") } else { String::new() };
    let cause = match primary {
        Some(one) => format!(": {}", one.what),
        None if worst.verdict == Verdict::CannotTell => ": one slow moment decides it".into(),
        None => String::new(),
    };
    format!("{figure} is {value} ms, and {name} wants {good} ms{time}{cause}")
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
