//! What an owner does beside shipping, with real processes over a directory: merged objects,
//! generations, retention.

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};

use vellum::{Durability, Layout, Log, Lsn, Options};
use vellum_ship::object::{Key, parse};

const SHIP: &str = env!("CARGO_BIN_EXE_vellum-ship");

struct Place {
    dir: tempfile::TempDir,
}

/// A shipper that is killed with the test.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

impl Place {
    fn new() -> Place {
        Place { dir: tempfile::tempdir().unwrap() }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn url(&self) -> String {
        format!("file://{}", self.path("store").display())
    }

    fn command(&self, command: &str, options: &[&str]) -> Command {
        let mut all = Command::new(SHIP);
        all.arg(command).args(options);
        // The test may die before it ends this.
        all.stdout(Stdio::null()).stdin(Stdio::null());
        all
    }

    fn ship(&self, options: &[&str]) -> Output {
        let mut command = self.command("ship", options);
        command.arg(self.path("log")).arg(self.url()).arg("--once").output().unwrap()
    }

    fn run(&self, options: &[&str]) -> Running {
        let mut command = self.command("ship", options);
        command.arg(self.path("log")).arg(self.url());
        command.args(["--interval", "1ms", "--min-interval", "1ms"]);
        Running(command.stderr(Stdio::null()).spawn().unwrap())
    }

    fn restored(&self, name: &str) -> Vec<Vec<u8>> {
        let copy = self.path(name);
        let mut command = self.command("restore", &[]);
        good(command.arg(self.url()).arg(&copy).output().unwrap());
        let log = Options::new().create(false).open(&copy).unwrap();
        let records = records_of(&log);
        drop(log);
        fs::remove_dir_all(copy).unwrap();
        records
    }

    fn verify(&self) {
        good(self.command("verify", &[]).arg(self.url()).output().unwrap());
    }

    /// The names of all objects of generations.
    fn keys(&self) -> BTreeSet<Key> {
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

    fn merged(&self) -> Vec<(u64, u64)> {
        let range = |key: &Key| match *key {
            Key::Merged { start, end, .. } => Some((start, end)),
            _ => None,
        };
        self.keys().iter().filter_map(range).collect()
    }

    fn delete(&self, keys: impl IntoIterator<Item = Key>) {
        for key in keys {
            fs::remove_file(self.path("store").join(key.to_string())).unwrap();
        }
    }
}

fn text(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn good(output: Output) {
    assert!(output.status.success(), "{}", text(&output));
}

fn records_of(log: &Log) -> Vec<Vec<u8>> {
    let mut reader = log.reader(log.begin()).unwrap();
    let mut all = Vec::new();
    while let Some(record) = reader.next().unwrap() {
        all.push(record.payload.to_vec());
    }
    all
}

/// A log with small segments, so that many objects end with one.
fn small(place: &Place, layout: Layout) -> Log {
    let options = Options::new().layout(layout).segment_capacity_bytes(64 << 10);
    let options = if layout == Layout::Text { options.rotate_bytes(32 << 10) } else { options };
    options.open(place.path("log")).unwrap()
}

fn append(log: &Log, number: usize) -> Lsn {
    let line = format!("{number} {}\n", "x".repeat(2000));
    log.append(line.as_bytes()).unwrap()
}

/// Commits records remotely, one chunk for each.
fn commit(log: &Log, numbers: std::ops::Range<usize>) {
    for number in numbers {
        let lsn = append(log, number);
        // Until the shipper has begun.
        while log.commit_to(lsn, Durability::Remote).is_err() {
            std::thread::yield_now();
        }
    }
}

fn covered(keys: &BTreeSet<Key>, merged: &[(u64, u64)]) -> Vec<Key> {
    let is_covered = |key: &&Key| match **key {
        Key::Link { start, .. } => merged.iter().any(|(from, end)| (*from..*end).contains(&start)),
        _ => false,
    };
    keys.iter().filter(is_covered).copied().collect()
}

#[test]
fn many_small_chunks_become_merged_objects_that_stand_for_them() {
    for layout in [Layout::Framed, Layout::Text] {
        let place = Place::new();
        let log = small(&place, layout);
        let running = place.run(&[]);
        commit(&log, 0..150);
        drop(running);
        good(place.ship(&[]));
        let merged = place.merged();
        assert!(merged.len() >= 3, "{layout:?}: {merged:?}");
        let covered = covered(&place.keys(), &merged);
        assert!(covered.len() >= 9 * merged.len());
        place.verify();
        // Nothing is lost without the chunks.
        place.delete(covered);
        assert_eq!(place.restored("copy"), records_of(&log), "{layout:?}");
    }
}

#[test]
fn a_shipper_that_is_killed_again_and_again_merges_the_same_objects() {
    let kills = std::env::var("VELLUM_SHIP_KILLS").ok().and_then(|text| text.parse().ok());
    let place = Place::new();
    let log = small(&place, Layout::Framed);
    let rounds = kills.unwrap_or(10);
    for round in 0..rounds {
        let running = place.run(&[]);
        commit(&log, round * 25..(round + 1) * 25);
        drop(running);
    }
    good(place.ship(&[]));
    let merged = place.merged();
    let overlaps = merged.iter().zip(merged.iter().skip(1)).filter(|(a, b)| a.1 > b.0);
    assert_eq!(overlaps.count(), 0, "{merged:?}");
    // All but the last segment, or two.
    let end = log.durable().get();
    let holes: u64 = merged.iter().zip(merged.iter().skip(1)).map(|(a, b)| b.0 - a.1).sum();
    assert_eq!(holes, 0, "{merged:?}");
    assert!(merged[0].0 <= 65536 && merged.last().unwrap().1 + 2 * 65536 > end, "{merged:?}");
    place.delete(covered(&place.keys(), &merged));
    assert_eq!(place.restored("copy"), records_of(&log));
}

/// A copy of the log goes on from a restored log: it begins behind the merged objects that both
/// have.
#[test]
fn a_take_over_compares_what_merged_objects_hold_chunk_by_chunk() {
    let place = Place::new();
    let log = small(&place, Layout::Framed);
    let running = place.run(&[]);
    commit(&log, 0..100);
    drop(running);
    good(place.ship(&[]));
    let merged = place.merged();
    assert!(merged.len() >= 2);
    place.delete(covered(&place.keys(), &merged));
    fs::remove_file(place.path("log/ship")).unwrap();
    append(&log, 100);
    log.sync().unwrap();
    good(place.ship(&["--take-over"]));
    let begins = place.keys().into_iter().filter_map(|key| match key {
        Key::Link { generation: 1, start, .. } => Some(start),
        _ => None,
    });
    let last = merged.last().unwrap().1;
    assert!(begins.min().unwrap() >= last, "the new generation begins behind what is equal");
    assert_eq!(place.restored("copy"), records_of(&log));
}

#[test]
fn a_log_whose_bytes_are_gone_is_not_merged_and_ships_on() {
    let place = Place::new();
    let log = small(&place, Layout::Framed);
    for number in 0..100 {
        append(&log, number);
        log.sync().unwrap();
        good(place.ship(&[]));
        log.trim(log.shipped()).unwrap();
    }
    let stored = place.command("cat", &[]).arg(place.url()).stdout(Stdio::piped()).output();
    let stored = stored.unwrap();
    assert_eq!(stored.stdout.iter().filter(|byte| **byte == b'\n').count(), 200);
    assert_eq!(place.merged(), []);
}
