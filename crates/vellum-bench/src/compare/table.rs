//! A comparison for people: in a terminal, or as Markdown.

use std::cmp::Ordering;

use super::{Change, Compared, Comparison, Verdict};
use crate::report::group::Group;
use crate::report::markdown_text::list;
use crate::report::table::{Align, Heading, Sheet, number, wrapped};
use crate::report::{Better, Case};

/// Conditions that a machine does not change by itself.
const MACHINE: [&str; 2] = ["processor", "cores"];

impl Comparison {
    /// The comparison in at most 100 columns. With `changed_only`, figures without a difference are
    /// counted, not shown.
    pub fn table(&self, changed_only: bool) -> String {
        let head = self.head().into_iter().map(|line| wrapped(&line));
        let tables = self.sheets(changed_only).into_iter().map(|sheet| sheet.to_text());
        let notes = self.notes.iter().chain(&self.reading()).map(|note| wrapped(note)).collect();
        head.chain(tables).chain(["\n".into(), notes]).collect()
    }

    /// The same as Markdown.
    pub fn to_markdown(&self, changed_only: bool) -> String {
        let head = list(self.head().into_iter());
        let sheets = self.sheets(changed_only);
        let tables: String = sheets.iter().map(Sheet::to_markdown).collect();
        let notes = list(self.notes.iter().cloned().chain(self.reading()));
        format!("# vellum bench compare\n\n{head}{tables}\n{notes}")
    }

    /// The runs, and the outcome.
    fn head(&self) -> Vec<String> {
        let count = |verdict| self.figures().filter(|it| it.verdict == verdict).count();
        let apart = |side| {
            let few = self.figures().filter(|it| it.verdict == Verdict::TooFewRounds);
            few.filter(|it| it.apart() == Some(side)).count()
        };
        let [first, second] = self.sides();
        let perhaps = count(Verdict::PerhapsBetter) + count(Verdict::PerhapsWorse);
        let mut lines = vec![
            format!("{first}: {}, {}", self.before, self.before_date),
            format!("{second}: {}, {}", self.after, self.after_date),
            format!(
                "{} figures: {} better, {} worse, {perhaps} perhaps, {} without a difference, {} \
                 not sure",
                self.figures().count(),
                count(Verdict::Better),
                count(Verdict::Worse),
                count(Verdict::NoDifference),
                count(Verdict::TooFewRounds),
            ),
        ];
        if count(Verdict::TooFewRounds) > 0 {
            let (better, worse) = (apart(Ordering::Greater), apart(Ordering::Less));
            if let Some(line) = lines.last_mut() {
                line.push_str(&format!(
                    ", of which {better} were better and {worse} worse in each round"
                ));
            }
        }
        if self.is_of_two_machines() {
            lines.push(
                "two machines: \"faster\" is said of the second; a change of the program is not to \
                 be seen here"
                    .into(),
            );
        }
        if self.conditions.is_empty() {
            lines.push("the conditions that were recorded are the same".into());
        }
        lines
    }

    fn is_of_two_machines(&self) -> bool {
        self.conditions.iter().any(|it| MACHINE.contains(&it.what))
    }

    /// The names of the two runs in tables.
    fn sides(&self) -> [&'static str; 2] {
        if self.is_of_two_machines() { ["first", "second"] } else { ["before", "after"] }
    }

    /// How to read it.
    fn reading(&self) -> Vec<String> {
        let mut lines = Vec::new();
        let judged = self.figures().filter(|change| change.interval.is_some()).count();
        if judged > 0 {
            lines.push(format!(
                "Ratios above 1 are better; the range is the 95 % interval of a rank test. \
                 \"faster\" and \"slower\" leave one chance in twenty that there is a false one \
                 among all {judged} figures; \"perhaps\" is said by the rounds of the figure alone, and \
                 up to {:.0} would be said by chance if nothing had changed.",
                (judged as f64 * super::statistics::ALPHA).ceil()
            ));
            let of_one = "Only the rounds are known: if the machine itself was faster in one run, that is \
                 a difference too. Figures in x, taken within each round, suffer least.";
            lines.extend((!self.is_of_two_machines()).then(|| of_one.into()));
        }
        let few = self.figures().filter(|change| change.verdict == Verdict::TooFewRounds);
        if let Some([before, after]) = few.map(|change| change.rounds).min() {
            lines.push(format!(
                "Not sure: the range is that of all pairs of rounds; with {before} and {after} \
                 rounds chance alone sets 1 figure of {:.0} apart. To be sure takes 4 rounds on each \
                 side; `--rounds 5` or more is better.",
                super::statistics::apart_by_chance(before, after)
            ));
        }
        lines
    }

    fn sheets(&self, changed_only: bool) -> Vec<Sheet> {
        let mut sheets = Vec::new();
        if !self.conditions.is_empty() {
            let row = |it: &super::Difference| {
                vec![it.what.to_string(), it.before.clone(), it.after.clone()]
            };
            let [first, second] = self.sides();
            let headings = ["", first, second].map(|name| (name, Align::Left));
            let rows = self.conditions.iter().map(row).collect();
            sheets.push(sheet("Conditions that differ".into(), headings, rows));
        }
        for suite in self.rows.chunk_by(|one, other| one.suite == other.suite) {
            let bare: Vec<Case> = suite.iter().map(bare).collect();
            for group in Group::all(&bare) {
                sheets.extend(figure_sheets(self.sides(), suite, &bare, &group, changed_only));
            }
        }
        sheets
    }
}

