//! Things in a directory that is a store, below each name that has anything to do with a log.

use std::fs;
use std::path::{Path, PathBuf};

use vellum::{Log, Options, Tuning};
use vellum_testing::scratch;

use crate::command::{assert_none, copy, fault, run};
use crate::thing::{Outside, Thing};

/// A log that was shipped in two generations, and its store before and after the last time.
struct Place {
    home: tempfile::TempDir,
}

impl Place {
    fn new() -> Place {
        let place = Place { home: scratch() };
        fs::create_dir(place.case()).unwrap();
        let log = Options::default()
            .tuning(Tuning::new().segment_capacity_bytes(64 << 10))
            .open(place.path("log"))
            .unwrap();
        append(&log);
        place.ship(&[]);
        place.ship(&["--take-over"]);
        append(&log);
        drop(log);
        copy(&place.case(), &place.home.path().join("before"));
        place.ship(&[]);
        copy(&place.case(), &place.home.path().join("after"));
        fs::remove_dir_all(place.case()).unwrap();
        place
    }

    fn case(&self) -> PathBuf {
        self.home.path().join("case")
    }

    fn path(&self, name: &str) -> PathBuf {
        self.case().join(name)
    }

    /// A command line, in which LOG, URL and COPY are placeholders.
    fn words(&self, line: &str) -> Vec<String> {
        let word = |word: &str| match word {
            "LOG" => self.path("log").display().to_string(),
            "URL" => format!("file://{}", self.path("store").display()),
            "COPY" => self.path("copy").display().to_string(),
            word => word.to_string(),
        };
        line.split(' ').map(word).collect()
    }

    fn ship(&self, options: &[&str]) {
        let words = self.words(&[&["ship", "--once", "LOG", "URL"], options].concat().join(" "));
        let shipped = run(&words, self.home.path()).unwrap();
        assert_eq!(shipped.code, Some(0), "{}", shipped.said);
    }

    /// The names of all directories and objects in the end.
    fn names(&self) -> Vec<String> {
        let store = self.home.path().join("after/store");
        let mut names = Vec::new();
        list(&store, &store, &mut names);
        names.retain(|name| !name.starts_with("probe"));
        names
    }

    /// The fault if a thing is put at this name of the store, in its state of some time.
    fn fault(&self, time: &str, thing: Thing, name: &str, line: &str) -> Option<String> {
        copy(&self.home.path().join(time), &self.case());
        let outside = Outside::new(&self.case());
        let path = self.path("store").join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        // Then it is as if its objects had been deleted.
        let is_deleted = thing == Thing::Directory && path.is_dir();
        thing.plant(&path, &outside);
        let fault = fault(&self.words(line), thing, name, &outside, &self.case());
        fs::remove_dir_all(self.case()).unwrap();
        fault.filter(|_| !is_deleted)
    }

    fn faults(&self, time: &str, lines: &[&str]) -> Vec<String> {
        let mut faults = Vec::new();
        for thing in Thing::all() {
            for name in self.names() {
                let faulty = |line: &&str| self.fault(time, thing, &name, line);
                faults.extend(lines.iter().filter_map(faulty));
            }
        }
        faults
    }
}

fn list(root: &Path, dir: &Path, names: &mut Vec<String>) {
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        names.push(path.strip_prefix(root).unwrap().to_str().unwrap().to_string());
        if path.is_dir() {
            list(root, &path, names);
        }
    }
}

fn append(log: &Log) {
    for number in 0..100 {
        log.append(format!("record {number} {}", "x".repeat(1000)).as_bytes()).unwrap();
    }
    log.sync().unwrap();
}

#[test]
fn nothing_else_is_read_for_an_object() {
    let lines = ["ls URL", "cat URL", "tail URL", "stat URL", "verify URL", "restore URL COPY"];
    assert_none(&Place::new().faults("after", &lines));
}

#[test]
fn nothing_else_is_taken_for_an_object_that_is_to_be_made_or_deleted() {
    let lines = ["ship --once LOG URL", "trim --retain 0s URL"];
    assert_none(&Place::new().faults("before", &lines));
}
