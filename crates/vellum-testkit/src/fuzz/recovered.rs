//! Properties of a damaged log that is opened.

use vellum::{Create, Error, ErrorKind, Log, Lsn, Options};

use super::case::Case;
use super::expectation::Record;
use super::golden::CAPACITY;
use super::place::Place;

const ONE_MORE: &[u8] = b"one more\n";

/// Everything that is read from a log, up to its end or an error.
pub(crate) struct Found {
    pub(crate) records: Vec<(u64, Vec<u8>)>,
    pub(crate) error: Option<Error>,
}

/// Reads a log from its beginning.
pub(crate) fn read(log: &Log) -> Found {
    let mut found = Found { records: Vec::new(), error: None };
    let mut reader = match log.reader(Lsn::ZERO) {
        Ok(reader) => reader,
        Err(error) => return Found { error: Some(error), ..found },
    };
    loop {
        match reader.next() {
            Ok(Some(record)) => found.records.push((record.lsn.get(), record.payload.to_vec())),
            Ok(None) => return found,
            Err(error) => return Found { error: Some(error), ..found },
        }
    }
}

/// Opens the log of `case`, reads it, appends to it, and opens it once more.
pub(crate) fn check(case: &Case) {
    let place = Place::new();
    place.fill(case);
    let looked = case.reads_first.then(|| look(case, &place)).flatten();
    let log = match Options::default().create(Create::Never).open(place.log()) {
        Ok(log) => log,
        Err(error) => return check_refusal(case, &error),
    };
    assert!(!case.must_be_refused, "{}: a damaged header was believed", case.golden.name);
    let found = read(&log);
    if case.golden.is_text {
        text::check(case, &log, &found);
    } else if log.layout() == vellum::Layout::Framed {
        check_records(case, &log, &found);
        // Holes of the dead are padded only by a process that may write.
        if let Some(looked) = looked.filter(|_| !case.is_forged && !case.is_same_boot) {
            let same = looked.records == found.records;
            assert!(same, "{}: who only looks sees something else", case.golden.name);
        }
    }
    // A log without segments begins anew, with segments too large for a memory disk.
    if case.segments().next().is_some() {
        check_going_on(case, &place, log, &found);
    }
}

/// Opens the log for reading only, which changes nothing.
fn look(case: &Case, place: &Place) -> Option<Found> {
    let before = place.files();
    let found = match Options::default().read_only(true).open(place.log()) {
        Ok(log) => Some(read(&log)),
        Err(error) => {
            check_refusal(case, &error);
            None
        }
    };
    assert!(before == place.files(), "{}: a look changed files", case.golden.name);
    found
}

/// A refusal is for damage that no crash explains, and says where it is.
fn check_refusal(case: &Case, error: &Error) {
    let name = &case.golden.name;
    assert!(error.path().is_some(), "{name}: an error without a path: {error}");
    let kinds = [ErrorKind::Corrupt, ErrorKind::Incompatible, ErrorKind::NotFound];
    // Busy: a truncation that was not finished, to a process that may only read.
    let forged =
        [ErrorKind::InvalidOption, ErrorKind::Exhausted, ErrorKind::OutOfRange, ErrorKind::Busy];
    let is_right =
        kinds.contains(&error.kind()) || case.is_forged && forged.contains(&error.kind());
    assert!(is_right, "{name}: {:?}: {error}", error.kind());
    let change = case.change();
    if !case.is_forged && !case.must_be_refused && !change.is_beyond_bytes {
        let durable = case.durable();
        assert!(change.from < durable, "{name}: damage at {change:?} of {durable}: {error}");
    }
}

fn check_read_error(case: &Case, error: &Error) {
    let name = &case.golden.name;
    assert!(error.path().is_some(), "{name}: an error without a path: {error}");
    let kinds = [ErrorKind::Corrupt, ErrorKind::OutOfRange, ErrorKind::Trimmed];
    assert!(kinds.contains(&error.kind()), "{name}: {:?}: {error}", error.kind());
    assert!(case.is_forged || case.change().from < u64::MAX, "{name}: undamaged, but {error}");
}

fn check_records(case: &Case, log: &Log, found: &Found) {
    let name = &case.golden.name;
    if let Some(error) = &found.error {
        check_read_error(case, error);
    }
    check_are_originals(case, found);
    if case.is_forged {
        return;
    }
    let (begin, end) = (log.begin().get(), log.published().get());
    let durable = case.durable();
    assert!(end >= durable, "{name}: ends at {end} although {durable} was durable");
    check_begin(case, begin);
    let change = case.change();
    let is_owed = |r: &&Record| r.lsn >= begin && case.golden.needs(r) <= change.from;
    let owed = case.golden.expected.records.iter().filter(is_owed).count();
    let count = found.records.len();
    assert!(count >= owed, "{name}: {count} records of {owed} that nothing happened to");
    if case.is_same_boot {
        return;
    }
    let kept: Vec<&Record> = case.golden.appended.iter().filter(|r| r.lsn >= begin).collect();
    for ((lsn, _), record) in found.records.iter().zip(&kept) {
        assert_eq!(*lsn, record.lsn, "{name}: a record was passed over");
    }
    if found.error.is_none() {
        let before_end = kept.iter().filter(|record| record.lsn < end).count();
        assert_eq!(count, before_end, "{name}: records before the end, {end}");
    }
    if change.from == u64::MAX && !change.is_beyond_bytes {
        let expected = &case.golden.expected;
        assert_eq!((count, end), (expected.records.len(), expected.end), "{name}: unchanged");
    }
}

