//! The result of a run: data, JSON, Markdown, HTML and tables for a terminal.
//!
//! All suites write the same form, so that one program reads them all: `compare`, the HTML page,
//! and whatever reads the JSON. Its number, `format`, grows when an older program would
//! misunderstand what a newer one writes.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use vellum::internal::escaped_lines;

use crate::conditions::Conditions;
use crate::error::{Error, Result};

mod by_name;
mod care;
mod case;
pub(crate) mod group;
pub(crate) mod html;
mod json;
mod markdown;
pub(crate) mod markdown_text;
mod rows;
pub(crate) mod table;
mod tables;

pub use case::{Better, Case, Key, Metric, Series};
pub use html::{findings_text, html, html_with_recommendation};
pub(crate) use json::text as json_text;
pub use table::number;
pub(crate) use table::{WIDTH, lines, wrapped};

/// The form that this version writes.
const FORMAT: u32 = 2;
/// The forms that it reads. Form 1 had lists where form 2 has objects.
const READ: std::ops::RangeInclusive<u64> = 1..=FORMAT as u64;

/// How the warning of a run begins that was asked to end.
pub(crate) const INTERRUPTED: &str = "interrupted";

/// The result of a run of a suite.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Report {
    /// The form of the rest. This version writes form 2.
    pub format: u32,
    /// The name of the suite.
    pub suite: String,
    /// The conditions of the measurement.
    pub conditions: Conditions,
    /// How many rounds were counted, after one that was not.
    pub rounds: u32,
    /// Why the numbers should be taken with care; empty if nothing was noticed.
    pub warnings: Vec<String>,
    /// The results.
    #[serde(rename = "rows", alias = "cases")]
    #[serde(serialize_with = "rows::write", deserialize_with = "rows::read")]
    pub cases: Vec<Case>,
}

impl Report {
    pub(crate) fn new(
        suite: &str,
        conditions: Conditions,
        rounds: u32,
        warnings: Vec<String>,
        cases: Vec<Case>,
    ) -> Report {
        Report { format: FORMAT, suite: suite.into(), conditions, rounds, warnings, cases }
    }

    /// Reads what [`Report::to_json`] or [`Report::all_to_json`] wrote: one report, or a list of
    /// them.
    ///
    /// # Errors
    ///
    /// The error is the fault of `text`: it is not JSON, not a report, or one in another form.
    pub fn from_json(text: &str) -> Result<Vec<Report>> {
        let value: Value = serde_json::from_str(text)
            .map_err(|error| Error::failed(format!("it is not JSON: {error}")))?;
        let value = for_people(value);
        let values = match value {
            Value::Array(values) if values.is_empty() => {
                return Err(Error::failed("it is an empty list and has no report"));
            }
            Value::Array(values) => values,
            value => vec![value],
        };
        values.into_iter().map(Report::from_value).collect()
    }

    fn from_value(value: Value) -> Result<Report> {
        let format = value.get("format").and_then(Value::as_u64);
        if format.is_none() || value.get("suite").is_none() {
            return Err(Error::failed("it is JSON, but not a report of `vellum bench`"));
        }
        if let Some(format) = format.filter(|format| !READ.contains(format)) {
            return Err(Error::failed(format!(
                "it is a report in form {format}, and this version reads forms 1 to {FORMAT}"
            )));
        }
        let report = serde_json::from_value(value)
            .map_err(|error| Error::failed(format!("it is a damaged report: {error}")))?;
        Ok(Report { format: FORMAT, ..report })
    }

    /// The report as JSON, with a newline at the end.
    ///
    /// # Errors
    ///
    /// None in practice: everything in a report can be written as JSON.
    pub fn to_json(&self) -> Result<String> {
        json::text(self)
    }

    /// Several reports as a list; one as itself.
    ///
    /// # Errors
    ///
    /// None in practice.
    pub fn all_to_json(reports: &[Report]) -> Result<String> {
        match reports {
            [report] => report.to_json(),
            reports => json::text(&reports),
        }
    }

    /// After how many rounds the run was asked to end, if it was.
    pub fn interruption(&self) -> Option<&str> {
        self.warnings.iter().map(String::as_str).find(|warning| warning.starts_with(INTERRUPTED))
    }

    /// The cases that failed. A program that finds any should say so by its exit code.
    pub fn failures(&self) -> impl Iterator<Item = &Case> {
        self.cases.iter().filter(|case| case.failed.is_some())
    }

    /// Conditions and rounds, one fact a line.
    fn lines(&self) -> Vec<String> {
        let Conditions { date, vellum, .. } = &self.conditions;
        let about = format!("{date}, vellum {vellum}, {} rounds and a warm-up", self.rounds);
        self.conditions.lines().into_iter().chain([about]).collect()
    }

    /// Why cases have no numbers, then the warnings; each once.
    fn notes(&self) -> Vec<String> {
        let groups = group::Group::all(&self.cases);
        let warnings = self.warnings.iter().map(|warning| format!("warning: {warning}"));
        let mut notes: Vec<String> = Vec::new();
        for note in groups.iter().flat_map(group::Group::notes).chain(warnings) {
            if !notes.contains(&note) {
                notes.push(note);
            }
        }
        notes
    }
}

/// The texts of a file that another user may have made: no terminal obeys them.
fn for_people(value: Value) -> Value {
    match value {
        Value::String(text) => Value::String(escaped_lines(text).to_string()),
        Value::Array(values) => values.into_iter().map(for_people).collect(),
        Value::Object(values) => {
            let shown = |(key, value)| (escaped_lines(key).to_string(), for_people(value));
            Value::Object(values.into_iter().map(shown).collect())
        }
        other => other,
    }
}
