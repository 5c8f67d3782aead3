//! `--lies`: what is written, what a witness hears, and what is said of it afterwards.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::Stdio;

use super::support::{program, run};

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// What is said of the blocks in `dir`, and the exit code.
fn checked(words: &[&str], dir: &Path) -> (String, Option<i32>) {
    let output = run(&[&["--lies", "--check"], words, &[text(dir)]].concat());
    assert!(output.stderr.is_empty(), "{}", String::from_utf8_lossy(&output.stderr));
    (String::from_utf8(output.stdout).unwrap(), output.status.code())
}

#[test]
fn what_is_lost_is_said_if_there_was_a_cut() {
    let dir = tempfile::tempdir().unwrap();
    let Ok(other) = tempfile::tempdir_in("/dev/shm") else {
        return vellum_testing::missing::skip("/dev/shm cannot be written to");
    };
    let witness = other.path().join("promises");
    let witness = text(&witness);
    let output = run(&["--lies", "--seconds", "1", "--witness", witness, text(dir.path())]);
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    let (said, code) = checked(&["--witness", witness], dir.path());
    assert!(said.starts_with("Nothing can be concluded: the writer ended in good order"), "{said}");
    assert_eq!(code, Some(5));
    let (said, code) = checked(&["--was-cut", "--witness", witness], dir.path());
    assert!(said.starts_with("Honest so far"), "{said}");
    assert_eq!(code, Some(0));
    // One in three is a file of its own, and the newest ones are kept.
    let heard = fs::read_to_string(witness).unwrap();
    let promised: u64 = heard.lines().rev().nth(1).unwrap().parse().unwrap();
    let (number, name) = (promised / 3 * 3, format!("new-{}", promised / 3 - 1));
    fs::remove_file(dir.path().join("vellum-lies").join(&name)).unwrap();
    let promised = promised.to_string();
    let (said, code) = checked(&["--was-cut", "--promised", &promised], dir.path());
    let lost = format!("Lost: {number}.\n  {number} in {name}: the file is missing");
    assert!(said.contains(&lost), "{said}");
    assert_eq!(code, Some(6));
}

#[test]
fn another_machine_is_a_witness() {
    let (dir, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let path = other.path().join("promises");
    let serve = ["--lies", "--serve", "0", "--witness", text(&path)];
    let mut server = program().args(serve).stderr(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(server.stderr.take().unwrap()).read_line(&mut line).unwrap();
    let port = line.split_once("listening at ").unwrap().1.split_once(',').unwrap().0;
    let address = format!("localhost:{}", port.rsplit_once(':').unwrap().1);
    let output = run(&["--lies", "--seconds", "1", "--witness", &address, text(dir.path())]);
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    let (said, code) = checked(&["--was-cut", "--witness", &address], dir.path());
    assert!(said.starts_with("Honest so far"), "{said}");
    assert_eq!(code, Some(0));
    // The one that was started passes it on.
    rustix::process::kill_process(
        rustix::process::Pid::from_child(&server),
        rustix::process::Signal::TERM,
    )
    .unwrap();
    server.wait().unwrap();
}

#[test]
fn a_terminal_shows_numbers_to_write_down() {
    let dir = tempfile::tempdir().unwrap();
    let output = run(&["--lies", "--seconds", "1", text(dir.path())]);
    let said = String::from_utf8(output.stdout).unwrap();
    assert!(said.starts_with("vellum-lies 1 run=") && said.contains("\n1\n"), "{said}");
    assert!(said.ends_with("end\n"), "{said}");
}

#[test]
fn what_is_wrong_with_the_words_is_said() {
    for (words, part) in [
        (&["--lies", "--for", "etcd"][..], "cannot be used with"),
        (&["--lies", "--check"], "--check needs what was promised"),
        (&["--lies", "--serve", "1", "--witness", "a:1"], "needs a file"),
        (&["--check", "--witness", "a"], "--lies"),
    ] {
        let output = run(words);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(said.contains(part), "{said}");
    }
}
