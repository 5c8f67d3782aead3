//! Logs in worlds unlike this one: a sample, of bounded time. All of them: `make worlds`.

use std::process::{Command, Output};

fn worlds(arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_vellum-worlds"));
    command.args(arguments).output().expect("the command starts")
}

#[test]
fn nothing_acknowledged_is_lost_in_any_world() {
    let output = worlds(&["--seconds", "30", "--pairs"]);
    let text = String::from_utf8_lossy(&output.stdout);
    let talk = String::from_utf8_lossy(&output.stderr);
    println!("{text}{talk}");
    assert!(output.status.success(), "{}: {text}{talk}", output.status);
}

#[test]
fn storage_that_is_full_or_fails_kills_nobody_and_loses_nothing() {
    let output = worlds(&["storage", "--seconds", "30", "--mib", "60"]);
    let text = String::from_utf8_lossy(&output.stdout);
    let talk = String::from_utf8_lossy(&output.stderr);
    println!("{text}{talk}");
    assert!(output.status.success(), "{}: {text}{talk}", output.status);
}

#[test]
fn the_table_in_the_docs_names_all_worlds_and_their_promises() {
    let listed = String::from_utf8(worlds(&["--list"]).stdout).expect("text");
    let listed: Vec<(&str, &str)> =
        listed.lines().map(|line| line.split_once('\t').expect("a name and a promise")).collect();
    let page = include_str!("../../../ARCHITECTURE.md");
    let (_, chapter) = page.split_once("\n## Worlds\n").expect("the chapter");
    let rows = chapter.lines().filter_map(|line| line.strip_prefix("| `")?.strip_suffix(" |"));
    let rows: Vec<(&str, &str)> =
        rows.map(|row| row.split_once("` | ").expect("a name and a promise")).collect();
    assert_eq!(rows, listed);
    assert!(rows.len() > 39, "only {} worlds", rows.len());
}

#[test]
fn worlds_that_exclude_each_other_are_no_pair() {
    let output = worlds(&["--world", "umask-077+parent-0700"]);
    assert_eq!(output.status.code(), Some(2));
}
