//! What one process is short of (descriptors, a right, room under its own limits) is that process's
//! error: it holds up no other, and poisons nothing.

use std::path::Path;

use vellum::{Fill, Layout, Log, Lsn, Options};

use crate::support::child::{self, Child};
use crate::support::{assert_sound, become_nobody, is_root, payload, payloads, place, scratch};

/// Every way to fill, with small segments.
fn kinds() -> [(&'static str, Options); 5] {
    let of = |layout, fill| Options::new().layout(layout).fill(fill).segment_capacity_bytes(16384);
    [
        ("staged", of(Layout::Framed, Fill::Staged)),
        ("mapped", of(Layout::Framed, Fill::Mapped)),
        ("pwrite", of(Layout::Framed, Fill::Pwrite)),
        ("mapped text", of(Layout::Text, Fill::Mapped)),
        ("pwrite text", of(Layout::Text, Fill::Pwrite)),
    ]
}

/// Lowers a limit of this process, or gives it back.
fn limit(resource: libc::__rlimit_resource_t, value: Option<u64>) {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: `limit` outlives the calls.
    unsafe {
        assert_eq!(libc::getrlimit(resource, &raw mut limit), 0);
        limit.rlim_cur = value.unwrap_or(limit.rlim_max);
        assert_eq!(libc::setrlimit(resource, &raw const limit), 0);
    }
}

/// No file can be opened any more; those that are open stay so.
fn without_descriptors<T>(act: impl FnOnce() -> T) -> T {
    limit(libc::RLIMIT_NOFILE, Some(3));
    let answer = act();
    limit(libc::RLIMIT_NOFILE, None);
    answer
}

fn record(log: &Log, seed: u64) -> Vec<u8> {
    payload(log.layout(), seed, 1000)
}

fn says(answer: &vellum::Result<Lsn>) {
    match answer {
        Ok(_) => child::say("done"),
        Err(error) => child::say(&format!("{:?} {:?}", error.kind(), error.raw_os_error())),
    }
}

/// Appends without descriptors until that fails; lives on, and appends again.
pub(crate) fn append_without_descriptors(arguments: &[String]) {
    let log = Options::new().open(&arguments[0]).unwrap();
    let record = record(&log, 1);
    log.append(&record).unwrap();
    without_descriptors(|| {
        let answer = (0..100).map(|_| log.append(&record)).find(Result::is_err);
        says(&answer.expect("a segment has to be opened"));
        child::hear();
    });
    log.append(&record).unwrap();
    child::say("appended");
    child::hear();
}

/// Commits, and lives on.
pub(crate) fn commit_once(arguments: &[String]) {
    let log = Options::new().open(&arguments[0]).unwrap();
    says(&log.append_durable(&record(&log, 3)));
    child::hear();
}

fn others_commit(log: &Path, case: &str) {
    let mut other = Child::start("commit once", &[log.to_str().unwrap()]);
    assert_eq!(other.hears().as_deref(), Some("done"), "{case}");
    other.finish_well();
}

#[test]
fn an_append_without_descriptors_reserves_nothing() {
    for (case, options) in kinds() {
        let dir = scratch();
        let log = options.open(place(&dir)).unwrap();
        log.append(&record(&log, 0)).unwrap();
        let path = place(&dir);
        let mut short = Child::start("append without descriptors", &[path.to_str().unwrap()]);
        let answer = short.hears().unwrap();
        assert_eq!(answer, format!("Io Some({})", libc::EMFILE), "{case}");
        assert_eq!(log.published(), log.tail(), "{case}: nothing is left reserved");
        others_commit(&path, case);
        short.tell("go on");
        short.expect("appended");
        short.finish_well();
        assert!(payloads(&log).contains(&record(&log, 3)), "{case}");
        assert_sound(&log);
    }
}

/// Creates a log as another user, and commits.
pub(crate) fn commit_as_nobody(arguments: &[String]) {
    become_nobody();
    for (case, options) in kinds() {
        let log = options.open(Path::new(&arguments[0]).join(case)).unwrap();
        says(&log.append_durable(&record(&log, 1)));
    }
}

#[test]
fn a_parent_that_cannot_be_read_is_no_reason_to_fail() {
    use std::os::unix::fs::PermissionsExt;
    if !is_root("a_parent_that_cannot_be_read") {
        return;
    }
    let dir = tempfile::tempdir_in("/tmp").unwrap();
    let mode = std::fs::Permissions::from_mode(0o733);
    std::fs::set_permissions(dir.path(), mode).unwrap();
    let mut other = Child::start("commit as nobody", &[dir.path().to_str().unwrap()]);
    for (case, _) in kinds() {
        assert_eq!(other.hears().as_deref(), Some("done"), "{case}");
    }
    other.finish_well();
}
