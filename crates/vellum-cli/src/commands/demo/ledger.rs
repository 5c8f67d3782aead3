//! The records of a log, compared with the acknowledgements to its writers: every record once,
//! whole, in order.

use anyhow::{bail, ensure};
use vellum::{Log, Lsn};
use vellum_command::outcome::Result;

use super::corpus::{Corpus, parse};

/// Counts the records that were found, writer by writer.
pub(super) struct Ledger<'a> {
    corpus: &'a Corpus,
    /// How many of each writer's records were found; the next must have one number more.
    found: Vec<u64>,
    expected: Vec<u8>,
}

impl<'a> Ledger<'a> {
    /// A ledger for writers 1 to `writers`.
    pub(super) fn new(corpus: &'a Corpus, writers: u32) -> Ledger<'a> {
        Ledger { corpus, found: vec![0; writers as usize], expected: Vec::new() }
    }

    /// Enters the record found at `lsn`; returns whose it is and which, or `None` for a filler.
    ///
    /// The error is the fault: it is not the writer's next one, or not whole.
    pub(super) fn enter(&mut self, lsn: Lsn, record: &[u8]) -> Result<Option<(u32, u64)>> {
        if self.corpus.is_filler(record) {
            return Ok(None);
        }
        let Some((writer, sequence)) = parse(record) else {
            bail!("what stands at {lsn} is no record of any writer");
        };
        let Some(found) = (writer as usize).checked_sub(1).and_then(|i| self.found.get_mut(i))
        else {
            bail!("the record at {lsn} is of writer {writer}, whom nobody knows");
        };
        ensure!(
            sequence == *found + 1,
            "record {sequence} of writer {writer}, at {lsn}, follows its record {found}"
        );
        self.corpus.write_record(writer, sequence, &mut self.expected);
        ensure!(record == self.expected, "record {sequence} of writer {writer} is not whole");
        *found = sequence;
        Ok(Some((writer, sequence)))
    }

    /// How many records were found.
    pub(super) fn count(&self) -> u64 {
        self.found.iter().sum()
    }
}

/// Reads the whole log and holds it against `acknowledged`: for each writer, the positions it was
/// told, in order. Returns how many records of each writer are there.
pub(super) fn audit(log: &Log, corpus: &Corpus, acknowledged: &[&[Lsn]]) -> Result<Vec<u64>> {
    let mut ledger = Ledger::new(corpus, acknowledged.len() as u32);
    let mut reader = log.reader(Lsn::ZERO)?;
    let end = corpus.end();
    loop {
        let Some(record) = reader.next()? else { bail!("the last record of all is missing") };
        if record.payload == end {
            break;
        }
        let Some((writer, sequence)) = ledger.enter(record.lsn, record.payload)? else { continue };
        let lsn = acknowledged[writer as usize - 1].get(sequence as usize - 1);
        let Some(lsn) = lsn else {
            bail!("record {sequence} of writer {writer} is there but was never acknowledged");
        };
        ensure!(
            *lsn == record.lsn,
            "record {sequence} of writer {writer} was acknowledged at {lsn} and is at {}",
            record.lsn
        );
    }
    for (index, lsns) in acknowledged.iter().enumerate() {
        let (found, told) = (ledger.found[index], lsns.len() as u64);
        ensure!(found == told, "writer {} was told of {told} records, found {found}", index + 1);
    }
    ensure!(reader.next()?.is_none(), "something follows the last record of all");
    Ok(ledger.found)
}

#[cfg(test)]
mod tests {
    use vellum::Layout;

    use super::*;

    fn entered(records: &[&[u8]]) -> Result<Vec<u64>> {
        let corpus = Corpus::new(Layout::Framed);
        let mut ledger = Ledger::new(&corpus, 2);
        for record in records {
            ledger.enter(Lsn::new(4096), record)?;
        }
        Ok(ledger.found)
    }

    #[test]
    fn lost_doubled_torn_and_foreign_records_are_noticed() {
        let corpus = Corpus::new(Layout::Framed);
        let record = |writer, sequence| {
            let mut record = Vec::new();
            corpus.write_record(writer, sequence, &mut record);
            record
        };
        let (first, second, third) = (record(1, 1), record(1, 2), record(1, 3));
        let other = record(2, 1);
        assert_eq!(entered(&[&first, &other, &second]).unwrap(), [2, 1]);
        for wrong in [
            vec![&first[..], &third],
            vec![&first[..], &first],
            vec![&second[..], &first],
            vec![&first[..first.len() - 1]],
            vec![&record(3, 1)[..]],
            vec![&record(0, 1)[..]],
            vec![&b"nonsense"[..]],
        ] {
            assert!(entered(&wrong).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn a_marker_line_of_a_text_log_is_no_record() {
        let corpus = Corpus::new(Layout::Text);
        let mut ledger = Ledger::new(&corpus, 1);
        let marker = b"~ vellum: 60 bytes lost: their writer died ~~~\n";
        assert_eq!(ledger.enter(Lsn::new(1), marker).unwrap(), None);
        assert_eq!(ledger.count(), 0);
    }
}
