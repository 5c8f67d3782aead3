//! Text logs of `vellum append` as other tools see them while they are written, and after their
//! writer ended in any way.

use std::fs;
use std::process::Command;

use rustix::process::{Pid, Signal, kill_process};

use super::support::{Place, Running};

/// The options that the README shows first.
const OPTIONS: [&str; 6] = ["--layout", "text", "--rotate-bytes", "50M", "--retain-files", "10"];

/// How a writer ends.
#[derive(Clone, Copy, Debug)]
enum End {
    Input,
    Signal(Signal),
}

/// `tail -F` on the file that is written, from its first line on, for a minute at most.
fn tail(place: &Place) -> Running {
    let mut command = Command::new("timeout");
    command.args(["60", "tail", "-s", "0.02", "-n", "+1", "-F"]).arg(place.log().join("current"));
    Running::start(&mut command)
}

/// Asserts that the file is `text`, and that `grep` finds each line in it.
#[track_caller]
fn check(place: &Place, text: &str, what: &str) {
    let current = place.log().join("current");
    let found = fs::read(&current).unwrap();
    assert_eq!(String::from_utf8_lossy(&found), text, "{what}");
    let output = Command::new("grep").arg("error").arg(&current).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stdout), text, "{what}");
}

#[test]
fn every_tool_reads_the_file_while_a_slow_writer_lives_and_after_it_ended() {
    for end in [End::Input, End::Signal(Signal::TERM), End::Signal(Signal::KILL)] {
        let place = Place::new();
        let mut writer = place.start("append", &OPTIONS);
        let mut text = String::new();
        let mut feed = |writer: &mut Running| {
            let line = format!("error {}\n", text.lines().count());
            writer.feed(line.as_bytes());
            text += &line;
            (line, text.clone())
        };
        let (first, _) = feed(&mut writer);
        // There is a file once a follower of Vellum's own has the line.
        let mut follower = place.start("tail", &["-n", "+1", "-f"]);
        while follower.line() != first {
            follower = place.start("tail", &["-n", "+1", "-f"]);
        }
        let mut tail = tail(&place);
        assert_eq!(tail.line(), first);
        let mut all = first;
        for _ in 0..30 {
            let (line, text) = feed(&mut writer);
            assert_eq!(tail.line(), line, "{end:?}");
            check(&place, &text, "while the writer lives");
            all = text;
        }
        match end {
            End::Input => drop(writer.child.stdin.take()),
            End::Signal(signal) => {
                kill_process(Pid::from_child(&writer.child), signal).unwrap();
                // A pipe is read to its end.
                drop(writer.child.stdin.take());
            }
        }
        writer.child.wait().unwrap();
        check(&place, &all, &format!("after {end:?}"));
    }
}
