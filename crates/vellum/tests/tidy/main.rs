//! Rules of the house that no compiler checks: which room uses which, where `unsafe` stands, who
//! opens files, how long lines are, that files named in comments and pages exist, and which words
//! are not used any more.
//!
//! A rule that is broken is reported with file and line. Each was seen to fail.

mod files;
mod imports;
mod openers;
mod pages;

use std::collections::BTreeMap;

use files::Source;
use imports::Graph;

/// Rooms of the library from the ground up: a room uses only those above it in this table, and
/// itself. `ARCHITECTURE.md` has the same table with reasons.
const ROOMS: [&str; 15] = [
    "lsn",
    "escape",
    "error",
    "bus_errors",
    "identity",
    "options",
    "format",
    "shared",
    "knowledge",
    "segment",
    "advice",
    "log",
    "events",
    "tracing",
    "logger",
];

/// Where `unsafe` may stand: of a crate that is not named, nowhere.
const UNSAFE_ROOMS: [(&str, &[&str]); 3] = [
    ("crates/vellum/src/", &["shared/exclusive.rs", "shared/region.rs"]),
    ("crates/vellum-parallel/src/", &[]),
    ("crates/vellum-cli/src/", &[]),
];

/// Of comments. `rustfmt` breaks code there too, but for strings and templates of macros.
const COLUMNS_MAX: usize = 100;
const TEMPLATE_COLUMNS_MAX: usize = 120;

fn report(what: &str, faults: &[String]) {
    assert!(faults.is_empty(), "{what}:\n{}", faults.join("\n"));
}

#[test]
fn a_room_uses_only_those_above_it() {
    let rank: BTreeMap<&str, usize> = ROOMS.iter().copied().zip(0..).collect();
    let graph = Graph::of_library();
    let mut faults = Vec::new();
    for (from, to) in graph.arrows() {
        let (room, used) = (imports::room(from), imports::room(to));
        match (rank.get(room), rank.get(used)) {
            (Some(own), Some(other)) if other <= own => {}
            (None, _) => faults.push(format!("{from}: the room {room:?} is not in the table")),
            _ => faults.push(format!("{from} uses {to}")),
        }
    }
    report("arrows against the table of rooms", &faults);
}

#[test]
fn no_file_of_the_library_imports_another_in_a_circle() {
    let circles = Graph::of_library().circles();
    report("files that import each other in a circle", &circles);
}

#[test]
fn unsafe_stands_in_the_rooms_for_it_alone() {
    let mut faults = Vec::new();
    for (base, rooms) in UNSAFE_ROOMS {
        for source in Source::below(base) {
            let is_room = rooms.iter().any(|room| source.name[base.len()..].starts_with(room));
            let has_block = |line: &str| line.contains("unsafe {") || line.contains("unsafe fn");
            let lines = source.code_lines().filter(|(_, line)| !is_room && has_block(line));
            faults.extend(lines.map(|(number, _)| format!("{}:{number}", source.name)));
        }
    }
    report("unsafe outside of its rooms", &faults);
}

#[test]
fn a_file_is_opened_by_the_functions_for_it() {
    report("files that are opened in another way", &openers::faults());
}

#[test]
fn no_line_of_code_is_too_long() {
    let mut faults = Vec::new();
    for source in Source::all() {
        let long = source.text.lines().zip(1..).filter(|(line, _)| is_too_long(line));
        faults.extend(long.map(|(_, number)| format!("{}:{number}", source.name)));
    }
    report(&format!("lines of more than {COLUMNS_MAX} columns"), &faults);
}

fn is_too_long(line: &str) -> bool {
    let start = line.trim_start();
    let most = match start.starts_with("//") {
        // A row of a table cannot be broken.
        true if start.starts_with("//! |") => return false,
        true => COLUMNS_MAX,
        false => TEMPLATE_COLUMNS_MAX,
    };
    line.chars().count() > most
}

#[test]
fn what_pages_and_comments_name_is_there() {
    report("references to what does not exist", &pages::dead_references());
}

#[test]
fn words_that_the_vocabulary_replaced_are_gone() {
    report("words that have a better one in docs/vocabulary.md", &pages::banned_words());
}

#[test]
fn each_memory_order_is_in_the_page_about_them() {
    report("memory orders that docs/orders.md does not have", &pages::unlisted_orders());
}
