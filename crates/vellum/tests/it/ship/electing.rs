//! The shipper: one process, until it dies; and the records that the log keeps for it.

use std::cell::RefCell;

use vellum::ship::{ShipFault, ShipStatus};
use vellum::{ErrorKind, Layout, Options};

use super::append;
use crate::support::child::{self, Child};
use crate::support::{LAYOUTS, fork, place, scratch, small};

/// Ships in name until it is killed.
pub(crate) fn ship_until_killed(arguments: &[String]) {
    let log = Options::default().open(&arguments[0]).unwrap();
    let shipper = log.ship().elect().unwrap().unwrap();
    if let Some(end) = arguments.get(1) {
        shipper.set_shipped(end.parse::<u64>().map(vellum::Lsn::new).unwrap()).unwrap();
    }
    child::say("ships");
    child::hear();
}

/// Forks a child that lives on beside a shipper, and is killed.
pub(crate) fn fork_beside_a_shipper(arguments: &[String]) {
    let log = Options::default().open(&arguments[0]).unwrap();
    let shipper = RefCell::new(log.ship().elect().unwrap());
    let child = fork::fork(|| {
        let shipper = shipper.take().unwrap();
        let error = shipper.set_shipped(log.begin()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Busy);
        assert_eq!(shipper.durable().unwrap_err().kind(), ErrorKind::Busy);
        // Neither does it take the right away from its parent.
        drop(shipper);
        assert!(log.ship().elect().unwrap().is_none());
        assert_eq!(log.ship().state().unwrap().status, ShipStatus::Running);
        child::say("the child is there");
        // SAFETY: waits for a signal.
        unsafe { libc::pause() };
        0
    });
    child::say(&child.to_string());
    child::hear();
}

#[test]
fn what_a_shipper_saved_the_next_one_loads() {
    let dir = scratch();
    let log = small(Layout::Framed).open(place(&dir)).unwrap();
    let shipper = log.ship().elect().unwrap().unwrap();
    assert_eq!(shipper.load().unwrap(), None);
    shipper.save(b"old").unwrap();
    shipper.save(b"new").unwrap();
    assert_eq!(shipper.save(&[0; 1 << 20]).unwrap_err().kind(), ErrorKind::InvalidOption);
    drop(shipper);
    let shipper = log.ship().elect().unwrap().unwrap();
    assert_eq!(shipper.load().unwrap().as_deref(), Some(&b"new"[..]));
    let file = std::fs::File::create(place(&dir).join("ship")).unwrap();
    file.set_len(1 << 40).unwrap();
    assert_eq!(shipper.load().unwrap_err().kind(), ErrorKind::Corrupt);
}

#[test]
fn one_process_ships_until_it_dies() {
    for layout in LAYOUTS {
        let dir = scratch();
        let log = small(layout).open(place(&dir)).unwrap();
        let mut other = Child::start("ship until killed", &[place(&dir).to_str().unwrap()]);
        other.expect("ships");
        assert!(log.ship().elect().unwrap().is_none());
        let state = log.ship().state().unwrap();
        assert_eq!((state.status, state.pid), (ShipStatus::Running, Some(other.pid() as u32)));
        other.kill();
        let state = log.ship().state().unwrap();
        assert_eq!((state.status, state.pid), (ShipStatus::None, None));
        let shipper = log.ship().elect().unwrap().unwrap();
        assert_eq!(log.ship().state().unwrap().pid, Some(std::process::id()));
        assert!(log.ship().elect().unwrap().is_none(), "nor does this process twice");
        drop(shipper);
        assert!(log.ship().elect().unwrap().is_some());
    }
}

#[test]
fn a_forked_child_does_not_ship() {
    let dir = scratch();
    let log = small(Layout::Framed).open(place(&dir)).unwrap();
    let mut parent =
        Child::start("fork a child beside a shipper", &[place(&dir).to_str().unwrap()]);
    let heard = [parent.hears().unwrap(), parent.hears().unwrap()];
    let child = heard.iter().find_map(|line| line.parse::<i32>().ok()).expect("its number");
    assert!(heard.contains(&"the child is there".into()), "{heard:?}");
    assert!(log.ship().elect().unwrap().is_none(), "the parent ships");
    parent.kill();
    let elected = log.ship().elect().unwrap();
    // SAFETY: `kill` touches no memory.
    unsafe { libc::kill(child, libc::SIGKILL) };
    assert!(elected.is_some(), "the child lives, and holds nothing");
}

