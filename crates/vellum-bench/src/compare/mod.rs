//! Two runs against each other: faster cases, slower cases, and differences that only look so.
//!
//! Rows are matched by suite, heading and keys; each figure with a good direction is compared by
//! the rounds on both sides. See [`statistics`] for the treatment of noise.

use std::cmp::Ordering;

use serde::Serialize;

use crate::report::{Better, Case, Key, Metric, Report};

mod conditions;
mod pair;
mod statistics;
mod table;

pub use conditions::Difference;
use pair::{Pair, Pairs, Single};

/// The result of comparing two runs.
#[derive(Clone, Debug, Serialize)]
pub struct Comparison {
    /// The name of the first run.
    pub before: String,
    /// The name of the second run.
    pub after: String,
    /// When the suites of the first began.
    pub before_date: String,
    /// When those of the second began.
    pub after_date: String,
    /// Conditions that were not the same.
    pub conditions: Vec<Difference>,
    /// Rows that are in one of them only, or have numbers in one only, in sentences.
    pub notes: Vec<String>,
    /// Every figure that is in both, for each row of the first.
    pub rows: Vec<Compared>,
}

/// A row that is in both runs.
#[derive(Clone, Debug, Serialize)]
pub struct Compared {
    /// The suite.
    pub suite: String,
    /// The heading.
    pub table: String,
    /// The keys.
    pub keys: Vec<Key>,
    /// Its figures.
    pub figures: Vec<Change>,
}

/// A figure in both runs.
#[derive(Clone, Debug, Serialize)]
pub struct Change {
    /// The name of the figure.
    pub name: String,
    /// In what.
    pub unit: String,
    /// Which way is good.
    pub better: Better,
    /// The median of the first run.
    pub before: f64,
    /// The median of the second.
    pub after: f64,
    /// How many rounds there are, in the first and in the second.
    pub rounds: [usize; 2],
    /// How many times as good the second median is: above 1 is better. `null` if one is not
    /// positive.
    pub ratio: Option<f64>,
    /// The 95 % interval of that ratio, from the rounds of this figure alone. `null` if the rounds
    /// are too few.
    pub interval: Option<[f64; 2]>,
    /// The least and the greatest ratio of a round of the second to one of the first. Of few rounds
    /// this is all that can be said.
    pub range: Option<[f64; 2]>,
    /// The chance that any figure of the comparison would stand out so much if nothing had
    /// changed.
    pub chance: Option<f64>,
    /// The verdict on the figure.
    pub verdict: Verdict,
}

/// A verdict on a figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// Better; chance is ruled out, whatever the number of figures.
    Better,
    /// Worse; chance is ruled out.
    Worse,
    /// Better as far as its own rounds tell, but among so many figures it may be chance.
    PerhapsBetter,
    /// The same for the worse.
    PerhapsWorse,
    /// The rounds of the two runs overlap too much.
    NoDifference,
    /// Rounds without any overlap would not rule out chance.
    TooFewRounds,
    /// There is no ratio to nothing.
    NoRatio,
}

impl Comparison {
    /// Compares the reports of two runs, each with the name that it is to be called by.
    pub fn of(before: (&str, &[Report]), after: (&str, &[Report])) -> Comparison {
        let Pairs { pairs, only_before, only_after } = Pairs::of(before.1, after.1);
        let mut notes = singles(&format!("only in {}", before.0), &only_before);
        notes.extend(singles(&format!("only in {}", after.0), &only_after));
        for pair in &pairs {
            notes.extend(lost(before.0, pair.before, pair.after));
            notes.extend(lost(after.0, pair.after, pair.before));
        }
        if pairs.is_empty() {
            notes.push("no row is in both".into());
        }
        for (name, documents) in [before, after] {
            let warnings: usize = documents.iter().map(|document| document.warnings.len()).sum();
            if warnings > 0 {
                notes.push(format!("{name} has warnings, {warnings} of them: they stand there"));
            }
        }
        let single_values = pairs.iter().flat_map(Pair::figures).filter(has_single_value).count();
        if single_values > 0 {
            notes.push(format!(
                "{single_values} figures with one value for all rounds are not compared: nothing \
                 tells how they vary"
            ));
        }
        let date = |documents: &[Report]| {
            documents.first().map_or_else(String::new, |first| first.conditions.date.clone())
        };
        Comparison {
            before: before.0.into(),
            after: after.0.into(),
            before_date: date(before.1),
            after_date: date(after.1),
            conditions: conditions::differences(before.1, after.1),
            notes,
            rows: compared(&pairs),
        }
    }

    /// All figures of all rows.
    pub fn figures(&self) -> impl Iterator<Item = &Change> {
        self.rows.iter().flat_map(|row| &row.figures)
    }

    /// The figures that are worse, beyond chance, and by more than `percent` even at the good end
    /// of their interval.
    pub fn worse_by(&self, percent: f64) -> impl Iterator<Item = (&Compared, &Change)> {
        let most = 1.0 / (1.0 + percent / 100.0);
        let is_worse = move |change: &Change| {
            change.verdict == Verdict::Worse && change.interval.is_some_and(|[_, high]| high < most)
        };
        let figures = self.rows.iter().flat_map(|row| row.figures.iter().map(move |it| (row, it)));
        figures.filter(move |(_, change)| is_worse(change))
    }

