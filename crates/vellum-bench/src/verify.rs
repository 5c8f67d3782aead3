//! Is all of it there? Each record exactly once, whole, and in order within its process.
//!
//! The ledger is fed with the records as they are in the log. A record that is the next one of its
//! process is compared whole with the appended one, which is all there is to do in a good log; only
//! when something is wrong does the ledger find the fault.

use std::fmt;

use crate::error::{Error, Result};
use crate::record::{self, Records};
use crate::setting::Setting;

/// The records that were found so far.
pub(crate) struct Ledger {
    setting: Setting,
    accounts: Vec<Account>,
    found: Found,
}

/// The records of one process so far.
struct Account {
    expected: Records,
    /// The sequence that should come next.
    next: u64,
    /// A bit for each sequence seen, kept only once something is wrong: until then it is all
    /// below `next`.
    seen: Option<Vec<u64>>,
}

#[derive(Default)]
struct Found {
    records: u64,
    torn: u64,
    doubled: u64,
    reordered: u64,
    lost: u64,
    /// The first fault, in words.
    first: Option<String>,
}

impl Ledger {
    /// An empty ledger for the records of `setting`.
    pub(crate) fn new(setting: &Setting) -> Ledger {
        let account = |process| Account {
            expected: Records::new(process, setting.bytes),
            next: 0,
            seen: None,
        };
        Ledger {
            setting: *setting,
            accounts: (0..setting.processes).map(account).collect(),
            found: Found::default(),
        }
    }

    /// Takes the next record of the log.
    pub(crate) fn enter(&mut self, record: &[u8]) {
        let at = self.found.records;
        self.found.records += 1;
        let process =
            record::process_of(record).filter(|process| *process < self.setting.processes);
        let Some(process) = process.filter(|_| record.len() == self.setting.bytes) else {
            let len = record.len();
            self.found.torn(|| format!("record {at} of the log ({len} bytes) is nobody's"));
            return;
        };
        let account = &mut self.accounts[process as usize];
        if account.next < self.setting.records && account.expected.next_record() == record {
            account.see(account.next);
            account.next += 1;
            return;
        }
        if record.len() >= record::STAMPED_BYTES_MIN {
            self.explain_stamped(process, record, at);
        } else {
            self.explain_tiny(process, record, at);
        }
    }

    /// All records have been entered: the verdict, with the count of records or the fault.
    pub(crate) fn close(self) -> Result<u64> {
        self.close_but(0)
    }

    /// The same for a log that says that it has dropped so many records: exactly these are missing.
    pub(crate) fn close_but(mut self, dropped: u64) -> Result<u64> {
        for (process, account) in self.accounts.iter().enumerate() {
            let seen = account.seen_count();
            let lost = self.setting.records.saturating_sub(seen);
            let more = seen.saturating_sub(self.setting.records);
            self.found.lost += lost;
            self.found.doubled += more;
            if lost + more > 0 {
                let records = self.setting.records;
                self.found.note(|| {
                    format!("writer {process} appended {records} records, the log has {seen}")
                });
            }
        }
        if dropped > 0 && self.found.is_loss_alone() && self.found.lost == dropped {
            return Ok(self.found.records);
        }
        if dropped > 0 {
            self.found.note(|| format!("{dropped} were said to be dropped"));
        }
        self.found.verdict(&self.setting)
    }

    /// A record with a full stamp is not the one expected: which one is it?
    fn explain_stamped(&mut self, process: u32, record: &[u8], at: u64) {
        let records = self.setting.records;
        let account = &mut self.accounts[process as usize];
        let next = account.next;
        let sequence = record::sequence_of(record).filter(|sequence| *sequence < records);
        let Some(sequence) = sequence else {
            account.expected.seek(next);
            self.found.torn(|| format!("record {at} of the log has no sequence that was appended"));
            return;
        };
        account.expected.seek(sequence);
        let difference = first_difference(account.expected.next_record(), record);
        if let Some(offset) = difference {
            account.expected.seek(next);
            let name = Name { process, sequence, at };
            self.found.torn(|| format!("{name} is torn at its byte {offset}"));
            return;
        }
        let name = Name { process, sequence, at };
        if account.has_seen(sequence) {
            self.found.doubled += 1;
            self.found.note(|| format!("{name} is there a second time"));
        } else if sequence < next {
            self.found.reordered += 1;
            self.found.note(|| format!("{name} comes after record {}", next - 1));
        } else {
            // A gap. The end shows whether the missing record is lost or only late.
            self.found.note(|| format!("{name} stands where record {next} should"));
        }
        account.see_late(sequence);
        account.next = next.max(sequence + 1);
        account.expected.seek(account.next);
    }

