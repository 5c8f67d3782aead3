//! The content of a log: every record verified, every gap noticed.

use std::collections::HashMap;
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use vellum::{Layout, Log, Lsn, Reader, Record};

use super::breaks::Breaks;
use super::payload::{Name, is_filler};

/// If what was reserved does not get published for so long, something is stuck.
const STUCK: Duration = Duration::from_secs(30);
const PAUSE: Duration = Duration::from_millis(5);

/// The position of a record, and its number.
pub(super) type Entry = (Lsn, u64);

/// The records of a log.
#[derive(Debug, Default)]
pub(super) struct Survey {
    /// The workload's records, as they are in the log.
    pub(super) records: Vec<Entry>,
    /// Those that a power cut has left and that can't have been committed.
    pub(super) uncommitted: Vec<Entry>,
    /// The checks' markers.
    pub(super) markers: Vec<Entry>,
    /// The faults.
    pub(super) faults: Vec<String>,
    /// Whether the first numbers may be missing.
    is_trimmed: bool,
    /// Writers and seed of the first record; all have the same.
    run: Option<(u64, u64)>,
    /// The next number of each writer, and the position of its last record.
    next: HashMap<u64, Entry>,
    next_marker: Option<u64>,
    /// Where a power cut tore the log, if it may have done so.
    breaks: Option<Breaks>,
    /// Whether each record has to show its writer, and its time.
    has_envelope: bool,
}

impl Survey {
    /// Reads the whole log. A fault that ends the reading is the last one. `is_torn` tells whether
    /// a power cut may have left lines in part.
    pub(super) fn of(log: &Log, is_torn: bool) -> Survey {
        let mut survey = Survey::default();
        if is_torn && log.layout() == Layout::Text {
            survey.breaks = log.stat().ok().map(|stat| Breaks::new(stat.segment_capacity_bytes));
        }
        if let Err(fault) = survey.read(log, log.tail()) {
            survey.faults.push(fault);
        }
        survey
    }

    /// Reads the records before `end`, which are published; the first fault is an error.
    pub(super) fn before(log: &Log, end: Lsn) -> Result<Survey, String> {
        let mut survey = Survey::default();
        survey.read(log, end)?;
        match survey.faults.pop() {
            Some(fault) => Err(fault),
            None => Ok(survey),
        }
    }

    /// The workload's numbers in ascending order, each once.
    pub(super) fn sorted_numbers(&self) -> Vec<u64> {
        let mut numbers: Vec<u64> = self.records.iter().map(|(_, number)| *number).collect();
        numbers.sort_unstable();
        numbers.dedup();
        numbers
    }

    /// The next number of each of `writers`, if this is a run of theirs with this seed.
    pub(super) fn next_numbers(&self, writers: u64, seed: u64) -> Result<Vec<u64>, String> {
        if let Some((writers, seed)) = self.run.filter(|run| *run != (writers, seed)) {
            let plural = if writers == 1 { "" } else { "s" };
            return Err(format!("it holds records of {writers} writer{plural} with seed {seed}"));
        }
        // All that a writer had may have been trimmed; its next number is new at any rate.
        let numbers = self.records.iter().map(|(_, number)| number);
        let unused = numbers.max().map_or(0, |number| number.saturating_add(1));
        let first = |writer| match self.is_trimmed {
            true => unused + (writer + writers - unused % writers) % writers,
            false => writer,
        };
        let next = |writer| self.next.get(&writer).map_or_else(|| first(writer), |next| next.1);
        Ok((0..writers).map(next).collect())
    }

    fn read(&mut self, log: &Log, end: Lsn) -> Result<(), String> {
        self.is_trimmed = is_trimmed(log).map_err(|error| error.to_string())?;
        self.has_envelope = log.stat().map_err(|error| error.to_string())?.has_envelope;
        let mut reader = log.reader(Lsn::ZERO).map_err(|error| error.to_string())?;
        let mut waiting_since = None;
        while reader.position() < end {
            let position = reader.position();
            match next(&mut reader, end).map_err(|error| error.to_string())? {
                Some(record) => {
                    waiting_since = None;
                    self.enter(record, log.layout());
                }
                // Only pads.
                None if log.published() >= end => break,
                // A writer died, or is at it: the reader pads what the dead left.
                None => {
                    let since = *waiting_since.get_or_insert_with(Instant::now);
                    if since.elapsed() > STUCK {
                        let seconds = STUCK.as_secs();
                        return Err(format!("nothing was published at {position} for {seconds} s"));
                    }
                    thread::sleep(PAUSE);
                }
            }
        }
        Ok(())
    }

