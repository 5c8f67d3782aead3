//! The records of a reader that may not write, right after a death and before a survivor continues.

use std::path::Path;

use vellum::{ErrorKind, Lsn, Options};

use super::check::{self, Fault};
use super::scenario::{Case, Expected, Operation};
use crate::payload::is_marker;

/// The records that were there.
pub(crate) struct Glimpse {
    begin: Lsn,
    /// Without the records that fill the places of others.
    records: Vec<Vec<u8>>,
}

impl Glimpse {
    /// Reads the log, which must hold the expected records, also after a death.
    ///
    /// `None` where there may be no log yet, where the records that the words count are gone with
    /// the stage, or where trimmed records may be there still.
    pub(crate) fn of(
        case: &Case,
        dir: &Path,
        expected: &Expected,
    ) -> Result<Option<Glimpse>, Fault> {
        use Operation::{Create, RecoverStage, Trim, Truncate};
        if matches!(case.operation, Create | RecoverStage | Trim) {
            return Ok(None);
        }
        let fault = |what: String| format!("reading only, at death: {what}");
        let log = match Options::default().read_only(true).open(dir) {
            Err(error) if case.operation == Truncate && error.kind() == ErrorKind::Busy => {
                return Ok(None);
            }
            answer => answer.map_err(|error| fault(format!("opening failed: {error}")))?,
        };
        let found = check::read_all(&log).map_err(fault)?;
        check::records(case, expected, &found).map_err(fault)?;
        Ok(Some(Glimpse { begin: log.begin(), records: records(case, found) }))
    }

    /// The records are still there when survivors have continued, but for those that they removed.
    pub(crate) fn stays(&self, case: &Case, dir: &Path) -> Result<(), Fault> {
        let log = Options::default().read_only(true).open(dir);
        let log = log.map_err(|error| format!("opening to read failed: {error}"))?;
        if log.begin() != self.begin || case.operation == Operation::Truncate {
            return Ok(());
        }
        let now = records(case, check::read_all(&log)?);
        let same = self.records.iter().zip(&now).take_while(|(seen, now)| seen == now).count();
        if same == self.records.len() {
            return Ok(());
        }
        let show = |records: &[Vec<u8>]| {
            let record =
                records.get(same).map_or(&[][..], |record| &record[..record.len().min(60)]);
            String::from_utf8_lossy(record).into_owned()
        };
        Err(format!(
            "a reader that may not write saw {:?} after the death, and {:?} stands there now",
            show(&self.records),
            show(&now)
        ))
    }
}

fn records(case: &Case, found: Vec<Vec<u8>>) -> Vec<Vec<u8>> {
    let is_record = |bytes: &Vec<u8>| case.layout == vellum::Layout::Framed || !is_marker(bytes);
    found.into_iter().filter(is_record).collect()
}
