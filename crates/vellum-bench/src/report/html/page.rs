//! The page: the runs and their places, the findings, then every table with its charts.

use std::cell::Cell;

use maud::{DOCTYPE, Markup, PreEscaped, html};

use super::super::Report;
use super::super::care;
use super::super::group::Group;
use super::charts::charts;
use super::facts::facts;
use super::summary::summary;
use super::tables::table;

const STYLE: &str = include_str!("style.css");
const SCRIPT: &str = include_str!("script.js");
/// Nothing is fetched, whatever the page holds.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; \
                      img-src data:";

/// The facts under the title.
const HEADLINES: [&str; 2] = ["Date", "Machine"];

/// Everything, from the first byte to the last.
pub(super) fn page(documents: &[Report], recommendation: Option<&str>) -> Markup {
    let title = title(documents);
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta http-equiv="Content-Security-Policy" content=(POLICY);
                meta name="color-scheme" content="light dark";
                link rel="icon" href="data:,";
                title { (title) }
                style { (PreEscaped(STYLE)) }
            }
            body {
                @let (sections, warnings) = (sections(documents), warnings(documents));
                (top(&title, documents))
                (navigation(&sections, !warnings.is_empty()))
                main {
                    (conclusions(documents, recommendation))
                    (care(&warnings))
                    (results(&sections))
                    (conditions(documents))
                    (data(documents))
                }
                div #tip role="status" {}
                script { (PreEscaped(SCRIPT)) }
            }
        }
    }
}

fn title(documents: &[Report]) -> String {
    let mut suites: Vec<&str> = Vec::new();
    for document in documents {
        if !suites.contains(&document.suite.as_str()) {
            suites.push(&document.suite);
        }
    }
    format!("Vellum bench: {}", suites.join(", "))
}

/// The title, and the time and the machine of the run.
fn top(title: &str, documents: &[Report]) -> Markup {
    html! {
        header {
            div .title-line {
                h1 { (title) }
                button #theme type="button" { "Dark" }
            }
            p .when {
                @for fact in facts(documents).iter().filter(|fact| HEADLINES.contains(&fact.name)) {
                    span { (fact.values[0].1) @if fact.values.len() > 1 { " and later" } } " "
                }
            }
        }
    }
}

/// The navigation, which stays in sight.
fn navigation(sections: &[Section<'_>], has_warnings: bool) -> Markup {
    html! {
        nav aria-label="Sections" {
            a href="#findings" { "Findings" }
            @if has_warnings { a href="#warnings" { "Care" } }
            @for section in sections { a href=(format!("#{}", section.id)) { (section.title) } }
            a href="#conditions" { "Conditions" }
            a href="#data" { "Data" }
        }
    }
}

/// The place, the time and the machine of the measurements.
fn conditions(documents: &[Report]) -> Markup {
    html! {
        section #conditions {
            h2 { "Conditions" }
            dl .facts {
                @for fact in facts(documents) {
                    div {
                        dt { (fact.name) }
                        @for (suites, value) in &fact.values {
                            dd {
                                @if !suites.is_empty() { span .suite { (suites) } " " }
                                @if fact.name == "Command" { code { (value) } } @else { (value) }
                            }
                        }
                    }
                }
            }
        }
    }
}

/// A recommendation if there is one, then the findings of the rules.
fn conclusions(documents: &[Report], recommendation: Option<&str>) -> Markup {
    html! {
        @if let Some(recommendation) = recommendation {
            section #recommendation {
                h2 { "Recommendation" }
                p .recommendation { (recommendation.trim()) }
            }
        }
        section #findings {
            h2 { "What these figures say" }
            @match summary(documents) {
                Some(summary) => (summary),
                None => p { "Nothing: no case has a figure that could be better or worse." },
            }
        }
    }
}

/// Facts to know before a figure is believed.
fn warnings(documents: &[Report]) -> Vec<String> {
    let mut warnings: Vec<String> = Vec::new();
    for document in documents {
        let failed = document.cases.iter().filter(|row| row.failed.is_some()).count();
        if failed > 0 {
            let all = document.cases.len();
            let suite = &document.suite;
            warnings.push(format!(
                "{failed} of {all} cases of {suite} failed: see the tables for why."
            ));
        }
    }
    warnings.extend(care::once(documents));
    warnings
}

