//! A ceiling is raised by a commit of its own, whose subject begins with "Raise" and whose body
//! says what shrinks instead.

use std::collections::BTreeMap;
use std::process::Command;

use crate::files::root;

/// The ceilings are here; where this file was new, the rule began.
const FOLDER: &str = "crates/vellum-docs/tests/tidy/";
const THIS_FILE: &str = "crates/vellum-docs/tests/tidy/raises.rs";
/// Commits that are checked: the newest.
const COMMITS_MAX: &str = "20";

/// The output of a git command in the repository; none if it failed.
fn git(arguments: &[&str]) -> Option<String> {
    let output = Command::new("git").current_dir(root()).args(arguments).output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Newest commits that changed the ceilings under this rule, and have a parent here. The error says
/// why none can be had.
fn commits() -> Result<Vec<String>, String> {
    let first = git(&["log", "--diff-filter=A", "--format=%H", "--", THIS_FILE]);
    let first = first.ok_or("there is no git history here")?;
    let Some(first) = first.lines().last() else { return Ok(Vec::new()) };
    let newest = ["log", "--no-merges", "--max-count", COMMITS_MAX, "--format=%H"];
    let range = format!("{first}..HEAD");
    let listed = git(&[&newest[..], &[&range, "--", FOLDER]].concat());
    Ok(listed.ok_or("git cannot list the commits")?.lines().map(String::from).collect())
}

/// Ceilings that a commit raised although it is not named for that, or that it raised beside
/// another change.
fn faults(commit: &str) -> Vec<String> {
    let (old, new) = (ceilings_at(&format!("{commit}^")), ceilings_at(commit));
    let raised: Vec<String> = raised(&old, &new);
    if raised.is_empty() {
        return raised;
    }
    let subject = git(&["show", "--no-patch", "--format=%s", commit]).unwrap_or_default();
    let changed = git(&["show", "--name-only", "--format=", commit]).unwrap_or_default();
    let others: Vec<&str> = changed.lines().filter(|name| !name.starts_with(FOLDER)).collect();
    let is_right = subject.starts_with("Raise ") && others.is_empty();
    let commit = &commit[..12];
    let fault = |ceiling| {
        format!(
            "{commit} ({}) raises {ceiling}, beside {} other files",
            subject.trim(),
            others.len()
        )
    };
    raised.into_iter().filter(|_| !is_right).map(fault).collect()
}

/// Every ceiling of a commit, by file, table and name.
fn ceilings_at(commit: &str) -> BTreeMap<String, usize> {
    let names = git(&["ls-tree", "--name-only", commit, FOLDER]).unwrap_or_default();
    let texts = names.lines().filter_map(|name| {
        Some((name.rsplit('/').next()?, git(&["show", &format!("{commit}:{name}")])?))
    });
    texts.flat_map(|(name, text)| ceilings(name, &text)).collect()
}

/// The ceilings of one file: rows of a name and a number, and constants.
fn ceilings(file: &str, text: &str) -> Vec<(String, usize)> {
    let mut found = Vec::new();
    let mut table = "";
    for line in text.lines() {
        let start = line.strip_prefix("pub(crate) ").unwrap_or(line);
        let is_table = start.strip_prefix("const ").or_else(|| start.strip_prefix("fn "));
        if let Some(rest) = is_table {
            table = rest.split(['(', ':', '<']).next().unwrap_or_default();
        }
        let row = line.trim().strip_prefix("(\"").and_then(|rest| rest.split_once("\", "));
        let constant = line.split_once(": usize = ").map(|(_, number)| ("", number));
        if let Some((name, rest)) = row.or(constant)
            && let Some(number) = number(rest)
        {
            found.push((format!("{file} {table} {name}").trim_end().to_string(), number));
        }
    }
    found
}

fn number(text: &str) -> Option<usize> {
    let digits: String = text.chars().take_while(|c| c.is_ascii_digit() || *c == '_').collect();
    digits.replace('_', "").parse().ok()
}

fn raised(old: &BTreeMap<String, usize>, new: &BTreeMap<String, usize>) -> Vec<String> {
    let pairs = new.iter().filter_map(|(name, now)| Some((name, *old.get(name)?, *now)));
    let higher = pairs.filter(|(_, before, now)| now > before);
    higher.map(|(name, before, now)| format!("{name} from {before} to {now}")).collect()
}

#[test]
fn a_ceiling_is_raised_in_a_commit_of_its_own() {
    let commits = match commits() {
        Ok(commits) => commits,
        Err(why) => return vellum_testing::missing::skip(why),
    };
    let faults: Vec<String> = commits.iter().flat_map(|commit| faults(commit)).collect();
    crate::report("ceilings that a commit raised beside something else", &faults);
}

#[test]
fn a_raised_ceiling_is_seen_in_tables_and_constants() {
    let text = "const TABLE: [(&str, usize); 2] = [\n    (\"one\", 1_000),\n    (\"two\", 2),\n];\n\
        const MOST: usize = 62;\nfn rows() {\n    (\"words of docs/\", 7, words()),\n";
    let old: BTreeMap<_, _> = ceilings("a.rs", text).into_iter().collect();
    let names: Vec<&str> = old.keys().map(String::as_str).collect();
    let all = ["a.rs MOST", "a.rs TABLE one", "a.rs TABLE two", "a.rs rows words of docs/"];
    assert_eq!(names, all);
    let mut new = old.clone();
    new.insert("a.rs MOST".to_string(), 63);
    new.insert("a.rs TABLE one".to_string(), 999);
    new.insert("a.rs TABLE new".to_string(), 5);
    assert_eq!(raised(&old, &new), ["a.rs MOST from 62 to 63"]);
}
