//! A shipper that is killed before each of its system calls that change a file, one after the other.
//!
//! `VELLUM_SHIP_STOPS=1` tries each of them, a larger number each so manieth.

use std::path::PathBuf;

use vellum_testing::child::{Child, command, die_with_parent};

use crate::ledger::record;
use crate::place::{Place, good, records_in};
use crate::writers::{KINDS, Kind};

const STEP: u64 = 25;
/// More than any of these commands makes.
const NEVER: u64 = 1_000_000;

fn step() -> u64 {
    let wanted = std::env::var("VELLUM_SHIP_STOPS").ok();
    wanted.and_then(|text| text.parse().ok()).unwrap_or(STEP)
}

/// Ships once, killed before the call number `fatal` that changes a file. Returns how many calls
/// there were.
fn ship_until(place: &Place, fatal: u64, options: &[&str]) -> u64 {
    let (fatal, log) = (fatal.to_string(), place.path("log").display().to_string());
    let program = env!("CARGO_BIN_EXE_vellum-ship");
    let words = [&[fatal.as_str(), program, "ship", &log, place.url(), "--once"], options].concat();
    let mut command = command("tracer", &words);
    die_with_parent(&mut command);
    let mut tracer = Child::from_command("tracer", command);
    let count = tracer.hears().expect("the tracer counts").parse().unwrap();
    tracer.finish_well();
    count
}

/// Appends what makes some chunks, and a new file.
fn append(place: &Place, kind: Kind, name: &str) {
    let log = kind.open(&place.path("log"));
    for number in 0..200 {
        log.append(record(name, number).as_bytes()).unwrap();
    }
    log.sync().unwrap();
}

#[track_caller]
fn check(place: &Place, what: &str) {
    good(&place.ship("log", &[]));
    assert!(place.restored() == records_in(&place.path("log")), "{what}");
}

/// Everything that is done when a log is shipped for the first time.
#[test]
fn the_first_ship_dies_before_each_change() {
    for kind in KINDS {
        let mut fatal = 1;
        loop {
            let place = Place::new();
            append(&place, kind, "a");
            let is_over = ship_until(&place, fatal, &[]) < fatal;
            check(&place, &format!("{kind:?}, call {fatal}"));
            if is_over {
                break;
            }
            fatal += step();
        }
        assert!(fatal > 20, "{kind:?}: {fatal}");
    }
}

/// Dies again and again in the same log, which grows in between.
fn later(kind: Kind, options: &[&str]) {
    let place = Place::new();
    append(&place, kind, "before");
    good(&place.ship("log", options));
    let mut fatal = 1;
    loop {
        append(&place, kind, &format!("later{fatal}"));
        let is_over = ship_until(&place, fatal, options) < fatal;
        check(&place, &format!("{kind:?} {options:?}, call {fatal}"));
        if is_over {
            return;
        }
        fatal += step();
    }
}

#[test]
fn a_later_ship_dies_before_each_change() {
    KINDS.into_iter().for_each(|kind| later(kind, &[]));
}

#[test]
fn a_take_over_dies_before_each_change() {
    later(Kind::Mapped, &["--take-over"]);
}

#[test]
fn a_ship_that_may_lose_bytes_dies_before_each_change() {
    later(Kind::Text, &["--max-unshipped", "100000000"]);
}

/// The tracer sees what a shipper cannot do without.
#[test]
fn a_ship_that_is_not_killed_is_counted() {
    let place = Place::new();
    append(&place, Kind::Mapped, "a");
    let count = ship_until(&place, NEVER, &[]);
    assert!((20..NEVER).contains(&count), "{count}");
    let left: Vec<PathBuf> = std::fs::read_dir(place.path("store/g00000000/t"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    assert!(!left.is_empty());
    check(&place, "not killed");
}
