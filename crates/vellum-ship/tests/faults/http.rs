//! The commands against a server that answers wrongly.

use std::io::{BufRead, BufReader};
use std::process::Stdio;
use std::time::Duration;

use crate::kills;
use crate::ledger::record;
use crate::place::{Place, good, records_in, text};
use crate::writers::{KINDS, Kind};
use crate::wrong::{FAULTS, WrongServer};

/// How many of a hundred requests go wrong.
const RATE: u64 = 20;

pub(crate) fn place(server: &WrongServer) -> Place {
    Place::at("s3://bucket/app", server.environment())
}

pub(crate) fn append(place: &Place, kind: Kind, name: &str, count: u64) {
    let log = kind.open(&place.path("log"));
    for number in 0..count {
        log.append(record(name, number).as_bytes()).unwrap();
    }
    log.sync().unwrap();
}

/// The store is good when it is probed, and wrong from then on.
#[test]
fn what_is_acknowledged_through_wrong_answers_can_be_restored() {
    for (seed, kind) in (1..).zip(KINDS) {
        let server = WrongServer::start(seed, 0);
        let place = place(&server);
        append(&place, kind, "first", 10);
        good(&place.ship("log", &[]));
        server.set_rate(RATE);
        kills::run(&place, kind, seed);
    }
}

/// Each fault meets the shipper, and then the restore, where it can.
#[test]
fn a_log_is_shipped_and_restored_through_every_fault() {
    let server = WrongServer::start(7, 0);
    let place = place(&server);
    append(&place, Kind::Text, "first", 10);
    good(&place.ship("log", &[]));
    for fault in FAULTS {
        append(&place, Kind::Text, &format!("{fault:?}"), 100);
        server.go_wrong(fault);
        good(&place.ship("log", &[]));
        assert!(server.went_wrong(), "{fault:?} did not happen");
        server.go_wrong(fault);
        assert!(place.restored() == records_in(&place.path("log")), "{fault:?}");
    }
}

#[test]
fn a_follower_prints_each_record_once_through_wrong_answers() {
    let server = WrongServer::start(11, 0);
    let place = place(&server);
    append(&place, Kind::Text, "round0", 50);
    good(&place.ship("log", &[]));
    server.set_rate(RATE);
    let mut follower = place.command(&["cat", "-f", place.url()]);
    let mut follower = follower.stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(follower.stdout.take().unwrap()).lines();
    for round in 0..4 {
        for number in 0..50 {
            let line = lines.next().unwrap().unwrap() + "\n";
            assert_eq!(line, record(&format!("round{round}"), number));
        }
        append(&place, Kind::Text, &format!("round{}", round + 1), 50);
        good(&place.ship("log", &[]));
    }
    follower.kill().unwrap();
    follower.wait().unwrap();
}

/// A request without an answer is given up after its time, and made again.
#[test]
fn a_server_that_does_not_answer_is_asked_again() {
    let server = WrongServer::start(13, 0);
    let place = place(&server);
    append(&place, Kind::Mapped, "a", 50);
    good(&place.ship("log", &[]));
    append(&place, Kind::Mapped, "b", 50);
    server.be_silent(1);
    good(&place.ship("log", &[]));
    assert!(place.restored() == records_in(&place.path("log")));
}

#[test]
fn an_idle_log_makes_no_request() {
    let server = WrongServer::start(17, 0);
    let place = place(&server);
    append(&place, Kind::Mapped, "a", 50);
    let mut shipper = place.spawn("log", &[]);
    let log = Kind::Mapped.open(&place.path("log"));
    while log.ship().end() < log.durable() {
        assert_eq!(shipper.ended(), None);
        std::thread::yield_now();
    }
    let before = server.requests();
    // The shipper looks around each second.
    std::thread::sleep(Duration::from_millis(2500));
    assert_eq!(server.requests(), before);
    assert_eq!(shipper.ended(), None);
}

#[test]
fn wrong_credentials_are_an_error_that_says_so() {
    let server = WrongServer::start(19, 0);
    let mut environment = server.environment();
    for (name, value) in &mut environment {
        if name == "AWS_SECRET_ACCESS_KEY" {
            *value = "another-secret-altogether".to_string();
        }
    }
    let place = Place::at("s3://bucket/app", environment);
    append(&place, Kind::Mapped, "a", 5);
    let output = place.command(&["stat", place.url()]).output().unwrap();
    assert!(!output.status.success());
    assert!(!text(&output).contains("another-secret"), "{}", text(&output));
}
