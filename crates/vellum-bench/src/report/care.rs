//! Warnings of several runs, each said once, with all that it holds for.

use super::Report;

/// So many of those that a warning is about are named.
const NAMED_MAX: usize = 3;

/// Warnings that say the same of different things, or with other numbers.
struct Same<'a> {
    suites: Vec<&'a str>,
    /// Their subjects. Those that differ in numbers alone are together.
    heads: Vec<Vec<&'a str>>,
    rests: Vec<&'a str>,
}

/// The warnings of all reports; of several, each with the names of its suites.
pub(super) fn once(reports: &[Report]) -> Vec<String> {
    let mut all: Vec<Same<'_>> = Vec::new();
    for report in reports {
        for warning in &report.warnings {
            add(&mut all, &report.suite, warning);
        }
    }
    all.iter().map(|same| same.text(reports.len() > 1)).collect()
}

fn add<'a>(all: &mut Vec<Same<'a>>, suite: &'a str, warning: &'a str) {
    let (head, rest) = warning.split_once(": ").unwrap_or(("", warning));
    let shape = shape(rest);
    let known = all.iter().position(|same| self::shape(same.rests[0]) == shape);
    let same = match known {
        Some(index) => &mut all[index],
        None => {
            all.push(Same { suites: Vec::new(), heads: Vec::new(), rests: Vec::new() });
            let last = all.len() - 1;
            &mut all[last]
        }
    };
    if !same.suites.contains(&suite) {
        same.suites.push(suite);
    }
    match same.heads.iter_mut().find(|heads| self::shape(heads[0]) == self::shape(head)) {
        Some(heads) => heads.push(head),
        None => same.heads.push(vec![head]),
    }
    same.rests.push(rest);
}

impl Same<'_> {
    fn text(&self, has_suites: bool) -> String {
        let mut heads: Vec<String> = self.heads.iter().map(|heads| ranged(heads)).collect();
        let more = heads.len().saturating_sub(NAMED_MAX);
        heads.truncate(NAMED_MAX);
        let mut head = heads.join("; ");
        if more > 0 {
            head = format!("{head} and {more} more");
        }
        let suites = if has_suites { self.suites.join(", ") } else { String::new() };
        let parts = [suites, head, ranged(&self.rests)];
        parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<String>>().join(": ")
    }
}

/// The text without its numbers.
fn shape(text: &str) -> String {
    let word = |word| if number(word).is_some() { "#" } else { word };
    text.split(' ').map(word).collect::<Vec<&str>>().join(" ")
}

fn number(word: &str) -> Option<f64> {
    word.parse().ok().filter(|number: &f64| number.is_finite())
}

/// Texts of one shape as one: from the least to the greatest of each number.
fn ranged(texts: &[&str]) -> String {
    let words: Vec<Vec<&str>> = texts.iter().map(|text| text.split(' ').collect()).collect();
    let word = |index: usize| {
        let mut words: Vec<&str> = words.iter().map(|words| words[index]).collect();
        let value = |word: &str| number(word).unwrap_or_default();
        words.sort_by(|one, other| value(one).total_cmp(&value(other)));
        let [least, greatest] = [words[0], words[words.len() - 1]];
        if least == greatest { least.to_string() } else { format!("{least} … {greatest}") }
    };
    (0..words[0].len()).map(word).collect::<Vec<String>>().join(" ")
}
