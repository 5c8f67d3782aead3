//! Help, man pages, completions, and command lines that are wrong.

use std::fs;

use super::support::{Place, closed_pipe, run, vellum};

const COMMANDS: &[&[&str]] = &[
    &[],
    &["append"],
    &["cat"],
    &["tail"],
    &["stat"],
    &["verify"],
    &["prepare"],
    &["checkpoint"],
    &["cursor"],
    &["rotate"],
    &["trim"],
    &["truncate"],
    &["repair"],
    &["bench"],
    &["bench", "all"],
    &["bench", "append"],
    &["bench", "commit"],
    &["bench", "image"],
    &["bench", "latency"],
    &["bench", "read"],
    &["bench", "scale"],
    &["bench", "sync"],
    &["bench", "write"],
    &["bench", "report"],
    &["bench", "compare"],
    &["advise"],
    &["doctor"],
    &["doctor", "compare"],
    &["ship"],
    &["restore"],
    &["ls"],
    &["demo"],
    &["completions"],
    &["man"],
];

#[test]
fn every_command_explains_itself_with_examples() {
    for command in COMMANDS.iter().copied() {
        for flag in ["-h", "--help"] {
            let text = run(&[command, &[flag]].concat(), b"").good();
            assert!(text.contains("Examples:\n  vellum ") || text.contains("| vellum"), "{text}");
            assert!(text.lines().all(|line| line.chars().count() <= 100), "{text}");
            assert!(!text.contains("internal"), "{text}");
        }
    }
    let text = run(&["--help"], b"").good();
    for code in ["0  good", "1  failed", "2  usage", "3  damage found"] {
        assert!(text.contains(code), "{text}");
    }
}

#[test]
fn help_begins_with_the_purpose_of_the_program() {
    let purpose = "Many processes append to one log, at the speed of memory";
    for words in [&["-h"][..], &["--help"], &["help"]] {
        let text = run(words, b"").good();
        assert_eq!(text.lines().next().unwrap().trim_end_matches('.'), purpose, "{words:?}");
    }
    let page = run(&["man"], b"").good();
    assert!(page.contains(&format!("vellum \\- {purpose}")), "{page}");
}

#[test]
fn an_example_is_on_one_line() {
    let text = run(&["stat", "--help"], b"").good();
    assert!(text.contains(" > app.prom.new && mv app.prom.new app.prom"), "{text}");
}

#[test]
fn help_is_a_command_too() {
    for command in COMMANDS.iter().copied() {
        let text = run(&[&["help"], command].concat(), b"").good();
        assert_eq!(text, run(&[command, &["--help"]].concat(), b"").good(), "{command:?}");
    }
    assert_eq!(run(&["help", "nonsense"], b"").code, 2);
}

#[test]
fn a_wrong_command_line_is_a_usage_error() {
    for args in [
        &["nonsense"][..],
        &[],
        &["append"],
        &["cat", "--json", "-0", "x"],
        &["cat", "--from", "x", "y"],
        &["trim", "x"],
        &["prepare", "--segments", "0", "x"],
        &["rotate"],
        &["tail", "-n", "+x", "x"],
        &["tail", "--json", "-0", "x"],
        &["append", "--rotate-every", "10", "x"],
        &["append", "--retain-files", "some", "x"],
        &["append", "--on-full", "explode", "x"],
        &["checkpoint", "x", "here"],
        &["truncate", "x"],
        &["repair", "x"],
        &["append", "--segment-bytes", "5KB", "x"],
        &["append", "--layout", "fancy", "x"],
        &["bench"],
        &["completions", "klingon"],
    ] {
        let ran = run(args, b"");
        assert_eq!((ran.code, ran.stdout.len()), (2, 0), "{args:?}");
        assert!(!ran.stderr.is_empty());
    }
}

#[test]
fn the_version_is_told() {
    let text = run(&["--version"], b"").good();
    assert_eq!(text, format!("vellum {}\n", env!("CARGO_PKG_VERSION")));
}

#[test]
fn there_is_a_completion_script_for_each_shell() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = run(&["completions", shell], b"").good();
        assert!(script.contains("preallocate"), "{shell}");
        assert!(!script.contains("demo-writer"), "{shell}");
    }
}

#[test]
fn a_log_at_the_path_of_a_file_is_completed_too() {
    let script = run(&["completions", "zsh"], b"").good();
    let is_of_log = |line: &&str| line.contains("log -- ") || line.contains("logs -- ");
    let logs: Vec<&str> = script.lines().filter(is_of_log).collect();
    assert!(logs.len() > 10 && logs.iter().all(|line| !line.contains("_files -/")), "{logs:?}");
}

#[test]
fn commands_of_vellum_ship_are_listed_and_say_how_to_get_it() {
    let text = run(&["--help"], b"").good();
    let script = run(&["completions", "bash"], b"").good();
    for name in ["ship", "restore", "ls"] {
        assert!(text.lines().any(|line| line.split_whitespace().next() == Some(name)), "{text}");
        assert!(script.contains(&format!("vellum,{name})")), "{name}");
        let mut vellum = vellum();
        let output = vellum.args([name, "log", "file:///x"]).env("PATH", "").output().unwrap();
        assert_eq!(output.status.code(), Some(1));
        let told = String::from_utf8(output.stderr).unwrap();
        assert!(told.contains("make ship") && told.lines().count() == 1, "{told}");
    }
}

#[test]
fn options_of_vellum_ship_are_completed_and_have_man_pages() {
    let place = Place::new();
    let dir = place.dir().to_str().unwrap();
    run(&["man", dir], b"").good();
    for (command, option) in [("ship", "take-over"), ("restore", "resume"), ("ls", "json")] {
        let page = fs::read_to_string(place.dir().join(format!("vellum-{command}.1"))).unwrap();
        assert!(page.contains(&option.replace('-', "\\-")), "{command}: {page}");
        let text = run(&["help", command], b"").good();
        assert!(text.contains(&format!("--{option}")), "{text}");
    }
    for shell in ["bash", "zsh", "fish"] {
        let script = run(&["completions", shell], b"").good();
        for option in ["take-over", "max-unshipped", "resume"] {
            assert!(script.contains(option), "{shell}: {option}");
        }
    }
}

#[test]
fn there_is_a_man_page_for_each_command() {
    let page = run(&["man"], b"").good();
    assert!(page.contains(".TH vellum 1") && page.contains("Exit codes:"), "{page}");
    let place = Place::new();
    let dir = place.dir().join("new/man1");
    run(&["man", dir.to_str().unwrap()], b"").good();
    for command in COMMANDS.iter().copied() {
        let name = [&["vellum"], command].concat().join("-");
        let page = fs::read_to_string(dir.join(format!("{name}.1"))).unwrap();
        assert!(page.contains(&format!(".TH {name} 1")), "{name}");
    }
    assert_eq!(fs::read_dir(&dir).unwrap().count(), COMMANDS.len());
}

#[test]
fn a_closed_pipe_is_no_failure() {
    let place = Place::new();
    place.append(&[], b"one\n");
    let log = place.log().to_str().unwrap().to_string();
    for args in [
        &["completions", "bash"][..],
        &["man"],
        &["--help"],
        &["cat", &log],
        &["stat", &log],
        &["stat", "--json", &log],
        &["verify", "--json", &log],
        &["trim", "--json", "--before", "1", &log],
        &["checkpoint", &log],
        &["prepare", "--json", &log],
    ] {
        let output = vellum().args(args).stdout(closed_pipe()).output().unwrap();
        assert_eq!((output.status.code(), output.stderr.len()), (Some(0), 0), "{args:?}");
    }
}
