//! Text of pages and comments.

use crate::LIBRARY;
use crate::figures::method_names;
use crate::files::{self, Source, named, root};
use crate::modules::Crate;

/// Words that were replaced, and by which. Letters around them count: `roll` does not find
/// `scroll`.
const BANNED: [(&str, &str); 9] = [
    ("bell", "event count"),
    ("census", "liveness"),
    ("mortal", "model atomics"),
    ("roll", "rotate"),
    ("rolls", "rotates"),
    ("crowded", "pad until"),
    ("moods", "variation"),
    ("e.g", "for example"),
    ("i.e", "that is"),
];

/// The page of the words: it may name those that were replaced.
const VOCABULARY: &str = "docs/vocabulary.md";

/// Pages about earlier times, which keep their words.
const HISTORY: [&str; 2] = ["CHANGELOG.md", "docs/decisions/"];

fn texts() -> Vec<Source> {
    let mut all = Source::all();
    all.extend(named("docs/", &["md"]));
    for name in ["README.md", "ARCHITECTURE.md", "CHANGELOG.md", "CONTRIBUTING.md"] {
        let text = std::fs::read_to_string(files::root().join(name)).unwrap();
        all.push(Source { name: name.to_string(), text });
    }
    all
}

/// Files of the repository that are named somewhere and are not there: links of pages, pages named
/// in comments, and sources named in pages by their path below `crates/vellum/src`.
pub(crate) fn dead_references() -> Vec<String> {
    let mut dead = Vec::new();
    for source in texts() {
        for (line, number) in source.text.lines().zip(1..) {
            let missing = references(&source.name, line).into_iter().filter(|path| !exists(path));
            dead.extend(missing.map(|path| format!("{}:{number}: {path}", source.name)));
        }
    }
    dead
}

/// Links of `vellum-files` to the pages of `vellum` that lead to no type or no method: for rustdoc
/// they are addresses, which it does not check.
pub(crate) fn dead_links_to_the_library() -> Vec<String> {
    let library = LIBRARY.map(Crate::read);
    let methods = |of: &str| library.iter().flat_map(|one| method_names(one, of)).collect();
    let mut dead = Vec::new();
    for source in Source::below("crates/vellum-files/src/") {
        for (line, number) in source.text.lines().zip(1..) {
            for link in line.split("/vellum/").skip(1).filter_map(|rest| rest.split(')').next()) {
                let Some((page, method)) = link.split_once(".html#method.") else { continue };
                let of = page.rsplit('.').next().unwrap_or_default();
                let names: Vec<String> = methods(of);
                if !names.iter().any(|name| name == method) {
                    dead.push(format!("{}:{number}: {of}::{method}", source.name));
                }
            }
        }
    }
    dead
}

/// Memory orders of the protocol that the page about them does not have: `make orders` writes it.
pub(crate) fn unlisted_orders() -> Vec<String> {
    let page = std::fs::read_to_string(root().join("crates/vellum/tests/orders/steps.md")).unwrap();
    let is_strong = |line: &str| {
        ["Acquire", "Release", "AcqRel", "SeqCst"]
            .map(|order| format!("Ordering::{order}"))
            .iter()
            .any(|order| line.contains(order))
    };
    let mut unlisted = Vec::new();
    for source in Source::below("crates/vellum/src/shared/") {
        let name = source.name.rsplit("shared/").next().unwrap_or_default();
        if ["model", "weak", "primitive"].iter().any(|part| name.starts_with(part)) {
            continue;
        }
        for (number, line) in source.code_lines().filter(|(_, line)| is_strong(line)) {
            if !page.contains(&line.trim().replace('|', "\\|")) {
                unlisted.push(format!("{}:{number}: {}", source.name, line.trim()));
            }
        }
    }
    unlisted
}

/// Pages name sources from the root, or by a short form.
const BASES: [&str; 10] = [
    "",
    "crates/",
    "crates/vellum/src/",
    "crates/vellum-files/src/",
    "crates/vellum/",
    "crates/vellum/tests/",
    "crates/vellum-bench/src/suite/",
    "crates/vellum-cli/src/",
    "crates/vellum-parallel/",
    "crates/vellum-testkit/src/",
];

fn exists(path: &str) -> bool {
    BASES.iter().any(|base| root().join(base).join(path).exists())
}

fn references(file: &str, line: &str) -> Vec<String> {
    if file.ends_with(".rs") {
        return quoted(line).filter(|name| is_page(name)).map(str::to_string).collect();
    }
    let is_history = HISTORY.iter().any(|name| file.starts_with(name));
    let sources = quoted(line).filter(|name| !is_history && is_source(name)).map(str::to_string);
    links(file, line).into_iter().chain(sources).collect()
}

/// The texts between backquotes.
fn quoted(line: &str) -> impl Iterator<Item = &str> {
    line.split('`').skip(1).step_by(2)
}

fn is_plain(name: &str) -> bool {
    name.chars().all(|c| c.is_alphanumeric() || "/_.-".contains(c))
}

fn is_page(name: &str) -> bool {
    name.starts_with("docs/") && name.ends_with(".md") && is_plain(name)
}

/// A source that is named by its room, as `log/append/general.rs`.
fn is_source(name: &str) -> bool {
    name.ends_with(".rs") && name.contains('/') && is_plain(name)
}

/// Where the links of a page lead, as paths from the root; addresses elsewhere are left out.
fn links(file: &str, line: &str) -> Vec<String> {
    let folder = file.rsplit_once('/').map_or(String::new(), |(folder, _)| format!("{folder}/"));
    let targets = line.split("](").skip(1).filter_map(|rest| rest.split(')').next());
    let files = targets.map(|target| target.split('#').next().unwrap_or_default());
    files
        .filter(|name| !name.is_empty() && is_plain(name))
        .map(|name| folder.clone() + name)
        .collect()
}

/// The places of banned words.
pub(crate) fn banned_words() -> Vec<String> {
    let mut found = Vec::new();
    for source in texts() {
        if HISTORY.iter().any(|name| source.name.starts_with(name))
            || source.name.contains("/tidy/")
            || source.name == VOCABULARY
        {
            continue;
        }
        for (line, number) in source.text.lines().zip(1..) {
            for (word, better) in BANNED.iter().filter(|(word, _)| has_word(line, word)) {
                found.push(format!("{}:{number}: {word} (better: {better})", source.name));
            }
        }
    }
    found
}

fn has_word(line: &str, word: &str) -> bool {
    let is_letter = |c: char| c.is_alphanumeric() || c == '_';
    line.match_indices(word).any(|(at, _)| {
        !line[..at].ends_with(is_letter) && !line[at + word.len()..].starts_with(is_letter)
    })
}