/// A table in one block, however wide its cells.
fn sheet<'a>(
    title: String,
    headings: impl IntoIterator<Item = (&'a str, Align)>,
    rows: Vec<Vec<String>>,
) -> Sheet {
    let heading = |(name, align): (&str, Align)| Heading::new(name, "", align);
    let headings: Vec<Heading> = headings.into_iter().map(heading).collect();
    Sheet { title, keys: headings.len(), headings, rows, ends: 0 }
}

/// The row without its numbers.
fn bare(row: &Compared) -> Case {
    Case { keys: row.keys.clone(), ..Case::new(&row.table) }
}

/// A table for each figure of a group.
fn figure_sheets(
    [first, second]: [&str; 2],
    suite: &[Compared],
    bare: &[Case],
    group: &Group<'_>,
    changed_only: bool,
) -> Vec<Sheet> {
    let is_in = |row: &Case| group.rows.iter().any(|other| std::ptr::eq(*other, row));
    let rows: Vec<&Compared> =
        suite.iter().zip(bare).filter(|(_, bare)| is_in(bare)).map(|(row, _)| row).collect();
    let mut figures: Vec<(&str, &str)> = Vec::new();
    for change in rows.iter().flat_map(|row| &row.figures) {
        if !figures.contains(&(&change.name, &change.unit)) {
            figures.push((&change.name, &change.unit));
        }
    }
    let keys: Vec<&str> = rows.first().map_or_else(Vec::new, |row| {
        let names = row.keys.iter().map(|key| key.name.as_str());
        names.filter(|name| group.key_columns().contains(name)).collect()
    });
    let table = |(name, unit): (&str, &str)| {
        let cells = rows.iter().filter_map(|row| cells(row, &keys, name, unit, changed_only));
        let rows: Vec<Vec<String>> = cells.collect();
        let columns = keys.iter().map(|key| (*key, Align::Left));
        let figures = [first, second, "ratio"].map(|heading| (heading, Align::Right));
        let columns = columns.chain(figures).chain([("", Align::Left)]);
        let title = format!("{}: {name}, {unit}: {}", suite[0].suite, group.title());
        (!rows.is_empty()).then(|| sheet(title, columns, rows))
    };
    figures.into_iter().filter_map(table).collect()
}

fn cells(
    row: &Compared,
    keys: &[&str],
    name: &str,
    unit: &str,
    changed_only: bool,
) -> Option<Vec<String>> {
    let change = row.figures.iter().find(|it| it.name == name && it.unit == unit)?;
    let is_within = change.verdict == Verdict::TooFewRounds && change.apart().is_none();
    if changed_only && (is_within || change.verdict == Verdict::NoDifference) {
        return None;
    }
    let value = |key: &&str| {
        let key = row.keys.iter().find(|it| it.name == *key);
        key.map_or_else(|| String::from("–"), |key| key.value.clone())
    };
    let mut cells: Vec<String> = keys.iter().map(value).collect();
    cells.push(number(change.before));
    cells.push(number(change.after));
    cells.push(change.ratio.map_or_else(|| String::from("–"), factor));
    cells.push(change.verdict_text());
    Some(cells)
}

impl Change {
    /// The verdict in words, with the interval.
    pub fn verdict_text(&self) -> String {
        let (good, bad) = self.words();
        let range = |[low, high]: [f64; 2]| format!("{}–{}x", factor(low), factor(high));
        let better = self.interval.map_or_else(String::new, range);
        let worse = self.interval.map(|[low, high]| [1.0 / high, 1.0 / low]);
        let worse = worse.map_or_else(String::new, range);
        match self.verdict {
            Verdict::Better => format!("{good} by {better}"),
            Verdict::PerhapsBetter => format!("perhaps {good} by {better}"),
            Verdict::Worse => format!("{bad} by {worse}"),
            Verdict::PerhapsWorse => format!("perhaps {bad} by {worse}"),
            Verdict::NoDifference => format!("no difference seen ({better})"),
            Verdict::TooFewRounds => self.not_sure(good, bad),
            Verdict::NoRatio => "no ratio to zero".into(),
        }
    }

    /// The result of few rounds.
    fn not_sure(&self, good: &str, bad: &str) -> String {
        let Some([low, high]) = self.range else { return "not sure".into() };
        let (what, [low, high]) = match self.apart() {
            Some(Ordering::Greater) => (format!(", {good} in each round"), [low, high]),
            Some(_) => (format!(", {bad} in each round"), [1.0 / high, 1.0 / low]),
            None => (String::new(), [low, high]),
        };
        format!("not sure{what} ({}–{}x)", factor(low), factor(high))
    }

    /// Times and speeds get faster or slower, costs less or more.
    fn words(&self) -> (&'static str, &'static str) {
        let unit = self.unit.split('/').next().unwrap_or_default();
        let is_time = matches!(unit, "ns" | "us" | "ms" | "s" | "x");
        if self.better == Better::Lower && !is_time {
            ("less", "more")
        } else {
            ("faster", "slower")
        }
    }
}

fn factor(ratio: f64) -> String {
    if (0.1..100.0).contains(&ratio) { format!("{ratio:.2}") } else { number(ratio) }
}