    fn enter(&mut self, record: Record<'_>, layout: Layout) {
        let lsn = record.lsn;
        if let Some(breaks) = &mut self.breaks {
            breaks.pass(lsn);
        }
        if layout == Layout::Text && is_filler(record.payload) {
            self.breaks.iter_mut().for_each(Breaks::fill);
            return;
        }
        let entered = match (Name::of(record.payload, layout), &mut self.breaks) {
            (Ok(Name::Record { number, writers, seed }), _) => {
                self.enter_number(lsn, number, writers, seed)
            }
            (Ok(Name::Marker { number }), _) => self.enter_marker(lsn, number),
            (Err(_), Some(breaks)) if !record.payload.contains(&0) => {
                breaks.tear();
                Ok(())
            }
            (Err(fault), _) => Err(fault),
        };
        if let Err(fault) = entered.and_then(|()| check_envelope(record, self.has_envelope)) {
            self.faults.push(format!("the record at {lsn}: {fault}"));
        }
    }

    fn enter_number(
        &mut self,
        lsn: Lsn,
        number: u64,
        writers: u64,
        seed: u64,
    ) -> Result<(), String> {
        let (known_writers, known_seed) = *self.run.get_or_insert((writers, seed));
        if (writers, seed) != (known_writers, known_seed) {
            return Err(format!(
                "number {number} of {writers} writers with seed {seed} is among records of \
                 {known_writers} writers with seed {known_seed}"
            ));
        }
        let writer = number % writers;
        let first = if self.is_trimmed { number } else { writer };
        let last = self.next.insert(writer, (lsn, number.saturating_add(writers)));
        let (since, expected) = last.unwrap_or((Lsn::ZERO, first));
        let is_explained = number > expected && self.miss(since);
        let is_counted = !self.breaks.as_ref().is_some_and(Breaks::is_behind);
        let found = if is_counted { &mut self.records } else { &mut self.uncommitted };
        found.push((lsn, number));
        if number == expected || is_explained {
            return Ok(());
        }
        Err(format!("number {number} of writer {writer} stands where {expected} should"))
    }

    /// Whether a power cut explains that records behind `since` are missing; if so, those that were
    /// counted behind its place are counted no more.
    fn miss(&mut self, since: Lsn) -> bool {
        let Some(from) = self.breaks.as_mut().and_then(|breaks| breaks.miss(since)) else {
            return false;
        };
        let index = self.records.partition_point(|(lsn, _)| *lsn < from);
        self.uncommitted.extend(self.records.drain(index..));
        true
    }

    fn enter_marker(&mut self, lsn: Lsn, number: u64) -> Result<(), String> {
        self.breaks.iter_mut().for_each(Breaks::mark);
        self.markers.push((lsn, number));
        let first = if self.is_trimmed { number } else { 0 };
        let expected = self.next_marker.replace(number.saturating_add(1)).unwrap_or(first);
        if number == expected {
            return Ok(());
        }
        Err(format!("number {number} of the checks stands where {expected} should"))
    }
}

/// Whether a record has a filled envelope, if it is to have one.
fn check_envelope(record: Record<'_>, has_one: bool) -> Result<(), String> {
    let is_real = |time: SystemTime| SystemTime::UNIX_EPOCH < time;
    match (record.time(), record.writer(), has_one) {
        (Some(time), Some(writer), true) if is_real(time) && writer.pid() > 0 => Ok(()),
        (None, None, false) => Ok(()),
        (time, writer, _) => Err(format!("its envelope says {time:?} and {writer:?}")),
    }
}

/// The next record that begins before `end`.
fn next(reader: &mut Reader, end: Lsn) -> vellum::Result<Option<Record<'_>>> {
    Ok(reader.next()?.filter(|record| record.lsn < end))
}

/// Whether the log begins later than it once did: at the first byte of its first segment.
fn is_trimmed(log: &Log) -> vellum::Result<bool> {
    let stat = log.stat()?;
    Ok(stat.begin.get() > stat.segment_capacity_bytes)
}
