//! `vellum append` that is asked to end.

use std::fs::{self, File};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Command, ExitStatus, Stdio};

use vellum_testing::{is_root, until};

use super::support::{Place, Running, vellum};

fn send(signal: &str, running: &Running) {
    let status = Command::new("kill").args([signal, &running.child.id().to_string()]).status();
    assert!(status.unwrap().success());
}

/// Sends a signal, and waits until it is no longer on its way.
fn deliver(name: &str, number: i32, running: &Running) {
    send(name, running);
    let path = format!("/proc/{}/status", running.child.id());
    until("the signal is delivered", || {
        let status = fs::read_to_string(&path).unwrap();
        let pending = |name| mask(&status, name) >> (number - 1) & 1 == 1;
        (!pending("SigPnd:") && !pending("ShdPnd:")).then_some(())
    });
}

/// A set of signals in the status of a process, the first in the lowest bit.
fn mask(status: &str, name: &str) -> u64 {
    let mask = status.lines().find_map(|line| line.strip_prefix(name)).unwrap();
    u64::from_str_radix(mask.trim(), 16).unwrap()
}

/// How it ended, with its input still open.
fn ended(mut running: Running) -> ExitStatus {
    let _input = running.child.stdin.take();
    running.child.wait().unwrap()
}

/// Whether the process that started the tests has a signal ignored, as `nohup` does: then the
/// command leaves it so.
fn is_ignored(signal: i32) -> bool {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    mask(&status, "SigIgn:") >> (signal - 1) & 1 == 1
}

/// The signals that ask to end, but for those that are ignored here.
fn signals() -> impl Iterator<Item = (&'static str, i32)> {
    let signals = [("-TERM", 15), ("-INT", 2), ("-HUP", 1)];
    signals.into_iter().filter(|(_, number)| !is_ignored(*number))
}

/// The options that end it without waiting for the end of its input.
const AT_ONCE: [&str; 2] = ["--stop-timeout", "0"];

/// Twenty last things.
fn last_things() -> String {
    (1..=20).map(|number| format!("last {number}\n")).collect()
}

#[test]
fn what_is_said_after_the_signal_is_appended_to_the_end_of_the_input() {
    for (name, number) in signals() {
        for options in [&["--layout", "text"][..], &["--commit", "every"]] {
            let place = Place::new();
            let mut running = place.start("append", &[options, &["--ack"]].concat());
            running.feed(b"one\n");
            running.line();
            deliver(name, number, &running);
            for line in last_things().lines() {
                running.feed(format!("{line}\n").as_bytes());
                running.line();
            }
            drop(running.child.stdin.take());
            assert_eq!(running.child.wait().unwrap().signal(), Some(number), "{name}");
            assert_eq!(place.run("cat", &[], b"").good(), format!("one\n{}", last_things()));
        }
    }
}

/// Says `ready`, and when a signal comes what is in `$LAST`.
const APP: &str = r#"
exec 3<&0
app() {
    trap 'echo "$LAST"; exit' TERM INT HUP
    echo ready
    cat <&3 >/dev/null & wait
}
app | "$0" append --layout text --ack "$1"
"#;

#[test]
fn a_signal_to_the_whole_group_loses_nothing_that_the_program_says_then() {
    for (name, number) in signals() {
        let place = Place::new();
        let mut command = Command::new("sh");
        command.args(["-c", APP, env!("CARGO_BIN_EXE_vellum")]).arg(place.log());
        command.env("LAST", last_things().trim_end()).process_group(0);
        let mut running = Running::start(&mut command);
        running.line();
        let group = format!("-{}", running.child.id());
        let status = Command::new("kill").args([name, "--", &group]).status();
        assert!(status.unwrap().success());
        // All processes with the other end have gone.
        let mut acknowledged = 0;
        while !running.line().is_empty() {
            acknowledged += 1;
        }
        running.child.wait().unwrap();
        assert_eq!(acknowledged, 20, "{name} {number}");
        assert_eq!(place.run("cat", &[], b"").good(), format!("ready\n{}", last_things()));
    }
}

