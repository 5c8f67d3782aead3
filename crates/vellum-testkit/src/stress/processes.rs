//! Several processes of this program that append to one log.
//!
//! They are told to start through their standard input, write to the standard output that this
//! process was given, and die with it. One that fails ends all, so that nothing is acknowledged
//! after an error; one that is killed is a part of the test, and the others continue.

use std::io::{self, Read, Write};
use std::process::{Child, ChildStderr, Command, ExitStatus, Stdio};
use std::sync::mpsc;
use std::thread;

use anyhow::{Context, Result, anyhow, bail};
use rustix::process::{Signal, set_parent_process_death_signal};

use super::args::Args;
use super::cli::PROGRAM;

/// In such a process: waits until all have been started.
pub(super) fn wait_for_start() -> Result<()> {
    set_parent_process_death_signal(Some(Signal::KILL)).context("cannot follow the parent")?;
    // It may have died before that.
    io::stdin().read_exact(&mut [0]).context("the process that started this one is gone")
}

/// Starts all of them and waits for their end.
pub(super) fn run(args: &Args, next: &[u64]) -> Result<()> {
    let next: Vec<String> = next.iter().map(u64::to_string).collect();
    let next = next.join(",");
    let mut crew = Crew::default();
    for process in 0..args.processes {
        crew.start(process, &next)?;
    }
    crew.release();
    crew.attend()
}

/// The processes; killed if they are still there in the end.
#[derive(Default)]
struct Crew(Vec<Child>);

impl Crew {
    fn start(&mut self, process: u32, next: &str) -> Result<()> {
        let program = std::env::current_exe().context("cannot find this program")?;
        let mut command = Command::new(program);
        command.args(["--process", &process.to_string(), "--next", next]);
        command.args(std::env::args_os().skip(1));
        let spawned = command.stdin(Stdio::piped()).stderr(Stdio::piped()).spawn();
        self.0.push(spawned.with_context(|| format!("cannot start process {process}"))?);
        Ok(())
    }

    fn release(&mut self) {
        for child in &mut self.0 {
            // If one has gone already, its end will tell why.
            let _ = child.stdin.as_mut().map(|stdin| stdin.write_all(b"!"));
        }
    }

    /// The first failure, or else the first death.
    fn attend(mut self) -> Result<()> {
        let (ended, ends) = mpsc::channel();
        for (index, child) in self.0.iter_mut().enumerate() {
            let (stderr, ended) = (child.stderr.take(), ended.clone());
            thread::spawn(move || ended.send((index, last_words(stderr))));
        }
        drop(ended);
        let mut death = None;
        for (index, words) in ends {
            let status = self.0[index].wait().context("cannot wait for a process")?;
            match status.code() {
                Some(0) => {}
                Some(_) => bail!("{}", own_words(&words)),
                None => death = death.or(Some(died(index, status))),
            }
        }
        death.map_or(Ok(()), Err)
    }
}

impl Drop for Crew {
    fn drop(&mut self) {
        self.0.iter_mut().for_each(|child| drop(child.kill()));
        self.0.iter_mut().for_each(|child| drop(child.wait()));
    }
}

fn died(index: usize, status: ExitStatus) -> anyhow::Error {
    anyhow!("process {index} died before it was done ({status})")
}

/// The message without the name of this program, which is printed again.
fn own_words(words: &str) -> &str {
    let text = words.strip_prefix(PROGRAM).and_then(|text| text.strip_prefix(": "));
    text.unwrap_or(words)
}

/// The error output of a process before it ended.
fn last_words(stderr: Option<ChildStderr>) -> String {
    let mut words = String::new();
    let _ = stderr.map(|mut stderr| stderr.read_to_string(&mut words));
    words.trim_end().to_string()
}
