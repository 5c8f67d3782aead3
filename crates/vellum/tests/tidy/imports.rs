//! Which file of the library imports which, by its `use` items and paths that start with `crate::`.

use std::collections::{BTreeMap, BTreeSet};

use crate::files::Source;

const BASE: &str = "crates/vellum/src/";

/// Modules, and those that each imports. The crate's root counts for nobody: it only gives names.
pub(crate) struct Graph {
    arrows: BTreeMap<String, BTreeSet<String>>,
}

/// The room of a module: the first part of its path.
pub(crate) fn room(module: &str) -> &str {
    module.split("::").next().unwrap_or_default()
}

impl Graph {
    pub(crate) fn of_library() -> Graph {
        let sources: Vec<Source> = Source::below(BASE);
        // The model of the protocol is a test.
        let sources = sources.iter().filter(|source| !source.name.contains("/model"));
        let sources: BTreeMap<String, &Source> =
            sources.map(|source| (module_of(&source.name), source)).collect();
        let names = names_of_root(sources.get(""));
        let module_of_path = |path: &str| {
            let path = names.get(path.split("::").next()?).map_or(path, String::as_str);
            longest_module(path, |name| sources.contains_key(name))
        };
        let arrows =
            sources.iter().filter(|(module, _)| !module.is_empty()).map(|(module, source)| {
                let named = imports(source).into_iter();
                let used = named.filter_map(|path| module_of_path(&path));
                (module.clone(), used.filter(|used| used != module).collect())
            });
        Graph { arrows: arrows.collect() }
    }

    pub(crate) fn arrows(&self) -> impl Iterator<Item = (&str, &str)> {
        self.arrows.iter().flat_map(|(from, all)| all.iter().map(|to| (from.as_str(), to.as_str())))
    }

    /// Each module from which arrows lead back to it, with the way.
    pub(crate) fn circles(&self) -> Vec<String> {
        self.arrows.keys().filter_map(|start| self.way_back(start)).collect()
    }

    fn way_back(&self, start: &str) -> Option<String> {
        let mut ways = vec![vec![start]];
        let mut seen = BTreeSet::new();
        while let Some(way) = ways.pop() {
            for next in self.arrows.get(*way.last()?).into_iter().flatten() {
                let further: Vec<&str> = way.iter().copied().chain([next.as_str()]).collect();
                if next == start {
                    return Some(further.join(" -> "));
                }
                if seen.insert(next) {
                    ways.push(further);
                }
            }
        }
        None
    }
}

/// The module that a file holds, as a path from the crate's root.
fn module_of(name: &str) -> String {
    let path = name[BASE.len()..].trim_end_matches(".rs").trim_end_matches("/mod");
    if path == "lib" { String::new() } else { path.replace('/', "::") }
}

/// The names that the crate's root gives to what its modules export, and what they stand for.
fn names_of_root(root: Option<&&Source>) -> BTreeMap<String, String> {
    let text = root.map_or("", |root| root.text.as_str());
    let mut names = BTreeMap::new();
    for item in text.split("pub use ").skip(1) {
        let mut all = Vec::new();
        expand("", item.trim_start_matches("self::"), &mut all);
        names.extend(
            all.into_iter().map(|path| {
                (path.rsplit("::").next().unwrap_or_default().to_string(), path.clone())
            }),
        );
    }
    names
}

/// The longest beginning of a path that is a module.
fn longest_module(path: &str, is_module: impl Fn(&str) -> bool) -> Option<String> {
    let parts: Vec<&str> = path.split("::").collect();
    (1..=parts.len()).rev().map(|len| parts[..len].join("::")).find(|name| is_module(name))
}

/// Every path that a file takes from the crate, without the leading `crate::`.
fn imports(source: &Source) -> Vec<String> {
    let code: Vec<&str> = source.code_lines().map(|(_, line)| line).collect();
    let code = code.join(" ");
    let mut all = Vec::new();
    let mut rest = code.as_str();
    while let Some(at) = rest.find("crate::") {
        rest = &rest[at + "crate::".len()..];
        expand("", rest, &mut all);
    }
    all
}

/// The paths that begin here, groups in braces taken apart. Returns what follows them.
fn expand<'a>(prefix: &str, mut rest: &'a str, all: &mut Vec<String>) -> &'a str {
    let len =
        rest.find(|c: char| !c.is_alphanumeric() && c != '_' && c != ':').unwrap_or(rest.len());
    let path = format!("{prefix}{}", &rest[..len]);
    rest = &rest[len..];
    let is_group = rest.starts_with('{') && (path.is_empty() || path.ends_with("::"));
    if !is_group {
        all.push(path.trim_end_matches("::").to_string());
        return rest;
    }
    loop {
        rest = expand(&path, rest[1..].trim_start(), all).trim_start();
        while !rest.starts_with([',', '}']) && !rest.is_empty() {
            // `as name`
            rest = &rest[rest.chars().next().map_or(0, char::len_utf8)..];
        }
        if !rest.starts_with(',') {
            return rest.strip_prefix('}').unwrap_or(rest);
        }
        if rest[1..].trim_start().starts_with('}') {
            return &rest[1..].trim_start()[1..];
        }
    }
}
