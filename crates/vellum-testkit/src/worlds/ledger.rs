//! The promises to the workers of a campaign, and the records that must be there afterwards.

use std::collections::BTreeMap;

use super::report::Report;
use crate::payload::Payload;

/// The reports so far.
#[derive(Clone, Debug)]
pub(crate) struct Ledger {
    /// Records that were appended, by writer and number, and where.
    pub(crate) appended: BTreeMap<(char, u32), Appended>,
    /// The newest position that was committed.
    pub(crate) committed: u64,
    /// Records before this position may be gone.
    pub(crate) trimmed: u64,
    /// Where a truncation began that was not reported to be done.
    pub(crate) cutting: Option<u64>,
    /// Checkpoints that may be stored: the newest one reported to be stored, or none at all (0),
    /// and those begun later.
    pub(crate) marks: Vec<u64>,
    pub(crate) failures: Vec<Failure>,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Appended {
    pub(crate) len: usize,
    pub(crate) lsn: u64,
    /// A truncation dropped it.
    pub(crate) is_cut: bool,
    /// It was not committed when a recovery found the end of the log before it.
    may_be_gone: bool,
}

/// An error that a worker got.
#[derive(Clone, Debug)]
pub(crate) struct Failure {
    pub(crate) side: char,
    pub(crate) what: String,
    pub(crate) kind: String,
    pub(crate) words: String,
}

/// How much of a log must be there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Keeps {
    /// Whatever was acknowledged.
    Appended,
    /// The committed records: the rest may be there.
    Committed,
}

impl Ledger {
    pub(crate) fn of_new_log() -> Ledger {
        Ledger {
            appended: BTreeMap::new(),
            committed: 0,
            trimmed: 0,
            cutting: None,
            marks: vec![0],
            failures: Vec::new(),
        }
    }

    pub(crate) fn take(&mut self, side: char, report: Report) {
        match report {
            Report::Begun | Report::Opened | Report::Done => {}
            Report::Appended { number, len, lsn } => {
                self.appended.insert(
                    (side, number),
                    Appended { len, lsn, is_cut: false, may_be_gone: false },
                );
            }
            Report::Recovered(end) => {
                let committed = self.committed;
                let behind = |record: &&mut Appended| record.lsn >= end && record.lsn > committed;
                let behind = self.appended.values_mut().filter(behind);
                behind.for_each(|record| record.may_be_gone = true);
            }
            Report::Committed(lsn) => self.committed = self.committed.max(lsn),
            Report::Trimming(lsn) => self.trimmed = self.trimmed.max(lsn),
            Report::Marking(lsn) => self.marks.push(lsn),
            Report::Marked(lsn) => self.marks = vec![lsn],
            Report::Cutting(lsn) => self.cutting = Some(lsn),
            Report::Cut(lsn) => {
                self.cutting = None;
                let behind = self.appended.values_mut().filter(|record| record.lsn >= lsn);
                behind.for_each(|record| record.is_cut = true);
                self.committed = self.committed.min(lsn.saturating_sub(1));
            }
            Report::Failed { what, kind, words } => {
                self.failures.push(Failure { side, what, kind, words });
            }
        }
    }

    /// Records that must be there.
    pub(crate) fn owed(&self, keeps: Keeps) -> impl Iterator<Item = (Payload, u64)> {
        self.appended.iter().filter_map(move |((writer, number), record)| {
            let Appended { len, lsn, is_cut, may_be_gone } = *record;
            let is_kept = lsn >= self.trimmed
                && !is_cut
                && !may_be_gone
                && self.cutting.is_none_or(|cut| lsn < cut)
                && (keeps == Keeps::Appended || lsn <= self.committed);
            is_kept.then(|| (Payload::new(*writer, *number, len), lsn))
        })
    }

    /// Whether the record was dropped, and must not be there.
    pub(crate) fn is_cut(&self, writer: char, number: u32) -> bool {
        self.appended.get(&(writer, number)).is_some_and(|record| record.is_cut)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_checkpoint_that_was_only_begun_may_be_stored_or_not() {
        let mut ledger = Ledger::of_new_log();
        ledger.take('a', Report::Marking(8));
        assert_eq!(ledger.marks, [0, 8], "killed before it is stored");
        ledger.take('a', Report::Marked(8));
        ledger.take('a', Report::Marking(16));
        assert_eq!(ledger.marks, [8, 16]);
    }
}
