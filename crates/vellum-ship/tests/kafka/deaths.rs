//! Deaths: of the shipper, of the broker, of none of two.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rustix::process::Signal;
use vellum_testing::Over;

use crate::broker::{Broker, shared};
use crate::place::{Place, fill, good, records, refused, sent, signal};

/// `VELLUM_SHIP_KILLS` says how often.
fn kills(few: u64) -> u64 {
    std::env::var("VELLUM_SHIP_KILLS").ok().and_then(|text| text.parse().ok()).unwrap_or(few)
}

/// Deaths at its beginning, after any number of sends, and in between at any moment.
#[test]
fn a_shipper_that_is_killed_again_and_again_loses_and_doubles_nothing() {
    let Some(broker) = shared() else { return };
    let place = Place::new(broker, "killed", 1);
    let log = place.open("log");
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let _over = Over(&is_over);
        for writer in 0..2 {
            let (log, is_over) = (&log, &is_over);
            scope.spawn(move || {
                while !is_over.load(Ordering::Relaxed) {
                    fill(log, &format!("writer {writer}"), 20);
                    std::thread::sleep(Duration::from_millis(1));
                }
            });
        }
        for kill in 0..kills(30) {
            let before = sent(&log);
            let mut shipper = place.spawn("log");
            while kill % 5 != 0 && sent(&log) == before && shipper.try_wait().unwrap().is_none() {
                std::thread::yield_now();
            }
            // Spread over what a transaction takes; the moment decides nothing that is asserted.
            std::thread::sleep(Duration::from_micros(kill * 7919 % 60_000));
            shipper.kill().unwrap();
            shipper.wait().unwrap();
        }
    });
    good(&place.ship("log", &[]));
    let (committed, all) = (place.payloads(), place.read(0, "read_uncommitted").len());
    assert!(committed == records(&log), "{} of {}", committed.len(), records(&log).len());
    eprintln!("{} records, {} more that were taken back", committed.len(), all - committed.len());
}

/// Kafka has the position: the one that is stored here may be older.
#[test]
fn a_position_that_is_stored_here_and_is_older_doubles_nothing() {
    let Some(broker) = shared() else { return };
    let place = Place::new(broker, "older", 1);
    let log = place.open("log");
    fill(&log, "a", 100);
    good(&place.ship("log", &[]));
    let cursor = crate::place::cursor(&log);
    let before = cursor.position().unwrap();
    fill(&log, "b", 100);
    good(&place.ship("log", &[]));
    cursor.set(before).unwrap();
    fill(&log, "c", 100);
    good(&place.ship("log", &[]));
    assert_eq!(place.payloads(), records(&log));
}

#[test]
fn a_broker_that_is_killed_and_comes_back_loses_and_doubles_nothing() {
    let Some(mut broker) = Broker::start() else { return };
    let place = Place::new(&broker, "broker", 1);
    let log = place.open("log");
    let is_over = AtomicBool::new(false);
    let mut shipper = place.spawn("log");
    std::thread::scope(|scope| {
        let _over = Over(&is_over);
        scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                fill(&log, "beside", 20);
                std::thread::sleep(Duration::from_millis(1));
            }
        });
        for _ in 0..3 {
            let before = sent(&log);
            while sent(&log) == before {
                assert!(shipper.try_wait().unwrap().is_none(), "the shipper goes on");
                std::thread::sleep(Duration::from_millis(1));
            }
            broker.kill_and_restart();
        }
    });
    signal(&shipper, Signal::TERM);
    assert!(shipper.wait().unwrap().success());
    good(&place.ship("log", &[]));
    assert!(place.payloads() == records(&log));
}

#[test]
fn of_two_shippers_of_one_directory_one_waits_until_the_other_is_dead() {
    let Some(broker) = shared() else { return };
    let place = Place::new(broker, "waits", 1);
    let log = place.open("log");
    let end = fill(&log, "a", 100);
    let mut one = place.spawn("log");
    while sent(&log) <= end {
        std::thread::yield_now();
    }
    let mut two = place.spawn("log");
    let end = fill(&log, "b", 100);
    while sent(&log) <= end {
        assert!(two.try_wait().unwrap().is_none(), "it waits");
        std::thread::yield_now();
    }
    one.kill().unwrap();
    one.wait().unwrap();
    let end = fill(&log, "c", 100);
    while sent(&log) <= end {
        std::thread::yield_now();
    }
    signal(&two, Signal::TERM);
    assert!(two.wait().unwrap().success());
    assert_eq!(place.payloads(), records(&log));
}

/// The owner's next transaction is refused by Kafka, and it stops.
#[test]
fn a_copy_that_sends_stops_the_one_before() {
    let Some(broker) = shared() else { return };
    let place = Place::new(broker, "fenced", 1);
    let log = place.open("log");
    let end = fill(&log, "common", 100);
    let mut shipper = place.spawn("log");
    while sent(&log) <= end {
        std::thread::yield_now();
    }
    place.copy("log", "copy");
    let copy = place.open("copy");
    fill(&copy, "copy", 10);
    good(&place.ship("copy", &[]));
    let end = fill(&log, "ours", 10);
    while shipper.try_wait().unwrap().is_none() {
        assert!(sent(&log) <= end, "it goes on");
        std::thread::yield_now();
    }
    let output = shipper.wait_with_output().unwrap();
    refused(&output, "another shipper sends this log");
    assert_eq!(place.payloads(), records(&copy));
    // Nor does it come back by itself.
    refused(&place.ship("log", &[]), "the log is not what was sent");
    assert_eq!(place.payloads(), records(&copy));
}

/// Kafka ends a transaction that is open for too long, as of a process that was stopped.
#[test]
fn a_shipper_that_was_stopped_for_long_continues() {
    let Some(broker) = shared() else { return };
    let place = Place::new(broker, "stopped", 1);
    let log = place.open("log");
    let end = fill(&log, "a", 100);
    let mut command = place.command("log");
    command.args(["--interval", "1ms", "--kafka-config", "transaction.timeout.ms=1000"]);
    let mut shipper = command.spawn().unwrap();
    while sent(&log) <= end {
        std::thread::yield_now();
    }
    for _ in 0..3 {
        fill(&log, "b", 1000);
        signal(&shipper, Signal::STOP);
        std::thread::sleep(Duration::from_secs(3));
        let end = fill(&log, "c", 10);
        signal(&shipper, Signal::CONT);
        while sent(&log) <= end {
            assert!(shipper.try_wait().unwrap().is_none(), "it goes on");
            std::thread::yield_now();
        }
    }
    signal(&shipper, Signal::TERM);
    assert!(shipper.wait().unwrap().success());
    assert!(place.payloads() == records(&log));
}
