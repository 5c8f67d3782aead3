//! Records behind damage are looked for. A file in which nothing can be looked for is an error, and
//! not a file without records.

use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::Path;

use vellum::{ErrorKind, Layout, Log, Lsn, Options, repair};

use crate::support::{copy_log, payload, place, read_all, scratch, segment_files, small};

/// A log of several segments that no process has closed, at a place of its own.
fn unclosed_log(at: &Path) -> Log {
    let options = small(Layout::Framed);
    let first = at.with_extension("first");
    let log = options.open(&first).unwrap();
    for index in 0..40 {
        log.append(&payload(Layout::Framed, index, 500)).unwrap();
    }
    copy_log(&first, at);
    log
}

/// Damages the first segment from its second record on, and puts a directory in the place of the
/// second segment.
fn damage(at: &Path) {
    let files = segment_files(at);
    assert!(files.len() > 3);
    let first = File::options().write(true).open(&files[0]).unwrap();
    first.write_all_at(&[0x55; 4096 - 1000], 4096 + 1000).unwrap();
    fs::remove_file(&files[1]).unwrap();
    fs::create_dir(&files[1]).unwrap();
}

#[test]
fn who_looks_behind_damage_says_what_cannot_be_read() {
    let dir = scratch();
    let at = place(&dir);
    let log = unclosed_log(&at);
    let view = Options::default().read_only(true).open(&at).unwrap();
    assert_eq!(read_all(&view).len(), 40);
    damage(&at);

    let error = view.verify().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Incompatible, "verify: {error}");
    let mut reader = view.reader(Lsn::ZERO).unwrap();
    reader.skip_damage(true);
    let mut count = 0;
    let error = loop {
        match reader.next() {
            Ok(Some(_)) => count += 1,
            Ok(None) => panic!("the reader took what it could not read for nothing"),
            Err(error) => break error,
        }
    };
    assert!((1..3).contains(&count), "{count} records before the damage");
    assert_eq!(error.kind(), ErrorKind::Incompatible, "a reader: {error}");
    let error = repair(&at, dir.path().join("repaired")).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Incompatible, "repair: {error}");

    // Once it is out of the way, the rest is there.
    fs::remove_dir(&segment_files(&at)[1]).unwrap();
    let report = view.verify().unwrap();
    assert!(report.records > 20 && report.damage.len() >= 2, "{report:?}");
    drop((view, log));
}

#[test]
fn a_recovery_that_cannot_read_a_segment_cuts_nothing_off() {
    let dir = scratch();
    let at = place(&dir);
    let log = unclosed_log(&at);
    damage(&at);
    fs::remove_file(at.join("control")).unwrap();
    let before = segment_files(&at);
    let error = Options::default().open(&at).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Incompatible, "{error}");
    assert_eq!(segment_files(&at), before, "all files are there still");
    drop(log);
}
