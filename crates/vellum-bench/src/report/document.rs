//! A report as it is kept in a file: what `compare` and the HTML report are made from.
//!
//! All suites write the same form, so that one program reads them all. Its number, `format`, grows
//! when an older program would misunderstand what a newer one writes.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::json;
use super::row::Row;
use crate::conditions::Conditions;
use crate::error::{Error, Result};

/// The form that this version writes and reads.
const FORMAT: u32 = 1;

/// A report that owns all that is in it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Document {
    /// The form of the rest: 1.
    pub format: u32,
    /// The name of the suite.
    pub suite: String,
    /// What the numbers were taken under.
    pub conditions: Conditions,
    /// How many rounds were counted, after one that was not.
    pub rounds: u32,
    /// Why the numbers should be taken with care; empty if nothing was noticed.
    pub warnings: Vec<String>,
    /// What was measured.
    pub cases: Vec<Row>,
}

impl Document {
    pub(super) fn new(
        suite: &str,
        conditions: &Conditions,
        rounds: u32,
        warnings: &[String],
        cases: Vec<Row>,
    ) -> Document {
        Document {
            format: FORMAT,
            suite: suite.into(),
            conditions: conditions.clone(),
            rounds,
            warnings: warnings.to_vec(),
            cases,
        }
    }

    /// Reads what [`Document::to_json`] or [`Document::all_to_json`] wrote: one report, or a list
    /// of them.
    ///
    /// # Errors
    ///
    /// What is wrong with `text`: it is not JSON, not a report, or one in another form.
    pub fn from_json(text: &str) -> Result<Vec<Document>> {
        let value: Value = serde_json::from_str(text)
            .map_err(|error| Error::failed(format!("it is not JSON: {error}")))?;
        let values = match value {
            Value::Array(values) if values.is_empty() => {
                return Err(Error::failed("it is an empty list and has no report"));
            }
            Value::Array(values) => values,
            value => vec![value],
        };
        values.into_iter().map(Document::from_value).collect()
    }

    fn from_value(value: Value) -> Result<Document> {
        let format = value.get("format").and_then(Value::as_u64);
        if format.is_none() || value.get("suite").is_none() {
            return Err(Error::failed("it is JSON, but not a report of `vellum bench`"));
        }
        if let Some(format) = format.filter(|format| *format != u64::from(FORMAT)) {
            return Err(Error::failed(format!(
                "it is a report in form {format}, and this version reads form {FORMAT}"
            )));
        }
        serde_json::from_value(value)
            .map_err(|error| Error::failed(format!("it is a damaged report: {error}")))
    }

    /// The report as JSON, with a newline at the end.
    ///
    /// # Errors
    ///
    /// None in practice: everything in a report can be written as JSON.
    pub fn to_json(&self) -> Result<String> {
        json::text(self)
    }

    /// Several reports as a list; one stands for itself.
    ///
    /// # Errors
    ///
    /// None in practice.
    pub fn all_to_json(documents: &[Document]) -> Result<String> {
        match documents {
            [document] => document.to_json(),
            documents => json::text(&documents),
        }
    }
}
