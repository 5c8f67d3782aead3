//! Waiting until something is shipped.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use vellum::ship::ShipStatus;
use vellum::{ErrorKind, Layout, Lsn, Options};

use super::append;
use crate::durable::kinds;
use crate::support::child::Child;
use crate::support::{LAYOUTS, Over, place, scratch, small, until};

const LONG: Duration = Duration::from_secs(60);

#[test]
fn a_remote_commit_returns_when_the_record_is_shipped() {
    for options in kinds() {
        let dir = scratch();
        let log = options.open(place(&dir)).unwrap();
        let shipper = log.ship().elect().unwrap().unwrap();
        let is_over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let mut from = log.begin();
                loop {
                    let durable = shipper.durable().unwrap();
                    if durable > from {
                        shipper.set_shipped(durable).unwrap();
                        from = durable;
                    }
                    // Now, not before: an append after the end would wake it no more.
                    if is_over.load(Ordering::SeqCst) {
                        break;
                    }
                    shipper.wait(from, LONG);
                }
            });
            let over = Over(&is_over);
            let threads: Vec<_> = (0..8)
                .map(|seed| {
                    let log = &log;
                    scope.spawn(move || {
                        for index in 0..50 {
                            let record = format!("{seed} {index}\n");
                            let lsn = log.append(record.as_bytes()).unwrap();
                            log.ship().commit(lsn).unwrap();
                            // In this order: both grow meanwhile.
                            let shipped = log.ship().end();
                            assert!(lsn < shipped && shipped <= log.durable());
                        }
                    })
                })
                .collect();
            threads.into_iter().for_each(|thread| thread.join().unwrap());
            drop(over);
            let lsn = log.append(b"the last\n").unwrap();
            log.commit(lsn).unwrap();
            // Wakes the shipper once more.
            let _ = log.ship().wait(lsn, Some(Duration::from_millis(1)));
        });
    }
}

#[test]
fn nobody_waits_for_a_shipper_that_is_not_there() {
    for layout in LAYOUTS {
        let dir = scratch();
        let log = small(layout).timeout(LONG).open(place(&dir)).unwrap();
        let lsn = append(&log, 1, 0, 100)[0].0;
        let remote = || log.ship().commit(lsn).unwrap_err();
        assert_eq!(remote().kind(), ErrorKind::NoShipper, "{}", remote());
        assert!(log.durable() > lsn, "it is committed here");
        log.commit(lsn).unwrap();
        let mut other = Child::start("ship until killed", &[place(&dir).to_str().unwrap()]);
        other.expect("ships");
        let error = log.ship().wait(lsn, Some(Duration::from_millis(1))).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::TimedOut);
        assert!(error.to_string().contains("durable here"), "{error}");
        let beyond = log.ship().wait(log.tail(), None).unwrap_err();
        assert_eq!(beyond.kind(), ErrorKind::OutOfRange);
        // It dies while a process waits, and wakes no waiter.
        std::thread::scope(|scope| {
            let waiter = scope.spawn(|| log.ship().wait(lsn, Some(LONG)));
            other.kill();
            let error = waiter.join().unwrap().unwrap_err();
            assert_eq!(error.kind(), ErrorKind::NoShipper, "{error}");
        });
        let reader = Options::default().read_only(true).open(place(&dir)).unwrap();
        let error = reader.ship().wait(lsn, Some(LONG)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NoShipper, "{error}");
    }
}

#[test]
fn what_a_dead_shipper_has_said_holds() {
    let dir = scratch();
    let log = small(Layout::Framed).open(place(&dir)).unwrap();
    let lsn = append(&log, 1, 0, 100)[0].0;
    let end = log.sync().unwrap();
    let (path, end_text) = (place(&dir), end.to_string());
    let arguments = [path.to_str().unwrap(), &end_text];
    let mut other = Child::start("ship until killed", &arguments);
    other.expect("ships");
    other.kill();
    assert_eq!(log.ship().wait(lsn, None).unwrap(), end);
    let reader = Options::default().read_only(true).open(place(&dir)).unwrap();
    assert_eq!(reader.ship().wait(lsn, None).unwrap(), end);
}

#[test]
fn a_fence_wakes_those_who_wait() {
    let dir = scratch();
    let log = small(Layout::Framed).open(place(&dir)).unwrap();
    let shipper = log.ship().elect().unwrap().unwrap();
    let lsn = append(&log, 1, 0, 100)[0].0;
    std::thread::scope(|scope| {
        let waiter = scope.spawn(|| log.ship().commit(lsn));
        until("somebody to wait", || (shipper.wanted() > lsn).then_some(()));
        shipper.set_status(ShipStatus::Fenced, None).unwrap();
        assert_eq!(waiter.join().unwrap().unwrap_err().kind(), ErrorKind::Fenced);
    });
    drop(shipper);
    // Until another one ships.
    assert_eq!(log.ship().wait(lsn, None).unwrap_err().kind(), ErrorKind::Fenced);
    let shipper = log.ship().elect().unwrap().unwrap();
    shipper.set_shipped(shipper.durable().unwrap()).unwrap();
    log.ship().wait(lsn, None).unwrap();
}

#[test]
fn half_a_record_is_not_shipped() {
    let dir = scratch();
    let log = small(Layout::Framed).open(place(&dir)).unwrap();
    log.append(b"before").unwrap();
    let lsn = log.append(&[1; 50_000]).unwrap();
    let shipper = log.ship().elect().unwrap().unwrap();
    let durable = shipper.durable().unwrap();
    let (mut at, mut buf) = (shipper.begin(), vec![0; 5000]);
    let soon = || log.ship().wait(lsn, Some(Duration::ZERO));
    while at < durable {
        assert_eq!(soon().unwrap_err().kind(), ErrorKind::TimedOut);
        at = shipper.read(at, &mut buf).unwrap().next;
        shipper.set_shipped(at).unwrap();
        assert_eq!(log.ship().end(), at);
    }
    assert_eq!(soon().unwrap(), durable);
}

#[test]
fn a_truncation_takes_back_what_was_shipped() {
    let dir = scratch();
    let log = small(Layout::Framed).open(place(&dir)).unwrap();
    let records = append(&log, 20, 0, 100);
    let shipper = log.ship().elect().unwrap().unwrap();
    shipper.set_shipped(shipper.durable().unwrap()).unwrap();
    log.truncate(records[10].0).unwrap();
    assert_eq!(log.ship().end(), records[10].0);
    assert_eq!(shipper.wanted(), Lsn::ZERO);
    let lsn = log.append(b"instead").unwrap();
    let error = log.ship().wait(lsn, Some(Duration::ZERO)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TimedOut);
}

#[test]
fn a_position_that_was_lost_is_never_shipped() {
    let dir = scratch();
    let log = small(Layout::Framed).open(place(&dir)).unwrap();
    let records = append(&log, 200, 0, 100);
    let shipper = log.ship().elect().unwrap().unwrap();
    shipper.durable().unwrap();
    log.trim(records[150].0).unwrap();
    shipper.set_gap(Lsn::new(4096), log.begin()).unwrap();
    shipper.set_shipped(shipper.durable().unwrap()).unwrap();
    let waited = |index: usize| log.ship().wait(records[index].0, None).map_err(|e| e.kind());
    assert_eq!(waited(100).unwrap_err(), ErrorKind::Trimmed);
    waited(160).unwrap();
}
