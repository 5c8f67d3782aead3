//! The processes of a trial: started, heard, continued, and how they ended.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{Read, Write};
use std::os::fd::AsFd;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use crate::worlds::sys;

/// Beyond this a silence is taken for a hang.
const PATIENCE: Duration = Duration::from_secs(60);
/// Milliseconds that one waits for its lines.
const TURN_MS: i32 = 1;
/// Room for the numbers of each letter.
const NUMBERS_BYTES: u64 = 16 * 128;

/// All processes of a trial.
pub(crate) struct Cast {
    actors: Vec<Actor>,
    numbers: PathBuf,
    pub(crate) faults: Vec<String>,
    /// The errors that they got, by letter.
    pub(crate) errors: Vec<(char, String)>,
}

struct Actor {
    process: Child,
    stdin: Option<ChildStdin>,
    stdout: ChildStdout,
    heard: Vec<u8>,
    /// The state of each of its threads, by letter.
    threads: BTreeMap<char, State>,
    is_killed: bool,
    has_ended: bool,
}

/// The state of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    Working,
    /// It met an error, or has done all, and waits.
    Waits {
        is_stuck: bool,
    },
    /// It has shown that it continues.
    Well,
    /// It is gone.
    Gone,
}

impl Cast {
    /// No process yet; the promises will be in a file below `base`.
    pub(crate) fn new(base: &Path) -> anyhow::Result<Cast> {
        let numbers = base.join("numbers");
        File::create(&numbers)?.set_len(NUMBERS_BYTES)?;
        Ok(Cast { actors: Vec::new(), numbers, faults: Vec::new(), errors: Vec::new() })
    }

    /// The file with the numbers.
    pub(crate) fn numbers(&self) -> &Path {
        &self.numbers
    }

    /// How many records of a letter were appended, and how many of them committed.
    pub(crate) fn promised(&self, letter: char) -> anyhow::Result<(u64, u64)> {
        let bytes = fs::read(&self.numbers)?;
        let at = 16 * letter as usize;
        let number = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().expect("8 bytes"));
        Ok((number(at), number(at + 8)))
    }

    /// All letters that have appended.
    pub(crate) fn letters(&self) -> String {
        self.actors
            .iter()
            .flat_map(|actor| actor.threads.keys())
            .filter(|one| **one != '!')
            .collect()
    }

    /// How many records were appended by all.
    pub(crate) fn appended(&self) -> anyhow::Result<u64> {
        self.letters().chars().map(|letter| Ok(self.promised(letter)?.0)).sum()
    }

    /// The error that this letter got last.
    pub(crate) fn last_error(&self, letter: char) -> &str {
        let mut errors = self.errors.iter().rev();
        errors.find(|(one, _)| *one == letter).map_or("no error", |(_, error)| error)
    }

    /// Starts a process that has these letters.
    pub(crate) fn start(&mut self, words: &[String], letters: &str) -> anyhow::Result<()> {
        let mut command = Command::new(std::env::current_exe()?);
        let mut process =
            command.args(words).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let (stdin, stdout) = (process.stdin.take(), process.stdout.take());
        self.actors.push(Actor {
            process,
            stdin,
            stdout: stdout.expect("a pipe was asked for"),
            heard: Vec::new(),
            threads: letters.chars().map(|letter| (letter, State::Working)).collect(),
            is_killed: false,
            has_ended: false,
        });
        Ok(())
    }

    /// Hears what there is to hear.
    pub(crate) fn step(&mut self) -> anyhow::Result<()> {
        let Cast { actors, faults, errors, .. } = self;
        for actor in actors.iter_mut().filter(|actor| !actor.has_ended) {
            for line in actor.listen()? {
                actor.take(&line, faults, errors);
            }
        }
        Ok(())
    }

    /// Whether this thread waits or is gone.
    pub(crate) fn has_stopped(&self, letter: char) -> bool {
        let mut threads = self.actors.iter().flat_map(|actor| actor.threads.iter());
        threads.any(|(one, state)| *one == letter && *state != State::Working)
    }

    /// Whether no thread is working.
    pub(crate) fn has_settled(&self) -> bool {
        let mut threads = self.actors.iter().flat_map(|actor| actor.threads.iter());
        threads.all(|(letter, state)| *letter == '!' || *state != State::Working)
    }

    /// Waits until `is_done`, or no process works any more. A process that does not get there
    /// hangs.
    pub(crate) fn wait(
        &mut self,
        mut is_done: impl FnMut(&Cast) -> anyhow::Result<bool>,
    ) -> anyhow::Result<()> {
        let start = Instant::now();
        while !self.has_settled() && !is_done(self)? {
            self.step()?;
            if start.elapsed() > PATIENCE {
                self.give_up();
            }
        }
        Ok(())
    }

    /// Waits until no process works any more.
    pub(crate) fn settle(&mut self) -> anyhow::Result<()> {
        self.wait(|_| Ok(false))
    }

    /// Continues all waiting threads; returns the letters of those that then cannot.
    pub(crate) fn go_on(&mut self) -> anyhow::Result<String> {
        for actor in &mut self.actors {
            let waits =
                actor.threads.values_mut().filter(|state| matches!(state, State::Waits { .. }));
            let count = waits.map(|state| *state = State::Working).count();
            if count > 0 {
                let _ = actor.stdin.iter_mut().try_for_each(|stdin| stdin.write_all(b"go on\n"));
            }
        }
        self.settle()?;
        let threads = self.actors.iter().flat_map(|actor| actor.threads.iter());
        let is_stuck = |state: &State| *state == State::Waits { is_stuck: true };
        // The reader tries again by itself.
        let stuck = threads.filter(|(letter, state)| **letter != '!' && is_stuck(state));
        Ok(stuck.map(|(letter, _)| *letter).collect())
    }

    /// Kills the process with this letter.
    pub(crate) fn kill(&mut self, letter: char) -> anyhow::Result<()> {
        for actor in &mut self.actors {
            if actor.threads.contains_key(&letter) {
                actor.is_killed = true;
                actor.process.kill()?;
            }
        }
        let is_there = |cast: &Cast| {
            let mut actors = cast.actors.iter();
            actors.any(|actor| actor.is_killed && !actor.has_ended)
        };
        while is_there(self) {
            self.step()?;
        }
        Ok(())
    }

    /// Ends all processes, and waits for that.
    pub(crate) fn end(&mut self) -> anyhow::Result<()> {
        self.actors.iter_mut().for_each(|actor| actor.stdin = None);
        let start = Instant::now();
        while self.actors.iter().any(|actor| !actor.has_ended) {
            self.step()?;
            if start.elapsed() > PATIENCE {
                self.give_up();
            }
        }
        Ok(())
    }

    fn give_up(&mut self) {
        for actor in self.actors.iter_mut().filter(|actor| !actor.has_ended && !actor.is_killed) {
            let busy: String = actor.threads.keys().collect();
            self.faults.push(format!("{busy} hangs ({:?})", actor.threads));
            actor.is_killed = true;
            let _ = actor.process.kill();
        }
    }
}

