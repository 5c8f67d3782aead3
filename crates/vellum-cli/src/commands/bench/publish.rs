//! `vellum bench publish`: the measurements that the pages quote.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::Duration;

use anyhow::{Context, bail};
use vellum_command::outcome::{Outcome, Result};
use vellum_command::output;

use crate::args::{BenchPublishArgs, MEASUREMENTS, Measurement};

/// Below this load average a machine is idle. `vellum bench` warns above it.
const LOAD_OF_IDLE: f64 = 0.5;
/// How often it is looked whether the machine is idle. A machine that is not idle after so many
/// times never will be, and the result says so.
const TIMES_TO_LOOK: u32 = 60;
const LOOK_EVERY: Duration = Duration::from_secs(10);

/// Runs those that are asked for.
pub(crate) fn run(args: &BenchPublishArgs) -> Result<Outcome> {
    let all = MEASUREMENTS.iter();
    let is_asked =
        |one: &&Measurement| args.only.is_empty() || args.only.iter().any(|name| name == one.name);
    let chosen: Vec<&Measurement> = all.filter(is_asked).collect();
    if args.list {
        let line = |one: &&Measurement| {
            format!("{:>3} min  {:<17}  {}\n", one.minutes, one.name, one.words(args.quick))
        };
        output::print(&chosen.iter().map(line).collect::<String>())?;
        return Ok(Outcome::Good);
    }
    let (waiting, results) = places(args);
    for place in [&waiting, &results] {
        fs::create_dir_all(place).with_context(|| format!("cannot make {}", place.display()))?;
    }
    for one in &chosen {
        one.measure(args, &waiting)?;
    }
    for one in &chosen {
        let file = one.file();
        let (from, to) = (waiting.join(&file), results.join(&file));
        // The two may be on different filesystems.
        fs::copy(&from, &to).with_context(|| format!("cannot write {}", to.display()))?;
        fs::remove_file(&from).with_context(|| format!("cannot remove {}", from.display()))?;
    }
    Ok(Outcome::Good)
}

/// Where results wait, and where they go.
fn places(args: &BenchPublishArgs) -> (PathBuf, PathBuf) {
    let (waiting, usual) = match args.quick {
        true => ("measured-quick", args.target.join("results-quick")),
        false => ("measured", PathBuf::from("docs/results")),
    };
    (args.target.join(waiting), args.into.clone().unwrap_or(usual))
}

impl Measurement {
    fn file(&self) -> String {
        format!("{}.json", self.name)
    }

    /// Whether it measures other engines, which a program of its own does.
    fn is_of_peers(&self) -> bool {
        self.name.starts_with("peers-")
    }

    /// The words of its command line.
    fn words(&self, is_quick: bool) -> String {
        match (is_quick, self.is_of_peers()) {
            (false, _) => self.words.to_string(),
            (true, true) => self.words.replace("--rounds 5", "--rounds 1"),
            (true, false) => self.words.replace("--big 10G", "--big 64M") + " --quick",
        }
    }

    /// The program that measures it, and how that is told.
    fn program(&self, target: &Path) -> Result<(Command, &'static str)> {
        if self.is_of_peers() {
            let program = target.join("peers/release/vellum-bench-peers");
            return Ok((Command::new(program), "vellum-bench-peers"));
        }
        let own = std::env::current_exe().context("cannot find this program")?;
        let mut command = Command::new(own);
        command.arg("bench");
        Ok((command, "vellum bench"))
    }

    /// Measures it, unless an earlier run has done so.
    fn measure(&self, args: &BenchPublishArgs, waiting: &Path) -> Result<()> {
        let done = waiting.join(self.file());
        if fs::metadata(&done).is_ok_and(|file| file.len() > 0) {
            return Ok(());
        }
        if !args.quick {
            wait_for_idle();
        }
        let words = self.words(args.quick);
        let (mut command, name) = self.program(&args.target)?;
        output::say(format_args!("{name} {words}"));
        let part = waiting.join(format!("{}.part", self.name));
        command.args(words.split(' ')).arg("--json").arg(&part);
        let status = command.status().with_context(|| format!("cannot start {name}"))?;
        if !status.success() {
            bail!("{name} {words} failed ({status}); the same command goes on from here");
        }
        take(&part, &done).with_context(|| format!("cannot write {}", done.display()))
    }
}

/// Takes a result, without the directory in which it was measured: pages do not tell where that is.
fn take(part: &Path, done: &Path) -> Result<()> {
    let mut text = fs::read_to_string(part)?;
    if let Some(here) = std::env::current_dir()?.to_str() {
        text = text.replace(&format!("{here}/"), "").replace(here, "");
    }
    fs::write(part, text)?;
    Ok(fs::rename(part, done)?)
}

/// A machine that has just built is not idle.
fn wait_for_idle() {
    for turn in 0..TIMES_TO_LOOK {
        let load = fs::read_to_string("/proc/loadavg").unwrap_or_default();
        let load = load.split(' ').next().and_then(|load| load.parse::<f64>().ok());
        if load.is_none_or(|load| load < LOAD_OF_IDLE) {
            return;
        }
        if turn == 0 {
            output::say(format_args!(
                "waiting until the load average is below {LOAD_OF_IDLE}, ten minutes at most"
            ));
        }
        thread::sleep(LOOK_EVERY);
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::args::CommandLine;

    #[test]
    fn every_measurement_of_ours_is_a_command_line() {
        for one in MEASUREMENTS.iter().filter(|one| !one.is_of_peers()) {
            for is_quick in [false, true] {
                let words = format!("vellum bench {}", one.words(is_quick));
                let read = CommandLine::try_parse_from(words.split(' '));
                assert!(read.is_ok(), "{words}: {read:?}");
                assert_eq!(words.ends_with(" --quick"), is_quick);
            }
        }
    }

    #[test]
    fn a_result_does_not_tell_where_it_was_measured() {
        let dir = tempfile::tempdir().unwrap();
        let (part, done) = (dir.path().join("a.part"), dir.path().join("a.json"));
        let here = std::env::current_dir().unwrap();
        let here = here.display();
        fs::write(&part, format!("[\"{here}/target/x\", \"{here}\"]")).unwrap();
        take(&part, &done).unwrap();
        assert_eq!(fs::read_to_string(&done).unwrap(), "[\"target/x\", \"\"]");
        assert!(!part.exists());
    }
}
