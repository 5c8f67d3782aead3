//! Shippers and restores that end before each of their system calls that change a file, or with an
//! error of it, one call after the other.
//!
//! `VELLUM_SHIP_STOPS=1` tries each of them, a larger number each so manieth.

use std::path::PathBuf;

use vellum_testing::child::{Child, command, die_with_parent};

use crate::ledger::record;
use crate::place::{Place, good, records_in, text};
use crate::writers::{KINDS, Kind};

const STEP: u64 = 25;
/// More than any of these commands makes.
const NEVER: u64 = 1_000_000;

fn step() -> u64 {
    let wanted = std::env::var("VELLUM_SHIP_STOPS").ok();
    wanted.and_then(|text| text.parse().ok()).unwrap_or(STEP)
}

/// The fault at a call.
#[derive(Clone, Copy, Debug)]
enum End {
    Killed,
    NoSpace,
    IoError,
}

/// Runs the command up to the call number `fatal` that changes a file. Returns how many calls there
/// were.
fn run_until(fatal: u64, end: End, words: &[&str]) -> u64 {
    let error = match end {
        End::Killed => 0,
        End::NoSpace => libc::ENOSPC,
        End::IoError => libc::EIO,
    };
    let (fatal, error) = (fatal.to_string(), error.to_string());
    let program = env!("CARGO_BIN_EXE_vellum-ship");
    let words = [&[fatal.as_str(), error.as_str(), program], words].concat();
    let mut command = command("tracer", &words);
    die_with_parent(&mut command);
    let mut tracer = Child::from_command("tracer", command);
    let count = tracer.hears().expect("the tracer counts").parse().unwrap();
    tracer.finish_well();
    count
}

fn ship_until(place: &Place, fatal: u64, end: End, options: &[&str]) -> u64 {
    let log = place.path("log").display().to_string();
    run_until(fatal, end, &[&["ship", &log, place.url(), "--once"], options].concat())
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
            let is_over = ship_until(&place, fatal, End::Killed, &[]) < fatal;
            check(&place, &format!("{kind:?}, call {fatal}"));
            if is_over {
                break;
            }
            fatal += step();
        }
        assert!(fatal > 20, "{kind:?}: {fatal}");
    }
}

/// Ends again and again in the same log, which grows in between.
fn later(kind: Kind, end: End, options: &[&str]) {
    let place = Place::new();
    append(&place, kind, "before");
    good(&place.ship("log", options));
    let mut fatal = 1;
    loop {
        append(&place, kind, &format!("later{fatal}"));
        let is_over = ship_until(&place, fatal, end, options) < fatal;
        check(&place, &format!("{kind:?} {end:?} {options:?}, call {fatal}"));
        if is_over {
            return;
        }
        fatal += step();
    }
}

#[test]
fn a_later_ship_dies_before_each_change() {
    KINDS.into_iter().for_each(|kind| later(kind, End::Killed, &[]));
}

#[test]
fn a_take_over_dies_before_each_change() {
    later(Kind::Mapped, End::Killed, &["--take-over"]);
}

#[test]
fn a_ship_that_may_lose_bytes_dies_before_each_change() {
    later(Kind::Text, End::Killed, &["--max-unshipped", "100000000"]);
}

/// A disk that is full or bad at one moment costs one run of the shipper at most.
#[test]
fn a_ship_goes_on_after_each_change_has_failed() {
    later(Kind::Staged, End::NoSpace, &[]);
    later(Kind::Text, End::IoError, &["--max-unshipped", "100000000"]);
}

/// Another restore continues with the files that are there.
#[test]
fn a_restore_dies_before_each_change() {
    for kind in KINDS {
        let place = Place::new();
        append(&place, kind, "a");
        good(&place.ship("log", &[]));
        let copy = place.path("copy/").display().to_string();
        let mut fatal = 1;
        loop {
            let calls = run_until(fatal, End::Killed, &["restore", place.url(), &copy]);
            if calls < fatal {
                break;
            }
            go_on(&place, &copy);
            assert!(records_in(&place.path("copy")) == records_in(&place.path("log")), "{fatal}");
            std::fs::remove_dir_all(&copy).unwrap();
            fatal += step();
        }
        assert!(records_in(&place.path("copy")) == records_in(&place.path("log")), "{kind:?}");
    }
}

/// Resumes a restore; begins it where none was begun, and leaves it alone where it was finished.
fn go_on(place: &Place, copy: &str) {
    let restore = |options: &[&str]| {
        place.command(&["restore", place.url(), copy]).args(options).output().unwrap()
    };
    if restore(&["--resume"]).status.success() || restore(&[]).status.success() {
        return;
    }
    let finished = !place.path("copy/restoring").exists() && place.path("copy/geometry").exists();
    assert!(finished, "{}", text(&restore(&["--resume"])));
}

/// The tracer sees the calls that a shipper cannot do without.
#[test]
fn a_ship_that_is_not_killed_is_counted() {
    let place = Place::new();
    append(&place, Kind::Mapped, "a");
    let count = ship_until(&place, NEVER, End::Killed, &[]);
    assert!((20..NEVER).contains(&count), "{count}");
    let left: Vec<PathBuf> = std::fs::read_dir(place.path("store/g00000000/t"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    assert!(!left.is_empty());
    check(&place, "not killed");
}
