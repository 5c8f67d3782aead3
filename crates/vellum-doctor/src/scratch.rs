//! A directory for files of no further use, removed however this process ends.
//!
//! A process that is killed, even by SIGINT from the keyboard, has no say in what it leaves. So a
//! second process of this program, the keeper, holds the end of a pipe: when it tells that nobody
//! holds the other end any more, the directory goes. No signal handler is needed, nor a thread,
//! which a measurement would feel.

use std::fs;
use std::io::{self, Read};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::thread;
use std::time::Duration;

use anyhow::{Context, ensure};
use tempfile::TempDir;
use vellum_command::outcome::{Outcome, Result};
use vellum_command::stdio;

/// The first word of the command line of a process that a program starts for itself.
pub const INTERNAL: &str = "internal";
/// What the keeper may remove: names that we gave.
const NAME_PREFIX: &str = "vellum-";
/// Processes that still write while the directory goes may add files to it; they die too.
const ATTEMPTS: u32 = 100;
const ATTEMPT_PAUSE: Duration = Duration::from_millis(50);

/// A new directory that is removed with all it holds when this is dropped, or its owner dies.
#[derive(Debug)]
pub struct Scratch {
    dir: TempDir,
    keeper: Child,
    /// Closed when this process ends, whatever ends it.
    held: Option<ChildStdin>,
}

impl Scratch {
    /// Makes a directory in `parent`, called `vellum-`, `purpose` and some letters.
    ///
    /// # Errors
    ///
    /// No directory can be made there, or the keeper does not start.
    pub fn new(purpose: &str, parent: &Path) -> Result<Scratch> {
        let cannot = || format!("cannot make a directory in {}", parent.display());
        // The error of a missing parent would name a directory that nobody knows.
        fs::read_dir(parent).with_context(cannot)?;
        let prefix = format!("{NAME_PREFIX}{purpose}-");
        let dir = tempfile::Builder::new().prefix(&prefix).tempdir_in(parent);
        let dir = dir.with_context(cannot)?;
        let program = std::env::current_exe().context("cannot find this program")?;
        let mut keeper = Command::new(program)
            .args([INTERNAL, "keeper"])
            .arg(dir.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            // Signals from the keyboard are for us.
            .process_group(0)
            .spawn()
            .context("cannot start the keeper of the temporary directory")?;
        let held = keeper.stdin.take();
        Ok(Scratch { dir, keeper, held })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        self.dir.path()
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        self.held = None;
        // The keeper removes it; what it could not remove, `dir` tries again.
        let _ = self.keeper.wait();
    }
}

/// Removes a directory when its owner is gone.
#[derive(clap::Args, Debug)]
pub struct KeeperArgs {
    /// The directory.
    pub dir: std::path::PathBuf,
}

/// Waits until nobody holds the directory any more and removes it.
///
/// # Errors
///
/// It is none of those that [`Scratch`] makes.
pub fn keep(args: &KeeperArgs) -> Result<Outcome> {
    let name = args.dir.file_name().unwrap_or_default().to_string_lossy();
    ensure!(name.starts_with(NAME_PREFIX), "{} is not ours to remove", args.dir.display());
    let _ = stdio::stdin().read(&mut [0]);
    for attempt in 1..=ATTEMPTS {
        // What the directory tells of, so before it goes.
        if !vellum_bench::give_back(&args.dir) && attempt < ATTEMPTS {
            thread::sleep(ATTEMPT_PAUSE);
            continue;
        }
        match fs::remove_dir_all(&args.dir) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => thread::sleep(ATTEMPT_PAUSE),
            _ => break,
        }
    }
    Ok(Outcome::Good)
}