#[test]
fn a_reader_sees_how_shipping_goes() {
    let dir = scratch();
    let log = small(Layout::Framed).open(place(&dir)).unwrap();
    append(&log, 100, 0, 100);
    let shipper = log.ship().elect().unwrap().unwrap();
    let end = shipper.durable().unwrap();
    shipper.set_shipped(log.begin()).unwrap();
    assert_eq!(log.ship().figures().unwrap(), None);
    shipper.set_figures(b"three puts").unwrap();
    shipper.set_figures(b"seven puts").unwrap();
    let error = shipper.set_figures(&[0; 4097]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidOption);
    shipper.set_status(ShipStatus::Retrying, Some((ShipFault::Throttled, 503))).unwrap();
    let reader = Options::default().read_only(true).open(place(&dir)).unwrap();
    let state = reader.ship().state().unwrap();
    assert_eq!(state.status, ShipStatus::Retrying);
    assert_eq!(state.fault, Some((ShipFault::Throttled, 503)));
    assert_eq!(reader.ship().figures().unwrap().unwrap(), b"seven puts");
    assert_eq!((state.shipped, reader.ship().end()), (log.begin(), log.begin()));
    assert_eq!(state.lag_bytes, end.get() - log.begin().get());
    assert_eq!(reader.ship().elect().unwrap_err().kind(), ErrorKind::ReadOnly);
}

#[test]
fn what_was_not_shipped_is_kept_while_nobody_ships() {
    for layout in LAYOUTS {
        let dir = scratch();
        let log = small(layout).open(place(&dir)).unwrap();
        let records = append(&log, 200, 0, 100);
        let shipper = log.ship().elect().unwrap().unwrap();
        shipper.durable().unwrap();
        shipper.hold(log.begin(), None).unwrap();
        let held_from = || log.ship().state().unwrap().held_from.unwrap();
        shipper.release(records[100].0).unwrap();
        assert_eq!(held_from(), log.begin(), "nothing is shipped yet");
        shipper.set_shipped(log.durable()).unwrap();
        shipper.release(records[100].0).unwrap();
        assert_eq!(held_from(), records[100].0);
        // A position inside of a record keeps the record.
        shipper.release(vellum::Lsn::new(records[103].0.get() + 8)).unwrap();
        assert_eq!(log.ship().detach().unwrap_err().kind(), ErrorKind::Busy);
        drop(shipper);
        drop(log);
        let log = Options::default().open(place(&dir)).unwrap();
        assert!(log.ship().state().unwrap().held_from.unwrap() <= records[104].0);
        log.trim(records[190].0).unwrap();
        assert!(log.begin() <= records[104].0, "{} {}", log.begin(), records[104].0);
        assert!(log.ship().detach().unwrap());
        assert!(!log.ship().detach().unwrap());
        log.trim(records[190].0).unwrap();
        assert!(log.begin() > records[104].0);
        assert_eq!(log.ship().state().unwrap().held_from, None);
    }
}

#[test]
fn no_more_is_kept_than_was_allowed() {
    let dir = scratch();
    let log = small(Layout::Framed).open(place(&dir)).unwrap();
    append(&log, 200, 0, 100);
    let shipper = log.ship().elect().unwrap().unwrap();
    shipper.durable().unwrap();
    shipper.hold(log.begin(), Some(8192)).unwrap();
    let end = log.published();
    log.trim(end).unwrap();
    assert!(log.begin() > vellum::Lsn::new(4096) && log.begin().get() + 8192 >= end.get() - 4096);
    // The next one continues behind the removed records.
    drop(shipper);
    let shipper = log.ship().elect().unwrap().unwrap();
    shipper.hold(log.begin(), Some(8192)).unwrap();
    assert_eq!(log.ship().state().unwrap().held_from, Some(log.begin()));
}
