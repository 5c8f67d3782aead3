//! Help, man pages and completions of the program.

use std::collections::BTreeSet;
use std::fs;

use super::support::run;

fn good(words: &[&str]) -> String {
    let output = run(words);
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!((output.status.code(), &*said), (Some(0), ""), "{words:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// The long options that help lists, for the program and its command.
fn options() -> BTreeSet<String> {
    let text = good(&["--help"]) + &good(&["compare", "--help"]);
    let words = text.lines().filter_map(|line| {
        let option =
            line.trim_start().strip_prefix("--").or(line.split_once(", --").map(|of| of.1));
        option.map(|option| option.split([' ', '=']).next().unwrap().to_owned())
    });
    words.collect()
}

#[test]
fn every_option_is_in_each_completion_script() {
    let options = options();
    for option in ["for", "iocost", "lies", "was-cut", "json", "version"] {
        assert!(options.contains(option), "{options:?}");
    }
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = good(&["completions", shell]);
        for option in options.iter().map(String::as_str).chain(["compare", "vellum-doctor"]) {
            assert!(script.contains(option), "{shell}: {option}");
        }
        assert!(!script.contains("keeper") && !script.contains("internal"), "{shell}");
    }
}

#[test]
fn every_option_has_its_place_in_the_man_pages() {
    let dir = tempfile::tempdir().unwrap();
    let pages = dir.path().join("new/man1");
    good(&["man", pages.to_str().unwrap()]);
    let mut names: Vec<_> =
        fs::read_dir(&pages).unwrap().map(|page| page.unwrap().file_name()).collect();
    names.sort();
    assert_eq!(names, ["vellum-doctor-compare.1", "vellum-doctor.1"]);
    let page = |name: &str| fs::read_to_string(pages.join(name)).unwrap();
    let (own, compare) = (page("vellum-doctor.1"), page("vellum-doctor-compare.1"));
    assert!(own.contains(".TH vellum-doctor 1") && own.contains("Exit codes:"), "{own}");
    assert!(compare.contains(".TH vellum-doctor-compare 1"), "{compare}");
    for option in options() {
        let option = option.replace('-', "\\-");
        assert!(own.contains(&option) || compare.contains(&option), "{option}");
    }
    assert_eq!(good(&["man"]), own);
}

#[test]
fn help_fits_a_terminal_and_names_the_program() {
    for words in [&["-h"][..], &["--help"], &["compare", "--help"]] {
        let text = good(words);
        assert!(text.contains("Examples:\n  vellum "), "{text}");
        assert!(text.lines().all(|line| line.chars().count() <= 100), "{text}");
        assert!(text.contains("Usage: vellum-doctor"), "{text}");
        assert!(!text.contains("internal"), "{text}");
    }
    assert_eq!(run(&["completions", "klingon"]).status.code(), Some(2));
}

#[test]
fn the_first_line_of_help_says_what_the_program_is_for() {
    let output = run(&["--help"]);
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(text.lines().next(), Some("Is a disk good enough for a program, and why not?"));
}
