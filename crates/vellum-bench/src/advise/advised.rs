//! All that a run found: as data, for a terminal, as JSON and as Markdown.

use serde::Serialize;

use super::Measured;
use super::commit_path::CommitPaths;
use super::detect::Surroundings;
use super::measure::{Entrant, Times};
use super::recommend::{self, CommitTime, Recommendation, scores};
use super::traps::{self, Trap};
use crate::conditions::Conditions;
use crate::error::Result;
use crate::report::{self, Better, Case, Report};
use crate::stats::Spread;

/// Who does the same again and is so many times as fast was disturbed.
const STEADY_MAX: f64 = 2.0;

/// What was found, measured, and is recommended.
#[derive(Clone, Debug)]
pub struct Advised {
    /// What was measured.
    pub report: Report,
    /// What there is around the directory.
    pub surroundings: Surroundings,
    /// What to do, for each purpose.
    pub recommendations: Vec<Recommendation>,
    /// How commit groups get to the device best, where that was measured.
    pub commit_paths: Option<CommitPaths>,
    /// What to beware of, the worst first.
    pub traps: Vec<Trap>,
}

/// The same in a file: a report as those of the suites, and more.
#[derive(Serialize)]
struct AdvisedDocument<'a> {
    #[serde(flatten)]
    report: &'a Report,
    recommendations: &'a [Recommendation],
    commit_paths: &'a Option<CommitPaths>,
    traps: &'a [Trap],
    surroundings: &'a Surroundings,
    /// What `--write` stores.
    toml: String,
}

impl Advised {
    pub(super) fn new(
        conditions: Conditions,
        rounds: u32,
        mut warnings: Vec<String>,
        surroundings: Surroundings,
        measured: Vec<Measured>,
    ) -> Advised {
        warnings.extend(measured.iter().filter_map(Measured::noise));
        let rows = measured.iter().flat_map(|measured| measured.rows(surroundings.kind()));
        let cases = rows.collect();
        let report = Report::new("advise", conditions, rounds, warnings, cases);
        Advised {
            report,
            recommendations: measured.iter().map(Measured::recommendation).collect(),
            commit_paths: None,
            traps: traps::traps(&surroundings),
            surroundings,
        }
    }

    /// A report as those of the suites, with what is recommended and what was found beside it.
    ///
    /// # Errors
    ///
    /// None in practice: all of it can be written as JSON.
    pub fn to_json(&self) -> Result<String> {
        report::json_text(&AdvisedDocument {
            report: &self.report,
            recommendations: &self.recommendations,
            commit_paths: &self.commit_paths,
            traps: &self.traps,
            surroundings: &self.surroundings,
            toml: self.to_toml(),
        })
    }

    /// For a terminal, at most 100 columns wide: what was found, what is recommended, what to
    /// beware of, what was measured.
    pub fn text(&self) -> String {
        let mut text = String::new();
        for warning in &self.report.warnings {
            text.push_str(&report::wrapped(&format!("To be taken with care: {warning}")));
        }
        for line in self.surroundings.lines() {
            text.push_str(&report::wrapped(&line));
        }
        for recommendation in &self.recommendations {
            text.push('\n');
            for line in recommendation.lines() {
                text.push_str(&report::wrapped(&line));
            }
        }
        if let Some(paths) = &self.commit_paths {
            text.push_str(&report::wrapped(&format!("\n{}", paths.line())));
        }
        for (heading, traps) in traps::parts(&self.traps) {
            text.push_str(&format!("\n{heading}:\n"));
            for trap in traps {
                text.push_str(&report::wrapped(&format!("- {}", trap.line())));
            }
        }
        format!("{text}\nMeasured:\n{}", self.measured().table())
    }

    /// The report without its warnings, which are said first.
    fn measured(&self) -> Report {
        Report { warnings: Vec::new(), ..self.report.clone() }
    }

    /// One HTML page without anything from elsewhere: the recommendations and traps, and the report
    /// with its charts.
    pub fn to_html(&self) -> String {
        let mut text = String::new();
        for recommendation in &self.recommendations {
            text.push_str(&(recommendation.lines().join("\n") + "\n\n"));
        }
        for (heading, traps) in traps::parts(&self.traps) {
            for trap in traps {
                text.push_str(&format!("{heading}: {}\n", trap.line()));
            }
        }
        report::html_with_recommendation(std::slice::from_ref(&self.report), &text)
    }

