//! The command as process 1 of a container: the kernel gives it no signal whose action is the
//! default one, and lets none end it that it sends to itself.

use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, ExitStatus, Stdio};

use vellum_testing::{is_root, until};

use super::support::{Place, Running};

/// The signals that a supervisor or a terminal ends a process by.
const SIGNALS: [(&str, i32); 4] = [("-TERM", 15), ("-INT", 2), ("-HUP", 1), ("-QUIT", 3)];

/// Starts `vellum <words>` as process 1 of its own namespace.
fn start(words: &[&str], place: &Place) -> Running {
    // Tests that run in the background may ignore the signals of a keyboard.
    let mut command = Command::new("env");
    command.args(["--default-signal", "unshare", "--pid", "--fork", "--kill-child"]);
    command.arg(env!("CARGO_BIN_EXE_vellum"));
    Running::start(command.args(words).arg(place.log()).stderr(Stdio::piped()))
}

/// Sends a signal to the process that `unshare` waits for, and tells how it ended.
fn ended_by(signal: &str, mut running: Running) -> ExitStatus {
    let parent = running.child.id();
    let children = fs::read_to_string(format!("/proc/{parent}/task/{parent}/children")).unwrap();
    let status = Command::new("kill").args([signal, children.trim()]).status();
    assert!(status.unwrap().success());
    let _input = running.child.stdin.take();
    until(&format!("{signal} ends it"), || running.child.try_wait().unwrap())
}

#[test]
fn what_waits_for_input_is_ended_by_a_signal_and_leaves_a_closed_log() {
    if !is_root("process_one") {
        return;
    }
    for (name, number) in &SIGNALS[..3] {
        let place = Place::new();
        let words = ["append", "--layout", "text", "--fill", "mapped", "--stop-timeout", "0"];
        let mut running = start(&[&words[..], &["--ack"]].concat(), &place);
        running.feed(b"one\ntw");
        running.line();
        let status = ended_by(name, running);
        assert_eq!((status.code(), status.signal()), (Some(128 + number), None), "{name}");
        let text = fs::read(place.segments().pop().unwrap()).unwrap();
        assert_eq!(String::from_utf8(text).unwrap(), "one\ntw\n", "{name}");
    }
}

#[test]
fn what_follows_a_log_is_ended_by_a_signal() {
    if !is_root("process_one") {
        return;
    }
    let commands: [&[&str]; 6] = [
        &["tail", "-f"],
        &["tail", "-F"],
        &["tail", "-f", "--cursor", "x"],
        &["tail", "-f", "--cursor", "y", "--ack"],
        &["cat", "--follow"],
        &["stat", "--watch"],
    ];
    for words in commands {
        for (name, number) in SIGNALS {
            // A cursor may have moved behind the line that was printed.
            let place = Place::new();
            place.append(&["--layout", "text"], b"one\n");
            let mut running = start(words, &place);
            running.line();
            let status = ended_by(name, running);
            assert_eq!(status.code(), Some(128 + number), "{words:?} {name}");
        }
    }
}

#[test]
fn what_waits_for_a_log_is_ended_by_a_signal() {
    if !is_root("process_one") {
        return;
    }
    let place = Place::new();
    let mut running = start(&["tail", "-F"], &place);
    let mut said = String::new();
    BufReader::new(running.child.stderr.take().unwrap()).read_line(&mut said).unwrap();
    assert!(said.ends_with("waiting\n"), "{said}");
    assert_eq!(ended_by("-TERM", running).code(), Some(143));
}
