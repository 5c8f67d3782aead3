//! Is all there that was acknowledged and not cut off?
//!
//! Each process's records are in the log in its order. Those that were cut off are missing at the
//! beginning and nowhere else, and at least so many of the newest must be there.

use std::ops::Range;

use crate::error::{Error, Result};
use crate::record::{self, Records};

/// The records that were found so far.
pub(super) struct Kept {
    bytes: usize,
    accounts: Vec<Account>,
    fault: Option<String>,
}

struct Account {
    /// The oldest record that must be there.
    oldest: u64,
    /// One more than the newest.
    end: u64,
    /// `None` until one is found.
    next: Option<u64>,
    expected: Records,
}

impl Kept {
    /// Of each process these must be there; older ones may be.
    pub(super) fn new(bytes: usize, kept: &[Range<u64>]) -> Kept {
        let account = |(process, kept): (usize, &Range<u64>)| Account {
            oldest: kept.start,
            end: kept.end,
            next: None,
            expected: Records::new(process as u32, bytes),
        };
        Kept { bytes, accounts: kept.iter().enumerate().map(account).collect(), fault: None }
    }

    /// Takes the next record of the log.
    pub(super) fn enter(&mut self, record: &[u8]) {
        if self.fault.is_none() {
            self.fault = self.fault_of(record);
        }
    }

    fn fault_of(&mut self, record: &[u8]) -> Option<String> {
        let names = record::process_of(record).zip(record::sequence_of(record));
        let names = names.filter(|_| record.len() == self.bytes);
        let account = names.and_then(|(process, _)| self.accounts.get_mut(process as usize));
        let (Some((process, sequence)), Some(account)) = (names, account) else {
            return Some(format!("{} bytes are nobody's record", record.len()));
        };
        let next = *account.next.get_or_insert_with(|| {
            let first = sequence.min(account.oldest);
            account.expected.seek(first);
            first
        });
        if sequence != next || next >= account.end {
            let end = account.end;
            return Some(format!(
                "record {sequence} of process {process} stands where {next} should, of {end}"
            ));
        }
        account.next = Some(next + 1);
        (account.expected.next_record() != record)
            .then(|| format!("record {sequence} of process {process} is damaged"))
    }

    /// All has been read: the verdict.
    pub(super) fn close(self) -> Result<()> {
        let missing = |(process, account): (usize, &Account)| {
            let found = account.next.unwrap_or(account.oldest);
            (found < account.end).then(|| {
                let Account { end, .. } = account;
                format!("process {process} was acknowledged {end} records, the last is {found}")
            })
        };
        let fault = self.fault.or_else(|| self.accounts.iter().enumerate().find_map(missing));
        fault.map_or(Ok(()), |fault| Err(Error::failed(fault)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(process: u32, sequence: u64) -> Vec<u8> {
        let mut records = Records::new(process, 64);
        records.seek(sequence);
        records.next_record().to_vec()
    }

    /// Of process 0 records 5 to 7 must be there, of process 1 none.
    fn verdict(found: &[(u32, u64)]) -> String {
        let mut kept = Kept::new(64, &[5..8, 3..3]);
        found.iter().for_each(|(process, sequence)| kept.enter(&record(*process, *sequence)));
        kept.close().err().map_or_else(String::new, |error| error.to_string())
    }

    #[test]
    fn what_must_be_there_and_some_older_ones_are_good() {
        assert_eq!(verdict(&[(0, 5), (0, 6), (0, 7)]), "");
        assert_eq!(verdict(&[(0, 3), (1, 2), (0, 4), (0, 5), (0, 6), (0, 7)]), "");
    }

    #[test]
    fn what_is_missing_doubled_or_invented_is_told() {
        for found in [
            &[][..],
            &[(0, 6), (0, 7)],
            &[(0, 5), (0, 7)],
            &[(0, 5), (0, 6)],
            &[(0, 5), (0, 5), (0, 6), (0, 7)],
            &[(0, 5), (0, 6), (0, 7), (0, 8)],
            &[(0, 5), (0, 6), (0, 7), (1, 3)],
            &[(0, 5), (0, 6), (0, 7), (2, 0)],
        ] {
            assert_ne!(verdict(found), "", "{found:?}");
        }
    }

    #[test]
    fn every_flipped_byte_is_told() {
        for at in 0..64 {
            let mut kept = Kept::new(64, &[0..1, 0..0]);
            let mut damaged = record(0, 0);
            damaged[at] ^= 1;
            kept.enter(&damaged);
            assert!(kept.close().is_err(), "{at}");
        }
    }
}
