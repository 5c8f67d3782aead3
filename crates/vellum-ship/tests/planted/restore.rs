//! Things in a directory into which a log is restored: before it is begun, and before it continues.

use std::fs;
use std::path::PathBuf;

use vellum::ship::{LogShape, RestoreOptions, Restorer};
use vellum::{Lsn, Options, Tuning};
use vellum_testing::scratch;

use crate::command::{assert_none, fault, run};
use crate::thing::{Outside, Thing};

/// Where a file of another name would be, as a writer of the directory may guess it.
const LATER: [&str; 4] = ["restoring", "control.new", "segment.new", "cursors.new"];

struct Place {
    home: tempfile::TempDir,
    shape: LogShape,
    begin: Lsn,
}

impl Place {
    fn new() -> Place {
        let home = scratch();
        let log = Options::default()
            .tuning(Tuning::new().segment_capacity_bytes(64 << 10))
            .open(home.path().join("log"));
        let log = log.unwrap();
        for number in 0..100 {
            log.append(format!("record {number} {}", "x".repeat(1000)).as_bytes()).unwrap();
        }
        log.sync().unwrap();
        let (shape, begin) = (log.ship().shape().unwrap(), log.begin());
        let place = Place { home, shape, begin };
        place.run("ship --once LOG URL");
        place.run("restore URL WHOLE");
        place
    }

    fn path(&self, name: &str) -> PathBuf {
        self.home.path().join(name)
    }

    fn words(&self, line: &str) -> Vec<String> {
        let path = |name: &str| self.path(name).display().to_string();
        let word = |word: &str| match word {
            "LOG" => path("log"),
            "URL" => format!("file://{}", path("store")),
            "WHOLE" => path("whole"),
            "COPY" => path("case/copy"),
            word => word.to_string(),
        };
        line.split(' ').map(word).collect()
    }

    fn run(&self, line: &str) {
        let ended = run(&self.words(line), self.home.path()).unwrap();
        assert_eq!(ended.code, Some(0), "{}", ended.said);
    }

    /// The files that a restored log has, and those that it had meanwhile.
    fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(self.path("whole")).unwrap();
        let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        names.chain(LATER.map(String::from)).collect()
    }

    /// The fault if a thing is put at this name.
    fn fault(&self, thing: Thing, name: &str, line: &str) -> Option<String> {
        let outside = Outside::new(&self.path("case"));
        let copy = self.path("case/copy");
        if line.contains("--resume") {
            let options = RestoreOptions::new();
            drop(Restorer::create(&copy, &self.shape, self.begin, &options).unwrap());
        } else {
            fs::create_dir(&copy).unwrap();
        }
        thing.plant(&copy.join(name), &outside);
        let fault = fault(&self.words(line), thing, name, &outside, &self.path("case"));
        fs::remove_dir_all(self.path("case")).unwrap();
        // Any entry there is a reason to refuse.
        fault.filter(|fault| !fault.contains("the directory is not empty"))
    }
}

#[test]
fn nothing_that_is_there_is_taken_for_a_file_of_the_log() {
    let place = Place::new();
    let mut faults = Vec::new();
    for thing in Thing::all() {
        for name in place.names() {
            let lines = ["restore URL COPY", "restore --resume URL COPY"];
            faults.extend(lines.iter().filter_map(|line| place.fault(thing, &name, line)));
        }
    }
    assert_none(&faults);
}
