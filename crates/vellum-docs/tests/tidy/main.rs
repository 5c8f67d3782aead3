//! Rules of the house that no compiler checks: which room uses which, where `unsafe` is, the
//! functions that open files, how long lines are, that files named in comments and pages exist, and
//! which words are not used any more.
//!
//! A rule that is broken is reported with file and line. Each was seen to fail.

mod comments;
mod figures;
mod files;
mod modules;
mod openers;
mod options;
mod pages;
mod raises;

use std::collections::BTreeMap;

use files::Source;
use modules::Crate;

/// Rooms of the library from the ground up: a room uses only those above it in this table, and
/// itself. `ARCHITECTURE.md` has the same table with reasons.
const ROOMS: [&str; 6] = ["bus_errors", "options", "shared", "knowledge", "segment", "log"];

/// The same of the crate `vellum-files`, which is below all of them.
const ROOMS_OF_FILES: [&str; 11] = [
    "lsn", "escape", "error", "choice", "identity", "policy", "format", "record", "segment",
    "files", "restore",
];

/// The crates that the library is made of.
const LIBRARY: [&str; 2] = ["vellum", "vellum-files"];

/// Rooms of `vellum` below the wall: their code can name no shared word, no lock between processes
/// and no open log, and neither can the rooms that it uses. In `vellum-files` the compiler sees to
/// that.
const BELOW_THE_WALL: [&str; 1] = ["segment"];
const ABOVE_THE_WALL: [&str; 2] = ["shared", "log"];

/// The places of `unsafe`: in a crate that is not named, none.
const UNSAFE_ROOMS: [(&str, &[&str]); 7] = [
    ("crates/vellum/src/", &["shared/exclusive.rs", "shared/region.rs"]),
    ("crates/vellum-files/src/", &[]),
    ("crates/vellum-loggers/src/", &[]),
    ("crates/vellum-parallel/src/", &[]),
    ("crates/vellum-ship-figures/src/", &[]),
    ("crates/vellum-cli/src/", &[]),
    ("crates/vellum-command/src/", &[]),
];

/// Modules of a crate that import each other in a circle; none of a crate that is not named. A
/// folder that hands out work to its files, and is used by them, counts as well.
const CIRCLES: [(&str, usize); 9] = [
    ("vellum-bench", 69),
    ("vellum-cli", 4),
    ("vellum-files", 2),
    ("vellum-parallel", 2),
    ("vellum-peers", 3),
    ("vellum-python", 3),
    ("vellum-ship", 14),
    ("vellum-sys", 3),
    ("vellum-testkit", 23),
];

/// Lines from the name of a function to its last brace.
const FUNCTION_LINES_MAX: usize = 62;
/// The same, of all but one function in a hundred.
const FUNCTION_LINES_P99: usize = 40;

/// Of comments. `rustfmt` breaks code there too, but for strings and templates of macros.
const COLUMNS_MAX: usize = 100;
const TEMPLATE_COLUMNS_MAX: usize = 120;

fn report(what: &str, faults: &[String]) {
    assert!(faults.is_empty(), "{what}:\n{}", faults.join("\n"));
}

#[test]
fn a_room_uses_only_those_above_it() {
    let mut faults = arrows_against("vellum", &ROOMS);
    faults.extend(arrows_against("vellum-files", &ROOMS_OF_FILES));
    report("arrows against the table of rooms", &faults);
}

/// The arrows in a crate that lead up in a table of its rooms.
fn arrows_against(name: &str, rooms: &[&str]) -> Vec<String> {
    let rank: BTreeMap<&str, usize> = rooms.iter().copied().zip(0..).collect();
    let room = |module: &str| module.split("::").next().unwrap_or_default().to_string();
    let mut faults = Vec::new();
    for (from, all) in Crate::read(name).imports() {
        for to in all {
            match (rank.get(room(&from).as_str()), rank.get(room(&to).as_str())) {
                (Some(own), Some(other)) if other <= own => {}
                (None, _) => faults.push(format!("{from}: its room is not in the table")),
                _ => faults.push(format!("{from} uses {to}")),
            }
        }
    }
    faults
}

