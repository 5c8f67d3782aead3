//! Runs the binary under test.

use std::path::PathBuf;
use std::process::{Command, Output};
use std::sync::{Mutex, PoisonError};

/// The binary under test.
pub(crate) const BINARY: &str = env!("CARGO_BIN_EXE_vellum-powercut");

/// The exit status where the machine lacks something.
pub(crate) const MACHINE_CANNOT: i32 = 77;

/// Runs share two processors at most; one at a time is fastest, and never out of loop devices.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

/// The outcome of a run.
#[derive(Debug)]
pub(crate) struct Run {
    pub(crate) status: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
    /// The files that the run has kept, until this is dropped.
    pub(crate) kept: tempfile::TempDir,
}

impl Run {
    /// The violations that were reported.
    pub(crate) fn violations(&self) -> Vec<&str> {
        self.stdout.lines().filter(|line| line.starts_with("VIOLATION")).collect()
    }

    /// The images and recordings that were kept.
    pub(crate) fn kept_files(&self) -> Vec<PathBuf> {
        let entries = self.kept.path().read_dir().expect("the directory is there");
        entries.map(|entry| entry.expect("an entry").path()).collect()
    }

    #[track_caller]
    pub(crate) fn assert_status(&self, status: i32) {
        assert_eq!(self.status, Some(status), "{}\n{}", self.stdout, self.stderr);
    }
}

/// Runs a campaign; `None` where this machine cannot.
pub(crate) fn run(arguments: &[&str]) -> Option<Run> {
    let kept = tempfile::tempdir().expect("a temporary directory");
    let mut command = Command::new(BINARY);
    command.args(arguments).arg("--keep").arg(kept.path());
    let output: Output = {
        let _guard = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
        command.output().expect("the binary runs")
    };
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let stderr = text(&output.stderr);
    if output.status.code() == Some(MACHINE_CANNOT) {
        vellum_testing::missing::skip(stderr.trim());
        return None;
    }
    Some(Run { status: output.status.code(), stdout: text(&output.stdout), stderr, kept })
}

/// Runs a campaign on a built-in workload, which does not know in which boot it is.
pub(crate) fn run_reference(work: &str, check: &str, arguments: &[&str]) -> Option<Run> {
    let work = format!("{BINARY} self-work {work} {{dir}}");
    let check = format!("{BINARY} self-check {check} {{dir}}");
    let commands = ["--work", &work, "--check", &check];
    run(&[&commands[..], &["--boots", "another", "--seed", "1"], arguments].concat())
}
