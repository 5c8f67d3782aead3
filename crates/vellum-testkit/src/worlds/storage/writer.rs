//! A process that appends: one or several threads, each with records of its own.
//!
//! How many records of a thread were acknowledged, and how many of them committed, is in a file
//! that no trouble concerns: two numbers for each letter, written after the call that promised it
//! and before the next one. Its other output is lines (`Word`). After an error it waits until it is
//! continued, and then tries the same record again: so an error means that it is not there.

use std::fs::File;
use std::io::BufRead;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::sync::{Condvar, Mutex};
use std::thread;
use std::time::Duration;

use clap::Args;
use rustix::process::Resource;
use vellum::{Error, Log, Lsn};

use crate::payload::Payload;
use crate::random::{Random, mixed};
use crate::worlds::shape::{Shape, Size};
use crate::worlds::sys;

/// So many records a thread appends after an error, when it is continued.
const MORE: u32 = 8;

/// The arguments of a process that appends.
#[derive(Args, Clone, Debug)]
pub(crate) struct WriterArgs {
    #[arg(long)]
    pub(crate) log: PathBuf,
    /// The file with the numbers.
    #[arg(long)]
    pub(crate) numbers: PathBuf,
    #[arg(long)]
    pub(crate) shape: Shape,
    #[arg(long)]
    pub(crate) size: Size,
    /// A letter for each thread.
    #[arg(long)]
    pub(crate) letters: String,
    /// Bytes of a record at most.
    #[arg(long)]
    pub(crate) bytes_max: u64,
    #[arg(long)]
    pub(crate) seed: u64,
    /// Each thread commits after so many records; 0: never.
    #[arg(long)]
    pub(crate) commit_every: u32,
    /// Each thread is done after so many records.
    #[arg(long)]
    pub(crate) records: u32,
    /// Microseconds between two records.
    #[arg(long)]
    pub(crate) pause_us: u64,
    /// The limit of its files, in bytes; 0: none.
    #[arg(long)]
    pub(crate) file_bytes_max: u64,
}

impl WriterArgs {
    /// As they are given to a program.
    pub(crate) fn words(&self) -> Vec<String> {
        let mut words = vec!["storage-writer".to_owned()];
        let mut add = |name: &str, value: String| words.extend([format!("--{name}"), value]);
        add("log", self.log.display().to_string());
        add("numbers", self.numbers.display().to_string());
        add("shape", self.shape.to_string());
        add("size", self.size.to_string());
        add("letters", self.letters.clone());
        add("bytes-max", self.bytes_max.to_string());
        add("seed", self.seed.to_string());
        add("commit-every", self.commit_every.to_string());
        add("records", self.records.to_string());
        add("pause-us", self.pause_us.to_string());
        add("file-bytes-max", self.file_bytes_max.to_string());
        words
    }
}

/// Its output, a line each: a word, a letter, and the rest.
pub(crate) fn say(word: &str, letter: char, what: &str) {
    let what: String = what.replace('\n', " ").chars().take(400).collect();
    sys::tell(&format!("{word} {letter} {what}\n"));
}

/// As [`say`], of an error.
pub(crate) fn say_error(letter: char, operation: &str, error: &Error) {
    say("stuck", letter, &format!("{operation} {:?} {error}", error.kind()));
}

/// How often it was continued, and whether it has to end.
#[derive(Default)]
struct Told {
    state: Mutex<(u32, bool)>,
    changed: Condvar,
}

impl Told {
    fn change(&self, change: impl FnOnce(&mut (u32, bool))) {
        change(&mut self.state.lock().expect("nobody panics with it"));
        self.changed.notify_all();
    }

    fn is_over(&self) -> bool {
        self.state.lock().expect("nobody panics with it").1
    }

    /// Waits until it is continued more often than `seen` times; `None` when it has to end.
    fn wait(&self, seen: u32) -> Option<u32> {
        let state = self.state.lock().expect("nobody panics with it");
        let changed = self.changed.wait_while(state, |(count, over)| *count == seen && !*over);
        let (count, is_over) = *changed.expect("nobody panics with it");
        (!is_over).then_some(count)
    }
}

