//! A diagnosis as one HTML page: the verdict in colour on top, then for each program its limits,
//! the causes, the line to paste, and the curve over time.
//!
//! The page fetches nothing and has no script. No colour says anything that no word says.

use std::path::Path;

use maud::{DOCTYPE, Markup, PreEscaped, html};
use serde_json::Value;
use vellum::internal::escaped_lines;
use vellum_bench::doctor::{Diagnosis, Finding, Judged, Measured, Verdict, Weight};

mod curve;
mod facts;
#[cfg(test)]
mod tests;

const STYLE: &str = include_str!("style.css");
/// Nothing is fetched, no matter what content the page has.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; img-src data:";

/// The page about `directory`. Names of others have nothing in it that a browser or a terminal
/// obeys.
pub(crate) fn page(diagnosis: &Diagnosis, directory: &Path) -> String {
    let directory = directory.display().to_string();
    escaped_lines(markup(diagnosis, &directory).into_string()).to_string()
}

fn markup(diagnosis: &Diagnosis, directory: &str) -> Markup {
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta http-equiv="Content-Security-Policy" content=(POLICY);
                meta name="color-scheme" content="light dark";
                link rel="icon" href="data:,";
                title { (diagnosis.verdict().words()) ": " (directory) }
                style { (PreEscaped(STYLE)) }
            }
            body {
                (top(diagnosis, directory))
                main {
                    @for judged in &diagnosis.programs { (program(diagnosis, judged)) }
                    (notes(diagnosis))
                    (calls(diagnosis))
                    (facts::conditions(diagnosis))
                }
            }
        }
    }
}

/// The worst verdict, and the verdict on each program.
fn top(diagnosis: &Diagnosis, directory: &str) -> Markup {
    let verdict = diagnosis.verdict();
    html! {
        header .verdict .(class(verdict)) {
            p .question { "Is this disk good enough? " code { (directory) } }
            h1 { (verdict.words()) }
            ul {
                @for judged in &diagnosis.programs {
                    li { a href={ "#" (anchor(judged)) } { (judged.name) } ": " (said(judged)) }
                }
            }
        }
        @if !diagnosis.report.warnings.is_empty() {
            section .care {
                h2 { "To be taken with care" }
                ul { @for warning in &diagnosis.report.warnings { li { (warning) } } }
            }
        }
    }
}

fn class(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Good => "good",
        Verdict::Marginal => "marginal",
        Verdict::CannotTell => "cannot-tell",
        Verdict::NotGoodEnough => "not-good-enough",
    }
}

/// The verdict in the words of the text, which has more than one where it is not sure.
fn said(judged: &Judged) -> String {
    let line = judged.line();
    let behind = line.strip_prefix(&format!("{}: ", judged.name)).unwrap_or(&line);
    behind.split(". ").next().unwrap_or_default().to_owned()
}

/// The name of a program as a place of the page.
fn anchor(judged: &Judged) -> String {
    let letters = judged.name.chars().filter(char::is_ascii_alphanumeric);
    format!("program-{}", letters.collect::<String>())
}

fn program(diagnosis: &Diagnosis, judged: &Judged) -> Markup {
    html! {
        section .program id=(anchor(judged)) {
            h2 { (judged.name) " " span .badge .(class(judged.verdict)) { (said(judged)) } }
            p .reason { (judged.reason) }
            (limits(judged))
            (causes(diagnosis, judged))
            @if let Some(change) = &judged.change {
                h3 { "Change" }
                pre { code { (change) } }
            }
            @if let Some(curve) = curve::curve(judged) { (curve) }
            p .hint { "Waits for the disk: " (judged.about) ". " (judged.source) "." }
        }
    }
}

fn badge(verdict: Verdict) -> Markup {
    html! { span .badge .(class(verdict)) { (verdict.words()) } }
}

