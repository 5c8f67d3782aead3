//! Help, man pages and completions of `vellum-ship`.

use std::fs;
use std::process::Command;

const COMMANDS: [&str; 9] =
    ["ship", "trim", "restore", "cat", "tail", "stat", "verify", "ls", "bench"];

fn run(words: &[&str]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_vellum-ship")).args(words).output().unwrap();
    assert!(output.status.success(), "{words:?}: {output:?}");
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn every_command_explains_itself_with_examples() {
    for command in COMMANDS {
        for flag in ["-h", "--help"] {
            let text = run(&[command, flag]);
            assert!(text.contains("Examples:\n  vellum "), "{text}");
            assert!(text.lines().all(|line| line.chars().count() <= 100), "{text}");
            for vague in ["<INTERVAL>", "<MIN_INTERVAL>", "<RETAIN>", "<JOBS>", "<ROUNDS>"] {
                assert!(!text.contains(vague), "{text}");
            }
        }
    }
    let text = run(&["--help"]);
    assert!(text.lines().all(|line| line.chars().count() <= 100), "{text}");
    assert!(!text.contains("completions") && !text.contains("put"), "{text}");
}

/// `vellum-ship.1` is the page of `vellum ship`, which `vellum man` writes.
#[test]
fn there_is_a_man_page_for_each_command_and_none_over_that_of_vellum() {
    let dir = tempfile::tempdir().unwrap();
    run(&["man", dir.path().to_str().unwrap()]);
    let mut names: Vec<_> =
        fs::read_dir(dir.path()).unwrap().map(|e| e.unwrap().file_name()).collect();
    names.sort();
    let mut wanted = COMMANDS.map(|command| format!("vellum-ship-{command}.1"));
    wanted.sort();
    assert_eq!(names, wanted.map(Into::<std::ffi::OsString>::into));
    let page = fs::read_to_string(dir.path().join("vellum-ship-trim.1")).unwrap();
    assert!(page.contains(".TH vellum-ship-trim 1") && page.contains("retain"), "{page}");
    assert!(run(&["man"]).contains(".TH vellum-ship 1"));
}

#[test]
fn there_is_a_completion_script_for_each_shell() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = run(&["completions", shell]);
        assert!(script.contains("take-over") && script.contains("vellum-ship"), "{shell}");
    }
}