    /// The comparison as JSON, with a newline at the end.
    ///
    /// # Errors
    ///
    /// None in practice.
    pub fn to_json(&self) -> crate::Result<String> {
        crate::report::json_text(self)
    }
}

impl Change {
    /// `None` for a figure without a good direction. The chance is not known yet.
    fn of(before: &Metric, after: &Metric) -> Option<Change> {
        let better = before.better;
        if better == Better::Neither {
            return None;
        }
        let is_positive = |metric: &Metric| metric.samples.iter().all(|sample| *sample > 0.0);
        let has_ratio = is_positive(before) && is_positive(after);
        let (old, new) = (before.spread()?.median, after.spread()?.median);
        let interval = statistics::interval(&before.samples, &after.samples);
        // The ratio of the medians is nearly always inside; where it is not, it is believed too.
        let interval = interval.map(|[low, high]| [low.min(new / old), high.max(new / old)]);
        let range = statistics::range(&before.samples, &after.samples);
        let good = |[low, high]: [f64; 2]| match better {
            Better::Lower => [1.0 / high, 1.0 / low],
            _ => [low, high],
        };
        Some(Change {
            name: before.name.clone(),
            unit: before.unit.clone(),
            better,
            before: old,
            after: new,
            rounds: [before.samples.len(), after.samples.len()],
            ratio: has_ratio.then(|| if better == Better::Lower { old / new } else { new / old }),
            interval: interval.filter(|_| has_ratio).map(good),
            range: has_ratio.then(|| good(range)),
            chance: None,
            verdict: if has_ratio { Verdict::TooFewRounds } else { Verdict::NoRatio },
        })
    }

    /// Whether all rounds of the second run were better than all of the first, or all worse.
    fn apart(&self) -> Option<Ordering> {
        let [low, high] = self.range?;
        match (low > 1.0, high < 1.0) {
            (true, _) => Some(Ordering::Greater),
            (_, true) => Some(Ordering::Less),
            _ => None,
        }
    }

    /// Sets the verdict by the interval and the chance.
    fn judge(&mut self, chance: f64) {
        let Some([low, high]) = self.interval else { return };
        self.chance = Some(chance);
        self.verdict = match (low > 1.0, high < 1.0, chance <= statistics::ALPHA) {
            (true, _, true) => Verdict::Better,
            (true, _, false) => Verdict::PerhapsBetter,
            (_, true, true) => Verdict::Worse,
            (_, true, false) => Verdict::PerhapsWorse,
            _ => Verdict::NoDifference,
        };
    }
}

/// The figures of all pairs, judged together.
fn compared(pairs: &[Pair<'_>]) -> Vec<Compared> {
    let mut suites: Vec<&str> = pairs.iter().map(|pair| pair.suite).collect();
    suites.dedup();
    let (mut rows, mut rounds) = (Vec::new(), Vec::new());
    for pair in pairs {
        let mut figures = Vec::new();
        for (before, after) in pair.figures().filter(|both| !has_single_value(both)) {
            let Some(change) = Change::of(before, after) else { continue };
            if change.interval.is_some() {
                let run = suites.iter().position(|suite| *suite == pair.suite).unwrap_or(0);
                let (before, after) = (before.samples.clone(), after.samples.clone());
                rounds.push(statistics::Figure { run, before, after });
            }
            figures.push(change);
        }
        let Case { table, keys, .. } = pair.before.clone();
        rows.push(Compared { suite: pair.suite.into(), table, keys, figures });
    }
    let figures = rows.iter_mut().flat_map(|row| &mut row.figures);
    let with_interval = figures.filter(|change| change.interval.is_some());
    for (change, chance) in with_interval.zip(statistics::chances(&rounds)) {
        change.judge(chance);
    }
    rows
}

fn has_single_value((before, after): &(&Metric, &Metric)) -> bool {
    before.samples.len() < 2 || after.samples.len() < 2
}

/// Says so if `row`, of the run called `name`, has no numbers where `other` has.
fn lost(name: &str, row: &Case, other: &Case) -> Option<String> {
    let reason = row.reason().filter(|_| other.verified)?;
    Some(format!("{} in {name}: {}: {reason}", row.verdict(), label(row)))
}

fn singles(what: &str, singles: &[Single<'_>]) -> Vec<String> {
    const NAMED_MAX: usize = 8;
    let line = |single: &Single<'_>| format!("{what}: {}, {}", single.suite, label(single.row));
    let mut lines: Vec<String> = singles.iter().take(NAMED_MAX).map(line).collect();
    if let Some(more) = singles.len().checked_sub(NAMED_MAX).filter(|more| *more > 0) {
        lines.push(format!("{what}: {more} more rows"));
    }
    lines
}

/// A row in a line.
fn label(row: &Case) -> String {
    let keys = row.keys.iter().map(|key| format!("{} {}", key.name, key.value));
    let parts: Vec<String> = std::iter::once(row.table.clone()).chain(keys).collect();
    parts.join(", ")
}

#[cfg(test)]
mod tests;
