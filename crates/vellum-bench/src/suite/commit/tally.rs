//! Is every record there that was acknowledged as durable, whole and once?
//!
//! Threads commit as many as they can in the time that they have, in no order among them, so this
//! takes records in any order. Each round has writers of its own: an old record in a place that is
//! used again can't pass for a record of this one.

use crate::error::{Error, Result};
use crate::record::{self, Records};

/// How many writers the rounds can be told apart by.
const WRITERS_MAX: u32 = 10_000;

/// The number of the first writer of a round.
pub(super) fn first_writer(round: u32, writers: u32) -> u32 {
    round % (WRITERS_MAX / writers) * writers
}

/// The acknowledged records, and those that were found.
pub(super) struct Tally {
    bytes: usize,
    first_writer: u32,
    accounts: Vec<Account>,
    /// Records of other rounds: fine where places are used again, wrong in a log.
    strangers: u64,
    may_hold_strangers: bool,
    wrong: u64,
    first_wrong: Option<String>,
}

/// The state of one writer.
struct Account {
    acknowledged: u64,
    /// The oldest record that has to be there.
    oldest: u64,
    expected: Records,
    seen: Vec<bool>,
}

impl Tally {
    /// Writers from `first_writer` on were acknowledged so many records of `bytes`, and the newest
    /// `kept` of each must be there.
    pub(super) fn new(bytes: usize, first_writer: u32, acknowledged: &[u64], kept: u64) -> Tally {
        let account = |(index, acknowledged): (usize, &u64)| Account {
            acknowledged: *acknowledged,
            oldest: acknowledged.saturating_sub(kept),
            expected: Records::new(first_writer + index as u32, bytes),
            seen: vec![false; *acknowledged as usize],
        };
        Tally {
            bytes,
            first_writer,
            accounts: acknowledged.iter().enumerate().map(account).collect(),
            strangers: 0,
            may_hold_strangers: kept != u64::MAX,
            wrong: 0,
            first_wrong: None,
        }
    }

    /// Takes a record as it is in the log.
    pub(super) fn enter(&mut self, record: &[u8]) {
        let names = record::process_of(record).zip(record::sequence_of(record));
        let Some((writer, sequence)) = names.filter(|_| record.len() == self.bytes) else {
            return self.note(|| format!("{} bytes are nobody's record", record.len()));
        };
        let index = writer.wrapping_sub(self.first_writer) as usize;
        let Some(account) = self.accounts.get_mut(index) else {
            self.strangers += 1;
            return;
        };
        let Some(seen) = account.seen.get_mut(sequence as usize) else {
            return self.note(|| format!("record {sequence} of writer {writer} was never made"));
        };
        let is_second = std::mem::replace(seen, true);
        account.expected.seek(sequence);
        let differs = account.expected.next_record() != record;
        if differs {
            *seen = false;
            self.note(|| format!("record {sequence} of writer {writer} is damaged"));
        } else if is_second {
            self.note(|| format!("record {sequence} of writer {writer} is there twice"));
        }
    }

    fn note(&mut self, text: impl FnOnce() -> String) {
        self.wrong += 1;
        if self.first_wrong.is_none() {
            self.first_wrong = Some(text());
        }
    }

    /// All has been read: the verdict.
    pub(super) fn close(mut self) -> Result<()> {
        let mut lost = 0;
        let mut first_lost = None;
        for (index, account) in self.accounts.iter().enumerate() {
            for sequence in account.oldest..account.acknowledged {
                if !account.seen[sequence as usize] {
                    lost += 1;
                    first_lost.get_or_insert((self.first_writer + index as u32, sequence));
                }
            }
        }
        if self.strangers > 0 && !self.may_hold_strangers {
            let strangers = self.strangers;
            self.note(|| format!("{strangers} records are of no writer of this round"));
        }
        if let Some((writer, sequence)) = first_lost {
            self.note(|| format!("record {sequence} of writer {writer} is not there"));
        }
        let Some(first) = self.first_wrong else { return Ok(()) };
        let total: u64 = self.accounts.iter().map(|account| account.acknowledged).sum();
        Err(Error::failed(format!(
            "of {total} acknowledged records {lost} lost, {} faults; first: {first}",
            self.wrong
        )))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BYTES: usize = 64;

    fn record(writer: u32, sequence: u64) -> Vec<u8> {
        let mut records = Records::new(writer, BYTES);
        records.seek(sequence);
        records.next_record().to_vec()
    }

    /// Two writers, 7 and 8, with two records each.
    fn verdict(records: &[Vec<u8>], kept: u64) -> String {
        let mut tally = Tally::new(BYTES, 7, &[2, 2], kept);
        records.iter().for_each(|record| tally.enter(record));
        tally.close().err().map_or_else(String::new, |error| error.to_string())
    }

    fn all() -> Vec<Vec<u8>> {
        vec![record(8, 1), record(7, 0), record(8, 0), record(7, 1)]
    }

    #[test]
    fn all_records_in_any_order_are_good() {
        assert_eq!(verdict(&all(), u64::MAX), "");
    }

    #[test]
    fn a_record_that_is_not_there_is_told() {
        let text = verdict(&all()[1..], u64::MAX);
        assert!(text.contains("1 lost") && text.contains("record 1 of writer 8"), "{text}");
    }

    #[test]
    fn every_flipped_byte_is_told() {
        for at in 0..BYTES {
            let mut records = all();
            records[2][at] ^= 1;
            assert_ne!(verdict(&records, u64::MAX), "", "{at}");
        }
    }

    #[test]
    fn a_record_that_is_there_twice_or_was_never_made_is_told() {
        let twice = [all(), vec![record(7, 0)]].concat();
        assert!(verdict(&twice, u64::MAX).contains("twice"));
        let invented = [all(), vec![record(7, 2)]].concat();
        assert!(verdict(&invented, u64::MAX).contains("never made"));
    }

    #[test]
    fn what_an_earlier_round_left_is_fine_only_where_places_are_used_again() {
        let records = [all(), vec![record(3, 0)]].concat();
        assert!(verdict(&records, u64::MAX).contains("no writer of this round"));
        assert_eq!(verdict(&records, 1), "");
    }

    #[test]
    fn only_what_is_kept_has_to_be_there() {
        assert_eq!(verdict(&[record(8, 1), record(7, 1)], 1), "");
        assert!(verdict(&[record(8, 1), record(7, 0)], 1).contains("1 lost"));
    }

    #[test]
    fn rounds_have_writers_of_their_own_as_long_as_numbers_last() {
        assert_eq!([0, 1, 2].map(|round| first_writer(round, 16)), [0, 16, 32]);
        assert_eq!(first_writer(625, 16), 0);
        assert!((0..1000).all(|round| first_writer(round, 64) + 64 <= WRITERS_MAX));
    }
}
