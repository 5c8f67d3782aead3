//! The parts of a crate that can be published: its page, its licences, its terms, and its sources
//! whole. `make crates` packs and builds them; these tests check the rest at once.

use std::fs;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The crates that `make crates` packs.
fn published() -> Vec<PathBuf> {
    let rules = read(&root().join("packaging/dist.mk"));
    let line = rules.lines().find_map(|line| line.strip_prefix("PUBLISHED = ")).unwrap();
    line.split(' ').map(|name| root().join("crates").join(name)).collect()
}

fn sources(dir: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|end| end == "rs") {
            found.push(path);
        }
    }
}

#[test]
fn the_crates_that_are_packed_are_those_that_may_be_published() {
    for entry in fs::read_dir(root().join("crates")).unwrap() {
        let dir = entry.unwrap().path();
        let is_private = read(&dir.join("Cargo.toml")).contains("publish = false");
        let dir = dir.canonicalize().unwrap();
        assert_eq!(published().contains(&dir), !is_private, "{}", dir.display());
    }
}

#[test]
fn published_crates_have_a_page_licences_and_terms() {
    for dir in published() {
        assert!(read(&dir.join("README.md")).len() > 100, "{}", dir.display());
        for licence in ["LICENSE-MIT", "LICENSE-APACHE"] {
            assert_eq!(read(&dir.join(licence)), read(&root().join(licence)), "{}", dir.display());
        }
        let manifest = read(&dir.join("Cargo.toml"));
        for key in ["description", "license", "readme", "keywords", "categories"] {
            let is_there = manifest.lines().any(|line| line.starts_with(key));
            assert!(is_there, "{}: no {key}", dir.display());
        }
    }
}

/// The names of the files that the macros `include_str!` and `include_bytes!` of a source name.
fn included(text: &str) -> Vec<&str> {
    let macros = ["include_str!(\"", "include_bytes!(\"", "include!(\""];
    let found = macros.iter().flat_map(|word| text.split(word).skip(1));
    found.map(|after| after.split('"').next().unwrap()).collect()
}

/// Types that a program meets first.
const MET_FIRST: [&str; 13] = [
    "Backwards",
    "Batch",
    "Checkpoint",
    "CheckpointEvent",
    "Committer",
    "Cursor",
    "Log",
    "Options",
    "PollableReader",
    "Position",
    "Reader",
    "Reservation",
    "Tuning",
];

/// Whether the comment of a type in `source`, which is there, has an example.
fn has_example(source: &str, name: &str) -> Option<bool> {
    let is_head = |line: &str| {
        let after = line.strip_prefix("pub struct ").and_then(|line| line.strip_prefix(name));
        after.is_some_and(|after| after.starts_with([' ', '<', '(']))
    };
    let lines: Vec<&str> = source.lines().collect();
    let at = lines.iter().position(|line| is_head(line))?;
    let comment = lines[..at].iter().rev().take_while(|line| line.starts_with(['/', '#']));
    Some(comment.copied().any(|line| line == "/// ```"))
}

#[test]
fn the_types_that_a_program_meets_first_have_examples() {
    let mut found = Vec::new();
    for name in ["vellum", "vellum-files"] {
        sources(&root().join("crates").join(name).join("src"), &mut found);
    }
    let found: Vec<String> = found.iter().map(|path| read(path)).collect();
    for name in MET_FIRST {
        let answers = found.iter().find_map(|source| has_example(source, name));
        assert_eq!(answers, Some(true), "{name} has no example");
    }
}

#[test]
fn the_documentation_of_the_library_begins_with_its_page_and_has_the_guide() {
    let library = read(&root().join("crates/vellum/src/lib.rs"));
    assert!(library.starts_with("#![doc = include_str!(\"../README.md\")]"));
    assert!(library.contains("pub mod guide;"));
    let guide = read(&root().join("crates/vellum/src/guide.rs"));
    assert!(guide.contains("#![doc = include_str!(\"../guide.md\")]"));
    let guide = root().join("crates/vellum/guide.md");
    assert_eq!(read(&guide), read(&root().join("docs/rust.md")));
}

#[test]
fn published_crates_include_nothing_from_outside() {
    for dir in published() {
        let mut found = Vec::new();
        sources(&dir.join("src"), &mut found);
        for path in found {
            for name in included(&read(&path)) {
                // A link inside is packed as the file that it leads to.
                let (folder, file) = name.rsplit_once('/').unwrap_or((".", name));
                let folder = path.parent().unwrap().join(folder).canonicalize();
                let is_inside = folder
                    .is_ok_and(|folder| folder.starts_with(&dir) && folder.join(file).exists());
                assert!(is_inside, "{}: {name} is outside of the package", path.display());
            }
        }
    }
}