fn limits(judged: &Judged) -> Markup {
    let row = |Measured { limit, value_ms, verdict, .. }: &Measured| {
        html! {
            tr {
                th scope="row" { (limit.figure) }
                td .number { (millis(*value_ms)) }
                td .number { (millis(limit.good_ms)) }
                td .number { (millis(limit.bad_ms)) }
                td { (badge(*verdict)) }
                td .source { (limit.source) }
            }
        }
    };
    html! {
        @if !judged.limits.is_empty() {
            h3 { "Limits" }
            div .scroll {
                table {
                    thead {
                        tr {
                            th scope="col" { "of" }
                            th scope="col" .number { "measured" }
                            th scope="col" .number { "good up to" }
                            th scope="col" .number { "bad beyond" }
                            th scope="col" { "so" }
                            th scope="col" { "where the limit is from" }
                        }
                    }
                    tbody { @for measured in &judged.limits { (row(measured)) } }
                }
            }
        }
        p .hint {
            (judged.operations) " writes were measured."
            @if let Some(share) = judged.slow_share {
                " In " (format!("{:.1}", share * 100.0))
                " % of the time a write took longer than the first limit allows."
            }
        }
    }
}

/// A time of three digits that count.
fn millis(value_ms: f64) -> String {
    match value_ms {
        100.0.. => format!("{value_ms:.0} ms"),
        10.0.. => format!("{value_ms:.1} ms"),
        1.0.. => format!("{value_ms:.2} ms"),
        _ => format!("{value_ms:.3} ms"),
    }
}

/// The findings that explain the verdict of a program, or make it doubtful.
fn causes(diagnosis: &Diagnosis, judged: &Judged) -> Markup {
    let told: Vec<&Finding> =
        judged.causes.iter().filter(|one| one.weight != Weight::Note).collect();
    html! {
        @if !told.is_empty() {
            h3 { "Causes" }
            ul .causes { @for finding in told { (cause(diagnosis, finding, None)) } }
        }
    }
}

/// The notes, each once, with the programs that it was found for where not for all.
fn notes(diagnosis: &Diagnosis) -> Markup {
    let mut notes: Vec<(&Finding, Vec<&str>)> = Vec::new();
    for judged in &diagnosis.programs {
        for finding in judged.causes.iter().filter(|one| one.weight == Weight::Note) {
            match notes.iter_mut().find(|(known, _)| *known == finding) {
                Some((_, names)) => names.push(&judged.name),
                None => notes.push((finding, vec![&judged.name])),
            }
        }
    }
    let all = diagnosis.programs.len();
    html! {
        @if !notes.is_empty() {
            section {
                h2 { "Good to know" }
                ul .causes {
                    @for (finding, names) in notes {
                        (cause(diagnosis, finding, (names.len() < all).then(|| names.join(", "))))
                    }
                }
            }
        }
    }
}

fn cause(diagnosis: &Diagnosis, finding: &Finding, names: Option<String>) -> Markup {
    let weight = match finding.weight {
        Weight::Danger => "danger",
        Weight::Reason => "reason",
        Weight::Care => "care",
        Weight::Note => "note",
    };
    html! {
        li {
            code { (finding.cause) } " "
            span .weight { (weight) @if diagnosis.accepted.contains(&finding.cause) { ", accepted" } }
            @if let Some(names) = names { " (" (names) ")" }
            ": " (finding.what)
        }
    }
}

/// The cost of each single call that was tried.
fn calls(diagnosis: &Diagnosis) -> Markup {
    let Ok(Value::Object(tried)) = serde_json::to_value(diagnosis.probe) else { return html! {} };
    let calls = tried.iter().filter_map(|(name, value)| {
        let name = name.strip_suffix("_us")?.replace('_', " ");
        Some((name, value.as_f64()? / 1e3))
    });
    let calls: Vec<(String, f64)> = calls.collect();
    html! {
        @if !calls.is_empty() {
            section {
                h2 { "Single calls" }
                dl .facts {
                    @for (name, value_ms) in calls { div { dt { (name) } dd { (millis(value_ms)) } } }
                }
            }
        }
    }
}