#[test]
fn a_second_signal_ends_it_at_once() {
    for (name, number) in signals().filter(|(_, number)| *number != 15) {
        let place = Place::new();
        let mut running = place.start("append", &["--ack", "--stop-timeout", "1d"]);
        running.feed(b"one\n");
        running.line();
        deliver(name, number, &running);
        send("-TERM", &running);
        assert_eq!(ended(running).signal(), Some(15));
        assert_eq!(place.run("cat", &[], b"").good(), "one\n");
    }
}

#[test]
fn a_terminal_that_closes_is_no_second_signal() {
    if is_ignored(1) {
        return vellum_testing::missing::skip("SIGHUP is ignored here");
    }
    let place = Place::new();
    let mut running = place.start("append", &["--ack"]);
    running.feed(b"one\n");
    running.line();
    // systemd sends both where it is told to, and so do shells.
    for (name, number) in [("-TERM", 15), ("-HUP", 1), ("-HUP", 1)] {
        deliver(name, number, &running);
    }
    running.feed(b"two\n");
    running.line();
    drop(running.child.stdin.take());
    assert_eq!(running.child.wait().unwrap().signal(), Some(1));
    assert_eq!(place.run("cat", &[], b"").good(), "one\ntwo\n");
}

#[test]
fn an_input_that_does_not_end_is_waited_for_no_longer_than_said() {
    let place = Place::new();
    let mut running = place.start("append", &["--ack", "--stop-timeout", "1s"]);
    running.feed(b"one\ntw");
    running.line();
    send("-TERM", &running);
    assert_eq!(ended(running).signal(), Some(15));
    assert_eq!(place.run("cat", &[], b"").good(), "one\ntw\n");
}

#[test]
fn what_has_no_writer_is_not_read_to_its_end() {
    let place = Place::new();
    let mut command = vellum();
    command.args(["append", "-0", "--commit", "every", "--ack", "--stop-timeout", "1d"]);
    command.arg(place.log()).stdin(File::open("/dev/zero").unwrap());
    let mut running = Running::start_as_it_is(&mut command);
    running.line();
    let reader = running.stdout.take();
    let drain =
        std::thread::spawn(move || std::io::copy(&mut reader.unwrap(), &mut std::io::sink()));
    send("-TERM", &running);
    assert_eq!(ended(running).signal(), Some(15));
    drain.join().unwrap().unwrap();
}

/// `vellum`, which may have no thread but its own. Root is exempt, so it is another user with the
/// rights of root over files.
fn without_threads() -> Command {
    let mut command = Command::new("prlimit");
    let caps = "+dac_override,+dac_read_search";
    command.args(["--nproc=1:1", "setpriv", "--reuid=61234", "--clear-groups"]);
    command.args(["--inh-caps", caps, "--ambient-caps", caps, "--"]);
    command.arg(env!("CARGO_BIN_EXE_vellum"));
    command
}

#[test]
fn acknowledgements_need_a_thread_and_say_so() {
    if !is_root("acknowledgements_need_a_thread") {
        return;
    }
    let place = Place::new();
    place.append(&[], b"one\n");
    // It joins as another user, so the log is that user's.
    let words = ["-R", "61234", place.log().to_str().unwrap()].map(str::to_owned);
    assert!(Command::new("chown").args(words).status().unwrap().success());
    let mut command = without_threads();
    let output =
        command.args(["tail", "--cursor", "x", "--ack"]).arg(place.log()).output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!((output.status.code(), said.lines().count()), (Some(1), 1), "{said}");
    assert!(said.contains("thread") && said.contains("ulimit -u"), "{said}");
}

