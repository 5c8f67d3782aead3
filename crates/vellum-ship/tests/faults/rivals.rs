//! Two that ship the same log: on one machine, and from two copies of its directory.

use vellum::ship::ShipStatus;

use crate::ledger::{Ledger, record};
use crate::place::{Place, good, records_in};
use crate::server::{SECRET, versitygw};
use crate::writers::{KINDS, Kind, Writer};
use crate::wrong::WrongServer;

const ROUNDS: u64 = 6;

/// Several wait while one ships; when it dies, another one continues.
#[test]
fn shippers_of_one_directory_take_turns() {
    for kind in KINDS {
        let place = Place::new();
        drop(kind.open(&place.path("log")));
        let mut ledger = Ledger::default();
        let mut shippers: Vec<_> = (0..3).map(|_| place.spawn("log", &[])).collect();
        let mut writer = Writer::start(&place.path("log"), kind, "writer", "remote");
        for round in 0..ROUNDS {
            writer.hear(&mut ledger, 3);
            shippers.remove(round as usize % 3).kill();
            shippers.insert(0, place.spawn("log", &[]));
        }
        writer.hear(&mut ledger, 3);
        writer.kill(&mut ledger);
        shippers.iter_mut().for_each(|shipper| assert_eq!(shipper.ended(), None));
        ledger.check(&place.restored());
    }
}

/// Both continue from the same state. One of them wins, and everything that it acknowledged is
/// there; the other one has acknowledged nothing and prints why it ends.
fn copies(place: &Place, kind: Kind) {
    let log = kind.open(&place.path("log"));
    for number in 0..100 {
        log.append(record("common", number).as_bytes()).unwrap();
    }
    log.sync().unwrap();
    good(&place.ship("log", &[]));
    drop(log);
    place.copy("log", "clone");
    let names = ["log", "clone"];
    let start = |name| Writer::start(&place.path(name), kind, name, "remote");
    let mut writers = names.map(start);
    let mut ledgers = [Ledger::default(), Ledger::default()];
    let mut shippers = names.map(|name| place.spawn(name, &[]));
    let loser = loop {
        match shippers.iter_mut().position(|shipper| shipper.ended().is_some()) {
            Some(index) => break index,
            None => std::thread::yield_now(),
        }
    };
    let winner = 1 - loser;
    let said = shippers[loser].ended().unwrap();
    let status = kind.open(&place.path(names[loser])).ship().state().unwrap().status;
    assert_eq!(status, ShipStatus::Diverged, "everybody can see why");
    assert!(!shippers[loser].wait().success());
    assert!(said.contains("something else") || said.contains("another copy"), "{said}");
    writers[winner].hear(&mut ledgers[winner], 5);
    for (writer, ledger) in writers.into_iter().zip(&mut ledgers) {
        writer.kill(ledger);
    }
    assert_eq!(shippers[winner].ended(), None);
    shippers[winner].kill();
    kind.open(&place.path(names[winner])).sync().unwrap();
    good(&place.ship(names[winner], &[]));
    assert!(!place.ship(names[loser], &[]).status.success(), "it stays stopped");
    assert_eq!(ledgers[loser].total(), 0);
    let restored = place.restored();
    ledgers[winner].check(&restored);
    assert!(restored == records_in(&place.path(names[winner])), "{kind:?}");
}

#[test]
fn of_two_copies_one_is_stopped_at_the_first_difference() {
    KINDS.into_iter().for_each(|kind| copies(&Place::new(), kind));
}

#[test]
fn of_two_copies_one_is_stopped_on_a_server() {
    let Some(server) = versitygw() else { return };
    copies(&Place::at("s3://bucket/app", server.environment(SECRET)), Kind::Mapped);
}

#[test]
fn of_two_copies_one_is_stopped_through_wrong_answers() {
    for (seed, kind) in (1..).zip(KINDS) {
        let server = WrongServer::start(seed, 0);
        let place = Place::at("s3://bucket/app", server.environment());
        drop(kind.open(&place.path("log")));
        good(&place.ship("log", &[]));
        server.set_rate(10);
        copies(&place, kind);
    }
}
