//! The sources of the repository.

use std::fs;
use std::path::{Path, PathBuf};

/// One file, by its name from the root of the repository.
pub(crate) struct Source {
    pub(crate) name: String,
    pub(crate) text: String,
}

pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

impl Source {
    /// Every Rust source of every crate.
    pub(crate) fn all() -> Vec<Source> {
        let mut all = Source::below("crates/");
        ["examples/", "fuzz/"].iter().for_each(|folder| all.extend(Source::below(folder)));
        all
    }

    /// The Rust sources below a folder.
    pub(crate) fn below(folder: &str) -> Vec<Source> {
        named(folder, &["rs"])
    }

    /// Its lines with their numbers, without comments and without the tests at its end.
    pub(crate) fn code_lines(&self) -> impl Iterator<Item = (usize, &str)> {
        let code = self.text.lines().take_while(|line| {
            !line.starts_with("#[cfg(test") && !line.starts_with("#[cfg(all(test")
        });
        code.zip(1..).map(|(line, number)| (number, line.split("//").next().unwrap_or_default()))
    }
}

/// The files below a folder with one of these extensions, sorted by name.
pub(crate) fn named(folder: &str, extensions: &[&str]) -> Vec<Source> {
    let root = root();
    let mut found = Vec::new();
    collect(&root.join(folder), extensions, &mut found);
    found.sort();
    let read = |path: PathBuf| {
        let name = path.strip_prefix(&root).unwrap().to_str().unwrap().to_string();
        Source { name, text: fs::read_to_string(path).unwrap() }
    };
    found.into_iter().map(read).collect()
}

fn collect(folder: &Path, extensions: &[&str], found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        let name = entry.file_name();
        let is_hidden = name.to_string_lossy().starts_with('.');
        if path.is_dir() && !is_hidden && name != "target" {
            collect(&path, extensions, found);
        } else if path.extension().is_some_and(|have| extensions.iter().any(|want| have == *want)) {
            found.push(path);
        }
    }
}
