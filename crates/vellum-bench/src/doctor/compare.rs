//! Two diagnoses against each other: two disks, or one before and after a change.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use vellum::internal::escaped_lines;

use super::verdict::Verdict;
use crate::compare::Comparison;
use crate::error::{Error, Result};
use crate::report::{self, Report};

/// Two diagnoses.
#[derive(Clone, Debug, Serialize)]
pub struct Compared {
    /// What became of each program that is in both.
    pub programs: Vec<Change>,
    /// All figures, as `vellum bench compare` has them.
    pub figures: Comparison,
}

/// A program in both.
#[derive(Clone, Debug, Serialize)]
pub struct Change {
    /// Its name.
    pub name: String,
    /// The verdicts of the first and of the second.
    pub verdicts: [Verdict; 2],
    /// Causes in the first only.
    pub gone: Vec<String>,
    /// Causes in the second only.
    pub new: Vec<String>,
}

/// What is read of a file.
#[derive(Deserialize)]
struct Saved {
    programs: Vec<SavedProgram>,
}

#[derive(Deserialize)]
struct SavedProgram {
    name: String,
    verdict: Verdict,
    causes: Vec<SavedCause>,
}

/// The name only: a newer version may know more of them.
#[derive(Deserialize)]
struct SavedCause {
    cause: String,
}

/// Compares two files that [`Diagnosis::to_json`](super::Diagnosis::to_json) wrote, each with the
/// name that it is to be called by.
///
/// # Errors
///
/// One of them is not such a file.
pub fn compare(before: (&str, &str), after: (&str, &str)) -> Result<Compared> {
    let reports =
        |(name, text): (&str, &str)| Report::from_json(text).map_err(|error| error.within(name));
    let (old, new) = (reports(before)?, reports(after)?);
    let figures = Comparison::of((before.0, &old), (after.0, &new));
    let (old, new) = (programs(before)?, programs(after)?);
    let both = old.into_iter().filter_map(|(name, old)| Some((new.get(&name)?, name, old)));
    let programs = both.map(|(new, name, old)| Change {
        name,
        verdicts: [old.verdict, new.verdict],
        gone: missing(&old, new),
        new: missing(new, &old),
    });
    Ok(Compared { programs: programs.collect(), figures })
}

fn programs((name, text): (&str, &str)) -> Result<BTreeMap<String, SavedProgram>> {
    let saved: Saved = serde_json::from_str(text)
        .map_err(|_| Error::failed(format!("{name}: it is no result of `vellum doctor`")))?;
    let shown = |program: SavedProgram| (escaped_lines(&program.name).to_string(), program);
    Ok(saved.programs.into_iter().map(shown).collect())
}

fn missing(of: &SavedProgram, other: &SavedProgram) -> Vec<String> {
    let is_there = |cause: &str| other.causes.iter().any(|one| one.cause == cause);
    let causes = of.causes.iter().map(|one| one.cause.as_str());
    causes.filter(|cause| !is_there(cause)).map(|cause| escaped_lines(cause).to_string()).collect()
}

impl Compared {
    /// For a terminal.
    pub fn text(&self) -> String {
        let mut text = String::new();
        for change in &self.programs {
            text.push_str(&report::wrapped(&line(change)));
        }
        format!("{text}\n{}", self.figures.table(false))
    }

    /// The same as JSON.
    ///
    /// # Errors
    ///
    /// None in practice.
    pub fn to_json(&self) -> Result<String> {
        report::json_text(self)
    }

    /// Is the disk worse for one of the programs?
    pub fn is_worse(&self) -> bool {
        let is_told = |change: &&Change| !change.verdicts.contains(&Verdict::CannotTell);
        let mut told = self.programs.iter().filter(is_told);
        told.any(|change| change.verdicts[1] > change.verdicts[0])
    }
}

fn line(change: &Change) -> String {
    let Change { name, verdicts: [old, new], gone, new: come } = change;
    let verdict = if old == new {
        format!("{name}: {} in both", old.words())
    } else {
        format!("{name}: {}, and before {}", new.words(), old.words())
    };
    let listed = |what: &str, causes: &[String]| match causes {
        [] => String::new(),
        causes => format!("; {what}: {}", causes.join(", ")),
    };
    format!("{verdict}{}{}", listed("no more", gone), listed("new", come))
}
