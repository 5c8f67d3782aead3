//! The records to send: those of the log, but of a text log whole lines only.
//!
//! A line may be appended in parts, and is read in parts then. No reader can begin inside of a
//! line, so no position may be there.

use vellum::{Layout, Log, Lsn, OwnedRecord, Position, Reader, Result};

/// Gives whole records, as far as they are durable.
pub(super) struct Lines {
    reader: Reader,
    is_text: bool,
    /// The begin of a line.
    open: Option<OwnedRecord>,
    /// The record that was read behind a line without an end.
    behind: Option<OwnedRecord>,
}

impl Lines {
    pub(super) fn new(log: &Log, reader: Reader) -> Lines {
        let is_text = log.layout() == Layout::Text;
        Lines { reader: reader.durable(), is_text, open: None, behind: None }
    }

    /// The next one; `None` where no whole one is durable yet.
    pub(super) fn next(&mut self) -> Result<Option<OwnedRecord>> {
        while let Some(record) = self.read()? {
            let record = match self.open.take() {
                Some(open) if open.next_lsn == record.lsn => joined(open, record),
                // Its file ended without a newline.
                Some(open) => {
                    self.behind = Some(record);
                    return Ok(Some(open));
                }
                None => record,
            };
            if !self.is_text || record.payload.ends_with(b"\n") {
                return Ok(Some(record));
            }
            self.open = Some(record);
        }
        Ok(None)
    }

    fn read(&mut self) -> Result<Option<OwnedRecord>> {
        match self.behind.take() {
            None => Ok(self.reader.next()?.map(OwnedRecord::from)),
            behind => Ok(behind),
        }
    }

    /// The bytes of a record, without the end of a line.
    pub(super) fn value<'a>(&self, record: &'a OwnedRecord) -> &'a [u8] {
        let line = record.payload.strip_suffix(b"\n").filter(|_| self.is_text);
        line.unwrap_or(&record.payload)
    }

    pub(super) fn position_of(&self, lsn: Lsn) -> Result<Position> {
        self.reader.position_of(lsn)
    }
}

fn joined(open: OwnedRecord, rest: OwnedRecord) -> OwnedRecord {
    let mut line = open;
    line.payload.extend_from_slice(&rest.payload);
    line.next_lsn = rest.next_lsn;
    line
}

#[cfg(test)]
mod tests {
    use vellum::Options;

    use super::*;

    fn next(lines: &mut Lines) -> Option<(Lsn, Vec<u8>)> {
        lines.next().unwrap().map(|line| (line.lsn, line.payload))
    }

    #[test]
    fn parts_of_a_line_are_one_record_when_it_has_its_end() {
        let dir = tempfile::tempdir().unwrap();
        let log = Options::mapped_text().open(dir.path().join("log")).unwrap();
        let mut lines = Lines::new(&log, log.reader(Lsn::ZERO).unwrap());
        let mut begin = Lsn::ZERO;
        for part in ["one", " line", "\n"] {
            assert_eq!(next(&mut lines), None);
            let lsn = log.append_durable(part.as_bytes()).unwrap();
            begin = if part == "one" { lsn } else { begin };
        }
        assert_eq!(next(&mut lines), Some((begin, b"one line\n".to_vec())));
        assert_eq!(next(&mut lines), None);
    }

    #[test]
    fn a_record_of_a_framed_log_needs_no_newline() {
        let dir = tempfile::tempdir().unwrap();
        let log = Options::default().open(dir.path().join("log")).unwrap();
        let lsn = log.append_durable(b"one").unwrap();
        let mut lines = Lines::new(&log, log.reader(Lsn::ZERO).unwrap());
        assert_eq!(next(&mut lines), Some((lsn, b"one".to_vec())));
    }
}
