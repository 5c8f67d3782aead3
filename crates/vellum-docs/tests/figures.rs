//! The figures of the pages are those of the results in `docs/results`.
//!
//! A table of a page is between two comments, of which the first has its query:
//!
//! ```text
//! <!-- figures: append.json; where case = vellum-text, write; show bytes, case, ns/record -->
//! …
//! <!-- end of figures -->
//! ```
//!
//! `where` picks cases by keys (`table` is the heading), `show` names keys and metrics; a value
//! with a comma is in double quotes. `METRIC median` leaves the range of the rounds out. Without
//! `where` all cases that have figures are shown.
//!
//! A figure in a sentence follows a comment with its name. It may have fewer digits than the
//! result:
//!
//! ```text
//! Growing takes <!--=sync-growing-->240 ms.
//! ```
//!
//! `docs/results/figures.txt` says which sample of which case has that name:
//!
//! ```text
//! sync-growing: sync.json; where case = growing; show time median
//! ```
//!
//! `VELLUM_BLESS=1` writes the tables anew. Single figures are for a person to correct.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use vellum_bench::{Case, Metric, Report, Spread, number};

const TABLE: &str = "<!-- figures: ";
const TABLE_END: &str = "<!-- end of figures -->";
const FIGURE: &str = "<!--=";

/// The query of a comment.
#[derive(Debug)]
struct Query {
    file: String,
    conditions: Vec<(String, Vec<String>)>,
    shown: Vec<String>,
}

impl Query {
    fn parse(text: &str) -> Result<Query, String> {
        let mut parts = text.split(';').map(str::trim);
        let file = parts.next().filter(|file| !file.is_empty()).ok_or("no file is named")?;
        let mut query = Query { file: file.into(), conditions: Vec::new(), shown: Vec::new() };
        for part in parts {
            match part.split_once(' ') {
                Some(("where", condition)) => {
                    let (key, values) = condition.split_once('=').ok_or("`where` needs a `=`")?;
                    query.conditions.push((key.trim().into(), list(values)));
                }
                Some(("show", names)) => query.shown = list(names),
                _ => return Err(format!("\"{part}\" is neither `where …` nor `show …`")),
            }
        }
        if query.shown.is_empty() { Err("`show` is missing".into()) } else { Ok(query) }
    }

    /// The cases that are meant, in the order of the results.
    fn cases<'a>(&self, reports: &'a [Report]) -> Vec<&'a Case> {
        let is_meant = |case: &&Case| {
            let mut conditions = self.conditions.iter();
            conditions.all(|(key, values)| values.iter().any(|value| value == key_of(case, key)))
        };
        let cases = reports.iter().flat_map(|report| &report.cases);
        cases.filter(|case| !case.metrics.is_empty()).filter(is_meant).collect()
    }

    fn table(&self, reports: &[Report]) -> Result<String, String> {
        let cases = self.cases(reports);
        let first = cases.first().ok_or("no case is meant")?;
        let head = self.shown.iter().map(|name| heading(first, name));
        let rule = self.shown.iter().map(|name| rule(first, name).to_string());
        let mut text = line(head) + &line(rule);
        for case in &cases {
            let cells = self.shown.iter().map(|name| cell(case, name));
            text += &line(cells.collect::<Result<Vec<_>, _>>()?.into_iter());
        }
        Ok(text)
    }

    /// The one figure that is meant: `show METRIC median`, or `min`, or `max`.
    fn figure(&self, reports: &[Report]) -> Result<f64, String> {
        let [case] = self.cases(reports)[..] else {
            return Err(format!("{} cases are meant, not one", self.cases(reports).len()));
        };
        let [shown] = &self.shown[..] else { return Err("one metric can be shown".into()) };
        let (name, which) = shown.rsplit_once(' ').ok_or("`show` needs a metric and which")?;
        let metric = case.figure(name).ok_or(format!("no metric is called \"{name}\""))?;
        let spread = Spread::of(&metric.samples).ok_or("there are no samples")?;
        match which {
            "median" => Ok(spread.median),
            "min" => Ok(spread.min),
            "max" => Ok(spread.max),
            _ => Err(format!("\"{which}\" is not median, min or max")),
        }
    }
}

/// The items between commas, but for commas in double quotes.
fn list(text: &str) -> Vec<String> {
    let mut is_quoted = false;
    let parts = text.split(|c| {
        is_quoted ^= c == '"';
        c == ',' && !is_quoted
    });
    parts.map(|part| part.trim().trim_matches('"').to_string()).collect()
}

fn line(cells: impl Iterator<Item = String>) -> String {
    format!("| {} |\n", cells.collect::<Vec<_>>().join(" | "))
}

fn key_of<'a>(case: &'a Case, key: &str) -> &'a str {
    let finding = case.finding.as_ref().filter(|finding| finding.name == key);
    match finding {
        Some(finding) => &finding.value,
        None if key == "table" => &case.table,
        None => case.value(key).unwrap_or_default(),
    }
}

