//! What the cases of all suites have in common, whatever else is in them.

use super::row::Row;

/// A case of a suite.
pub trait ToRow: Sized {
    /// The same in the common form.
    fn to_row(&self) -> Row;

    /// Was it run, and well?
    fn outcome(&self) -> Outcome<'_>;

    /// The tables for a terminal, at most 100 columns wide, each after an empty line.
    fn tables(cases: &[Self]) -> String;

    /// What can't be said in a cell: why cases were not run, or failed. What is in the list twice
    /// is told once.
    fn notes(cases: &[Self]) -> Vec<String>;
}

/// What became of a case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outcome<'a> {
    /// Was everything that should be there found after each round?
    pub verified: bool,
    /// Why it can't be done here.
    pub skipped: Option<&'a str>,
    /// What went wrong.
    pub failed: Option<&'a str>,
}

impl Outcome<'_> {
    /// The verdict on a case that was run, and well.
    pub(crate) const VERIFIED: &'static str = "yes";

    /// The same in a word, for a column `verified`.
    pub fn verdict(&self) -> &'static str {
        match self {
            Outcome { failed: Some(_), .. } => "FAILED",
            Outcome { skipped: Some(_), .. } => "skipped",
            Outcome { verified: true, .. } => Outcome::VERIFIED,
            _ => "no",
        }
    }

    /// The reason, if there is one, in a line about `name`.
    pub(crate) fn note(&self, name: &str) -> Option<String> {
        let reason = self.failed.or(self.skipped)?;
        Some(format!("{} {name}: {reason}", self.verdict()))
    }
}
