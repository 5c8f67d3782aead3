//! One process owns a log, until it closes it or dies.

use vellum::{CursorHold, ErrorKind, Log, Lsn, Options};

use crate::support::child::{self, Child};
use crate::support::{fork, place, scratch, until};

/// Opens a log for itself alone, and holds it until it is told to end.
pub(crate) fn own_a_log(arguments: &[String]) {
    let log = Options::wal().open(&arguments[0]).unwrap();
    log.append_durable(b"of the owner").unwrap();
    child::say("owns it");
    child::hear();
}

/// Opens a log with others.
pub(crate) fn share_a_log(arguments: &[String]) {
    let _log = Options::default().open(&arguments[0]).unwrap();
    child::say("shares it");
    child::hear();
}

/// Owns a log and forks a child, which appends when the owner is gone.
pub(crate) fn own_a_log_and_fork(arguments: &[String]) {
    let log = Options::wal().open(&arguments[0]).unwrap();
    let owner = std::process::id();
    let child = fork::fork(|| {
        let error = log.append(b"of the child").unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InUse);
        assert!(error.to_string().contains(&format!("process {owner} ")), "{error}");
        child::say("waits");
        until("the owner is gone", || log.append(b"of the child").ok());
        child::say("owns it");
        // SAFETY: waits for a signal.
        unsafe { libc::pause() };
        0
    });
    child::say(&child.to_string());
    child::hear();
}

/// Owns a log beside a forked child, which does nothing.
pub(crate) fn own_a_log_beside_a_child(arguments: &[String]) {
    let log = Options::wal().open(&arguments[0]).unwrap();
    log.append(b"of the owner").unwrap();
    let child = fork::fork(|| {
        // SAFETY: waits for a signal.
        unsafe { libc::pause() };
        0
    });
    child::say(&child.to_string());
    child::hear();
}

#[track_caller]
fn assert_in_use(opened: vellum::Result<Log>, pid: i32) {
    let error = opened.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InUse, "{error}");
    assert!(error.to_string().contains(&format!("process {pid} ")), "{error}");
    assert_eq!(error.option(), Some("exclusive"));
}

#[test]
fn a_log_has_one_owner_and_readers_and_shippers_come_in() {
    let dir = scratch();
    let path = place(&dir);
    let mut owner = Child::start("own a log", &[path.to_str().unwrap()]);
    owner.expect("owns it");
    assert_in_use(Options::wal().open(&path), owner.pid());
    assert_in_use(Options::wal().exclusive(false).open(&path), owner.pid());
    assert_in_use(Options::default().open(&path), owner.pid());

    let reader = Options::wal().read_only(true).open(&path).unwrap();
    assert_eq!(reader.reader(Lsn::ZERO).unwrap().next().unwrap().unwrap().payload, b"of the owner");
    assert_eq!(reader.stat().unwrap().participants.len(), 1);
    let beside = vellum::ship::open(&path).unwrap();
    beside.sync().unwrap();
    let cursor = beside.cursor("x", Lsn::ZERO).unwrap();
    cursor.hold(CursorHold::new()).unwrap();
    assert!(beside.ship().elect().unwrap().is_some());

    owner.signal(libc::SIGSTOP);
    assert_in_use(Options::wal().open(&path), owner.pid());
    owner.kill();
    let log = Options::wal().open(&path).unwrap();
    assert_in_use(Options::default().open(&path), std::process::id() as i32);
    drop(log);
    Options::default().open(&path).unwrap();
}

#[test]
fn who_wants_a_log_alone_is_kept_out_by_any_who_writes() {
    let dir = scratch();
    let path = place(&dir);
    let beside_nobody = vellum::ship::open(&path).unwrap_err();
    assert_eq!(beside_nobody.kind(), ErrorKind::NotFound, "it makes no log");
    for options in [Options::events(), Options::text()] {
        let dir = scratch();
        let path = place(&dir);
        options.open(&path).unwrap();
        let mut other = Child::start("share a log", &[path.to_str().unwrap()]);
        other.expect("shares it");
        let shared = options.open(&path).unwrap();
        drop(shared);
        let _beside = vellum::ship::open(&path).unwrap();
        assert_in_use(options.clone().exclusive(true).open(&path), other.pid());
        other.kill();
        options.exclusive(true).open(&path).unwrap().append(b"alone\n").unwrap();
    }
}

#[test]
fn a_child_of_the_owner_neither_appends_nor_keeps_the_log_from_the_next_owner() {
    let dir = scratch();
    let path = place(&dir);
    let mut owner = Child::start("own a log and fork", &[path.to_str().unwrap()]);
    let heard = [owner.hears().unwrap(), owner.hears().unwrap()];
    let child = heard.iter().find_map(|line| line.parse::<i32>().ok()).expect("its number");
    assert!(heard.contains(&"waits".into()), "{heard:?}");
    // No other process: the child becomes the owner, by its next append.
    owner.signal(libc::SIGKILL);
    owner.expect("owns it");
    assert_in_use(Options::wal().open(&path), child);
    // SAFETY: `kill` touches no memory.
    unsafe { libc::kill(child, libc::SIGKILL) };
    until("the child is gone", || Options::wal().open(&path).ok());
}

#[test]
fn a_child_that_does_not_append_does_not_keep_the_next_owner_out() {
    let dir = scratch();
    let path = place(&dir);
    let mut owner = Child::start("own a log beside a child", &[path.to_str().unwrap()]);
    let child: i32 = owner.hears().unwrap().parse().unwrap();
    owner.kill();
    let next = Options::wal().open(&path);
    // SAFETY: `kill` touches no memory.
    unsafe { libc::kill(child, libc::SIGKILL) };
    next.unwrap().append(b"of the next").unwrap();
}
