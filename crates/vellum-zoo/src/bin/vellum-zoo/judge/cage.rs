//! A disk that `vellum-zoo run` shows while this is held. That command takes everything down, also
//! if this process is interrupted from the keyboard.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};

use anyhow::{Context, bail};
use rustix::process::{Pid, Signal, kill_process};

/// Bytes of a disk, of which a filesystem takes a part.
pub(super) const DISK_MIB: u64 = 512;

/// A disk of an animal, with ext4 on it.
pub(super) struct Cage {
    dir: PathBuf,
    child: Child,
    lines: BufReader<ChildStdout>,
}

impl Cage {
    /// In a directory of its own.
    pub(super) fn new(
        dir: &Path,
        animal: &str,
        parameters: &[&str],
        seed: u64,
    ) -> anyhow::Result<Cage> {
        fs::create_dir_all(dir.join("at"))?;
        let _ = fs::remove_file(dir.join("image"));
        let mut command = Command::new(std::env::current_exe()?);
        command.args(["run", animal, "--mkfs", "ext4", "--size", &format!("{DISK_MIB}M")]);
        command.arg("--file").arg(dir.join("image")).arg("--mount").arg(dir.join("at"));
        command.args(["--seed", &seed.to_string()]);
        for parameter in parameters {
            command.args(["--param", parameter]);
        }
        let mut child = command.stdout(Stdio::piped()).spawn().context("cannot show a disk")?;
        let lines = BufReader::new(child.stdout.take().context("no output of the disk")?);
        let mut cage = Cage { dir: dir.to_path_buf(), child, lines };
        cage.wait_for("ready")?;
        Ok(cage)
    }

    /// Where it is mounted.
    pub(super) fn at(&self) -> PathBuf {
        self.dir.join("at")
    }

    /// Cuts the power, and has it come back; returns the words of the disk about the cut.
    pub(super) fn cut(&mut self) -> anyhow::Result<String> {
        kill_process(Pid::from_child(&self.child), Signal::USR1)?;
        let cut = self.wait_for("cut ")?;
        self.wait_for("power on")?;
        Ok(cut.trim_start_matches("cut ").trim().to_owned())
    }

    /// The next line that begins so.
    fn wait_for(&mut self, start: &str) -> anyhow::Result<String> {
        let mut line = String::new();
        while self.lines.read_line(&mut line)? > 0 {
            if line.starts_with(start) {
                return Ok(line);
            }
            if line.starts_with("power off") {
                bail!("after the cut: {}", line.trim());
            }
            line.clear();
        }
        bail!("the disk has ended")
    }
}

impl Drop for Cage {
    fn drop(&mut self) {
        // One that has ended is not waited for by anybody else, so its number is still its own.
        let _ = kill_process(Pid::from_child(&self.child), Signal::INT);
        let _ = self.child.wait();
    }
}