fn care(warnings: &[String]) -> Markup {
    html! {
        @if !warnings.is_empty() {
            section #warnings {
                h2 { "To be taken with care" }
                ul { @for warning in warnings { li { (warning) } } }
            }
        }
    }
}

/// The tables of a report on one filesystem.
struct Section<'a> {
    id: String,
    suite: &'a str,
    title: String,
    groups: Vec<Group<'a>>,
}

fn sections(documents: &[Report]) -> Vec<Section<'_>> {
    let mut sections: Vec<Section<'_>> = Vec::new();
    for document in documents {
        let first = sections.len();
        for group in Group::all(&document.cases) {
            let place = group.rows.first().and_then(|row| row.value("filesystem")).unwrap_or("");
            let title = match place {
                "" => document.suite.clone(),
                place => format!("{} on {place}", document.suite),
            };
            let title = title_of_run(&sections[..first], title);
            match sections[first..].iter_mut().find(|section| section.title == title) {
                Some(section) => section.groups.push(group),
                None => {
                    let id = format!("section-{}", sections.len());
                    let suite = document.suite.as_str();
                    sections.push(Section { id, suite, title, groups: vec![group] });
                }
            }
        }
    }
    sections
}

/// `title`, with a number if an earlier run has it: the suite was run there with other arguments.
fn title_of_run(before: &[Section<'_>], title: String) -> String {
    let runs = |section: &&Section<'_>| match section.title.strip_prefix(&title) {
        Some(rest) => rest.is_empty() || rest.starts_with(", run "),
        None => false,
    };
    match before.iter().filter(runs).count() {
        0 => title,
        earlier => format!("{title}, run {}", earlier + 1),
    }
}

fn results(sections: &[Section<'_>]) -> Markup {
    let counter = Cell::new(0);
    html! {
        @for section in sections {
            section .results id=(section.id) {
                h2 { (section.title) }
                @for group in &section.groups { (group_of(section.suite, group, &counter)) }
            }
        }
    }
}

/// A table with its charts above.
fn group_of(suite: &str, group: &Group<'_>, counter: &Cell<usize>) -> Markup {
    let (charts, left_out) = charts(suite, group);
    html! {
        div .group {
            @let (heading, common) = heading(group);
            h3 { (heading) @if !common.is_empty() { " " span .common { (common) } } }
            @if !charts.is_empty() {
                div .charts {
                    @for chart in &charts { (chart.markup(counter.replace(counter.get() + 1))) }
                }
            }
            @if left_out > 0 {
                p .hint { (left_out) " more charts are left out; the table has all figures." }
            }
            (table(group))
        }
    }
}

/// The table, and the conditions that all its rows have in common but the filesystem, which the
/// section has.
fn heading(group: &Group<'_>) -> (String, String) {
    let Some(row) = group.rows.first() else { return Default::default() };
    let place = row.value("filesystem").unwrap_or("");
    let parts = [row.table.as_str(), place].into_iter().filter(|part| !part.is_empty());
    let start = parts.collect::<Vec<&str>>().join(", ");
    let title = group.title();
    let common = title.strip_prefix(&start).unwrap_or_default().trim_start_matches(", ");
    let table = if row.table.is_empty() { "All cases" } else { &row.table };
    (table.to_string(), common.to_string())
}

/// The reports themselves, to be taken out again.
fn data(documents: &[Report]) -> Markup {
    html! {
        section #data {
            h2 { "Data" }
            p {
                "Every figure with the samples of all rounds, as "
                code { "--json" } " writes it and " code { "vellum bench compare" } " reads it."
            }
            p .downloads {
                @for (index, document) in documents.iter().enumerate() {
                    button type="button" data-download=(format!("data-{index}")) data-name=(file_name(document)) {
                        "Download " (file_name(document))
                    }
                }
            }
            @for (index, document) in documents.iter().enumerate() {
                script type="application/json" id=(format!("data-{index}")) { (json(document)) }
            }
        }
    }
}

fn file_name(document: &Report) -> String {
    let date = document.conditions.date.get(..10).unwrap_or_default();
    let safe = |name: char| if name.is_ascii_alphanumeric() { name } else { '-' };
    format!("{}-{date}.json", document.suite.chars().map(safe).collect::<String>())
}

/// JSON that can't end its element: `<` is only found within strings.
fn json(document: &Report) -> PreEscaped<String> {
    PreEscaped(document.to_json().unwrap_or_default().replace('<', "\\u003c"))
}