#[test]
fn a_room_below_the_wall_names_nothing_above_it() {
    let room = |module: &str| module.split("::").next().unwrap_or_default().to_string();
    let imports = Crate::read("vellum").imports();
    let mut below: Vec<String> = BELOW_THE_WALL.map(String::from).to_vec();
    let mut faults = Vec::new();
    let mut looked_at = 0;
    while let Some(own) = below.get(looked_at).cloned() {
        looked_at += 1;
        for (from, all) in imports.iter().filter(|(from, _)| room(from) == own) {
            for to in all {
                if ABOVE_THE_WALL.contains(&room(to).as_str()) {
                    faults.push(format!("{from} uses {to}"));
                } else if !below.contains(&room(to)) {
                    below.push(room(to));
                }
            }
        }
    }
    report("arrows through the wall", &faults);
}

#[test]
fn figures_of_the_structure_only_sink() {
    let library = Crate::read("vellum");
    let crates = LIBRARY.map(Crate::read);
    let mut all = vec![
        ("words of docs/", 71181, figures::page_words()),
        ("files of log/ in a circle, calls counted", 0, figures::circles_of_log(&library)),
        ("files directly in log/", 1, figures::files_of_log()),
        ("fields of Core", 8, figures::core_fields(&library)),
        ("methods of shared handles", 36, figures::handle_methods(&library)),
        ("files with methods of shared handles", 3, figures::handle_files(&library)),
        ("shared handles that deref", 0, figures::handle_derefs(&library)),
        ("places in log/ and segment/ that name a layout", 18, figures::layouts(&crates)),
        ("files in log/ and segment/ that name a layout", 10, figures::layout_files(&crates)),
        ("places that ask whether records have frames", 16, figures::frame_questions(&crates)),
        ("shared words changed outside of shared/", 0, figures::foreign_stores(&library)),
        ("names at the root", 43, figures::root_names(&library)),
        ("methods of Log", 44, figures::public_methods(&library, "Log")),
        ("methods of Options", 21, figures::public_methods(&library, "Options")),
        ("lines of code of the library", 22083, figures::code_lines(&LIBRARY)),
        ("lines of code of the engine", 15769, figures::code_lines(&["vellum"])),
    ];
    for name in figures::crates() {
        let most = CIRCLES.iter().find(|(known, _)| *known == name).map_or(0, |(_, most)| *most);
        let what = format!("modules of {name} that import each other in a circle");
        all.push((what.leak(), most, figures::import_circles(&name)));
    }
    all.extend(comments::figures());
    report("figures of the structure", &figures::table(&all));
}

#[test]
fn no_function_is_longer_than_one_can_see() {
    let lengths = figures::function_lengths();
    let long = lengths.iter().filter(|(lines, _)| *lines > FUNCTION_LINES_MAX);
    let long: Vec<String> = long.map(|(lines, name)| format!("{name}: {lines} lines")).collect();
    report("functions that are too long", &long);
    let p99 = lengths[lengths.len() / 100].0;
    assert!(p99 <= FUNCTION_LINES_P99, "one function in a hundred has more than {p99} lines");
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
fn a_message_marks_the_options_that_it_names() {
    report("options without marks in messages", &options::faults());
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
fn links_from_the_files_to_the_library_lead_to_methods_that_it_has() {
    report("links of vellum-files that lead nowhere", &pages::dead_links_to_the_library());
}

#[test]
fn words_that_the_vocabulary_replaced_are_gone() {
    report("words that have a better one in docs/vocabulary.md", &pages::banned_words());
}

#[test]
fn each_memory_order_is_in_the_page_about_them() {
    report("memory orders that tests/orders/steps.md does not have", &pages::unlisted_orders());
}
