//! Properties of a log that `repair` saves.

use vellum::{Create, Options};

use super::case::Case;
use super::expectation::Record;
use super::frames::{HEAD_LEN, name_of};
use super::golden::{CAPACITY, Files};
use super::place::Place;
use super::recovered::{Found, is_the_same, read};

/// Saves what is readable of the log of `case`.
pub(crate) fn check(case: &Case) {
    let name = &case.golden.name;
    let place = Place::new();
    place.fill(case);
    let before = place.files();
    let report = vellum::repair(place.log(), place.other());
    assert!(before == place.files(), "{name}: repair changed its source");
    let report = match report {
        Ok(report) => report,
        Err(error) => {
            assert!(error.path().is_some(), "{name}: an error without a path: {error}");
            assert!(case.is_forged || case.segments().next().is_none(), "{name}: {error}");
            return;
        }
    };
    let log =
        Options::default().create(Create::Never).open(place.other()).expect("what repair made");
    let found = read(&log);
    assert!(found.error.is_none(), "{name}: what was saved is damaged: {:?}", found.error);
    if case.is_forged {
        return;
    }
    if case.golden.is_text {
        return check_text(case, &found);
    }
    assert_eq!(report.records, found.records.len() as u64, "{name}: {report:?}");
    check_records(case, &found);
}

/// Only records that were appended, in their order, and every one that nothing happened to.
fn check_records(case: &Case, found: &Found) {
    let name = &case.golden.name;
    let mut saved = found.records.iter().peekable();
    for record in &case.golden.appended {
        let is_saved = saved.next_if(|(_, bytes)| is_the_same(record, bytes)).is_some();
        let is_owed = || case.golden.expected.records.contains(record) && is_intact(case, record);
        assert!(is_saved || !is_owed(), "{name}: {record:?} was readable");
    }
    let stranger = saved.next().map(|(lsn, _)| lsn);
    assert_eq!(stranger, None, "{name}: a record that was never appended");
}

/// Whether every byte of the record, or of its batch, is where it was.
fn is_intact(case: &Case, record: &Record) -> bool {
    let own = (record.lsn, record.lsn + HEAD_LEN + record.len);
    let (from, to) = case.golden.batch_of(record).unwrap_or(own);
    let byte = |files: &Files, lsn: u64| {
        let file = files.get(&name_of(lsn / CAPACITY * CAPACITY))?;
        file.get((case.golden.header_len() + lsn % CAPACITY) as usize).copied()
    };
    (from..to).all(|lsn| byte(&case.files, lsn) == byte(&case.golden.files, lsn))
}

/// Every byte but the NULs, in order.
fn check_text(case: &Case, found: &Found) {
    let saved: Vec<u8> = found.records.iter().flat_map(|(_, bytes)| bytes.clone()).collect();
    let segments = case.segments().map(|(_, bytes)| &bytes[..bytes.len().min(CAPACITY as usize)]);
    let wanted: Vec<u8> = segments.flatten().copied().filter(|byte| *byte != 0).collect();
    assert!(saved == wanted, "{}: text was lost or falsified", case.golden.name);
}
