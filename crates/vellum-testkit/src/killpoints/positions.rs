//! Stored positions: after any death, and with any survivor, each leads to the record that it was
//! taken for, or is refused.

use std::path::Path;

use vellum::{ErrorKind, Log, Lsn, Options, Position};

use super::check::Fault;

/// Positions, and the records that they were taken for.
#[derive(Debug, Default)]
pub(crate) struct Taken(Vec<(Position, Vec<u8>)>);

impl Taken {
    /// Takes the positions of all records that can be read now. Where there is no log yet, or an
    /// operation that was begun has to be ended first, there are none.
    pub(crate) fn add(&mut self, dir: &Path) {
        let Ok(log) = Options::default().read_only(true).open(dir) else { return };
        let Ok(mut reader) = log.reader(Lsn::ZERO) else { return };
        while let Ok(Some(record)) = reader.next() {
            let (lsn, bytes) = (record.lsn, record.payload.to_vec());
            // A line without its end may get one.
            if let Ok(position) = reader.position_of(lsn)
                && (log.layout() == vellum::Layout::Framed || bytes.ends_with(b"\n"))
            {
                self.0.push((position, bytes));
            }
        }
    }

    /// Whether each of them holds in `log`, or is refused.
    pub(crate) fn hold(&self, log: &Log) -> Result<(), Fault> {
        self.0.iter().try_for_each(|(position, bytes)| is_same(log, *position, bytes))
    }
}

fn is_same(log: &Log, position: Position, bytes: &[u8]) -> Result<(), Fault> {
    let found = log.reader_at(position).and_then(|mut reader| {
        Ok(reader.next()?.map(|record| (record.lsn, record.payload.to_vec())))
    });
    match found {
        Ok(Some((lsn, found))) if lsn == position.lsn && found == bytes => Ok(()),
        Ok(found) => Err(format!("the position {position} is another record now: {found:?}")),
        Err(error) => {
            let kinds = [ErrorKind::Rewound, ErrorKind::OutOfRange, ErrorKind::Trimmed];
            let is_refused = kinds.contains(&error.kind());
            is_refused.then_some(()).ok_or_else(|| format!("the position {position}: {error}"))
        }
    }
}
