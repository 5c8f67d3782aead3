//! `vellum-ship` among other programs: as process 1 of a container, and with a standard output that
//! does not wait.

use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{OFlags, fcntl_setfl};
use rustix::pipe::fcntl_setpipe_size;
use vellum::{Create, Options};
use vellum_testing::{is_root, until};

const SHIP: &str = env!("CARGO_BIN_EXE_vellum-ship");
const LINES: usize = 1000;

/// A log of so many lines, shipped; the URL.
fn shipped(dir: &Path) -> String {
    let log = Options::default().open(dir.join("log")).unwrap();
    for number in 0..LINES {
        log.append(format!("line number {number}").as_bytes()).unwrap();
    }
    log.sync().unwrap();
    let url = format!("file://{}", dir.join("store").display());
    let done = Command::new(SHIP).arg("ship").arg(dir.join("log")).args([&url, "--once"]).status();
    assert!(done.unwrap().success());
    url
}

/// How `vellum-ship <words>` ends as process 1, by a signal that comes when it is at work: when it
/// has printed a line, or when `is_at_work` says so.
fn ended_by(signal: &str, words: &[&str], is_at_work: Option<&dyn Fn() -> bool>) -> ExitStatus {
    // Tests that run in the background may ignore the signals of a keyboard.
    let mut command = Command::new("env");
    command.args(["--default-signal", "unshare", "--pid", "--fork", "--kill-child", SHIP]);
    command.args(words);
    let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
    let mut output = BufReader::new(child.stdout.take().unwrap());
    match is_at_work {
        Some(is_at_work) => until("it is at work", || is_at_work().then_some(())),
        None => assert!(output.read_line(&mut String::new()).unwrap() > 0),
    }
    let parent = child.id();
    let first = std::fs::read_to_string(format!("/proc/{parent}/task/{parent}/children")).unwrap();
    assert!(Command::new("kill").args([signal, first.trim()]).status().unwrap().success());
    until(&format!("{signal} ends it"), || child.try_wait().unwrap())
}

#[test]
fn as_process_1_it_is_ended_by_a_signal() {
    if !is_root("as_process_1") {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let url = shipped(dir.path());
    for (signal, code) in [("-TERM", 143), ("-INT", 130), ("-HUP", 129), ("-QUIT", 131)] {
        for words in [&["tail", "-n", "1", "-f", &url][..], &["cat", "-f", &url]] {
            assert_eq!(ended_by(signal, words, None).code(), Some(code), "{words:?} {signal}");
        }
    }
    let log = Options::default().create(Create::Never).open(dir.path().join("log")).unwrap();
    let path = dir.path().join("log").display().to_string();
    for (signal, code) in [("-TERM", 0), ("-INT", 0), ("-HUP", 129)] {
        let end = log.append(b"one more").unwrap();
        log.sync().unwrap();
        let is_shipped = || log.ship().state().unwrap().shipped > end;
        let status = ended_by(signal, &["ship", &path, &url], Some(&is_shipped));
        assert_eq!(status.code(), Some(code), "ship {signal}");
    }
}

#[test]
fn without_threads_it_says_what_is_missing() {
    if !is_root("without_threads") {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let url = shipped(dir.path());
    // Root is exempt. Another user may have one thread: its own.
    let mut command = Command::new("prlimit");
    let caps = "+dac_override,+dac_read_search";
    command.args(["--nproc=1:1", "setpriv", "--reuid=61235", "--clear-groups"]);
    command.args(["--inh-caps", caps, "--ambient-caps", caps, "--", SHIP, "cat", &url]);
    let output = command.output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!((output.status.code(), said.lines().count()), (Some(1), 1), "{said}");
    assert!(said.contains("thread") && said.contains("ulimit -u"), "{said}");
}

#[test]
fn it_waits_until_its_output_is_taken() {
    let dir = tempfile::tempdir().unwrap();
    let url = shipped(dir.path());
    for words in [&["cat", &url][..], &["cat", "--json", &url], &["tail", "-n", "500", &url]] {
        let whole = Command::new(SHIP).args(words).output().unwrap().stdout;
        let (mut reader, writer) = std::io::pipe().unwrap();
        fcntl_setpipe_size(&writer, 4096).unwrap();
        fcntl_setfl(&writer, OFlags::NONBLOCK).unwrap();
        let is_full = writer.try_clone().unwrap();
        let mut command = Command::new(SHIP);
        let mut child = command.args(words).stdout(writer).spawn().unwrap();
        drop(command);
        until("the pipe is full", || {
            let now = Timespec { tv_sec: 0, tv_nsec: 0 };
            let room = poll(&mut [PollFd::new(&is_full, PollFlags::OUT)], Some(&now)).unwrap();
            (room == 0 || child.try_wait().unwrap().is_some()).then_some(())
        });
        drop(is_full);
        let mut taken = Vec::new();
        reader.read_to_end(&mut taken).unwrap();
        assert!(taken == whole && whole.len() > 4096, "{words:?}: {} bytes", taken.len());
        assert!(child.wait().unwrap().success(), "{words:?}");
    }
}