impl Actor {
    /// The lines that it has said since; hears of its end, too.
    fn listen(&mut self) -> anyhow::Result<Vec<String>> {
        if !sys::can_read(self.stdout.as_fd(), TURN_MS) {
            return Ok(Vec::new());
        }
        let mut bytes = [0; 8192];
        let count = self.stdout.read(&mut bytes)?;
        self.heard.extend_from_slice(&bytes[..count]);
        let mut lines = Vec::new();
        while let Some(end) = self.heard.iter().position(|byte| *byte == b'\n') {
            let line: Vec<u8> = self.heard.drain(..=end).collect();
            lines.push(String::from_utf8_lossy(&line).trim_end().to_owned());
        }
        if count == 0 {
            self.has_ended = true;
            let status = self.process.wait()?;
            lines.push(self.last_line(status));
        }
        Ok(lines)
    }

    fn last_line(&self, status: ExitStatus) -> String {
        match (status.signal(), status.code()) {
            (_, Some(0)) => "ended ! ".to_owned(),
            (Some(libc::SIGKILL), _) if self.is_killed => "ended ! ".to_owned(),
            (Some(signal), _) => format!("fault ! killed by {}", name_of(signal)),
            (_, code) => format!("fault ! exited with {code:?}"),
        }
    }

    fn take(&mut self, line: &str, faults: &mut Vec<String>, errors: &mut Vec<(char, String)>) {
        let mut words = line.splitn(3, ' ');
        let word = words.next().unwrap_or_default();
        let letter = words.next().and_then(|word| word.chars().next()).unwrap_or('?');
        let rest = words.next().unwrap_or_default();
        let state = match word {
            "began" => return,
            "stuck" => State::Waits { is_stuck: true },
            "done" => State::Waits { is_stuck: false },
            "well" => State::Well,
            "refused" | "ended" | "fault" => State::Gone,
            _ => {
                faults.push(format!("it said {line:?}"));
                return;
            }
        };
        if matches!(word, "stuck" | "refused") {
            errors.push((letter, rest.to_owned()));
        }
        if word == "fault" {
            let letters: String = self.threads.keys().collect();
            faults.push(format!("{letters}: {rest}"));
        }
        match state {
            State::Gone => self.threads.values_mut().for_each(|state| *state = State::Gone),
            _ => drop(self.threads.insert(letter, state)),
        }
    }
}

impl Drop for Actor {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn name_of(signal: i32) -> String {
    let names = [
        (libc::SIGBUS, "SIGBUS"),
        (libc::SIGSEGV, "SIGSEGV"),
        (libc::SIGXFSZ, "SIGXFSZ"),
        (libc::SIGABRT, "SIGABRT"),
        (libc::SIGKILL, "SIGKILL"),
    ];
    let name = names.iter().find(|(number, _)| *number == signal);
    name.map_or_else(|| format!("signal {signal}"), |(_, name)| (*name).to_owned())
}
