//! A directory for files of no further use, removed however this process ends.
//!
//! A process that is killed, even by SIGINT from the keyboard, cannot remove its files. So a second
//! process of this program, the keeper, holds the end of a pipe: when it tells that no process
//! holds the other end any more, the directory goes. No signal handler is needed, nor a thread,
//! which a measurement would feel.

use std::io::{ErrorKind, Read};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::thread;
use std::time::Duration;

use anyhow::Context;
use vellum_command::outcome::{Outcome, Result};
use vellum_command::private_dir::{self, PrivateDir};
use vellum_command::stdio;
use vellum_sys::Dir;

/// The first word of the command line of a process that a program starts for itself.
pub const INTERNAL: &str = "internal";
/// Where the keeper finds the directory: it is opened as its standard output, so that another file
/// with its name by then makes no difference.
const KEPT: &str = "/proc/self/fd/1";
/// Processes that still write while the directory goes may add files to it; they die too.
const ATTEMPTS: u32 = 100;
const ATTEMPT_PAUSE: Duration = Duration::from_millis(50);

/// A new directory that is removed with all it holds when this is dropped, or its owner dies.
#[derive(Debug)]
pub struct Scratch {
    dir: PrivateDir,
    keeper: Child,
    /// Closed when this process ends, no matter how.
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
        let dir = PrivateDir::new(parent, &format!("vellum-{purpose}-")).with_context(cannot)?;
        let kept = dir.descriptor().with_context(cannot)?;
        let program = std::env::current_exe().context("cannot find this program")?;
        let mut keeper = Command::new(program)
            .args([INTERNAL, "keeper"])
            .stdin(Stdio::piped())
            .stdout(Stdio::from(kept))
            .stderr(Stdio::null())
            // Signals from the keyboard are for us.
            .process_group(0)
            .spawn()
            .context("cannot start the keeper of the temporary directory")?;
        let held = keeper.stdin.take();
        Ok(Scratch { dir, keeper, held })
    }

    /// A path that leads there while this process lives, even if its name changes.
    pub fn path(&self) -> &Path {
        self.dir.path()
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        self.held = None;
        // The keeper removes it; `dir` tries again to remove the rest.
        let _ = self.keeper.wait();
    }
}

/// Waits until no process holds the directory any more, which is open as standard output, and
/// removes it.
///
/// # Errors
///
/// Standard output is no directory.
pub fn keep() -> Result<Outcome> {
    let path = Path::new(KEPT);
    let dir = Dir::open(path).context("the keeper has no directory")?;
    let _ = stdio::stdin().read(&mut [0]);
    for attempt in 1..=ATTEMPTS {
        // What the directory tells of, so before it goes.
        if !vellum_bench::give_back(path) && attempt < ATTEMPTS {
            thread::sleep(ATTEMPT_PAUSE);
            continue;
        }
        match private_dir::remove(&dir, path) {
            Err(error) if error.kind() == ErrorKind::DirectoryNotEmpty => {
                thread::sleep(ATTEMPT_PAUSE);
            }
            // Nothing is left, or the disk is gone: it cannot be unmounted while this is open.
            _ => break,
        }
    }
    Ok(Outcome::Good)
}
