//! The owner of a cursor: one process, until it dies.

use std::cell::RefCell;

use vellum::{CursorHold, ErrorKind, Layout, Lsn, Options};

use super::{append, only};
use crate::support::child::{self, Child};
use crate::support::{LAYOUTS, fork, place, scratch, small, until};

/// Owns the cursor `x` of a log until it is told to end.
pub(crate) fn own_a_cursor(arguments: &[String]) {
    let log = Options::default().open(&arguments[0]).unwrap();
    let cursor = log.cursor("x", Lsn::ZERO).unwrap();
    cursor.own().unwrap();
    child::say("owns it");
    child::hear();
}

/// Appends, and commits the cursor `x` behind every record; says where it is.
pub(crate) fn commit_all_the_time(arguments: &[String]) {
    let log = Options::default().open(&arguments[0]).unwrap();
    let cursor = log.cursor("x", Lsn::ZERO).unwrap();
    loop {
        log.append(b"one more\n").unwrap();
        let end = log.published();
        cursor.commit(end).unwrap();
        child::say(&end.to_string());
    }
}

/// Forks a child that lives on beside an owned cursor, and is killed.
pub(crate) fn fork_beside_an_owned_cursor(arguments: &[String]) {
    let log = Options::default().open(&arguments[0]).unwrap();
    let cursor = log.cursor("x", Lsn::ZERO).unwrap();
    cursor.own().unwrap();
    let cursor = RefCell::new(Some(cursor));
    let child = fork::fork(|| {
        // The parent owns it, and not its child.
        let cursor = cursor.take().unwrap();
        let error = cursor.commit(log.published()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Busy);
        drop(cursor);
        child::say("the child is there");
        // SAFETY: waits for a signal.
        unsafe { libc::pause() };
        0
    });
    child::say(&child.to_string());
    child::hear();
}

#[test]
fn one_process_owns_a_cursor_and_others_cannot_change_it() {
    for layout in LAYOUTS {
        let dir = scratch();
        let log = small(layout).open(place(&dir)).unwrap();
        append(&log, 10, 0);
        let cursor = log.cursor("x", Lsn::ZERO).unwrap();
        assert!(!only(&log).is_owned);
        let mut owner = Child::start("own a cursor", &[place(&dir).to_str().unwrap()]);
        owner.expect("owns it");
        let stat = only(&log);
        assert_eq!((stat.is_owned, stat.owner), (true, Some(owner.pid() as u32)));
        let end = log.published();
        let refused = [
            cursor.own(),
            cursor.commit(end),
            cursor.set(end),
            cursor.hold(CursorHold::new()),
            log.cursor("x", Lsn::ZERO).unwrap().remove(),
        ];
        for error in refused {
            let error = error.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Busy);
            assert!(error.to_string().contains(&owner.pid().to_string()), "{error}");
        }
        assert_eq!(cursor.reader().unwrap().next().unwrap().unwrap().lsn, log.begin());
        owner.kill();
        cursor.own().unwrap();
        let stat = only(&log);
        assert_eq!((stat.is_owned, stat.owner), (true, Some(std::process::id())));
        cursor.commit(end).unwrap();
        let other = log.cursor("x", Lsn::ZERO).unwrap();
        assert_eq!(other.own().unwrap_err().kind(), ErrorKind::Busy, "another handle is another");
        cursor.own().unwrap();
        cursor.disown();
        other.own().unwrap();
        drop(other);
        cursor.set(Lsn::ZERO).unwrap();
    }
}

#[test]
fn a_forked_child_neither_owns_nor_keeps_the_cursor_of_its_parent() {
    let dir = scratch();
    let log = small(Layout::Text).open(place(&dir)).unwrap();
    append(&log, 10, 0);
    let cursor = log.cursor("x", Lsn::ZERO).unwrap();
    let arguments = [place(&dir).to_str().unwrap().to_owned()];
    let mut owner = Child::start("fork a child beside an owned cursor", &[&arguments[0]]);
    let heard = [owner.hears().unwrap(), owner.hears().unwrap()];
    let child = heard.iter().find_map(|line| line.parse::<i32>().ok()).expect("the child's number");
    assert!(heard.contains(&"the child is there".into()), "{heard:?}");
    assert_eq!(cursor.own().unwrap_err().kind(), ErrorKind::Busy, "the parent owns it");
    owner.kill();
    let owned = cursor.own();
    // SAFETY: `kill` touches no memory.
    unsafe { libc::kill(child, libc::SIGKILL) };
    owned.unwrap();
}

/// After a process was killed in the middle of a commit, the cursor is where it was acknowledged,
/// or one commit further.
#[test]
fn a_killed_committer_leaves_the_cursor_where_it_was_acknowledged() {
    let dir = scratch();
    let log = small(Layout::Framed).open(place(&dir)).unwrap();
    let cursor = log.cursor("x", Lsn::ZERO).unwrap();
    for round in 0..8 {
        let mut committer =
            Child::start("commit a cursor all the time", &[place(&dir).to_str().unwrap()]);
        let mut acknowledged = Lsn::ZERO;
        for _ in 0..=3 * round {
            acknowledged = committer.hears().unwrap().parse().unwrap();
        }
        committer.signal(libc::SIGKILL);
        while let Some(said) = committer.hears() {
            acknowledged = said.parse().unwrap();
        }
        committer.kill();
        let position = cursor.position().unwrap();
        assert!(position >= acknowledged, "{position} is before {acknowledged}");
        assert!(position <= log.published());
        until("nobody changes cursors", || cursor.commit(position).ok());
    }
}
