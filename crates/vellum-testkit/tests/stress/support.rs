//! Starting the program and checking its output.

use std::collections::BTreeSet;
use std::fs;
use std::io::{self, BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};

use tempfile::TempDir;
use vellum::{Layout, Log, Lsn, Options};

/// A directory with a log in it, or room for one.
pub(crate) struct Place {
    dir: TempDir,
}

/// The output of a run and how it ended.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) code: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

/// A run in progress; killed, by its number, when dropped.
pub(crate) struct Running {
    pub(crate) child: Child,
    pub(crate) stdout: BufReader<ChildStdout>,
}

/// The program.
pub(crate) fn stress() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_vellum-stress"));
    command.stdin(Stdio::null());
    command
}

/// Runs `command` to its end.
pub(crate) fn run(command: &mut Command) -> Ran {
    let output = command.output().unwrap();
    Ran {
        code: output.status.code().expect("no signal ended it"),
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
    }
}

impl Ran {
    /// Its output, after a good end without a word on standard error.
    #[track_caller]
    pub(crate) fn good(self) -> String {
        assert_eq!((self.code, self.stderr.as_str()), (0, ""));
        self.stdout
    }

    /// The one line of complaint of a run that ended with `code` and printed nothing.
    #[track_caller]
    pub(crate) fn complaint(&self, code: i32) -> &str {
        assert_eq!((self.code, self.stdout.as_str()), (code, ""), "{self:?}");
        let line = self.stderr.strip_suffix('\n').expect("a line");
        assert!(!line.contains('\n'), "{line}");
        line.strip_prefix("vellum-stress: ").expect("it says who complains")
    }
}

impl Place {
    /// Room for a log.
    pub(crate) fn new() -> Place {
        Place { dir: tempfile::tempdir().unwrap() }
    }

    /// Where the log is.
    pub(crate) fn log(&self) -> PathBuf {
        self.dir.path().join("test.log")
    }

    /// `vellum-stress <options> <log>`.
    pub(crate) fn stress(&self, options: &[&str]) -> Ran {
        run(stress().args(options).arg(self.log()))
    }

    /// Starts the same and leaves it running.
    pub(crate) fn start(&self, options: &[&str]) -> Running {
        Running::start(stress().args(options).arg(self.log()))
    }

    /// Appends records to a new log, or to one with this layout.
    pub(crate) fn append(&self, layout: Layout, records: &[String]) {
        let log = vellum::internal::options(layout).open(self.log()).unwrap();
        for record in records {
            log.append(record.as_bytes()).unwrap();
        }
    }

    /// The records that can be read, with their positions, up to the first damage.
    pub(crate) fn records(&self) -> Vec<(u64, Vec<u8>)> {
        let mut records = Vec::new();
        let reader = self.read_only().and_then(|log| log.reader(Lsn::ZERO));
        if let Ok(mut reader) = reader {
            while let Ok(Some(record)) = reader.next() {
                records.push((record.lsn.get(), record.payload.to_vec()));
            }
        }
        records
    }

    /// Where the log begins.
    pub(crate) fn begin(&self) -> u64 {
        self.read_only().unwrap().begin().get()
    }

    fn read_only(&self) -> vellum::Result<Log> {
        Options::default().read_only(true).open(self.log())
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
}

impl Running {
    /// Starts `command` and takes its standard output.
    pub(crate) fn start(command: &mut Command) -> Running {
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        Running { child, stdout }
    }

    /// Waits for a line.
    pub(crate) fn line(&mut self) -> String {
        let mut line = String::new();
        self.stdout.read_line(&mut line).unwrap();
        line
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

/// The numbers of the lines that begin with `word`, one after the other.
pub(crate) fn numbers(text: &str, word: &str) -> Vec<u64> {
    let ranges = text.lines().filter_map(|line| line.strip_prefix(word));
    let numbers = ranges.flat_map(|range| {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        first.parse::<u64>().unwrap()..=last.parse().unwrap()
    });
    numbers.collect()
}

pub(crate) fn set(numbers: Vec<u64>) -> BTreeSet<u64> {
    let count = numbers.len();
    let set: BTreeSet<u64> = numbers.into_iter().collect();
    assert_eq!(set.len(), count, "nothing is told twice");
    set
}

/// The numbers that a check without faults finds.
#[track_caller]
pub(crate) fn found(place: &Place) -> BTreeSet<u64> {
    set(numbers(&place.stress(&["--check"]).good(), ""))
}
