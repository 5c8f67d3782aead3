//! A tool: how it is found and started, and its results.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use anyhow::Context;

/// A tool that has not ended so long after its time is ended.
const PATIENCE: u64 = 90;

/// The result of a tool for a disk.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Said {
    /// In milliseconds, if it has one.
    pub(super) p99_ms: Option<f64>,
    /// For people.
    pub(super) text: String,
    /// Is the disk good, as far as it says?
    pub(super) is_good: Option<bool>,
    /// Its last words, where it could not measure.
    pub(super) error: Option<String>,
}

impl Said {
    pub(super) fn new(text: String, p99_ms: Option<f64>, is_good: Option<bool>) -> Said {
        Said { p99_ms, text, is_good, error: None }
    }

    /// One that is not on this machine, or was not asked.
    pub(super) fn nothing() -> Said {
        Said::new("–".to_owned(), None, None)
    }

    /// One that could not measure, which is a word about the disk too.
    pub(super) fn failed(error: impl Into<String>) -> Said {
        Said { error: Some(error.into()), ..Said::new("error".to_owned(), None, Some(false)) }
    }
}

/// Runs a program to its end, or for so many seconds.
pub(super) fn run_for(
    seconds: u64,
    program: &Path,
    words: impl IntoIterator<Item = impl AsRef<OsStr>>,
) -> anyhow::Result<Output> {
    let mut command = Command::new("timeout");
    command.args(["-k", "5", &(seconds + PATIENCE).to_string()]).arg(program).args(words);
    let output = command.stdin(Stdio::null()).output();
    output.with_context(|| format!("cannot start {}", program.display()))
}

/// The last line that a program said.
pub(super) fn last_line(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    text.lines().rfind(|line| !line.trim().is_empty()).unwrap_or("nothing").trim().to_owned()
}

/// The program of this name in the path, or in one of these directories.
pub(super) fn found(name: &str, more: &[PathBuf]) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let dirs = std::env::split_paths(&path).chain(more.iter().cloned());
    dirs.map(|dir| dir.join(name)).find(|program| program.is_file())
}
