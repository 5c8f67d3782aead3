//! Standard streams that are not blocking, as node and bun hand them to their children: the command
//! waits where a blocking one would have made it wait.

use std::fs::File;
use std::io::{PipeWriter, Read, Write};
use std::os::fd::OwnedFd;
use std::process::Command;
use std::thread;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{OFlags, fcntl_setfl};
use rustix::pipe::fcntl_setpipe_size;
use vellum_testing::until;

use super::support::{Place, Running, run, vellum};

const PIPE_BYTES: usize = 4096;

/// The output through a pipe that takes nothing without being asked again, and the end of the
/// command.
fn through_a_slow_pipe(
    command: &mut Command,
    stream: fn(&mut Command, PipeWriter),
) -> (i32, String) {
    let (mut reader, writer) = std::io::pipe().unwrap();
    fcntl_setpipe_size(&writer, PIPE_BYTES).unwrap();
    fcntl_setfl(&writer, OFlags::NONBLOCK).unwrap();
    let is_full = writer.try_clone().unwrap();
    stream(command, writer);
    let mut child = command.spawn().unwrap();
    // Bytes that have no room yet are written now, or are lost.
    until("the pipe is full", || {
        let now = Timespec { tv_sec: 0, tv_nsec: 0 };
        let room = poll(&mut [PollFd::new(&is_full, PollFlags::OUT)], Some(&now)).unwrap();
        let is_over = child.try_wait().unwrap().is_some();
        (room == 0 || is_over).then_some(())
    });
    drop(is_full);
    // Its ends of the pipes.
    *command = vellum();
    let mut text = String::new();
    reader.read_to_string(&mut text).unwrap();
    (child.wait().unwrap().code().expect("no signal ended it"), text)
}

fn stdout(command: &mut Command, writer: PipeWriter) {
    command.stdout(writer);
}

fn stderr(command: &mut Command, writer: PipeWriter) {
    command.stderr(writer);
}

#[test]
fn every_command_waits_until_its_output_is_taken() {
    let place = Place::new();
    let input: String = (0..2000).map(|number| format!("record number {number}\n")).collect();
    place.append(&["--layout", "text"], input.as_bytes());
    let log = place.log();
    let log = log.to_str().unwrap();
    for words in [
        &["cat", log][..],
        &["cat", "--json", log],
        &["cat", "-0", log],
        &["tail", "-n", "1000", log],
        &["completions", "bash"],
        &["append", "--help"],
    ] {
        let whole = run(words, b"").good();
        assert!(whole.len() > PIPE_BYTES, "{words:?}");
        let (code, text) = through_a_slow_pipe(vellum().args(words), stdout);
        assert!((code, &text) == (0, &whole), "{words:?}: {code}, {} bytes", text.len());
    }
    let words = ["tail", "--cursor", "x", log];
    let (code, text) = through_a_slow_pipe(vellum().args(words), stdout);
    assert!((code, &text) == (0, &input), "--cursor: {code}, {} bytes", text.len());
}

#[test]
fn appending_waits_until_acknowledgements_are_taken() {
    for options in [&[][..], &["--commit", "end"], &["--commit-interval", "1"]] {
        let place = Place::new();
        let input = place.dir().join("input");
        std::fs::write(&input, "one\n".repeat(5000)).unwrap();
        let mut command = vellum();
        command.args(["append", "--ack"]).args(options).arg(place.log());
        command.stdin(File::open(&input).unwrap());
        let (code, text) = through_a_slow_pipe(&mut command, stdout);
        assert_eq!((code, text.lines().count()), (0, 5000), "{options:?}");
        assert_eq!(place.run("cat", &[], b"").good().lines().count(), 5000);
    }
}

#[test]
fn what_is_said_of_the_command_line_waits_too() {
    let long = "x".repeat(3 * PIPE_BYTES);
    let (code, text) = through_a_slow_pipe(vellum().args(["cat", "--no-such", &long]), stderr);
    assert!(code == 2 && text.contains("--no-such"), "{code}: {text}");
    let (code, text) = through_a_slow_pipe(vellum().args(["cat", &long]), stderr);
    assert!(code == 1 && text.len() > long.len(), "{code}: {} bytes", text.len());
}

/// A pipe whose reading end does not wait.
fn input() -> (OwnedFd, PipeWriter) {
    let (reader, writer) = std::io::pipe().unwrap();
    fcntl_setfl(&reader, OFlags::NONBLOCK).unwrap();
    (reader.into(), writer)
}

#[test]
fn input_that_has_not_come_is_waited_for() {
    let place = Place::new();
    let (reader, mut writer) = input();
    let mut command = vellum();
    command.args(["append", "--ack"]).arg(place.log()).stdin(reader);
    let mut running = Running::start_as_it_is(&mut command);
    for line in ["one\n", "two\n"] {
        writer.write_all(line.as_bytes()).unwrap();
        running.line();
    }
    drop((command, writer));
    assert!(running.child.wait().unwrap().success());

    let (reader, mut writer) = input();
    let mut command = vellum();
    command.args(["tail", "--cursor", "x", "--ack", "--positions"]).arg(place.log()).stdin(reader);
    let mut running = Running::start_as_it_is(&mut command);
    drop(command);
    let printed: Vec<String> = (0..2).map(|_| running.line()).collect();
    let position = printed[1].split_once('\t').unwrap().0.to_owned();
    let feeder = thread::spawn(move || writeln!(writer, "{position}").unwrap());
    assert!(running.child.wait().unwrap().success());
    feeder.join().unwrap();
}
