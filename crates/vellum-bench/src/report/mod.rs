//! The result of a run: data, JSON and a table.
//!
//! A report is the same for every suite but for its cases, which each suite defines: what one
//! case is, and which table shows several.

use serde::Serialize;

use crate::conditions::Conditions;
use crate::error::{Error, Result};

pub(crate) mod append;
mod table;

/// The result of a run of a suite whose cases are `C`.
#[derive(Clone, Debug, Serialize)]
pub struct Report<C> {
    /// The name of the suite.
    pub suite: &'static str,
    /// What the numbers were taken under.
    pub conditions: Conditions,
    /// How many rounds were counted, after one that was not.
    pub rounds: u32,
    /// Why the numbers should be taken with care; empty if nothing was noticed.
    pub warnings: Vec<String>,
    /// What was measured.
    pub cases: Vec<C>,
}

impl<C: Serialize> Report<C> {
    /// The report as JSON, indented, with a newline at the end.
    ///
    /// # Errors
    ///
    /// None in practice: everything in a report can be written as JSON.
    pub fn to_json(&self) -> Result<String> {
        let json = serde_json::to_string_pretty(self);
        let json = json.map_err(|error| Error::failed(format!("write the report: {error}")))?;
        Ok(json + "\n")
    }
}
