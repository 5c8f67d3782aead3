//! Golden logs: files that a released format wrote, which every later version must read.
//!
//! They lie in `tests/golden/v1`, `v1-forms` and `v2`, one directory each, with their content
//! written down beside it (`expectation`). A new one is made by adding it to `make` and running
//!
//! ```text
//! cargo test -p vellum --test it -- --ignored make_missing_golden_logs
//! ```
//!
//! which leaves alone whatever is there already: a golden log is never made again.

mod expectation;
mod make;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use expectation::{Expectation, File, Record};
use vellum::{Compression, ErrorKind, Log, Lsn, Options, OwnedRecord};

use crate::support::crc::crc32c;
use crate::support::{assert_sound, copy_log, place, read_all, scratch};

/// Where the golden logs of format version 1 lie: `v1`, or `v1-forms` for those that are more than
/// segments and their geometry. In `v2` those whose headers have that version.
fn golden_directory(directory: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(directory)
}

/// All golden logs, as `directory/name`; without what this build cannot decompress.
fn golden_names() -> Vec<String> {
    let mut all = Vec::new();
    for directory in ["v1", "v1-forms", "v2"] {
        for entry in fs::read_dir(golden_directory(directory)).unwrap() {
            let name = entry.unwrap().file_name().into_string().unwrap();
            let name = name.strip_suffix(".txt").map(|name| format!("{directory}/{name}"));
            all.extend(name.filter(|name| cfg!(feature = "zstd") || !name.ends_with("policy")));
        }
    }
    all.sort();
    all
}

fn expectation_of(name: &str) -> Expectation {
    let path = golden_directory(name).with_extension("txt");
    Expectation::parse(&fs::read_to_string(path).unwrap())
}

/// The files of a directory with their checksums.
fn files_in(dir: &Path) -> Vec<File> {
    let mut files = BTreeMap::new();
    for entry in fs::read_dir(dir).unwrap() {
        let entry = entry.unwrap();
        let (name, bytes) =
            (entry.file_name().into_string().unwrap(), fs::read(entry.path()).unwrap());
        let file = File { name: name.clone(), crc: crc32c(&bytes), len: bytes.len() as u64 };
        files.insert(name, file);
    }
    files.into_values().collect()
}

/// Gives a golden log the control file that it had: a header, and words that mean nothing any more.
fn add_control_of_another_boot(log: &Path, control_len: u64) {
    let mut control = vec![0x5a; control_len as usize];
    let geometry = fs::read(log.join("geometry")).unwrap();
    control[..4096].fill(0);
    control[..geometry.len()].copy_from_slice(&geometry);
    fs::write(log.join("control"), control).unwrap();
}

fn records_of(log: &Log) -> Vec<Record> {
    let all = read_all(log);
    all.iter().map(|(lsn, bytes)| Record::new(lsn.get(), crc32c(bytes), bytes)).collect()
}

/// The envelopes of all records: position, nanoseconds since 1970, the writer.
fn stamps_of(log: &Log) -> Vec<[u64; 3]> {
    let records = log.reader(Lsn::ZERO).unwrap().into_iter().map(Result::unwrap);
    let stamp = |record: OwnedRecord| {
        let since = record.time()?.duration_since(SystemTime::UNIX_EPOCH).unwrap();
        Some([record.lsn.get(), since.as_nanos() as u64, record.writer()?.get()])
    };
    records.filter_map(stamp).collect()
}

#[track_caller]
fn assert_is_as_expected(log: &Log, expected: &Expectation, what: &str) {
    assert_eq!(records_of(log), expected.records, "{what}: records");
    assert_eq!(stamps_of(log), expected.stamps, "{what}: times and writers");
    let cut = log.recovery().map_or(0, |recovery| recovery.cut_bytes);
    let found =
        [log.begin(), log.published(), log.durable(), log.checkpoint().lsn()].map(|l| l.get());
    let wanted = [expected.begin, expected.end, expected.durable, expected.checkpoint];
    assert_eq!(found, wanted, "{what}: begin, end, durable, checkpoint");
    if log.recovery().is_some() {
        assert_eq!(cut, expected.cut, "{what}: bytes that were cut");
    }
    assert_sound(log);
}

#[test]
fn golden_logs_have_not_changed() {
    assert!(golden_names().len() >= 8, "golden logs are missing");
    for name in golden_names() {
        let files = files_in(&golden_directory(&name));
        assert_eq!(files, expectation_of(&name).files, "{name}: a golden log is never made again");
    }
}

#[test]
fn golden_logs_are_read_in_another_boot_and_go_on() {
    for name in golden_names() {
        let expected = expectation_of(&name);
        for has_control in [true, false] {
            let what = format!("{name}, control file: {has_control}");
            let dir = scratch();
            copy_log(&golden_directory(&name), &place(&dir));
            if has_control {
                add_control_of_another_boot(&place(&dir), expected.control_len);
            }
            let log = Options::default().open(place(&dir)).unwrap();
            assert_is_as_expected(&log, &expected, &what);
            let lsn = log.append_durable(b"one more\n").unwrap();
            drop(log);
            let log = Options::default().open(place(&dir)).unwrap();
            let found = records_of(&log);
            assert_eq!(found[..expected.records.len()], expected.records, "{what}: reopened");
            assert_eq!(found.last().unwrap().lsn, lsn.get(), "{what}");
            let policy = log.stat().unwrap().policy;
            let compression = Compression::from(name.ends_with("policy"));
            assert_eq!(policy.compression, compression, "{what}: {policy:?}");
        }
    }
}

#[test]
fn golden_logs_are_read_by_who_may_not_write_and_stay_as_they_are() {
    for name in golden_names() {
        let expected = expectation_of(&name);
        let dir = scratch();
        copy_log(&golden_directory(&name), &place(&dir));
        let opened = Options::default().read_only(true).open(place(&dir));
        if name.contains("/cut-") {
            // A process that may only read cannot finish it, and is told so.
            assert_eq!(opened.err().map(|error| error.kind()), Some(ErrorKind::Busy), "{name}");
        } else {
            let log = opened.unwrap();
            assert_eq!(records_of(&log), expected.records, "{name}");
            assert_eq!(log.published().get(), expected.end, "{name}");
        }
        assert_eq!(files_in(&place(&dir)), expected.files, "{name}");
    }
}
