//! All that a run found, as data and as files: a report as those of the suites, and more.

use std::time::Duration;

use serde::Serialize;

use super::machine::OtherIo;
use super::program::Figure;
use super::trials::Probe;
use super::verdict::{Judged, Verdict};
use crate::advise::Surroundings;
use crate::cause::Cause;
use crate::conditions::Conditions;
use crate::error::Result;
use crate::report::{self, Better, Case, Report, Series};

/// A shorter run does not see what takes minutes.
const SHORT: Duration = Duration::from_secs(30);

/// What is known beside the programs.
pub(super) struct Known {
    pub(super) surroundings: Surroundings,
    pub(super) probe: Option<Probe>,
    pub(super) others: Vec<OtherIo>,
    pub(super) time: Duration,
    /// An early end of the run, and a directory that stays.
    pub(super) warnings: Vec<String>,
}

/// What was found.
#[derive(Clone, Debug)]
pub struct Diagnosis {
    /// What was measured.
    pub report: Report,
    /// A verdict for each program.
    pub programs: Vec<Judged>,
    /// What single calls cost.
    pub probe: Option<Probe>,
    /// What others did with the disk, at each pause.
    pub others: Vec<OtherIo>,
    /// What there is around the directory.
    pub surroundings: Surroundings,
    /// Causes that do not count.
    pub accepted: Vec<Cause>,
}

/// The same in a file.
#[derive(Serialize)]
struct Document<'a> {
    #[serde(flatten)]
    report: &'a Report,
    verdict: Verdict,
    programs: &'a [Judged],
    accepted: &'a [Cause],
    probe: &'a Option<Probe>,
    others: &'a [OtherIo],
    surroundings: &'a Surroundings,
}

impl Diagnosis {
    pub(super) fn new(
        conditions: Conditions,
        rounds: u32,
        programs: Vec<Judged>,
        known: Known,
        accepted: &[Cause],
    ) -> Diagnosis {
        let Known { surroundings, probe, others, time, mut warnings } = known;
        if time < SHORT {
            warnings.push(format!(
                "{:.0} s are too short to see budgets that end, collectors of garbage and neighbours \
                 that come and go",
                time.as_secs_f64().ceil()
            ));
        }
        let cases = programs.iter().map(|judged| case(judged, surroundings.kind())).collect();
        let report = Report::new("doctor", conditions, rounds, warnings, cases);
        let accepted = accepted.to_vec();
        Diagnosis { report, programs, probe, others, surroundings, accepted }
    }

    /// The worst of all verdicts.
    pub fn verdict(&self) -> Verdict {
        let verdicts = self.programs.iter().map(|judged| judged.verdict);
        verdicts.max().unwrap_or(Verdict::NotGoodEnough)
    }

    /// A report as those of the suites, with verdicts and what was found beside it.
    ///
    /// # Errors
    ///
    /// None in practice: all of it can be written as JSON.
    pub fn to_json(&self) -> Result<String> {
        report::json_text(&Document {
            report: &self.report,
            verdict: self.verdict(),
            programs: &self.programs,
            accepted: &self.accepted,
            probe: &self.probe,
            others: &self.others,
            surroundings: &self.surroundings,
        })
    }

    /// One HTML page without anything from elsewhere: all that the text says, and charts over time.
    pub fn to_html(&self) -> String {
        report::html_with_recommendation(std::slice::from_ref(&self.report), &self.text())
    }
}

/// A row of the report: figures for each tick, and how they went over time. Each stands in a table
/// of its own: programs are not there to be compared with each other.
fn case(judged: &Judged, filesystem: &str) -> Case {
    let case = Case::new(&judged.name).key("filesystem", filesystem).key("program", &judged.name);
    let busy: Vec<_> = judged.ticks.iter().filter(|tick| tick.operations > 0).collect();
    if busy.is_empty() {
        return Case { failed: Some(judged.reason.clone()), ..case };
    }
    // One definition everywhere: a figure of all writes, each from when it was due.
    let figure = |of: Figure| judged.figures.iter().find(|one| one.0 == of).map(|one| one.1);
    let figure = |of: Figure| figure(of).into_iter().collect::<Vec<f64>>();
    let span_ms: f64 = judged.ticks.iter().map(|tick| tick.span_ms).sum();
    let rate = judged.operations as f64 / span_ms * 1e3;
    let over_time = |name: &str, unit: &str, of: fn(&super::Tick) -> f64| {
        let points = busy.iter().map(|tick| [tick.at_ms / 1e3, of(tick)]).collect();
        Series::new(name, "s", unit, points)
    };
    let mut case = case
        .metric("p50", "ms", Better::Lower, figure(Figure::P50))
        .metric("p99", "ms", Better::Lower, figure(Figure::P99))
        .metric("p99.9", "ms", Better::Lower, figure(Figure::P999))
        .metric("max", "ms", Better::Lower, figure(Figure::Max))
        .metric("writes", "1/s", Better::Higher, vec![rate]);
    case.series = vec![
        over_time("p50 over time", "ms", |tick| tick.p50_us / 1e3),
        over_time("p99 over time", "ms", |tick| tick.p99_us / 1e3),
        over_time("max over time", "ms", |tick| tick.max_us / 1e3),
        over_time("writes over time", "1/s", super::Tick::per_second),
    ];
    match judged.failures.first() {
        Some(failure) => Case { failed: Some(failure.what.clone()), ..case },
        None => Case { verified: true, ..case },
    }
}
