//! Users with limited rights. Needs root, to become another user in a second process.

use std::fs::{self, Permissions};
use std::os::fd::AsRawFd;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use tempfile::TempDir;
use vellum::{ErrorKind, Lsn, Options};

use crate::support::child::{self, Child};
use crate::support::{
    LAYOUTS, PATIENCE, become_nobody, is_root, open_to_all, payloads, place, read_all, small,
};

/// A directory that every user can reach.
fn public_scratch() -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    open_to_all(dir.path());
    dir
}

/// Gives a log's directory and its files these permissions.
fn permit(log: &Path, directory: u32, files: u32) {
    for entry in fs::read_dir(log).unwrap() {
        fs::set_permissions(entry.unwrap().path(), Permissions::from_mode(files)).unwrap();
    }
    fs::set_permissions(log, Permissions::from_mode(directory)).unwrap();
}

/// Prints, as another user, the results of opening for writing and for reading.
pub(crate) fn try_as_nobody(arguments: &[String]) {
    become_nobody();
    for options in [Options::default(), Options::default().read_only(true)] {
        child::say(&match options.open(&arguments[0]) {
            Ok(log) => format!("reads {}", read_all(&log).len()),
            Err(error) => format!("{:?}", error.kind()),
        });
    }
}

fn answers_of_nobody(path: &Path) -> [String; 2] {
    let mut nobody = Child::start("try as nobody", &[path.to_str().unwrap()]);
    let answers = [nobody.hears().unwrap(), nobody.hears().unwrap()];
    nobody.finish_well();
    answers
}

#[test]
fn permissions_decide_who_may_read_and_who_may_write() {
    if !is_root("permissions_decide") {
        return;
    }
    for layout in LAYOUTS {
        let dir = public_scratch();
        let log = small(layout).open(place(&dir)).unwrap();
        log.append(b"record\n").unwrap();
        let denied = "PermissionDenied";
        for (directory, files, expected) in [
            (0o755, 0o644, [denied, "reads 1"]),
            (0o700, 0o644, [denied, denied]),
            (0o755, 0o600, [denied, denied]),
            // A read-only directory is no hindrance for readers, as long as no file has to be made
            // it is none for writers either.
            (0o755, 0o666, ["reads 1", "reads 1"]),
            (0o777, 0o666, ["reads 1", "reads 1"]),
        ] {
            permit(&place(&dir), directory, files);
            assert_eq!(answers_of_nobody(&place(&dir)), expected, "{directory:o} {files:o}");
        }
        log.append(b"goes on\n").unwrap();
        assert_eq!(payloads(&log).len(), 2);
    }
}

#[test]
fn a_log_cannot_be_created_where_one_may_not_write() {
    if !is_root("a_log_cannot_be_created") {
        return;
    }
    let dir = public_scratch();
    fs::set_permissions(dir.path(), Permissions::from_mode(0o755)).unwrap();
    assert_eq!(answers_of_nobody(&place(&dir)), ["PermissionDenied", "NotFound"]);
    assert!(!place(&dir).exists());
}

/// As another user with the right to read: locks all that can be locked, reads, follows.
pub(crate) fn lock_everything_as_nobody(arguments: &[String]) {
    become_nobody();
    let view = Options::default().read_only(true).open(&arguments[0]).unwrap();
    assert_eq!(
        Options::default().open(&arguments[0]).unwrap_err().kind(),
        ErrorKind::PermissionDenied
    );
    let files: Vec<fs::File> = fs::read_dir(&arguments[0])
        .unwrap()
        .filter_map(|entry| fs::File::open(entry.unwrap().path()).ok())
        .collect();
    assert!(!files.is_empty(), "some files may be read");
    for file in &files {
        lock_for_reading(file);
    }
    let mut reader = view.reader(Lsn::ZERO).unwrap();
    child::say("locked");
    for _ in 0..20 {
        let record = reader.follow(Some(PATIENCE)).unwrap().expect("in time");
        child::say(String::from_utf8_lossy(record.payload).trim_end());
    }
    child::hear();
}

/// Read locks of both sorts on every byte.
fn lock_for_reading(file: &fs::File) {
    for command in [libc::F_OFD_SETLK, libc::F_SETLK] {
        let lock = libc::flock {
            l_type: libc::F_RDLCK as libc::c_short,
            l_whence: libc::SEEK_SET as libc::c_short,
            l_start: 0,
            l_len: 0,
            l_pid: 0,
        };
        // SAFETY: `lock` outlives the call, and the descriptor is open.
        unsafe { libc::fcntl(file.as_raw_fd(), command, &raw const lock) };
    }
    // SAFETY: takes no memory; the descriptor is open.
    unsafe { libc::flock(file.as_raw_fd(), libc::LOCK_SH | libc::LOCK_NB) };
}

#[test]
fn a_reader_with_no_more_than_read_permission_holds_nobody_up() {
    if !is_root("a_reader_with_no_more_than_read_permission") {
        return;
    }
    for layout in LAYOUTS {
        let dir = public_scratch();
        let log = small(layout).mode(0o644).open(place(&dir)).unwrap();
        permit(&place(&dir), 0o755, 0o644);
        let path = place(&dir);
        let mut reader = Child::start("lock everything as nobody", &[path.to_str().unwrap()]);
        reader.expect("locked");
        // Writers fill many segments, come and go, and trim.
        for index in 0..20 {
            log.append(format!("{index}\n").as_bytes()).unwrap();
            reader.expect(&index.to_string());
        }
        for life in 0..5 {
            let mut newcomer =
                Child::start("append a few", &[path.to_str().unwrap(), &life.to_string()]);
            newcomer.expect("done");
            newcomer.finish_well();
            log.append(&[&[b'x'; 4000][..], b"\n"].concat()).unwrap();
        }
        log.trim(log.published()).unwrap();
        drop(log);
        let log = Options::default().open(&path).unwrap();
        log.append(b"last\n").unwrap();
        assert_eq!(payloads(&log), [b"last\n"]);
        reader.finish_well();
    }
}

#[test]
fn files_get_the_permissions_that_were_asked_for_and_the_umask_leaves() {
    for layout in LAYOUTS {
        let dir = tempfile::tempdir().unwrap();
        let log = small(layout).mode(0o640).open(place(&dir)).unwrap();
        for _ in 0..20 {
            log.append(&[&[b'x'; 1000][..], b"\n"].concat()).unwrap();
        }
        for entry in fs::read_dir(place(&dir)).unwrap() {
            let entry = entry.unwrap();
            if entry.file_type().unwrap().is_symlink() {
                continue;
            }
            let mode = entry.metadata().unwrap().permissions().mode() & 0o777;
            assert_eq!(mode & !0o660, 0, "{:?} has {mode:o}", entry.file_name());
            assert_eq!(mode & 0o600, 0o600, "{:?} has {mode:o}", entry.file_name());
        }
        let mode = place(&dir).metadata().unwrap().permissions().mode() & 0o777;
        assert_eq!(mode & 0o007, 0, "the directory has {mode:o}");
    }
    let dir = tempfile::tempdir().unwrap();
    for mode in [0o444, 0o1666, 0o200] {
        let error = Options::mapped_text().mode(mode).open(place(&dir)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidOption);
    }
}