    /// As Markdown: the recommendations, the traps, and the report.
    pub fn to_markdown(&self) -> String {
        let mut text = String::from("# vellum advise\n");
        for warning in &self.report.warnings {
            text.push_str(&format!("\nTo be taken with care: {warning}\n"));
        }
        for recommendation in &self.recommendations {
            let mut lines = recommendation.lines().into_iter();
            text.push_str(&format!("\n## {}\n\n", lines.next().unwrap_or_default()));
            lines.for_each(|line| text.push_str(&format!("- {line}\n")));
        }
        if let Some(paths) = &self.commit_paths {
            text.push_str(&format!("\n{}\n", paths.line()));
        }
        for (heading, traps) in traps::parts(&self.traps) {
            text.push_str(&format!("\n## {heading}\n\n"));
            traps.iter().for_each(|trap| text.push_str(&format!("- {}\n", trap.line())));
        }
        format!("{text}\n{}", self.measured().to_markdown())
    }
}

impl Measured {
    fn recommendation(&self) -> Recommendation {
        match &self.entrants {
            Ok(entrants) => {
                let recommendation = recommend::recommend(self.purpose, entrants);
                let is_chosen = |it: &Entrant| Some(it.way) == recommendation.chosen;
                let chosen = entrants.iter().position(is_chosen);
                let times = chosen.and_then(|chosen| self.times.get(chosen));
                let commit_times = times.into_iter().flatten().filter_map(CommitTime::of).collect();
                Recommendation { commit_times, ..recommendation }
            }
            Err(reason) => recommend::nothing(self.purpose, reason),
        }
    }

    /// Says so if the machine was faster at one time and slower at another: if the default, which
    /// does the same in each round, was not as fast in each.
    fn noise(&self) -> Option<String> {
        let base = self.entrants.as_ref().ok()?.iter().find(|entrant| entrant.is_good())?;
        let figure = |index: usize| base.figures(|sample| sample[index]);
        let spreads = (0..self.figures.len()).filter_map(|index| Spread::of(&figure(index)));
        let most = spreads.map(|spread| spread.max / spread.min).max_by(f64::total_cmp)?;
        (most > STEADY_MAX).then(|| {
            format!(
                "{}: in some rounds the default was {most:.1} times as fast as in others; a \
                 quieter machine, or more time, may show differences that are not seen here",
                self.purpose
            )
        })
    }

    /// A row for each way. The first metric is what ways are compared by.
    fn rows(&self, filesystem: &str) -> Vec<Case> {
        let row = || Case::new(self.purpose.title()).key("filesystem", filesystem);
        let entrants = match &self.entrants {
            Ok(entrants) => entrants,
            Err(reason) => {
                let skipped = Some(reason.clone());
                return vec![Case { skipped, ..row().key("way", "all") }];
            }
        };
        let complete = |(index, (entrant, scores)): (usize, (&Entrant, Option<Vec<f64>>))| {
            let scores = scores.unwrap_or_default();
            let case =
                row().key("way", entrant.way).metric("to default", "x", Better::Higher, scores);
            let with_figure = |case: Case, (index, (name, unit)): (usize, &(String, &str))| {
                case.metric(name, unit, Better::Higher, entrant.figures(|sample| sample[index]))
            };
            let case = self.figures.iter().enumerate().fold(case, with_figure);
            let times = self.times.get(index).into_iter().flatten();
            let with_times =
                |case: Case, times: &Times| {
                    let Times { threads, p50, p99 } = times;
                    case.metric(&format!("p50, {threads}"), "us", Better::Lower, p50.clone())
                        .metric(&format!("p99, {threads}"), "us", Better::Lower, p99.clone())
                };
            let case = if entrant.is_good() { times.fold(case, with_times) } else { case };
            entrant.case(case)
        };
        entrants.iter().zip(scores(entrants)).enumerate().map(complete).collect()
    }
}

#[cfg(test)]
#[path = "advised_tests.rs"]
mod tests;