/// Lives its life.
pub(crate) fn run(args: &WriterArgs) -> anyhow::Result<()> {
    if args.file_bytes_max > 0 {
        sys::limit(Resource::Fsize, args.file_bytes_max)?;
    }
    let first = args.letters.chars().next().unwrap_or('?');
    let log = match args.size.options(args.shape).open(&args.log) {
        Ok(log) => log,
        Err(error) => {
            say("refused", first, &format!("open {:?} {error}", error.kind()));
            return Ok(());
        }
    };
    let told = Told::default();
    thread::scope(|scope| -> anyhow::Result<()> {
        for letter in args.letters.chars() {
            let numbers = File::options().write(true).open(&args.numbers)?;
            let (args, log, told) = (args, &log, &told);
            scope.spawn(move || Thread { args, log, told, letter, numbers, number: 0 }.work());
        }
        for line in std::io::stdin().lock().lines() {
            match line.as_deref() {
                Ok("go on") => told.change(|(count, _)| *count += 1),
                _ => break,
            }
        }
        told.change(|(_, is_over)| *is_over = true);
        Ok(())
    })
}

struct Thread<'a> {
    args: &'a WriterArgs,
    log: &'a Log,
    told: &'a Told,
    letter: char,
    numbers: File,
    /// Of the next record.
    number: u32,
}

impl Thread<'_> {
    fn work(mut self) {
        say("began", self.letter, "");
        let failed = self.append_all();
        self.tell(failed, "done");
        let mut seen = 0;
        while let Some(now) = self.told.wait(seen) {
            seen = now;
            let failed = (0..MORE).try_for_each(|_| self.append()).err();
            self.tell(failed, "well");
        }
    }

    /// Reports an error, or that there was none.
    fn tell(&self, failed: Option<(&'static str, Error)>, otherwise: &str) {
        match failed {
            Some((operation, error)) => say_error(self.letter, operation, &error),
            None => say(otherwise, self.letter, ""),
        }
    }

    /// Appends until it is done, has to end, or meets an error.
    fn append_all(&mut self) -> Option<(&'static str, Error)> {
        while self.number < self.args.records && !self.told.is_over() {
            if let Err(failed) = self.append() {
                return Some(failed);
            }
            if self.args.pause_us > 0 {
                thread::sleep(Duration::from_micros(self.args.pause_us));
            }
        }
        None
    }

    fn append(&mut self) -> Result<(), (&'static str, Error)> {
        let payload = self.payload();
        let bytes = payload.bytes(self.args.shape.layout());
        let lsn = self.log.append(&bytes).map_err(|error| ("append", error))?;
        self.number += 1;
        self.note(0);
        let every = self.args.commit_every;
        if every > 0 && self.number.is_multiple_of(every) {
            self.commit(lsn).map_err(|error| ("commit", error))?;
        }
        Ok(())
    }

    fn commit(&self, lsn: Lsn) -> vellum::Result<()> {
        self.log.commit(lsn)?;
        self.note(8);
        Ok(())
    }

    /// The next record: mostly short ones, whatever the longest is.
    fn payload(&self) -> Payload {
        let seed = mixed(self.args.seed ^ (u64::from(u32::from(self.letter)) << 32));
        let mut random = Random::new(seed ^ u64::from(self.number));
        let most = if random.below(4) == 0 { self.args.bytes_max } else { self.args.bytes_max / 4 };
        let len = 32 + random.below(most.max(64));
        Payload::new(self.letter, self.number, len as usize)
    }

    /// Notes how many were appended (0), or how many of them were committed (8).
    fn note(&self, place: u64) {
        let at = u64::from(u32::from(self.letter)) * 16 + place;
        let noted = self.numbers.write_all_at(&u64::from(self.number).to_le_bytes(), at);
        noted.expect("the numbers can be noted");
    }
}
