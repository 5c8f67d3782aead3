//! Copies that share their blocks with the log, on a disk that is full then: each block that is
//! changed needs another one (`docs/filesystems.md`).

use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::process::Command;

use vellum::{ErrorKind, Fill, Layout, Log, Options, Tuning};

use crate::support::child::{self, Child};
use crate::support::mount::Mount;
use crate::support::{assert_sound, payload, payloads, skip, until};

const RECORDS: u64 = 200;

fn record(index: u64) -> Vec<u8> {
    payload(Layout::Framed, index, 900)
}

/// Appends records that it is told to, and says how that went.
pub(crate) fn append_told(arguments: &[String]) {
    let log = Options::default().open(&arguments[0]).unwrap();
    let append = |index| log.append(&record(index)).map_err(|error| error.kind());
    for index in 0..RECORDS {
        append(index).unwrap();
    }
    child::say("appended");
    for index in RECORDS.. {
        if child::hear().is_none() {
            return;
        }
        child::say(&format!("{:?}", append(index).map(drop)));
    }
}

/// Copies the files of a log, sharing their blocks; false where that cannot be.
fn share_blocks(log: &Path, with_control: bool) -> bool {
    let copy = log.with_extension("copy");
    std::fs::create_dir(&copy).unwrap();
    let mut files = crate::support::segment_files(log);
    files.extend(with_control.then(|| log.join("control")));
    let status = Command::new("cp").arg("--reflink=always").args(files).arg(&copy).status();
    status.is_ok_and(|status| status.success())
}

/// What `act` comes to: XFS frees the blocks of a removed file a moment later.
fn when_there_is_space<T>(act: impl Fn() -> vellum::Result<T>) -> T {
    let answer = until("the space is free again", || match act() {
        Err(error) if error.kind() == ErrorKind::NoSpace => None,
        answer => Some(answer),
    });
    answer.unwrap()
}

/// Takes every block of a disk.
fn fill_up(file: &Path) {
    let mut hog = File::create(file).unwrap();
    let mut piece = 1 << 20;
    while piece >= 512 {
        if hog.write_all(&vec![1; piece]).and_then(|()| hog.sync_data()).is_err() {
            piece /= 2;
        }
    }
}

#[test]
fn a_log_whose_blocks_are_shared_loses_nothing_on_a_full_disk() {
    let test = "a_log_whose_blocks_are_shared_loses_nothing_on_a_full_disk";
    let fills = [Fill::Pwrite, Fill::Mapped];
    for (fill, with_control) in fills.into_iter().flat_map(|fill| [(fill, false), (fill, true)]) {
        let Some(disk) = Mount::xfs(test) else { return };
        let path = disk.path().join("log");
        drop(
            Options::default()
                .tuning(Tuning::new().fill(fill).segment_capacity_bytes(16 << 20))
                .open(&path)
                .unwrap(),
        );
        let mut child = Child::start("append told", &[path.to_str().unwrap()]);
        child.expect("appended");
        if !share_blocks(&path, with_control) {
            return skip(test, "this filesystem shares no blocks");
        }
        let hog = disk.path().join("hog");
        fill_up(&hog);
        child.tell("append");
        child.expect(&format!("Err({:?})", ErrorKind::NoSpace));
        std::fs::remove_file(&hog).unwrap();
        drop(child);
        let log = when_there_is_space(|| Options::default().open(&path));
        assert!(payloads(&log) == (0..RECORDS).map(record).collect::<Vec<_>>(), "{fill}");
        log.append(&record(RECORDS)).unwrap();
        assert_sound(&log);
    }
}

/// Takes away all of the disk, has a commit fail, gives it back, and commits again.
fn commit_without_space(log: &Log, hog: &Path) {
    fill_up(hog);
    let lsn = log.append(&record(RECORDS)).unwrap();
    let error = log.commit(lsn).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NoSpace, "{error}");
    std::fs::remove_file(hog).unwrap();
    when_there_is_space(|| log.commit(lsn));
}

#[test]
fn a_commit_that_finds_no_block_is_an_error_and_the_log_goes_on() {
    let test = "a_commit_that_finds_no_block_is_an_error_and_the_log_goes_on";
    let Some(disk) = Mount::xfs(test) else { return };
    let path = disk.path().join("log");
    let log = Options::wal()
        .exclusive(false)
        .tuning(Tuning::new().segment_capacity_bytes(16 << 20))
        .open(&path)
        .unwrap();
    for index in 0..RECORDS {
        log.append_durable(&record(index)).unwrap();
    }
    if !share_blocks(&path, false) {
        return skip(test, "this filesystem shares no blocks");
    }
    commit_without_space(&log, &disk.path().join("hog"));
    log.append_durable(&record(RECORDS + 1)).unwrap();
    drop(log);
    let log = Options::default().open(&path).unwrap();
    assert!(payloads(&log) == (0..RECORDS + 2).map(record).collect::<Vec<_>>());
    assert_sound(&log);
}
