//! Things in a log that is shipped.

use std::fs;
use std::path::PathBuf;

use vellum::{Log, Options, Tuning};
use vellum_testing::scratch;

use crate::command::{assert_none, copy, fault, run};
use crate::thing::{Outside, Thing};

/// Files that only a shipper makes there.
const ITS_OWN: [&str; 2] = ["ship", "ship.new"];
const COMMAND_LINES: [&[&str]; 3] = [&["--once"], &["--once", "--take-over"], &["--dry-run"]];

/// A log and its store, put back for each command.
struct Place {
    home: tempfile::TempDir,
}

impl Place {
    fn new() -> Place {
        let place = Place { home: scratch() };
        fs::create_dir(place.case()).unwrap();
        let log = Options::default()
            .tuning(Tuning::new().segment_capacity_bytes(64 << 10))
            .open(place.log())
            .unwrap();
        append(&log);
        let shipped = run(&place.ship(&["--once"]), place.home.path());
        assert_eq!(shipped.unwrap().code, Some(0));
        append(&log);
        drop(log);
        fs::rename(place.case(), place.saved()).unwrap();
        place
    }

    fn saved(&self) -> PathBuf {
        self.home.path().join("saved")
    }

    fn case(&self) -> PathBuf {
        self.home.path().join("case")
    }

    fn log(&self) -> PathBuf {
        self.case().join("log")
    }

    fn ship(&self, options: &[&str]) -> Vec<String> {
        let url = format!("file://{}/store", self.case().display());
        let words = [&["ship"], options].concat();
        words.into_iter().map(String::from).chain([self.log().display().to_string(), url]).collect()
    }

    /// The fault if a thing is put at this name.
    fn fault(&self, thing: Thing, name: &str, options: &[&str]) -> Option<String> {
        copy(&self.saved(), &self.case());
        let outside = Outside::new(&self.case());
        thing.plant(&self.log().join(name), &outside);
        let fault = fault(&self.ship(options), thing, name, &outside, &self.case());
        fs::remove_dir_all(self.case()).unwrap();
        fault
    }
}

fn append(log: &Log) {
    for number in 0..100 {
        log.append(format!("record {number} {}", "x".repeat(1000)).as_bytes()).unwrap();
    }
    log.sync().unwrap();
}

#[test]
fn a_shipper_takes_nothing_else_for_its_own_files() {
    let place = Place::new();
    let mut faults = Vec::new();
    for thing in Thing::all() {
        for name in ITS_OWN {
            let faulty = |options: &&[&str]| place.fault(thing, name, options);
            faults.extend(COMMAND_LINES.iter().filter_map(faulty));
        }
    }
    assert_none(&faults);
}

/// The files of the log itself are the business of the library, which is asked here by a shipper.
/// It takes one more name of a file with the rights of the log's own files for one of them:
/// `docs/security.md` says so.
#[test]
fn a_shipper_takes_nothing_else_for_a_file_of_the_log() {
    let place = Place::new();
    let entries = fs::read_dir(place.saved().join("log")).unwrap();
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let names: Vec<String> = names.filter(|name| !ITS_OWN.contains(&name.as_str())).collect();
    let mut faults = Vec::new();
    for thing in Thing::all().into_iter().filter(|thing| *thing != Thing::HardLink) {
        faults.extend(names.iter().filter_map(|name| place.fault(thing, name, &["--once"])));
    }
    assert_none(&faults);
}
