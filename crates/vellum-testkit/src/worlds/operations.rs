//! The operations of a side on the log: a bit of everything, as its seed decides.

use std::io::Write;

use vellum::{Error, ErrorKind, Layout, Log, Lsn, Result};

use super::report::{Report, say};
use super::shape::Shape;
use super::worker::WorkerArgs;
use crate::payload::Payload;
use crate::random::Random;

/// After so many errors a side gives up.
const FAILURES_MAX: u32 = 30;
/// How many of its own records a trim leaves.
const KEPT: usize = 20;

/// A process, or one half of a fork.
pub(crate) struct Side {
    pub(crate) letter: char,
    pub(crate) random: Random,
    /// Of its next record.
    pub(crate) number: u32,
    shape: Shape,
    /// Whether it trims and sets checkpoints: one does.
    does_upkeep: bool,
    failures: u32,
    /// Where its records are.
    appended: Vec<Lsn>,
}

impl Side {
    pub(crate) fn new(letter: char, args: &WorkerArgs, seed: u64) -> Side {
        Side {
            letter,
            random: Random::new(seed),
            number: args.after.unwrap_or(0),
            shape: args.shape,
            does_upkeep: args.worker == 0 && letter == 'a',
            failures: 0,
            appended: Vec::new(),
        }
    }

    /// Reports an error.
    pub(crate) fn attempt<T>(&mut self, what: &str, answer: Result<T>) -> Option<T> {
        answer.map_err(|error| self.fail(what, &error)).ok()
    }

    fn fail(&mut self, what: &str, error: &Error) {
        self.failures += 1;
        let [what, kind, words] =
            [what.to_string(), format!("{:?}", error.kind()), error.to_string()];
        say(self.letter, &Report::Failed { what, kind, words });
    }

    /// Does so many operations.
    pub(crate) fn work(&mut self, log: &Log, operations: u32) {
        for _ in 0..operations {
            if self.failures > FAILURES_MAX {
                return;
            }
            self.do_something(log);
        }
        self.commit(log);
    }

    fn do_something(&mut self, log: &Log) {
        match self.random.below(100) {
            0..50 => self.append(log),
            50..60 => self.append_durable(log),
            60..70 => self.commit(log),
            70..75 => self.append_batch(log),
            75..80 => self.reserve(log, true),
            80..82 => self.reserve(log, false),
            82..85 => drop(self.attempt("prepare", log.prepare(1))),
            85..89 => self.sync(log),
            89..92 => self.look(log),
            92..94 if self.shape.layout() == Layout::Text => {
                self.attempt("rotate", log.rotate());
            }
            94..97 if self.does_upkeep => self.trim(log),
            97..100 if self.does_upkeep => self.set_checkpoint(log),
            _ => self.append(log),
        }
    }

    fn next_record(&mut self) -> (Payload, Vec<u8>) {
        let len = match self.random.below(20) {
            0 => 3000 + self.random.below(6000),
            _ => 24 + self.random.below(700),
        };
        let payload = Payload::new(self.letter, self.number, len as usize);
        self.number += 1;
        (payload, payload.bytes(self.shape.layout()))
    }

    fn note(&mut self, payload: Payload, lsn: Lsn) {
        self.appended.push(lsn);
        let Payload { number, len, .. } = payload;
        say(self.letter, &Report::Appended { number, len, lsn: lsn.get() });
    }

    fn append(&mut self, log: &Log) {
        let (payload, bytes) = self.next_record();
        if let Some(lsn) = self.attempt("append", log.append(&bytes)) {
            self.note(payload, lsn);
        }
    }

    fn append_durable(&mut self, log: &Log) {
        let (payload, bytes) = self.next_record();
        if let Some(lsn) = self.attempt("append_durable", log.append_durable(&bytes)) {
            self.note(payload, lsn);
            say(self.letter, &Report::Committed(lsn.get()));
        }
    }

    /// Commits its newest record.
    pub(crate) fn commit(&mut self, log: &Log) {
        let Some(lsn) = self.appended.last().copied() else { return };
        if self.attempt("commit", log.commit(lsn)).is_some() {
            say(self.letter, &Report::Committed(lsn.get()));
        }
    }

    fn sync(&mut self, log: &Log) {
        if let Some(end) = self.attempt("sync", log.sync()).filter(|end| *end > Lsn::ZERO) {
            say(self.letter, &Report::Committed(end.get() - 1));
        }
    }

    fn append_batch(&mut self, log: &Log) {
        let records = [self.next_record(), self.next_record(), self.next_record()];
        let mut batch = log.batch();
        let pushed: Result<()> = records.iter().try_for_each(|(_, bytes)| batch.push(bytes));
        let appended = pushed.and_then(|()| batch.append());
        if let Some(lsn) = self.attempt("batch", appended) {
            records.into_iter().for_each(|(payload, _)| self.note(payload, lsn));
        }
    }

    /// Reserves a record, and publishes or abandons it.
    fn reserve(&mut self, log: &Log, publishes: bool) {
        let (payload, bytes) = self.next_record();
        let reserved = log.reserve(bytes.len());
        let Some(mut reservation) = self.attempt("reserve", reserved) else { return };
        if !publishes {
            return;
        }
        if let Err(error) = reservation.write_all(&bytes) {
            let [what, kind] = ["fill".to_string(), format!("{:?}", error.kind())];
            say(self.letter, &Report::Failed { what, kind, words: error.to_string() });
            return;
        }
        if let Some(lsn) = self.attempt("publish", reservation.publish()) {
            self.note(payload, lsn);
        }
    }

    /// Reads the newest of its records, and asks about the log.
    fn look(&mut self, log: &Log) {
        self.attempt("stat", log.stat());
        let Some(lsn) = self.appended.last().copied() else { return };
        let read = log.reader(lsn).and_then(|mut reader| reader.next().map(|_| ()));
        match read {
            Err(error) if error.kind() == ErrorKind::Trimmed => {}
            answer => drop(self.attempt("read", answer)),
        }
    }

    fn trim(&mut self, log: &Log) {
        let count = self.appended.len();
        let Some(lsn) = count.checked_sub(KEPT).and_then(|at| self.appended.get(at)).copied()
        else {
            return;
        };
        // Behind a reservation in flight: a rotation takes the rest of a file at once.
        if lsn > log.published() {
            return;
        }
        say(self.letter, &Report::Trimming(lsn.get()));
        self.attempt("trim", log.trim(lsn));
    }

    fn set_checkpoint(&mut self, log: &Log) {
        let Some(lsn) =
            self.appended.last().copied().filter(|_| self.shape.layout() == Layout::Framed)
        else {
            return;
        };
        say(self.letter, &Report::Marking(lsn.get()));
        if self.attempt("checkpoint", log.checkpoint().set(lsn)).is_some() {
            say(self.letter, &Report::Marked(lsn.get()));
        }
    }

    /// Appends some, and drops the second half of it; in a text log where the file is still plain.
    pub(crate) fn truncate(&mut self, log: &Log) {
        let before = self.appended.len();
        (0..10).for_each(|_| self.append(log));
        let Some(lsn) = self.appended.get(before + 5).copied() else { return };
        say(self.letter, &Report::Cutting(lsn.get()));
        match log.truncate(lsn) {
            // The file was closed and compressed meanwhile.
            Err(error) if error.kind() == ErrorKind::Unsupported => return,
            answer => {
                if self.attempt("truncate", answer).is_none() {
                    return;
                }
            }
        }
        say(self.letter, &Report::Cut(lsn.get()));
        self.appended.retain(|appended| *appended < lsn);
    }
}
