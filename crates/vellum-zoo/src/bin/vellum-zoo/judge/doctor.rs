//! The doctor: how it is asked, and its answers.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use serde_json::Value;

use super::cage::Cage;

/// The program, and how long it may take.
pub(super) struct Doctor {
    program: PathBuf,
}

/// Its answer about a disk.
#[derive(Debug)]
pub(super) struct Answer {
    /// `good`, `marginal`, `cannot-tell`, `not-good-enough`.
    pub(super) verdict: String,
    /// Names of causes, with their weights; the worst first.
    pub(super) causes: Vec<(String, String)>,
    pub(super) line: String,
    /// As the doctor has it for its first limit.
    pub(super) p99_ms: Option<f64>,
}

impl Answer {
    fn of(program: &Value) -> Option<Answer> {
        let limit = program["limits"].get(0);
        let causes = program["causes"].as_array()?.iter();
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        Some(Answer {
            verdict: program["verdict"].as_str()?.to_owned(),
            causes: causes.map(|one| (text(&one["cause"]), text(&one["weight"]))).collect(),
            line: text(&program["change"]),
            p99_ms: limit
                .filter(|limit| limit["figure"] == "p99")
                .and_then(|it| it["value_ms"].as_f64()),
        })
    }

    /// The causes that it says are at fault, the first cause first.
    pub(super) fn faults(&self) -> Vec<&str> {
        let is_fault = |weight: &str| weight == "danger" || weight == "reason";
        let faults = self.causes.iter().filter(|(_, weight)| is_fault(weight));
        faults.map(|(cause, _)| cause.as_str()).collect()
    }

    /// Is said that the figures are doubtful because of the machine?
    pub(super) fn doubts(&self) -> Option<&str> {
        let mut causes = self.causes.iter().filter(|(_, weight)| weight == "care");
        causes.next().map(|(cause, _)| cause.as_str())
    }

    pub(super) fn names(&self, cause: &str) -> bool {
        self.causes.iter().any(|(name, _)| name == cause)
    }
}

/// So many promises are enough, or what has come after so long.
const PROMISES: usize = 300;
const PROMISES_TIME: Duration = Duration::from_secs(8);

impl Doctor {
    /// The one that was named; otherwise the one beside this program, or that of the path.
    pub(super) fn find(named: Option<&Path>) -> anyhow::Result<Doctor> {
        let beside = std::env::current_exe()?.with_file_name("vellum-doctor");
        let program = match named {
            Some(program) => program.to_path_buf(),
            None if beside.exists() => beside,
            None => PathBuf::from("vellum-doctor"),
        };
        let doctor = Doctor { program };
        let output = doctor.command(["--version"]).output();
        let output = output
            .with_context(|| format!("cannot start {}; see --doctor", doctor.program.display()))?;
        ensure!(output.status.success(), "{} is no doctor", doctor.program.display());
        Ok(doctor)
    }

    fn command(&self, words: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Command {
        let mut command = Command::new(&self.program);
        command.args(words).stdin(Stdio::null());
        command
    }

    /// Has it measure for etcd.
    pub(super) fn measure_etcd(
        &self,
        dir: &Path,
        seconds: u32,
        accepted: &[&str],
    ) -> anyhow::Result<Answer> {
        let mut answers = self.measure(&["etcd"], dir, seconds, accepted)?;
        ensure!(answers.len() == 1, "the doctor says nothing of etcd");
        Ok(answers.remove(0))
    }

    /// Has it measure for these programs; an answer for each.
    pub(super) fn measure(
        &self,
        programs: &[&str],
        dir: &Path,
        seconds: u32,
        accepted: &[&str],
    ) -> anyhow::Result<Vec<Answer>> {
        let (programs, seconds) = (programs.join(","), seconds.to_string());
        let mut command = self.command(["--for", &programs, "--seconds", &seconds, "--json", "-"]);
        if !accepted.is_empty() {
            command.args(["--accept", &accepted.join(",")]);
        }
        let output = command.arg(dir).stderr(Stdio::piped()).output()?;
        let said = || String::from_utf8_lossy(&output.stderr).trim().to_owned();
        let value: Value = serde_json::from_slice(&output.stdout)
            .with_context(|| format!("the doctor gave no answer: {}", said()))?;
        let programs = value["programs"].as_array().into_iter().flatten();
        let answers: Option<Vec<Answer>> = programs.map(Answer::of).collect();
        answers.context("the doctor gave an answer without a verdict")
    }

    /// Has it write while the power goes, asks afterwards whether the disk lied, and returns its
    /// answer.
    pub(super) fn lies(&self, cage: &mut Cage, witness: &Path) -> anyhow::Result<String> {
        let mut command = self.command(["--lies", "--witness"]);
        command.arg(witness).arg(cage.at()).stdout(Stdio::null()).stderr(Stdio::null());
        let mut writer = command.spawn()?;
        let begun = Instant::now();
        let promised = || fs::read_to_string(witness).map_or(0, |text| text.lines().count());
        while promised() < PROMISES && begun.elapsed() < PROMISES_TIME {
            thread::sleep(Duration::from_millis(20));
        }
        let cut = cage.cut();
        // Each of its writes fails now; one that goes on must not be waited for.
        let _ = writer.kill();
        writer.wait()?;
        cut?;
        let mut command = self.command(["--lies", "--check", "--was-cut", "--witness"]);
        let output = command.arg(witness).arg(cage.at()).output()?;
        let said = String::from_utf8_lossy(&output.stdout);
        let line = said.lines().next().map(str::to_owned);
        line.with_context(|| String::from_utf8_lossy(&output.stderr).trim().to_owned())
    }
}
