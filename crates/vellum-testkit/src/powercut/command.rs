//! The commands under test: started from templates, watched, killed with all that they started.

use std::fmt;
use std::fs::File;
use std::io;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::Context;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, WaitOptions};

/// The placeholder of the directory on the disk.
const PLACE: &str = "{dir}";

/// A command with a place for the directory; run by the shell.
#[derive(Clone, Debug)]
pub struct Template(String);

impl std::str::FromStr for Template {
    type Err = String;

    fn from_str(text: &str) -> Result<Template, String> {
        match text.contains(PLACE) {
            true => Ok(Template(text.to_owned())),
            false => Err(format!("{PLACE} must stand where the directory belongs")),
        }
    }
}

impl fmt::Display for Template {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// How a command ended.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    /// Its standard output, if that was kept.
    pub stdout: String,
    /// Its standard error.
    pub stderr: String,
    /// Its exit status, if it exited.
    pub status: Option<i32>,
    /// The signal that killed it, if one did.
    pub signal: Option<i32>,
}

impl Outcome {
    /// Whether it exited with 0.
    pub fn is_success(&self) -> bool {
        self.status == Some(0)
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.status, self.signal) {
            (Some(status), _) => write!(f, "exited with {status}")?,
            (None, Some(signal)) => write!(f, "was killed by signal {signal}")?,
            (None, None) => write!(f, "did not end in time")?,
        }
        match self.stderr.lines().next_back() {
            Some(line) => write!(f, ": {line}"),
            None => Ok(()),
        }
    }
}

/// Where the commands' output goes, and how long each may take.
#[derive(Clone, Debug)]
pub struct Runner {
    dir: PathBuf,
    timeout: Duration,
}

impl Runner {
    /// Keeps output in `dir`.
    pub fn new(dir: &Path, timeout: Duration) -> Runner {
        Runner { dir: dir.to_owned(), timeout }
    }

    /// Runs a command to its end; its output goes to `stdout`, or is kept.
    pub fn run(
        &self,
        template: &Template,
        dir: &Path,
        stdout: Option<Stdio>,
    ) -> anyhow::Result<Outcome> {
        let (stdout_path, stderr_path) = (self.dir.join("stdout"), self.dir.join("stderr"));
        let kept = Stdio::from(File::create(&stdout_path)?);
        let line = template.0.replace(PLACE, &dir.to_string_lossy());
        let mut child = Command::new("/bin/sh")
            .args(["-c", &line])
            .stdin(Stdio::null())
            .stdout(stdout.unwrap_or(kept))
            .stderr(File::create(&stderr_path)?)
            .process_group(0)
            .spawn()
            .with_context(|| format!("cannot run {line:?}"))?;
        let mut outcome = wait(&mut child, self.timeout)?;
        outcome.stdout = read_lossy(&stdout_path)?;
        outcome.stderr = read_lossy(&stderr_path)?;
        Ok(outcome)
    }
}

fn read_lossy(path: &Path) -> io::Result<String> {
    Ok(String::from_utf8_lossy(&std::fs::read(path)?).into_owned())
}

/// Waits for a child until it ends or its time is over, then ends what it has left behind.
fn wait(child: &mut Child, timeout: Duration) -> io::Result<Outcome> {
    let pid = Pid::from_child(child);
    let watch = rustix::process::pidfd_open(pid, PidfdFlags::empty())?;
    let limit = Timespec { tv_sec: timeout.as_secs() as i64, tv_nsec: 0 };
    let is_over = poll(&mut [PollFd::new(&watch, PollFlags::IN)], Some(&limit))? == 0;
    // The number is taken until the child is reaped, so this reaches no other process.
    let _ = rustix::process::kill_process_group(pid, Signal::KILL);
    let status = child.wait()?;
    reap_orphans();
    if is_over {
        return Ok(Outcome::default());
    }
    Ok(Outcome { status: status.code(), signal: status.signal(), ..Outcome::default() })
}

/// Reaps descendants of a command that fell to this process, the first of its namespace.
fn reap_orphans() {
    while let Ok(Some(_)) = rustix::process::wait(WaitOptions::NOHANG) {}
}
