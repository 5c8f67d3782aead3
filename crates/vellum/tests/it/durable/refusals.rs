//! Which errors of a write or a sync end the commits of a log, and which do not: the table in
//! `docs/guarantees.md`.

use libc::{
    EACCES, EAGAIN, EDQUOT, EFBIG, EINVAL, EIO, EMFILE, ENFILE, ENODEV, ENOENT, ENOMEM, ENOSPC,
    ENOSYS, ENXIO, EOPNOTSUPP, EPERM, EROFS, ESTALE,
};
use vellum::{ErrorKind, Log, Options, Tuning};
use vellum_testing::kernel::where_it_fails;

use super::staged;
use crate::support::mount::Mount;
use crate::support::{payloads, place, read_all, scratch};

/// Of a way that does not go, or of a call that is not there.
const REFUSALS: [i32; 3] = [EINVAL, EOPNOTSUPP, ENOSYS];
/// Of the process that makes the call.
const OWN: [i32; 8] = [EMFILE, ENFILE, ENOMEM, EACCES, EPERM, EFBIG, EAGAIN, ENOENT];
/// Of a filesystem that takes new blocks where it writes over old ones.
const NO_SPACE: [i32; 2] = [ENOSPC, EDQUOT];
/// Of the device, or of a layer below the filesystem.
const OF_DEVICE: [i32; 5] = [EIO, EROFS, ENODEV, ENXIO, ESTALE];

/// Commits a record while `call` fails with `errno`; whether that ends the commits.
fn is_poisoned_by(options: &Options, call: libc::c_long, errno: i32) -> bool {
    let dir = scratch();
    let log = options.open(place(&dir)).unwrap();
    let before = log.append_durable(b"before\n").unwrap();
    let lsn = log.append(b"record\n").unwrap();
    let error = where_it_fails(call, errno, || log.commit(lsn).unwrap_err());
    assert_eq!(error.raw_os_error(), Some(errno), "{error}");
    assert_eq!(log.stat().unwrap().poison.is_some(), error.kind() == ErrorKind::Poisoned);
    if error.kind() != ErrorKind::Poisoned {
        log.commit(lsn).unwrap();
        assert!(log.durable() > before && log.append_durable(b"more\n").is_ok());
    }
    error.kind() == ErrorKind::Poisoned
}

#[test]
fn a_write_poisons_only_if_the_device_has_failed_it() {
    let poisoned = |errors: &[i32]| -> Vec<i32> {
        let is_poisoned = |errno: &i32| is_poisoned_by(&staged(), libc::SYS_pwrite64, *errno);
        errors.iter().copied().filter(is_poisoned).collect()
    };
    assert_eq!(poisoned(&REFUSALS), []);
    assert_eq!(poisoned(&OWN), []);
    assert_eq!(poisoned(&NO_SPACE), []);
    assert_eq!(poisoned(&OF_DEVICE), OF_DEVICE);
}

#[test]
fn a_sync_poisons_whatever_it_answers_if_there_is_such_a_call() {
    let text = Options::mapped_text();
    for errno in [&REFUSALS[..], &OWN, &NO_SPACE, &OF_DEVICE].concat() {
        let is_poisoned = is_poisoned_by(&text, libc::SYS_fdatasync, errno);
        assert_eq!(is_poisoned, errno != ENOSYS, "{errno}");
    }
}

/// Commits, and opens again what was committed.
fn commit_and_read(log: Log, place: &std::path::Path) {
    let records: Vec<_> = (0..40_u8).map(|number| vec![number; 900]).collect();
    for record in &records {
        log.append_durable(record).unwrap();
    }
    assert_eq!(payloads(&log), records);
    drop(log);
    assert_eq!(read_all(&Options::default().open(place).unwrap()).len(), records.len());
}

#[test]
fn direct_writes_that_are_refused_only_when_they_are_made_take_the_other_way() {
    let test = "direct_writes_that_are_refused_only_when_they_are_made_take_the_other_way";
    for path in ["dsync/512/2", "fdatasync/512/1"] {
        let Some(mount) = Mount::mergerfs(test, "cache.files=partial") else { return };
        let place = mount.path().join("log");
        let options = staged().tuning(Tuning::new().commit_path(path.parse().unwrap()));
        commit_and_read(options.open(&place).unwrap(), &place);
    }
}