    /// A tiny record is not the one expected. It is too short to say which one it is instead.
    fn explain_tiny(&mut self, process: u32, record: &[u8], at: u64) {
        let account = &mut self.accounts[process as usize];
        let next = account.next;
        account.next += 1;
        if next >= self.setting.records {
            return; // One too many; `close` counts it.
        }
        account.expected.seek(next);
        let expected = account.expected.next_record();
        let body = |bytes: &[u8]| (bytes[0], bytes[bytes.len() - 1]);
        let digits = &record[1..record.len().max(2) - 1];
        if body(expected) == body(record) && digits.iter().all(u8::is_ascii_digit) {
            self.found.reordered += 1;
            self.found
                .note(|| format!("record {at} of the log is not number {next} of its process"));
        } else {
            account.next = next;
            account.expected.seek(next);
            self.found.torn(|| format!("record {at} of the log is torn"));
        }
    }
}

impl Account {
    /// `sequence` was the next one: with no bitmap that is all there is to note.
    fn see(&mut self, sequence: u64) {
        if let Some(seen) = &mut self.seen {
            set(seen, sequence);
        }
    }

    /// `sequence` came out of turn: from now on every one is noted.
    fn see_late(&mut self, sequence: u64) {
        let next = self.next;
        let seen = self.seen.get_or_insert_with(|| {
            let mut seen = Vec::new();
            (0..next).for_each(|sequence| set(&mut seen, sequence));
            seen
        });
        set(seen, sequence);
    }

    fn has_seen(&self, sequence: u64) -> bool {
        match &self.seen {
            None => sequence < self.next,
            Some(seen) => {
                let word = seen.get((sequence / 64) as usize).copied().unwrap_or(0);
                word >> (sequence % 64) & 1 == 1
            }
        }
    }

    /// How many different records were seen.
    fn seen_count(&self) -> u64 {
        match &self.seen {
            None => self.next,
            Some(seen) => seen.iter().map(|word| u64::from(word.count_ones())).sum(),
        }
    }
}

fn set(seen: &mut Vec<u64>, sequence: u64) {
    let index = (sequence / 64) as usize;
    if seen.len() <= index {
        seen.resize(index + 1, 0);
    }
    seen[index] |= 1 << (sequence % 64);
}

fn first_difference(expected: &[u8], record: &[u8]) -> Option<usize> {
    expected.iter().zip(record).position(|(expected, byte)| expected != byte)
}

impl Found {
    fn note(&mut self, text: impl FnOnce() -> String) {
        if self.first.is_none() {
            self.first = Some(text());
        }
    }

    fn torn(&mut self, text: impl FnOnce() -> String) {
        self.torn += 1;
        self.note(text);
    }

    fn is_loss_alone(&self) -> bool {
        self.torn + self.doubled + self.reordered == 0
    }

    fn verdict(self, setting: &Setting) -> Result<u64> {
        let Some(first) = self.first else {
            debug_assert_eq!(self.records, setting.total_records());
            return Ok(self.records);
        };
        let counts = [
            (self.lost, "lost"),
            (self.torn, "torn"),
            (self.doubled, "doubled"),
            (self.reordered, "out of order"),
        ];
        let counts: Vec<String> = counts
            .iter()
            .filter(|(count, _)| *count > 0)
            .map(|(count, what)| format!("{count} {what}"))
            .collect();
        let total = setting.total_records();
        Err(Error::failed(format!("of {total} records {}; first: {first}", counts.join(", "))))
    }
}

/// A record, named for a person.
struct Name {
    process: u32,
    sequence: u64,
    at: u64,
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Name { process, sequence, at } = self;
        write!(f, "record {sequence} of writer {process} (number {at} of the log)")
    }
}

/// Cuts a stream of bytes into records of one length.
pub(crate) struct Splitter {
    bytes: usize,
    /// The beginning of a record whose end has not come yet.
    partial: Vec<u8>,
}

impl Splitter {
    /// Cuts into records of `bytes` bytes.
    pub(crate) fn new(bytes: usize) -> Splitter {
        Splitter { bytes, partial: Vec::new() }
    }

    /// Takes more of the stream and hands out the records that are complete now.
    pub(crate) fn feed(&mut self, mut stream: &[u8], visit: &mut dyn FnMut(&[u8])) {
        if !self.partial.is_empty() {
            let missing = (self.bytes - self.partial.len()).min(stream.len());
            self.partial.extend_from_slice(&stream[..missing]);
            stream = &stream[missing..];
            if self.partial.len() < self.bytes {
                return;
            }
            visit(&self.partial);
            self.partial.clear();
        }
        let whole = stream.chunks_exact(self.bytes);
        self.partial.extend_from_slice(whole.remainder());
        whole.for_each(visit);
    }

    /// The stream is over. The rest of it is a torn record, handed out as it is.
    pub(crate) fn finish(self, visit: &mut dyn FnMut(&[u8])) {
        if !self.partial.is_empty() {
            visit(&self.partial);
        }
    }
}

#[cfg(test)]
#[path = "verify_tests.rs"]
mod tests;
