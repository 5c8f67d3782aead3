//! A sync that fails beside the commits: the kernel tells one caller, and the device may have lost
//! records that a commit was about to promise.

use libc::{EIO, ENOSPC, EPERM, EROFS};
use vellum::{ErrorKind, Log, Lsn, Options};
use vellum_testing::kernel::{where_empty_writes_fail, where_it_fails};

use super::staged;
use crate::support::mount::Mount;
use crate::support::{place, read_all, scratch, until};

/// Appends and commits `count` records.
fn commit_some(log: &Log, count: u64) -> vellum::Result<Lsn> {
    let mut last = Lsn::ZERO;
    for _ in 0..count {
        last = log.append_durable(&[b'a'; 900])?;
    }
    Ok(last)
}

/// The caller got the error of the failed sync, and all callers get it from now on.
fn assert_ends_commits(log: &Log, error: &vellum::Error, what: &str) {
    assert_eq!(error.raw_os_error(), Some(EIO), "{what}: {error}");
    assert_poisoned(log, what);
}

fn assert_poisoned(log: &Log, what: &str) {
    let error = log.append(b"more").expect_err(what);
    assert_eq!(error.kind(), ErrorKind::Poisoned, "{what}: {error}");
    assert_eq!(error.raw_os_error(), Some(EIO), "{what}");
    assert!(error.to_string().contains("could not sync"), "{error}");
    let another = Options::default().open(log.path()).unwrap_err();
    assert_eq!(another.kind(), ErrorKind::Poisoned, "{what}");
}

#[test]
fn a_segment_that_cannot_be_synced_ends_the_commits() {
    let dir = scratch();
    let log = staged().open(place(&dir)).unwrap();
    commit_some(&log, 1).unwrap();
    let error = where_it_fails(libc::SYS_fsync, EIO, || commit_some(&log, 100).unwrap_err());
    assert_ends_commits(&log, &error, "preparing a segment");
    let durable = log.durable();
    drop(log);
    let log = Options::default().open(place(&dir)).unwrap();
    assert!(log.published() >= durable);
    commit_some(&log, 30).unwrap();
    assert!(read_all(&log).len() > 30);
}

#[test]
fn a_segment_for_which_there_is_no_space_ends_nothing() {
    let dir = scratch();
    let log = staged().open(place(&dir)).unwrap();
    commit_some(&log, 1).unwrap();
    let error = where_it_fails(libc::SYS_fsync, ENOSPC, || commit_some(&log, 100).unwrap_err());
    assert_eq!(error.kind(), ErrorKind::NoSpace);
    commit_some(&log, 30).unwrap();
}

#[test]
fn a_trim_that_cannot_be_synced_ends_the_commits() {
    let dir = scratch();
    let log = staged().open(place(&dir)).unwrap();
    let before = commit_some(&log, 60).unwrap();
    let error = where_it_fails(libc::SYS_fdatasync, EIO, || log.trim(before).unwrap_err());
    assert_ends_commits(&log, &error, "a trim");
}

#[test]
fn a_truncation_that_cannot_be_synced_ends_the_commits() {
    let dir = scratch();
    let log = staged().open(place(&dir)).unwrap();
    let last = commit_some(&log, 3).unwrap();
    let error = where_it_fails(libc::SYS_fdatasync, EIO, || {
        until("the log can be had alone", || match log.truncate(last) {
            Err(error) if error.kind() == ErrorKind::Busy => None,
            answer => answer.err(),
        })
    });
    assert_ends_commits(&log, &error, "a truncation");
    drop(log);
    let log = Options::default().open(place(&dir)).unwrap();
    assert!(read_all(&log).len() >= 2);
    commit_some(&log, 3).unwrap();
}

#[test]
fn a_cursor_that_cannot_be_synced_ends_the_commits() {
    let dir = scratch();
    let log = staged().open(place(&dir)).unwrap();
    let lsn = commit_some(&log, 3).unwrap();
    let cursor = log.cursor("reader", Lsn::ZERO).unwrap();
    let error = where_it_fails(libc::SYS_fdatasync, EIO, || cursor.commit(lsn).unwrap_err());
    assert_ends_commits(&log, &error, "a cursor");
}

