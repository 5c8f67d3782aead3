//! Options of the library, as messages name them.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use vellum_command::outcome::typed;

use super::support::run;

/// The methods of the library that set an option.
fn options() -> BTreeSet<String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../vellum/src/options");
    let files = fs::read_dir(folder).unwrap().map(|file| file.unwrap().path());
    let texts: Vec<String> = files.map(|path| fs::read_to_string(path).unwrap()).collect();
    let lines = texts.iter().flat_map(|text| text.lines());
    let setter = |line: &str| {
        let (name, rest) = line.trim_start().strip_prefix("pub fn ")?.split_once('(')?;
        rest.starts_with("mut self").then(|| name.to_string())
    };
    lines.filter_map(setter).collect()
}

/// The options of the commands that open a log by them.
fn of_commands() -> BTreeSet<String> {
    let commands = ["append", "prepare", "trim"];
    let help = commands.map(|command| run(&[command, "--help"], b"").good()).concat();
    let words = help.split_whitespace().filter(|word| word.starts_with("--"));
    let is_of_name = |letter: char| letter.is_ascii_lowercase() || letter == '-';
    let name = |word: &str| word.chars().take_while(|letter| is_of_name(*letter)).collect();
    words.map(name).collect()
}

#[test]
fn every_option_of_the_library_is_named_as_it_is_typed_or_cannot_be_typed() {
    let (options, of_commands) = (options(), of_commands());
    assert!(options.contains("compress") && options.contains("segment_capacity_bytes"));
    for option in &options {
        let name = typed(option);
        let is_there = of_commands.contains(&format!("--{}", option.replace('_', "-")));
        match name.starts_with("--") {
            true => assert!(of_commands.contains(&name), "no command has {name}"),
            false => assert!(name == *option && !is_there, "{name} can be typed"),
        }
    }
}
