//! Where files cannot be mapped: the error names the reason, or records go by system calls.

use std::fs;

use vellum::{ErrorKind, Fill, Layout, Options, Tuning};

use crate::support::child::{self, Child};
use crate::support::mount::Mount;
use crate::support::{assert_sound, become_nobody, is_root, open_to_all, payloads, place, scratch};

const RECORDS: usize = 50;

fn kinds() -> [Options; 3] {
    let of = |layout, fill| vellum::internal::options(layout).tuning(Tuning::new().fill(fill));
    [
        of(Layout::Framed, Fill::Mapped),
        of(Layout::Framed, Fill::Staged),
        of(Layout::Text, Fill::Mapped),
    ]
}

/// Has a process of another user lock all memory that it maps from now on, up to a limit.
fn lock_memory(limit: u64) {
    become_nobody();
    let limit = libc::rlimit { rlim_cur: limit, rlim_max: limit };
    // SAFETY: `limit` outlives the call, and locked memory is as good as any.
    unsafe {
        assert_eq!(libc::setrlimit(libc::RLIMIT_MEMLOCK, &raw const limit), 0);
        assert_eq!(libc::mlockall(libc::MCL_FUTURE), 0);
    }
}

/// Makes a log of a kind at the path, with 8 MiB of memory that may be locked: less than a segment.
pub(crate) fn append_with_locked_memory(arguments: &[String]) {
    lock_memory(8 << 20);
    let kind: usize = arguments[1].parse().unwrap();
    let log = kinds()[kind].open(&arguments[0]).unwrap();
    for _ in 0..RECORDS {
        log.append_durable(b"record\n").unwrap();
    }
    assert_eq!(payloads(&log).len(), RECORDS);
    child::say("done");
}

/// Says how a new log is refused that has no room for its shared words.
pub(crate) fn create_with_locked_memory(arguments: &[String]) {
    lock_memory(64 << 10);
    let error = Options::default().open(&arguments[0]).unwrap_err();
    child::say(&error.to_string());
}

#[test]
fn a_process_that_may_lock_no_more_memory_writes_by_system_calls() {
    if !is_root("a_process_that_may_lock_no_more_memory_writes_by_system_calls") {
        return;
    }
    for kind in 0..kinds().len() {
        let dir = scratch();
        open_to_all(dir.path());
        let (log, kind) = (place(&dir), kind.to_string());
        let mut child = Child::start("append with locked memory", &[log.to_str().unwrap(), &kind]);
        child.expect("done");
        child.finish_well();
        let log = Options::default().open(place(&dir)).unwrap();
        assert_eq!(payloads(&log).len(), RECORDS);
        assert_sound(&log);
    }
}

#[test]
fn the_error_names_the_limit_of_locked_memory_and_nothing_is_left() {
    if !is_root("the_error_names_the_limit_of_locked_memory_and_nothing_is_left") {
        return;
    }
    let dir = scratch();
    open_to_all(dir.path());
    let mut child = Child::start("create with locked memory", &[place(&dir).to_str().unwrap()]);
    let said = child.hears().unwrap();
    assert!(said.contains("mlockall") && said.contains("65536 bytes"), "{said}");
    child.finish_well();
    assert!(!place(&dir).exists());
}

#[test]
fn the_error_names_the_mount_option_and_nothing_is_left() {
    let test = "the_error_names_the_mount_option_and_nothing_is_left";
    let Some(mount) = Mount::mergerfs(test, "cache.files=off") else { return };
    for options in kinds() {
        let error = options.open(mount.path().join("log")).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unsupported, "{error}");
        assert!(error.to_string().contains("cache.files"), "{error}");
        assert_eq!(fs::read_dir(mount.path()).unwrap().count(), 0);
        fs::create_dir(mount.path().join("log")).unwrap();
        options.open(mount.path().join("log")).unwrap_err();
        assert_eq!(fs::read_dir(mount.path().join("log")).unwrap().count(), 0);
        fs::remove_dir(mount.path().join("log")).unwrap();
    }
}
