//! The result of a run: data, JSON and a table.
//!
//! A report is the same for every suite but for its cases, which each suite defines: what one
//! case is, and which table shows several.

use serde::Serialize;

use crate::conditions::Conditions;
use crate::error::{Error, Result};

pub(crate) mod append;
pub(crate) mod commit;
mod row;
pub(crate) mod sync;
mod table;

pub use row::{Better, Key, Metric, Row, Series, ToRow};
pub(crate) use table::place_name;

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

impl<C> Report<C> {
    /// The conditions, in lines that fit.
    fn head(&self) -> String {
        let conditions = &self.conditions;
        let machine = &conditions.machine;
        let mut lines = vec![format!(
            "{}, {} cores, {}",
            machine.cpu.as_deref().unwrap_or("unknown processor"),
            machine.cores.map_or_else(|| String::from("?"), |cores| cores.to_string()),
            conditions.kernel,
        )];
        if let Some(filesystem) = &conditions.filesystem {
            let device = conditions.device.as_ref();
            let cache = device.and_then(|device| device.write_cache.as_deref());
            lines.push(format!(
                "{} on {} ({}){}",
                filesystem.kind,
                filesystem.source,
                filesystem.mount_options,
                cache.map(|cache| format!(", {cache} cache")).unwrap_or_default(),
            ));
        }
        lines.push(format!(
            "{}, vellum {}, {} rounds and a warm-up",
            conditions.date, conditions.vellum, self.rounds
        ));
        lines.iter().map(|line| table::wrapped(line)).collect()
    }

    /// The reasons and the warnings, each once, below an empty line.
    fn foot(&self, reasons: impl Iterator<Item = String>) -> String {
        let warnings = self.warnings.iter().map(|warning| format!("warning: {warning}"));
        let mut notes: Vec<String> = Vec::new();
        for note in reasons.chain(warnings) {
            if !notes.contains(&note) {
                notes.push(note);
            }
        }
        let lines: String = notes.iter().map(|note| table::wrapped(note)).collect();
        if lines.is_empty() { lines } else { format!("\n{lines}") }
    }
}
