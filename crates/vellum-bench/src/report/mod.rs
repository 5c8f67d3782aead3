//! The result of a run: data, JSON, Markdown and a table.
//!
//! A report is the same for every suite but for its cases, which each suite defines: what one case
//! is, and which tables show several. Everything but the tables for a terminal is made from the
//! common form of a case, [`Row`].

use crate::conditions::Conditions;
use crate::error::Result;

pub(crate) mod append;
mod case;
pub(crate) mod commit;
mod document;
pub(crate) mod group;
pub(crate) mod html;
mod json;
pub(crate) mod markdown;
mod row;
pub(crate) mod sync;
pub(crate) mod table;
mod tables;

pub use case::{Outcome, ToRow};
pub use document::Document;
pub use html::{html, html_with_recommendation};
pub(crate) use json::text as json_text;
pub use row::{Better, Key, Metric, Row, Series};
pub(crate) use table::{place_name, size, wrapped};

/// The result of a run of a suite whose cases are `C`.
#[derive(Clone, Debug)]
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

/// A report of any suite, for whoever hands it out.
pub trait ReportView {
    /// See [`Report::table`].
    fn table(&self) -> String;

    /// See [`Report::document`].
    fn document(&self) -> Document;
}

impl<C: ToRow> ReportView for Report<C> {
    fn table(&self) -> String {
        Report::table(self)
    }

    fn document(&self) -> Document {
        Report::document(self)
    }
}

impl<C: ToRow> Report<C> {
    /// The cases in the common form.
    pub fn rows(&self) -> Vec<Row> {
        self.cases.iter().map(ToRow::to_row).collect()
    }

    /// The report as it is kept in a file.
    pub fn document(&self) -> Document {
        let Report { suite, conditions, rounds, warnings, .. } = self;
        Document::new(suite, conditions, *rounds, warnings, self.rows())
    }

    /// The report as JSON, with a newline at the end.
    ///
    /// # Errors
    ///
    /// None in practice: everything in a report can be written as JSON.
    pub fn to_json(&self) -> Result<String> {
        self.document().to_json()
    }

    /// The report as Markdown: see [`Document::to_markdown`].
    pub fn to_markdown(&self) -> String {
        self.document().to_markdown()
    }

    /// The cases that failed. A program that finds any should say so by its exit code.
    pub fn failures(&self) -> impl Iterator<Item = &C> {
        self.cases.iter().filter(|case| case.outcome().failed.is_some())
    }

    /// Tables for a terminal, at most 100 columns wide, with the conditions above and the warnings
    /// and reasons below.
    pub fn table(&self) -> String {
        let notes = C::notes(&self.cases);
        [self.head(), C::tables(&self.cases), self.foot(notes)].concat()
    }

    /// The conditions, in lines that fit.
    fn head(&self) -> String {
        let lines = self.conditions.lines();
        let about = format!(
            "{}, vellum {}, {} rounds and a warm-up",
            self.conditions.date, self.conditions.vellum, self.rounds
        );
        lines.iter().chain([&about]).map(|line| table::wrapped(line)).collect()
    }

    /// The reasons and the warnings, each once, below an empty line.
    fn foot(&self, reasons: Vec<String>) -> String {
        let warnings = self.warnings.iter().map(|warning| format!("warning: {warning}"));
        let mut notes: Vec<String> = Vec::new();
        for note in reasons.into_iter().chain(warnings) {
            if !notes.contains(&note) {
                notes.push(note);
            }
        }
        let lines: String = notes.iter().map(|note| table::wrapped(note)).collect();
        if lines.is_empty() { lines } else { format!("\n{lines}") }
    }
}
