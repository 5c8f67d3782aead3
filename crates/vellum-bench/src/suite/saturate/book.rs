//! The book of the processes of a round: the time of each record, its moment, and where the log is
//! cut.
//!
//! There is a histogram of latencies for each process and each slice of time.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::error::Result;
use crate::histogram::{Histogram, Histograms};
use crate::shared::Shared;

/// So many points does a series over time have.
pub(super) const SLICES: usize = 40;

/// A record that takes longer has stopped its writer.
const STOP: Duration = Duration::from_millis(10);

/// Words that all processes of a round share. But for `taken` and `marks` each is written by one
/// process; the parent reads when all have ended, which orders everything.
pub(super) struct Book {
    processes: usize,
    generations: usize,
    /// Records that were begun: the number of a record says which generation it is of.
    pub(super) taken: Shared<AtomicU64>,
    /// Where each generation begins in a log that can be trimmed, plus one; 0 until that is known.
    pub(super) marks: Shared<AtomicU64>,
    /// Generations that were given up: all before this one.
    pub(super) removed: Shared<AtomicU64>,
    /// The first record of each process in each generation, plus one; 0 if it has none.
    starts: Shared<AtomicU64>,
    latencies: Histograms,
    /// By process: words of `Tally`.
    tallies: Shared<AtomicU64>,
    /// Dirty and write-back bytes of the machine, the most in each slice.
    pub(super) dirty: Shared<AtomicU64>,
    /// How many writers have ended.
    pub(super) ended: Shared<AtomicU64>,
}

/// The final report of a writer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Tally {
    pub(super) acknowledged: u64,
    /// From the start until its last record.
    pub(super) nanos: u64,
    /// Its longest record.
    pub(super) nanos_max: u64,
    /// Its longest stop: records in succession that each took long.
    pub(super) stop_nanos_max: u64,
    /// All its stops.
    pub(super) stop_nanos: u64,
    /// Its longest removal of the oldest part of the log.
    pub(super) removal_nanos_max: u64,
    /// All its removals.
    pub(super) removal_nanos: u64,
    /// The most memory that it had, mapped pages of files included.
    pub(super) memory_bytes: u64,
}

const TALLY_WORDS: usize = 8;

impl Book {
    pub(super) fn new(processes: u32, generations: usize) -> Result<Book> {
        let processes = processes as usize;
        Ok(Book {
            processes,
            generations,
            taken: Shared::new(1)?,
            marks: Shared::new(generations)?,
            removed: Shared::new(1)?,
            starts: Shared::new(processes * generations)?,
            latencies: Histograms::new(processes * SLICES)?,
            tallies: Shared::new(processes * TALLY_WORDS)?,
            dirty: Shared::new(SLICES)?,
            ended: Shared::new(1)?,
        })
    }

    /// Counts a latency of `process`.
    pub(super) fn count(&self, process: usize, slice: usize, nanos: u64) {
        let slice = slice.min(SLICES - 1);
        self.latencies.count(process * SLICES + slice, nanos);
    }

    /// `process` continues in `generation` with its record `sequence`.
    pub(super) fn start(&self, process: usize, generation: usize, sequence: u64) {
        self.starts[process * self.generations + generation].store(sequence + 1, Ordering::Relaxed);
    }

    /// The first record of `process` in `generation` or after it; `acknowledged` if it has none.
    pub(super) fn first_since(&self, process: usize, generation: usize) -> u64 {
        let all = self.acknowledged(process);
        let starts = &self.starts[process * self.generations..(process + 1) * self.generations];
        let starts = starts.iter().skip(generation).map(|start| start.load(Ordering::Relaxed));
        starts.filter(|start| *start > 0).map(|start| start - 1).next().unwrap_or(all).min(all)
    }

    pub(super) fn close(&self, process: usize, tally: &Tally) {
        let words = [
            tally.acknowledged,
            tally.nanos,
            tally.nanos_max,
            tally.stop_nanos_max,
            tally.stop_nanos,
            tally.removal_nanos_max,
            tally.removal_nanos,
            tally.memory_bytes,
        ];
        for (room, word) in self.tallies[process * TALLY_WORDS..].iter().zip(words) {
            room.store(word, Ordering::Relaxed);
        }
    }

