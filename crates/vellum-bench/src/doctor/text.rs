//! A diagnosis for a terminal.

use vellum::internal::escaped_lines;

use super::diagnosis::Diagnosis;
use super::evidence::Finding;
use super::program::Figure;
use super::spark::sparkline;
use super::verdict::Judged;
use crate::report;

/// So wide is a line of bars.
const BARS: usize = 60;

impl Diagnosis {
    /// For a terminal, at most 100 columns wide but for lines to paste.
    pub fn text(&self) -> String {
        escaped_lines(text(self)).to_string()
    }
}

fn text(diagnosis: &Diagnosis) -> String {
    let mut text = String::new();
    for line in diagnosis.surroundings.lines().into_iter().take(1) {
        text.push_str(&report::wrapped(&line));
    }
    for judged in &diagnosis.programs {
        text.push('\n');
        text.push_str(&program(judged));
    }
    let causes = shared(diagnosis);
    if !causes.is_empty() {
        text.push_str("\nFound:\n");
        for (names, finding) in causes {
            let whose = if names.is_empty() { String::new() } else { format!(" ({names})") };
            let Finding { cause, what, .. } = finding;
            let accepted = diagnosis.accepted.contains(cause);
            let accepted = if accepted { " (accepted)" } else { "" };
            text.push_str(&report::wrapped(&format!("- {cause}{accepted}{whose}: {what}")));
        }
    }
    for warning in &diagnosis.report.warnings {
        text.push('\n');
        text.push_str(&report::wrapped(&format!("To be taken with care: {warning}.")));
    }
    text
}

fn program(judged: &Judged) -> String {
    let mut text = report::wrapped(&judged.line());
    text.push_str(&figures(judged));
    if let Some(change) = &judged.change {
        text.push_str("  Change:\n");
        for line in change.lines() {
            text.push_str(&format!("    {line}\n"));
        }
    }
    text
}

/// The bars, and the figures that have a limit.
fn figures(judged: &Judged) -> String {
    if judged.ticks.is_empty() {
        return String::new();
    }
    let bars = sparkline(&judged.ticks, BARS);
    let limits = judged.limits.iter().map(|one| {
        let figure = match one.limit.figure {
            Figure::FlushP99 => "flush p99".to_string(),
            Figure::FlushMax => "flush max".to_string(),
            figure => figure.to_string(),
        };
        format!("{figure} {:.2} ms of {} ms", one.value_ms, one.limit.good_ms)
    });
    let limits: Vec<String> = limits.collect();
    format!("  {bars}\n  {}, {} writes\n", limits.join(", "), judged.operations)
}

/// Each cause once, with the programs that it was found for where that is not all of them.
fn shared(diagnosis: &Diagnosis) -> Vec<(String, &Finding)> {
    let all = diagnosis.programs.len();
    let mut causes: Vec<(Vec<&str>, &Finding)> = Vec::new();
    for judged in &diagnosis.programs {
        for finding in &judged.causes {
            match causes.iter_mut().find(|(_, known)| known.cause == finding.cause) {
                Some((names, _)) => names.push(&judged.name),
                None => causes.push((vec![&judged.name], finding)),
            }
        }
    }
    causes.sort_by_key(|(_, finding)| (finding.weight, finding.cause));
    let named =
        |names: Vec<&str>| if names.len() == all { String::new() } else { names.join(", ") };
    causes.into_iter().map(|(names, finding)| (named(names), finding)).collect()
}