/// Every record was appended at its position with these bytes.
fn check_are_originals(case: &Case, found: &Found) {
    let name = &case.golden.name;
    let mut appended = case.golden.appended.iter();
    for (lsn, bytes) in &found.records {
        let original = appended.find(|record| record.lsn == *lsn);
        let original = original.unwrap_or_else(|| panic!("{name}: a record at {lsn}?"));
        assert!(is_the_same(original, bytes), "{name}: wrong bytes at {lsn}");
    }
}

pub(crate) fn is_the_same(record: &Record, bytes: &[u8]) -> bool {
    record.len == bytes.len() as u64 && record.crc == crc32c::crc32c(bytes)
}

/// The beginning stays unless the segment is gone that it was in.
fn check_begin(case: &Case, begin: u64) {
    let expected = case.golden.expected.begin;
    let Some((oldest, _)) = case.segments().next() else { return };
    let change = case.change();
    if oldest <= expected && !change.is_beyond_bytes {
        let is_right = begin == expected
            || !case.golden.expected.records.is_empty()
                && begin < expected
                && change.from < u64::MAX;
        assert!(is_right, "{}: begins at {begin} and not at {expected}", case.golden.name);
    }
}

/// Appends a record, commits it, and finds everything as it was and the record after a reboot.
fn check_going_on(case: &Case, place: &Place, log: Log, found: &Found) {
    let name = &case.golden.name;
    let appended = match log.append(ONE_MORE).and_then(|lsn| log.sync().map(|_| lsn)) {
        Ok(lsn) => lsn,
        Err(error) if case.is_forged => {
            assert!(error.path().is_some(), "{name}: an error without a path: {error}");
            return;
        }
        Err(error) => panic!("{name}: cannot go on: {error}"),
    };
    drop(log);
    place.reboot(case.loses_control);
    let log = match Options::default().create(Create::Never).open(place.log()) {
        Ok(log) => log,
        Err(_) if case.is_forged => return,
        Err(error) => panic!("{name}: cannot be opened again: {error}"),
    };
    if case.is_forged {
        return;
    }
    let mut again = read(&log);
    if found.error.is_none() && again.error.is_none() {
        let last = again.records.pop();
        let is_there = |(_, bytes): (u64, Vec<u8>)| bytes.ends_with(ONE_MORE);
        assert!(last.is_some_and(is_there), "{name}: what was committed is gone");
    }
    if case.golden.is_text {
        return;
    }
    assert!(again.records == found.records, "{name}: opened again, it holds something else");
    assert_eq!(again.error.is_some(), found.error.is_some(), "{name}: opened again");
    let mut reader = log.reader(appended).expect("the record that was committed");
    let record = reader.next().expect("readable").expect("there");
    assert_eq!((record.lsn, record.payload), (appended, ONE_MORE), "{name}");
}

mod text {
    //! A text log has no checksums: a reader gets all bytes of the files, but for NULs, which
    //! become markers.

    use super::{CAPACITY, Case, Found, Log, check_read_error};

    /// The byte at each position of the log, from its oldest segment on.
    fn bytes(case: &Case) -> Vec<(u64, u8)> {
        let numbered = |(first, bytes): (u64, &[u8])| {
            let bytes = bytes[..bytes.len().min(CAPACITY as usize)].to_vec();
            (first..).zip(bytes).collect::<Vec<_>>()
        };
        case.segments().flat_map(numbered).filter(|(_, byte)| *byte != 0).collect()
    }

    pub(super) fn check(case: &Case, log: &Log, found: &Found) {
        let name = &case.golden.name;
        if let Some(error) = &found.error {
            check_read_error(case, error);
        }
        if log.layout() != vellum::Layout::Text || case.is_forged || found.error.is_some() {
            return;
        }
        let mut wanted = bytes(case).into_iter().peekable();
        for (lsn, payload) in &found.records {
            for (at, byte) in (*lsn..).zip(payload) {
                match wanted.next_if(|(position, _)| *position == at) {
                    Some((_, wanted)) => assert_eq!(*byte, wanted, "{name}: byte {at}"),
                    None => assert!(is_marker(*byte), "{name}: {byte:#x} out of nowhere at {at}"),
                }
            }
        }
        assert_eq!(wanted.next(), None, "{name}: text was lost");
    }

    fn is_marker(byte: u8) -> bool {
        byte.is_ascii_graphic() || byte == b' ' || byte == b'\n'
    }
}
