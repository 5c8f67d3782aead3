//! Starting the program and checking its output.

use std::ffi::OsStr;
use std::fs;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::thread;

use serde_json::Value;
use tempfile::TempDir;

/// A directory with a log in it, or room for one.
pub(crate) struct Place {
    dir: TempDir,
}

/// The output of a command and how it ended.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) code: i32,
    pub(crate) stdout: Vec<u8>,
    pub(crate) stderr: String,
}

/// The rows of a report, in their order.
#[track_caller]
pub(crate) fn rows(report: &Value) -> Vec<&Value> {
    report["rows"].as_object().expect("rows").values().collect()
}

/// The name of a row of a report under the key `name`.
#[track_caller]
pub(crate) fn key(row: &Value, name: &str) -> String {
    row["keys"][name].as_str().unwrap_or_else(|| panic!("{name}: {row}")).to_string()
}

/// The same as a number.
#[track_caller]
pub(crate) fn number(case: &Value, name: &str) -> u64 {
    key(case, name).parse().unwrap()
}

/// A command in progress; killed, by its number, when dropped.
pub(crate) struct Running {
    pub(crate) child: Child,
    /// `None` once it has been closed.
    pub(crate) stdout: Option<BufReader<ChildStdout>>,
}

/// The program, without the environment that changes what it looks like.
pub(crate) fn vellum() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_vellum"));
    // Variables that decide about styles, of which machines that build and test set some.
    for name in ["CI", "NO_COLOR", "CLICOLOR", "CLICOLOR_FORCE"] {
        command.env_remove(name);
    }
    command.env("TZ", "UTC").stdin(Stdio::null());
    command
}

/// The same command with the usual answers to signals: shells start what runs behind them with the
/// interrupt ignored, and its children inherit that.
pub(crate) fn with_default_signals(command: &Command) -> Command {
    let mut with = Command::new("env");
    with.arg("--default-signal=INT,TERM").arg(command.get_program()).args(command.get_args());
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => with.env(name, value),
            None => with.env_remove(name),
        };
    }
    with.stdin(Stdio::null());
    with
}

/// Runs the program to its end with `input` on its standard input.
pub(crate) fn run<A: AsRef<OsStr>>(args: &[A], input: &[u8]) -> Ran {
    let mut command = vellum();
    command.args(args).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let input = input.to_vec();
    // It may end without reading everything.
    let feeder = thread::spawn(move || drop(stdin.write_all(&input)));
    let output = child.wait_with_output().unwrap();
    feeder.join().unwrap();
    Ran {
        code: output.status.code().expect("no signal ended it"),
        stdout: output.stdout,
        stderr: String::from_utf8(output.stderr).unwrap(),
    }
}

impl Ran {
    /// Its output, after a good end without a word on standard error.
    #[track_caller]
    pub(crate) fn good(self) -> String {
        assert_eq!((self.code, self.stderr.as_str()), (0, ""));
        self.text()
    }

    /// Its output, as text.
    pub(crate) fn text(self) -> String {
        String::from_utf8(self.stdout).unwrap()
    }

    /// The one line of complaint of a command that ended with `code` and printed nothing.
    #[track_caller]
    pub(crate) fn complaint(&self, code: i32) -> &str {
        assert_eq!((self.code, self.stdout.len()), (code, 0), "{self:?}");
        let line = self.stderr.strip_suffix('\n').expect("a line");
        assert!(!line.contains('\n'), "{line}");
        line.strip_prefix("vellum: ").expect("it says who complains")
    }
}

impl Place {
    /// Room for a log.
    pub(crate) fn new() -> Place {
        Place { dir: tempfile::tempdir().unwrap() }
    }

    /// Room for files.
    pub(crate) fn dir(&self) -> &Path {
        self.dir.path()
    }

    /// Where the log is: in a directory, whatever its layout.
    pub(crate) fn log(&self) -> PathBuf {
        self.dir().join("test.log/")
    }

    /// `vellum <command> <options> <log>`.
    pub(crate) fn run(&self, command: &str, options: &[&str], input: &[u8]) -> Ran {
        run(&self.args(command, options), input)
    }

    /// Starts the same and leaves it running.
    pub(crate) fn start(&self, command: &str, options: &[&str]) -> Running {
        Running::start(vellum().args(self.args(command, options)))
    }

    fn args(&self, command: &str, options: &[&str]) -> Vec<String> {
        let log = self.log().to_str().unwrap().to_string();
        let words = [command].into_iter().chain(options.iter().copied());
        words.map(str::to_string).chain([log]).collect()
    }

    /// The positions that `append --ack` told for `input`.
    pub(crate) fn append(&self, options: &[&str], input: &[u8]) -> Vec<u64> {
        let options = [options, &["--ack"]].concat();
        let text = self.run("append", &options, input).good();
        text.lines().map(|line| line.parse().unwrap()).collect()
    }

    /// What `stat --json` says.
    pub(crate) fn stat(&self) -> Value {
        serde_json::from_str(&self.run("stat", &["--json"], b"").good()).unwrap()
    }

    /// The segment files, oldest first.
    pub(crate) fn segments(&self) -> Vec<PathBuf> {
        let entries = fs::read_dir(self.log()).unwrap().map(|entry| entry.unwrap().path());
        let mut paths: Vec<PathBuf> = entries
            .filter(|path| path.extension().is_some_and(|end| end == "seg" || end == "log"))
            .collect();
        paths.sort();
        paths
    }

    /// Every file of the log with its content.
    pub(crate) fn files(&self) -> Vec<(PathBuf, Vec<u8>)> {
        let entries = fs::read_dir(self.log()).unwrap().map(|entry| entry.unwrap().path());
        let mut files: Vec<_> =
            entries.map(|path| (path.clone(), fs::read(path).unwrap())).collect();
        files.sort();
        files
    }
}

impl Running {
    /// Starts `command` and takes its standard output.
    pub(crate) fn start(command: &mut Command) -> Running {
        Running::start_as_it_is(command.stdin(Stdio::piped()))
    }

    /// Starts `command` with the input that it has been given, and takes its standard output.
    pub(crate) fn start_as_it_is(command: &mut Command) -> Running {
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let stdout = child.stdout.take().map(BufReader::new);
        Running { child, stdout }
    }

    /// Gives it `bytes` to read.
    pub(crate) fn feed(&mut self, bytes: &[u8]) {
        self.child.stdin.as_mut().unwrap().write_all(bytes).unwrap();
    }

    /// Waits for a line.
    pub(crate) fn line(&mut self) -> String {
        let mut line = String::new();
        self.stdout.as_mut().unwrap().read_line(&mut line).unwrap();
        line
    }

    /// Waits for 8 bytes, as a writer of the demo reports.
    pub(crate) fn report(&mut self) -> u64 {
        let mut bytes = [0; 8];
        self.stdout.as_mut().unwrap().read_exact(&mut bytes).unwrap();
        u64::from_ne_bytes(bytes)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A standard output without a reader.
pub(crate) fn closed_pipe() -> io::PipeWriter {
    let (reader, writer) = io::pipe().unwrap();
    drop(reader);
    writer
}

/// Changes one byte of a file.
pub(crate) fn flip(path: &Path, offset: usize) {
    let mut bytes = fs::read(path).unwrap();
    bytes[offset] ^= 0x20;
    fs::write(path, bytes).unwrap();
}
