//! A log, a store and shippers in a directory.

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};

use vellum::{Create, Layout, Log, Lsn, Options, Tuning};
use vellum_ship::object::{Key, parse};
use vellum_testing::child::die_with_parent;

use crate::support;
pub(crate) use crate::support::{good, text};

const SHIP: &str = env!("CARGO_BIN_EXE_vellum-ship");

pub(crate) struct Place {
    dir: tempfile::TempDir,
}

/// A shipper that is killed with the test.
pub(crate) struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

impl Place {
    pub(crate) fn new() -> Place {
        Place { dir: tempfile::tempdir().unwrap() }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    pub(crate) fn url(&self) -> String {
        format!("file://{}", self.path("store").display())
    }

    pub(crate) fn command(&self, command: &str, options: &[&str]) -> Command {
        let mut all = Command::new(SHIP);
        all.arg(command).args(options);
        all
    }

    pub(crate) fn ship(&self, options: &[&str]) -> Output {
        let mut command = self.command("ship", options);
        command.arg(self.path("log")).arg(self.url()).arg("--once").output().unwrap()
    }

    pub(crate) fn run(&self, options: &[&str]) -> Running {
        let mut command = self.command("ship", options);
        die_with_parent(&mut command);
        command.arg(self.path("log")).arg(self.url());
        command.args(["--interval", "1ms", "--min-interval", "1ms"]);
        command.stdout(Stdio::null()).stdin(Stdio::null());
        Running(command.stderr(Stdio::null()).spawn().unwrap())
    }

    pub(crate) fn restored(&self, name: &str) -> Vec<Vec<u8>> {
        let copy = self.path(name);
        let mut command = self.command("restore", &[]);
        good(&command.arg(self.url()).arg(copy.join("")).output().unwrap());
        let log = Options::default().create(Create::Never).open(&copy).unwrap();
        let records = records_of(&log);
        drop(log);
        fs::remove_dir_all(copy).unwrap();
        records
    }

    pub(crate) fn verify(&self) {
        good(&self.command("verify", &[]).arg(self.url()).output().unwrap());
    }

    /// The names of all objects of generations.
    pub(crate) fn keys(&self) -> BTreeSet<Key> {
        let mut all = BTreeSet::new();
        let root = self.path("store");
        let mut dirs = vec![root.clone()];
        while let Some(dir) = dirs.pop() {
            for entry in fs::read_dir(dir).into_iter().flatten() {
                let path = entry.unwrap().path();
                let name = path.strip_prefix(&root).unwrap().to_str().unwrap();
                all.extend(parse(name));
                if path.is_dir() {
                    dirs.push(path);
                }
            }
        }
        all
    }

    pub(crate) fn merged(&self) -> Vec<(u64, u64)> {
        let range = |key: &Key| match *key {
            Key::Merged { start, end, .. } => Some((start, end)),
            _ => None,
        };
        self.keys().iter().filter_map(range).collect()
    }

    pub(crate) fn copy(&self, from: &str, to: &str) {
        support::copy(&self.path(from), &self.path(to));
    }

    pub(crate) fn delete(&self, keys: impl IntoIterator<Item = Key>) {
        for key in keys {
            fs::remove_file(self.path("store").join(key.to_string())).unwrap();
        }
    }
}

pub(crate) fn records_of(log: &Log) -> Vec<Vec<u8>> {
    support::records_of(log, false)
}

/// A log with small segments, so that many objects end with one.
pub(crate) fn small(place: &Place, layout: Layout) -> Log {
    let options =
        vellum::internal::options(layout).tuning(Tuning::new().segment_capacity_bytes(64 << 10));
    let options = if layout == Layout::Text { options.rotate_bytes(32 << 10) } else { options };
    options.open(place.path("log")).unwrap()
}

pub(crate) fn append(log: &Log, number: usize) -> Lsn {
    let line = format!("{number} {}\n", "x".repeat(2000));
    log.append(line.as_bytes()).unwrap()
}

/// Commits records remotely, one chunk for each.
pub(crate) fn commit(log: &Log, numbers: std::ops::Range<usize>) {
    for number in numbers {
        let lsn = append(log, number);
        // Until the shipper has begun.
        while log.ship().commit(lsn).is_err() {
            std::thread::yield_now();
        }
    }
}

pub(crate) fn covered(keys: &BTreeSet<Key>, merged: &[(u64, u64)]) -> Vec<Key> {
    let is_covered = |key: &&Key| match **key {
        Key::Link { start, .. } => merged.iter().any(|(from, end)| (*from..*end).contains(&start)),
        _ => false,
    };
    keys.iter().filter(is_covered).copied().collect()
}

/// Makes the generation begin so long ago, as if the machine had run since.
pub(crate) fn age(place: &Place, seconds: u64) {
    let file = place.path("log/ship");
    let mut state: serde_json::Value = serde_json::from_slice(&fs::read(&file).unwrap()).unwrap();
    let since = state["upkeep"]["since"].as_u64().unwrap() - seconds;
    state["upkeep"]["since"] = since.into();
    state["upkeep"]["looked"] = 0.into();
    fs::write(&file, state.to_string()).unwrap();
}

pub(crate) fn generations(place: &Place) -> u32 {
    place.keys().iter().map(Key::generation).max().unwrap() + 1
}

pub(crate) fn of(keys: &BTreeSet<Key>, generation: u32) -> usize {
    keys.iter().filter(|key| key.generation() == generation).count()
}

/// Ships some records in each of so many generations. Returns how many records each has.
pub(crate) fn days(place: &Place, log: &Log, count: usize, options: &[&str]) {
    for day in 0..count {
        let running = place.run(&[]);
        commit(log, day * 40..(day + 1) * 40);
        drop(running);
        age(place, 86_400);
        good(&place.ship(options));
    }
    append(log, count * 40);
    log.sync().unwrap();
    good(&place.ship(options));
}

pub(crate) fn is_link(key: &&Key) -> bool {
    matches!(key, Key::Link { .. })
}