/// The metric of a column, and whether the range of its rounds is left out.
fn metric_of<'a>(case: &'a Case, name: &str) -> Option<(&'a Metric, bool)> {
    let median = name.strip_suffix(" median").and_then(|name| case.figure(name));
    median.map(|metric| (metric, true)).or_else(|| Some((case.figure(name)?, false)))
}

fn heading(case: &Case, name: &str) -> String {
    let with_unit = |(metric, _): (&Metric, bool)| match metric.unit.as_str() {
        "" => metric.name.clone(),
        unit => format!("{}, {unit}", metric.name),
    };
    metric_of(case, name).map_or_else(|| name.to_string(), with_unit)
}

/// Numbers are at the right.
fn rule(case: &Case, name: &str) -> &'static str {
    let is_number = |text: &str| text.parse::<f64>().is_ok();
    if metric_of(case, name).is_some() || is_number(key_of(case, name)) { "--:" } else { "---" }
}

/// A key, or the median of a metric and the range of its rounds.
fn cell(case: &Case, name: &str) -> Result<String, String> {
    let Some((metric, is_alone)) = metric_of(case, name) else {
        let value = key_of(case, name);
        let known = if value.is_empty() { Err(()) } else { Ok(value.to_string()) };
        return known.map_err(|()| format!("a case has neither key nor metric \"{name}\""));
    };
    let Spread { min, median, max } = Spread::of(&metric.samples).ok_or("there are no samples")?;
    let range = format!(" ({}–{})", number(min), number(max));
    Ok(number(median) + if metric.samples.len() > 1 && !is_alone { &range } else { "" })
}

/// Whether `text` is the figure, rounded to the digits that it has.
fn is_figure(text: &str, figure: f64) -> bool {
    let Ok(written) = text.trim().parse::<f64>() else { return false };
    let decimals = text.trim().split_once('.').map_or(0, |(_, decimals)| decimals.len());
    let mut step = 10_f64.powi(-(decimals as i32));
    // The zeros at the end of 240 may replace other digits. That of 0 may not.
    if decimals == 0 && written != 0.0 {
        let zeros = text.trim().len() - text.trim().trim_end_matches('0').len();
        step *= 10_f64.powi(zeros as i32);
    }
    (written - figure).abs() <= step / 2.0 * (1.0 + 1e-9)
}

/// The names of single figures, and their values.
type Names = BTreeMap<String, String>;

/// Finds the reports of a file of results.
type Reading<'a> = &'a dyn Fn(&str) -> Result<Vec<Report>, String>;

/// The text with its tables as the results have them, and the faults of single figures.
fn corrected(text: &str, names: &Names, read: Reading) -> (String, Vec<String>) {
    let (mut kept, mut rest, mut wrong) = (String::new(), text, Vec::new());
    while let Some(at) = rest.find(TABLE) {
        let (before, from) = rest.split_at(at);
        let Some((comment, behind)) = from.split_once(" -->\n") else { break };
        let Some((old, after)) = behind.split_once(TABLE_END) else {
            wrong.push(format!("{comment}: its end is missing"));
            break;
        };
        let table = Query::parse(&comment[TABLE.len()..])
            .and_then(|query| query.table(&read(&query.file)?));
        let table = table.unwrap_or_else(|error| {
            wrong.push(format!("{comment}: {error}"));
            old.to_string()
        });
        kept += &format!("{before}{comment} -->\n{table}{TABLE_END}");
        rest = after;
    }
    kept += rest;
    let written = figures(&kept);
    wrong.extend(written.filter_map(|(name, figure)| wrong_figure(name, figure, names, read)));
    (kept, wrong)
}

/// The names of the single figures in a text, each with the number behind it.
fn figures(text: &str) -> impl Iterator<Item = (&str, &str)> {
    text.split(FIGURE).skip(1).filter_map(|from| {
        let (name, behind) = from.split_once("-->")?;
        let end = behind.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(behind.len());
        Some((name, behind[..end].trim_end_matches('.')))
    })
}