#[test]
fn a_log_in_which_nothing_is_committed_goes_on() {
    let dir = scratch();
    let log = Options::mapped_text().open(place(&dir)).unwrap();
    let lsn = log.append(b"a line").unwrap();
    let cursor = where_it_fails(libc::SYS_fsync, EIO, || log.cursor("reader", Lsn::ZERO));
    assert_eq!(cursor.unwrap_err().raw_os_error(), Some(EIO));
    log.append(b"another").unwrap();
    log.commit(lsn).unwrap();
}

#[test]
fn a_policy_that_cannot_be_synced_ends_the_commits() {
    let dir = scratch();
    let log = Options::mapped_text().open(place(&dir)).unwrap();
    log.append_durable(b"a line").unwrap();
    let change = || Options::default().retain_files(7).open(place(&dir)).unwrap_err();
    let error = where_it_fails(libc::SYS_fdatasync, EIO, change);
    assert_ends_commits(&log, &error, "a policy");
}

#[cfg(feature = "zstd")]
#[test]
fn a_compressed_file_that_cannot_be_synced_ends_the_commits() {
    let dir = scratch();
    let options = Options::mapped_text().compress(true);
    let log = options.open(place(&dir)).unwrap();
    log.append_durable(&[b'a'; 900]).unwrap();
    log.rotate().unwrap();
    where_it_fails(libc::SYS_fsync, EIO, || {
        let _ = (0..5).try_for_each(|_| log.append(&[b'b'; 900]).map(drop));
    });
    assert_poisoned(&log, "compressing a file");
}

#[test]
fn a_sync_that_succeeds_where_the_filesystem_has_stopped_is_not_believed() {
    let test = "a_sync_that_succeeds_where_the_filesystem_has_stopped_is_not_believed";
    let Some(disk) = Mount::ext4(test, 60) else { return };
    for (name, options) in [("mapped", Options::mapped_text()), ("written", Options::text())] {
        for errno in [EIO, EROFS] {
            let log = options.open(disk.path().join(format!("{name}-{errno}"))).unwrap();
            log.append_durable(b"a line").unwrap();
            let durable = log.durable();
            let error = where_empty_writes_fail(errno, || log.append_durable(b"more").unwrap_err());
            assert_eq!(error.kind(), ErrorKind::Poisoned, "{name}: {error}");
            assert_eq!(error.raw_os_error(), Some(errno), "{name}: {error}");
            assert_eq!(log.durable(), durable, "{name}");
        }
    }
}

/// XFS, and the filesystem below an overlay, are asked for an attribute.
#[test]
fn each_filesystem_is_asked_in_a_way_that_it_answers() {
    let test = "each_filesystem_is_asked_in_a_way_that_it_answers";
    let wal = || Options::wal().exclusive(false);
    for (disk, options) in [
        (Mount::ext4(test, 60), Options::mapped_text()),
        (Mount::xfs(test), Options::mapped_text()),
        (Mount::xfs(test), wal()),
        (Mount::overlay(test), Options::mapped_text()),
        (Mount::overlay(test), wal()),
    ] {
        let Some(disk) = disk else { return };
        let log = options.open(disk.path().join("log")).unwrap();
        let append = || log.append_durable(b"a line").map_err(|error| error.kind());
        append().unwrap();
        let answer = where_it_fails(libc::SYS_fgetxattr, EIO, append);
        assert_eq!(answer, Err(ErrorKind::Poisoned), "{options:?}");
    }
}

#[test]
fn a_question_that_is_refused_says_nothing_of_a_sync() {
    let dir = scratch();
    let log = Options::mapped_text().open(place(&dir)).unwrap();
    where_empty_writes_fail(EPERM, || log.append_durable(b"a line").unwrap());
    for call in [libc::SYS_fgetxattr, libc::SYS_fremovexattr] {
        let log = Options::mapped_text().open(dir.path().join(call.to_string())).unwrap();
        where_it_fails(call, EPERM, || log.append_durable(b"a line").unwrap());
    }
}