    pub(super) fn tallies(&self) -> Vec<Tally> {
        let tally = |process: usize| {
            let word = |at: usize| self.tallies[process * TALLY_WORDS + at].load(Ordering::Relaxed);
            Tally {
                acknowledged: word(0),
                nanos: word(1),
                nanos_max: word(2),
                stop_nanos_max: word(3),
                stop_nanos: word(4),
                removal_nanos_max: word(5),
                removal_nanos: word(6),
                memory_bytes: word(7),
            }
        };
        (0..self.processes).map(tally).collect()
    }

    pub(super) fn acknowledged(&self, process: usize) -> u64 {
        self.tallies[process * TALLY_WORDS].load(Ordering::Relaxed)
    }

    /// The latencies of all processes in a slice.
    pub(super) fn histogram(&self, slice: usize) -> Histogram {
        self.latencies.sum((0..self.processes).map(|process| process * SLICES + slice))
    }
}

impl Tally {
    /// A record took so long; `stop` is how long the writer had been stopped before it.
    pub(super) fn note(&mut self, nanos: u64, stop: &mut u64) {
        self.acknowledged += 1;
        self.nanos_max = self.nanos_max.max(nanos);
        if u128::from(nanos) < STOP.as_nanos() {
            *stop = 0;
            return;
        }
        *stop += nanos;
        self.stop_nanos += nanos;
        self.stop_nanos_max = self.stop_nanos_max.max(*stop);
    }

    /// The oldest part of the log was removed, which took so long.
    pub(super) fn note_removal(&mut self, nanos: u64) {
        self.removal_nanos += nanos;
        self.removal_nanos_max = self.removal_nanos_max.max(nanos);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_those_of_all_processes() {
        let book = Book::new(2, 1).unwrap();
        (0..99).for_each(|_| book.count(0, 3, 1000));
        book.count(1, 3, 1_000_000);
        let histogram = book.histogram(3);
        assert_eq!(histogram.count(), 100);
        assert!((1000..1040).contains(&histogram.quantile(0.99).unwrap()));
        assert!((1_000_000..1_040_000).contains(&histogram.quantile(0.999).unwrap()));
        assert_eq!(book.histogram(2).quantile(0.5), None);
    }

    #[test]
    fn records_that_take_long_one_after_the_other_are_one_stop() {
        let (mut tally, mut stop) = (Tally::default(), 0);
        for millis in [1, 20, 30, 1, 40, 1] {
            tally.note(millis * 1_000_000, &mut stop);
        }
        assert_eq!((tally.stop_nanos_max, tally.stop_nanos), (50_000_000, 90_000_000));
        assert_eq!((tally.nanos_max, tally.acknowledged), (40_000_000, 6));
    }

    #[test]
    fn removals_are_no_stops() {
        let (mut tally, mut stop) = (Tally::default(), 0);
        tally.note(20_000_000, &mut stop);
        [30, 40].into_iter().for_each(|millis| tally.note_removal(millis * 1_000_000));
        assert_eq!((tally.stop_nanos_max, tally.stop_nanos), (20_000_000, 20_000_000));
        assert_eq!((tally.removal_nanos_max, tally.removal_nanos), (40_000_000, 70_000_000));
        let book = Book::new(1, 1).unwrap();
        book.close(0, &tally);
        assert_eq!(book.tallies()[0], tally);
    }

    #[test]
    fn the_first_record_of_a_generation_is_the_first_after_it_too() {
        let book = Book::new(1, 4).unwrap();
        book.close(0, &Tally { acknowledged: 10, ..Tally::default() });
        book.start(0, 0, 0);
        book.start(0, 2, 7);
        assert_eq!([0, 1, 2, 3].map(|since| book.first_since(0, since)), [0, 7, 7, 10]);
    }
}
