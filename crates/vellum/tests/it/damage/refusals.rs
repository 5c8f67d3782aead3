//! Paths that are no log, or none for this program.

use std::fs;

use vellum::{ErrorKind, Layout, Log, Lsn, Options};

use crate::support::crc::seal_control_header;
use crate::support::{LAYOUTS, assert_holds, place, scratch, small};

/// The errors of opening for writing and for reading, which must be of one kind.
#[track_caller]
fn refused(path: &std::path::Path, kind: ErrorKind) -> String {
    let writing = Options::default().open(path).unwrap_err();
    let reading = Options::default().read_only(true).open(path).unwrap_err();
    assert_eq!((writing.kind(), reading.kind()), (kind, kind), "{writing}; {reading}");
    let text = writing.to_string();
    let shows_path = writing.path().is_some_and(|path| text.contains(path.to_str().unwrap()));
    assert!(shows_path, "the error names its file: {text}");
    text
}

fn log_with_a_record(path: &std::path::Path, layout: Layout) -> (Log, Lsn) {
    let log = small(layout).open(path).unwrap();
    let lsn = log.append(b"record\n").unwrap();
    (log, lsn)
}

#[test]
fn a_file_is_no_log() {
    let dir = scratch();
    fs::write(place(&dir), b"something of the user's").unwrap();
    refused(&place(&dir), ErrorKind::Incompatible);
    assert_eq!(fs::read(place(&dir)).unwrap(), b"something of the user's");
}

#[test]
fn a_directory_of_other_things_is_no_log_and_stays_as_it_is() {
    let dir = scratch();
    fs::create_dir(place(&dir)).unwrap();
    fs::write(place(&dir).join("letter.txt"), b"dear").unwrap();
    let error = Options::default().open(place(&dir)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Incompatible);
    assert!(error.to_string().contains("letter.txt"), "{error}");
    assert!(Options::default().read_only(true).open(place(&dir)).is_err());
    assert_eq!(fs::read_dir(place(&dir)).unwrap().count(), 1, "nothing is made in it");
}

#[test]
fn a_control_file_of_zero_or_odd_length_is_refused_and_rebuilt_when_removed() {
    for layout in LAYOUTS {
        for len in [0, 1, 7, 71, 72, 73, 4095, 4096, 4097, 100_000, 300_000] {
            let dir = scratch();
            let (log, lsn) = log_with_a_record(&place(&dir), layout);
            drop(log);
            let control = place(&dir).join("control");
            fs::File::options().write(true).open(&control).unwrap().set_len(len).unwrap();
            let kind = if len < 72 { ErrorKind::Incompatible } else { ErrorKind::Corrupt };
            refused(&place(&dir), kind);
            assert_eq!(control.metadata().unwrap().len(), len, "left as it is");
            fs::remove_file(&control).unwrap();
            let log = Options::default().open(place(&dir)).unwrap();
            assert_holds(&log, &[(lsn, b"record\n".to_vec())]);
        }
    }
}

#[test]
fn another_format_version_is_refused_with_both_numbers() {
    for layout in LAYOUTS {
        let dir = scratch();
        let (log, lsn) = log_with_a_record(&place(&dir), layout);
        drop(log);
        let control = place(&dir).join("control");
        let good = fs::read(&control).unwrap();
        let mut bytes = good.clone();
        bytes[8..12].copy_from_slice(&77u32.to_le_bytes());
        seal_control_header(&mut bytes);
        fs::write(&control, &bytes).unwrap();
        let text = refused(&place(&dir), ErrorKind::Incompatible);
        assert!(text.contains("77") && text.contains('1'), "{text}");
        fs::write(&control, &good).unwrap();
        assert_holds(
            &Options::default().open(place(&dir)).unwrap(),
            &[(lsn, b"record\n".to_vec())],
        );
    }
}

#[test]
fn values_that_cannot_be_in_a_well_formed_header_are_refused() {
    // Layout, preallocation, fill and capacity, each out of range, under a valid checksum.
    let faults: [(usize, u64); 8] =
        [(16, 0), (16, 3), (20, 7), (24, 4), (32, 0), (32, 4097), (32, 1 << 31), (32, u64::MAX)];
    for (offset, value) in faults {
        let dir = scratch();
        drop(log_with_a_record(&place(&dir), Layout::Framed));
        let control = place(&dir).join("control");
        let mut bytes = fs::read(&control).unwrap();
        let len = if offset == 32 { 8 } else { 4 };
        bytes[offset..offset + len].copy_from_slice(&value.to_le_bytes()[..len]);
        seal_control_header(&mut bytes);
        fs::write(&control, &bytes).unwrap();
        refused(&place(&dir), ErrorKind::Corrupt);
    }
}

#[test]
fn a_segment_that_does_not_belong_here_is_refused_when_the_log_is_rebuilt() {
    for name in ["0000000000000000.seg", "0000000000001001.seg", "00000000000f0000.seg"] {
        let dir = scratch();
        drop(log_with_a_record(&place(&dir), Layout::Framed));
        fs::write(place(&dir).join(name), b"stranger").unwrap();
        fs::remove_file(place(&dir).join("control")).unwrap();
        refused(&place(&dir), ErrorKind::Corrupt);
        fs::remove_file(place(&dir).join(name)).unwrap();
        assert!(Options::default().open(place(&dir)).is_ok());
    }
}

#[test]
fn a_segment_of_another_log_is_found_out() {
    let dir = scratch();
    let (other, path) = (dir.path().join("other"), place(&dir));
    drop(log_with_a_record(&other, Layout::Framed));
    drop(log_with_a_record(&path, Layout::Framed));
    fs::copy(other.join("0000000000001000.seg"), path.join("0000000000001000.seg")).unwrap();
    let error = Options::default().open(&path).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corrupt, "the log does not end as it was closed");
    assert_eq!(error.path(), Some(path.join("0000000000001000.seg").as_path()));
    fs::remove_file(path.join("control")).unwrap();
    assert_eq!(Options::default().open(&path).unwrap_err().kind(), ErrorKind::Corrupt);
}

#[test]
fn a_control_file_that_is_lost_while_the_log_is_in_use_does_not_split_the_log() {
    let dir = scratch();
    let (log, _) = log_with_a_record(&place(&dir), Layout::Framed);
    let control = place(&dir).join("control");
    fs::rename(&control, dir.path().join("aside")).unwrap();
    assert_eq!(Options::default().open(place(&dir)).unwrap_err().kind(), ErrorKind::Busy);
    log.append(b"goes on").unwrap();
    fs::rename(dir.path().join("aside"), &control).unwrap();
    let second = Options::default().open(place(&dir)).unwrap();
    assert_eq!(second.tail(), log.tail());
}