#[test]
fn without_a_thread_it_appends_and_can_be_ended() {
    if !is_root("without_a_thread") {
        return;
    }
    let place = Place::new();
    let start = || Running::start(without_threads().args(["append", "--ack"]).arg(place.log()));
    let mut running = start();
    running.feed(b"one\n");
    running.line();
    drop(running.child.stdin.take());
    assert!(running.child.wait().unwrap().success());
    let mut running = start();
    running.feed(b"two\n");
    running.line();
    deliver("-TERM", 15, &running);
    running.feed(b"three\n");
    running.line();
    drop(running.child.stdin.take());
    assert_eq!(running.child.wait().unwrap().signal(), Some(15));
    assert_eq!(place.run("cat", &[], b"").good(), "one\ntwo\nthree\n");
}

#[test]
fn a_signal_ends_the_file_where_its_text_ends() {
    for (name, number) in signals() {
        for options in [&["--fill", "mapped"][..], &["--fill", "pwrite"], &["--commit", "every"]] {
            let place = Place::new();
            let mut running = place
                .start("append", &[&["--layout", "text", "--ack"], options, &AT_ONCE].concat());
            running.feed(b"one\ntw");
            running.line();
            send(name, &running);
            let status = ended(running);
            assert_eq!((status.signal(), status.code()), (Some(number), None), "{name}");
            let text = fs::read(place.segments().pop().unwrap()).unwrap();
            assert_eq!(String::from_utf8(text).unwrap(), "one\ntw\n", "{name} {options:?}");
        }
    }
}

#[test]
fn what_was_in_the_pipe_when_a_signal_came_is_appended() {
    let place = Place::new();
    let options = [&["--layout", "text", "--ack"], &AT_ONCE[..]].concat();
    let mut running = place.start("append", &options);
    running.feed(b"one\n");
    running.line();
    // No process reads while it is stopped.
    send("-STOP", &running);
    running.feed(b"two\nthree\n");
    send("-TERM", &running);
    send("-CONT", &running);
    assert_eq!(ended(running).signal(), Some(15));
    assert_eq!(place.run("cat", &[], b"").good(), "one\ntwo\nthree\n");
}

#[test]
fn who_never_stops_writing_does_not_keep_it_from_ending() {
    let place = Place::new();
    let mut writer = Command::new("yes").stdout(Stdio::piped()).spawn().unwrap();
    let mut command = vellum();
    command.args(["append", "--layout", "text", "--ack"]).args(AT_ONCE).arg(place.log());
    command.stdin(writer.stdout.take().unwrap()).stdout(Stdio::null());
    let mut child = command.spawn().unwrap();
    // It has the other end of the pipe.
    drop(command);
    while !place.log().join("current").exists() {}
    let status = Command::new("kill").arg(child.id().to_string()).status();
    assert!(status.unwrap().success());
    assert_eq!(child.wait().unwrap().signal(), Some(15));
    writer.wait().unwrap();
    let text = place.run("cat", &[], b"").good();
    assert!(!text.contains('\0') && text.ends_with("y\n"));
}

#[test]
fn a_signal_that_was_ignored_stays_so() {
    let place = Place::new();
    let mut command = Command::new("sh");
    command.args(["-c", "trap '' HUP; exec \"$0\" append --layout text --ack \"$1\""]);
    command.arg(env!("CARGO_BIN_EXE_vellum")).arg(place.log());
    let mut running = Running::start(&mut command);
    running.feed(b"one\n");
    running.line();
    send("-HUP", &running);
    running.feed(b"two\n");
    running.line();
    drop(running.child.stdin.take());
    assert!(running.child.wait().unwrap().success());
    assert_eq!(place.run("cat", &[], b"").good(), "one\ntwo\n");
}

#[test]
fn an_append_that_waits_for_a_stopped_process_can_be_ended() {
    let place = Place::new();
    let writer = super::stat::half_way(&place);
    send("-STOP", &writer);
    let options = [&["--commit", "every"], &AT_ONCE[..]].concat();
    let mut running = place.start("append", &options);
    running.feed(b"never durable\n");
    let is_waiting = || place.stat()["holds"][0]["waited_us"].as_u64() > Some(0);
    assert!(std::iter::repeat_with(is_waiting).take(3000).any(|is_waiting| is_waiting));
    send("-TERM", &running);
    assert_eq!(ended(running).signal(), Some(15));
}
