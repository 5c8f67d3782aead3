//! The reads and writes of opening a log: no more than it needs, however much is prepared.

use std::fs;
use std::path::Path;

use vellum::{Fill, Log, Options, Tuning};
use vellum_testing::counts::moved_bytes;

use super::{after_power_cut, in_another_boot, kinds, stages};
use crate::support::{copy_log, payloads, place, read_all, scratch, segment_files};

const MIB: u64 = 1 << 20;
const CAPACITY: u64 = 8 * MIB;

/// Opens a log, and returns how many bytes were read and written for that.
fn opened(options: &Options, path: &Path) -> (Log, u64, u64) {
    let before = moved_bytes().unwrap();
    let log = options.open(path).unwrap();
    let after = moved_bytes().unwrap();
    (log, after.0 - before.0, after.1 - before.1)
}

fn names(path: &Path) -> Vec<String> {
    let name = |entry: std::io::Result<fs::DirEntry>| entry.unwrap().file_name().into_string();
    let mut names: Vec<_> = fs::read_dir(path).unwrap().map(|e| name(e).unwrap()).collect();
    names.sort();
    names
}

fn long(options: Options) -> Options {
    options.tuning(Tuning::new().segment_capacity_bytes(CAPACITY))
}

fn staged() -> Options {
    Options::wal()
        .exclusive(false)
        .tuning(Tuning::new().fill(Fill::Staged).segment_capacity_bytes(CAPACITY))
}

#[test]
fn a_log_that_was_closed_is_opened_without_writing() {
    for options in kinds().map(long) {
        let dir = scratch();
        let log = options.open(place(&dir)).unwrap();
        // So many that the next segment would be begun.
        for _ in 0..80 {
            log.append(&[vec![b'a'; 65535], vec![b'\n']].concat()).unwrap();
        }
        log.close().unwrap();
        let before = names(&place(&dir));
        let (log, read, written) = opened(&options, &place(&dir));
        assert_eq!(written, 0, "{:?}", log.layout());
        assert!(read < MIB / 4, "{:?}: {read} bytes were read", log.layout());
        assert_eq!(names(&place(&dir)), before);
        assert_eq!(payloads(&log).len(), 80);
    }
}

/// A staged log with a few records in a long segment, and these records.
fn with_few_records(dir: &tempfile::TempDir) -> (Log, Vec<crate::support::Read>) {
    let log = staged().open(place(dir)).unwrap();
    for index in 0..20u8 {
        log.append(&[index; 5000]).unwrap();
        log.sync().unwrap();
    }
    let records = read_all(&log);
    (log, records)
}

#[test]
fn a_power_cut_is_recovered_by_reading_a_segment_once() {
    let dir = scratch();
    let (log, expected) = with_few_records(&dir);
    let copy = after_power_cut(&place(&dir));
    drop(log);
    let (log, read, written) = opened(&staged(), &place(&copy));
    assert!(log.recovery().is_some());
    assert_eq!(read_all(&log), expected);
    assert!(read < CAPACITY + MIB, "{read} bytes were read");
    assert!(written < MIB / 4, "{written} bytes were written");
}

#[test]
fn what_a_killed_process_left_is_found_by_reading_a_segment_once() {
    let dir = scratch();
    let (log, expected) = with_few_records(&dir);
    // In the same boot, and with its stage.
    let copy = scratch();
    copy_log(&place(&dir), &place(&copy));
    crate::support::adopt_control(&place(&copy));
    drop(log);
    let (log, read, written) = opened(&staged(), &place(&copy));
    assert!(log.recovery().is_none());
    assert_eq!(read_all(&log), expected);
    assert!(read < 2 * CAPACITY + MIB, "{read} bytes were read, of the segment and its stage");
    assert!(written < MIB / 16, "{written} bytes were written");
}

#[test]
fn what_was_never_written_is_not_read() {
    let dir = scratch();
    let options =
        long(Options::events()).tuning(Tuning::new().fill(Fill::Mapped).prefault_bytes(MIB / 4));
    let log = options.open(place(&dir)).unwrap();
    log.append(b"the only one").unwrap();
    log.close().unwrap();
    let file = segment_files(&place(&dir)).pop().unwrap();
    // At its full length, with nothing behind the ready part.
    fs::File::options().write(true).open(&file).unwrap().set_len(CAPACITY + 4096).unwrap();
    in_another_boot(&place(&dir));
    let (log, read, written) = opened(&options, &place(&dir));
    assert!(log.recovery().is_some());
    assert_eq!(payloads(&log), [b"the only one"]);
    assert!(read < 3 * MIB, "{read} bytes were read");
    assert!(written < MIB / 4, "{written} bytes were written");
}

/// Frames behind the torn one are wiped, wherever they are; the bytes between them were zero.
#[test]
fn frames_behind_the_end_are_wiped_and_what_was_zero_is_not_written() {
    use std::os::unix::fs::FileExt;
    let dir = scratch();
    let (log, expected) = with_few_records(&dir);
    let copy = after_power_cut(&place(&dir));
    let end = 4096 + log.tail().get() % CAPACITY;
    drop(log);
    let file = fs::File::options().read(true).write(true).open(&segment_files(&place(&copy))[0]);
    let file = file.unwrap();
    let spots = [end + 8, end + 4095, 5 * MIB + 1, 4096 + CAPACITY - 1];
    for offset in spots {
        file.write_all_at(&[0xa5], offset).unwrap();
    }
    let (log, read, written) = opened(&staged(), &place(&copy));
    assert_eq!(read_all(&log), expected);
    assert!(stages(&place(&copy)).is_empty(), "nobody has appended");
    let mut rest = vec![1; (4096 + CAPACITY - end) as usize];
    file.read_exact_at(&mut rest, end).unwrap();
    assert!(rest.iter().all(|byte| *byte == 0));
    assert!(read < 4 * CAPACITY, "{read} bytes were read");
    assert!(written < MIB / 4, "{written} bytes were written");
}