fn wrong_figure(name: &str, written: &str, names: &Names, read: Reading) -> Option<String> {
    let query = names.get(name).ok_or("no figure has this name".to_string());
    let figure = query
        .and_then(|query| Query::parse(query))
        .and_then(|query| query.figure(&read(&query.file)?));
    match figure {
        Ok(figure) if is_figure(written, figure) => None,
        Ok(figure) => Some(format!("{name}: it is {figure}, not \"{written}\"")),
        Err(error) => Some(format!("{name}: {error}")),
    }
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

fn read(file: &str) -> Result<Vec<Report>, String> {
    let path = root().join("docs/results").join(file);
    let text = fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
    Report::from_json(&text).map_err(|error| format!("{}: {error}", path.display()))
}

/// The names in `docs/results/figures.txt`.
fn names() -> Names {
    let text = fs::read_to_string(root().join("docs/results/figures.txt")).unwrap();
    let lines = text.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    lines.map(|line| line.split_once(": ").unwrap()).map(|(a, b)| (a.into(), b.into())).collect()
}

fn pages() -> Vec<PathBuf> {
    let entries = fs::read_dir(root().join("docs")).unwrap().map(|entry| entry.unwrap().path());
    let pages = entries.filter(|path| path.extension().is_some_and(|end| end == "md"));
    pages.chain([root().join("README.md")]).collect()
}

#[test]
fn the_figures_of_the_pages_are_those_of_the_results() {
    let names = names();
    let (mut wrong, mut used) = (Vec::new(), BTreeSet::new());
    for page in pages() {
        let text = fs::read_to_string(&page).unwrap();
        let (right, problems) = corrected(&text, &names, &read);
        used.extend(figures(&text).map(|(name, _)| name.to_string()));
        wrong.extend(problems.into_iter().map(|problem| format!("{}: {problem}", page.display())));
        if right != text && std::env::var_os("VELLUM_BLESS").is_some() {
            fs::write(&page, right).unwrap();
        } else if right != text {
            wrong.push(format!("{}: a table is not that of its results", page.display()));
        }
    }
    let unused = names.keys().filter(|name| !used.contains(*name));
    wrong.extend(unused.map(|name| format!("figures.txt: no page has {name}")));
    assert!(wrong.is_empty(), "VELLUM_BLESS=1 writes the tables anew:\n{}", wrong.join("\n"));
}

#[test]
fn a_figure_that_was_changed_is_found() {
    let report = r#"{"format": 1, "suite": "sync", "rounds": 3, "warnings": [],
        "conditions": CONDITIONS, "cases": [
        {"table": "t", "keys": [{"name": "case", "value": "a"}, {"name": "bytes", "value": "8"}],
         "metrics": [{"name": "time", "unit": "ms", "better": "lower",
                      "samples": [2.46, 2.1, 3.0]}],
         "verified": true, "skipped": null, "failed": null},
        {"table": "t", "keys": [{"name": "case", "value": "b"}], "metrics": [],
         "verified": false, "skipped": "no", "failed": null}]}"#;
    let conditions = r#"{"date": "", "vellum": "", "software": [], "command_line": [],
        "vellum_options": "", "machine": {"cpu": null, "cores": 2, "memory_bytes": null},
        "kernel": "", "directory": "/", "filesystem": null, "device": null, "writeback":
        {"dirty_ratio": null, "dirty_bytes": null, "dirty_background_ratio": null,
         "dirty_background_bytes": null, "dirty_expire_centisecs": null,
         "dirty_writeback_centisecs": null}, "load_average": null}"#;
    let report = report.replace("CONDITIONS", conditions);
    let read = |_: &str| Report::from_json(&report).map_err(|error| error.to_string());
    let table = "<!-- figures: f.json; where case = a, c; show case, bytes, time, time median -->\n\
                 | case | bytes | time, ms | time, ms |\n| --- | --: | --: | --: |\n\
                 | a | 8 | 2.46 (2.10–3.00) | 2.46 |\n\
                 <!-- end of figures -->\n";
    let names = [("a", "a"), ("none", "c")].map(|(name, case)| {
        (name.to_string(), format!("f.json; where case = {case}; show time median"))
    });
    let names = Names::from(names);
    let check = |page: &str| corrected(page, &names, &read);
    let page = format!("{table}<!--=a-->2.5 and <!--=a-->2 ms; in the end <!--=a-->2.46.");
    assert_eq!(check(&page), (page.clone(), vec![]));
    let changed = page.replace("2.46 (", "2.45 (");
    assert_eq!(check(&changed).0, page);
    let wrong = |page: &str| check(page).1.len();
    let numbers = ["2.4", "3", "2.46", ""].map(|number| wrong(&format!("<!--=a-->{number} ms")));
    assert_eq!(numbers, [1, 1, 0, 1]);
    assert_eq!(["none", "unknown"].map(|name| wrong(&format!("<!--={name}-->2.5"))), [1, 1]);
    assert_eq!(wrong(&table.replace("show case", "show nothing")), 1);
    assert_eq!(wrong(&table.replace("= a, c", "= b")), 1, "a case without figures");
}

#[test]
fn a_round_figure_may_be_written_for_one_nearby() {
    assert!(is_figure("240", 243.0) && is_figure("12", 12.2) && is_figure("12.2", 12.24));
    assert!(is_figure("0", 0.4) && !is_figure("0", 1.0));
    assert!(!is_figure("240", 246.0) && !is_figure("12.2", 12.3) && !is_figure("", 1.0));
}

#[test]
fn a_name_with_a_comma_stands_in_quotes() {
    assert_eq!(list("a, \"b, c\", d"), ["a", "b, c", "d"]);
}
