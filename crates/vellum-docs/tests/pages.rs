//! The pages are whole: every link leads somewhere, every page is a chapter of the site.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn pages_in(dir: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(root().join(dir)).unwrap();
    let paths = entries.map(|entry| entry.unwrap().path());
    paths.filter(|path| path.extension().is_some_and(|end| end == "md")).collect()
}

fn pages() -> Vec<PathBuf> {
    ["", "docs", "docs/decisions"].into_iter().flat_map(pages_in).collect()
}

/// The lines of a page that are no code.
fn prose(text: &str) -> impl Iterator<Item = &str> {
    let mut is_code = false;
    text.lines().filter(move |line| {
        let is_fence = line.trim_start().starts_with("```");
        is_code ^= is_fence;
        !is_code && !is_fence
    })
}

/// The targets of the links of a page, as they are written.
fn links(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    for line in prose(text) {
        for (at, _) in line.match_indices("](") {
            let target = &line[at + 2..];
            found.push(target[..target.find(')').unwrap_or(0)].to_string());
        }
        if let Some((label, target)) = line.split_once("]: ")
            && label.starts_with('[')
            && !label.contains(']')
        {
            found.push(target.to_string());
        }
    }
    found
}

/// The anchor of a heading, as the sites that show Markdown make it.
fn anchor(heading: &str) -> String {
    let kept = heading.trim().chars().filter(|c| c.is_alphanumeric() || " -_".contains(*c));
    kept.collect::<String>().to_lowercase().replace(' ', "-")
}

fn anchors(text: &str) -> BTreeSet<String> {
    prose(text)
        .filter(|line| line.starts_with('#'))
        .map(|line| anchor(line.trim_start_matches('#')))
        .collect()
}

/// The fault of a link of `page`, if it has one.
fn fault(page: &Path, link: &str) -> Option<String> {
    if link.starts_with("https://") {
        return None;
    }
    let (file, fragment) = link.split_once('#').unwrap_or((link, ""));
    let target =
        if file.is_empty() { page.to_path_buf() } else { page.parent().unwrap().join(file) };
    if !target.exists() {
        return Some(format!("{}: {link} leads nowhere", page.display()));
    }
    let is_missing = !fragment.is_empty() && !anchors(&read(&target)).contains(fragment);
    is_missing.then(|| format!("{}: no heading for {link}", page.display()))
}

#[test]
fn every_link_leads_somewhere() {
    let mut count = 0;
    let mut faults = Vec::new();
    for page in pages() {
        let found = links(&read(&page));
        count += found.len();
        faults.extend(found.iter().filter_map(|link| fault(&page, link)));
    }
    assert!(faults.is_empty(), "{faults:#?}");
    assert!(count > 100, "only {count} links");
}

/// Rows of a table without a head: sites show them as text.
fn loose_rows(text: &str) -> Vec<&str> {
    let lines: Vec<&str> = prose(text).filter(|line| !line.starts_with("<!--")).collect();
    let is_row = |at: usize| lines.get(at).is_some_and(|line| line.starts_with('|'));
    let is_rule = |at: usize| is_row(at) && lines[at].chars().all(|c| "|:- ".contains(c));
    let is_loose = |at: &usize| is_row(*at) && (*at == 0 || !is_row(at - 1)) && !is_rule(at + 1);
    (0..lines.len()).filter(is_loose).map(|at| lines[at]).collect()
}

#[test]
fn every_table_has_a_head() {
    assert_eq!(loose_rows("| a |\n|---|\n| 1 |\n\n| 2 |\n"), ["| 2 |"]);
    for page in pages() {
        assert_eq!(loose_rows(&read(&page)), [""; 0], "{}", page.display());
    }
}

#[test]
fn every_page_is_a_chapter() {
    let docs = root().join("docs");
    let chapters = links(&read(&docs.join("SUMMARY.md")));
    let chapters: BTreeSet<PathBuf> = chapters.iter().map(|link| docs.join(link)).collect();
    let mut written: BTreeSet<PathBuf> =
        pages_in("docs").into_iter().chain(pages_in("docs/decisions")).collect();
    written.remove(&docs.join("SUMMARY.md"));
    assert_eq!(chapters, written);
}

#[test]
fn the_front_page_is_short() {
    let text = read(&root().join("README.md"));
    // The visible lines: no comments, and no rules of tables.
    let lines = text.lines().filter(|line| !line.starts_with("<!--"));
    let parts = lines.flat_map(str::split_whitespace);
    let words = parts.filter(|part| part.contains(char::is_alphanumeric)).count();
    assert!(words <= 800, "{words} words");
}

/// The Makefile, and those that it includes.
fn makefiles() -> Vec<String> {
    let first = read(&root().join("Makefile"));
    let included = first.lines().filter_map(|line| line.strip_prefix("include "));
    let included: Vec<String> = included.map(|name| read(&root().join(name))).collect();
    [first].into_iter().chain(included).collect()
}

#[test]
fn every_target_of_the_makefiles_is_explained() {
    for makefile in makefiles() {
        let (_, names) = makefile.split_once(".PHONY:").unwrap();
        let names = names.split("\n\n").next().unwrap().replace('\\', "");
        let is_explained = |name: &&str| {
            let start = format!("{name}:");
            makefile.lines().any(|line| line.starts_with(&start) && line.contains("##"))
        };
        let silent: Vec<&str> =
            names.split_whitespace().filter(|name| !is_explained(name)).collect();
        assert!(silent.is_empty(), "{silent:?}");
    }
}

#[test]
fn the_makefile_is_short_and_its_help_fits_a_screen() {
    let makefiles = makefiles();
    assert!(makefiles[0].len() < 10_000, "{} bytes", makefiles[0].len());
    let listed = makefiles.iter().flat_map(|makefile| makefile.lines());
    let listed = listed.filter(|line| line.contains(": ") && line.contains("##* ")).count();
    assert!((15..=24).contains(&listed), "{listed} lines");
}

#[test]
fn the_page_on_stability_names_every_directory_of_golden_logs() {
    let page = read(&root().join("docs/stability.md"));
    for entry in fs::read_dir(root().join("crates/vellum/tests/golden")).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        assert!(page.contains(&format!("`{name}`")), "docs/stability.md: no line for {name}");
    }
}
