//! The public state of a shipper, in the log that it ships.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use vellum::ship::{ShipFault, ShipStatus};
use vellum::{Create, Log, Lsn, Options};
use vellum_ship_figures::Figures;

const SHIP: &str = env!("CARGO_BIN_EXE_vellum-ship");

fn shipping(dir: &Path) -> Command {
    let mut command = Command::new(SHIP);
    command.arg("ship").arg(dir.join("log")).arg(format!("file://{}/store", dir.display()));
    command
}

fn ship_once(dir: &Path, options: &[&str]) -> Output {
    shipping(dir).arg("--once").args(options).output().unwrap()
}

fn append(log: &Log, count: usize) {
    for index in 0..count {
        log.append(format!("a line of some length, number {index}\n").as_bytes()).unwrap();
    }
    log.sync().unwrap();
}

/// The files of the log with this end, in order.
fn files(dir: &Path, end: &str) -> Vec<PathBuf> {
    let names = fs::read_dir(dir.join("log")).unwrap().map(|entry| entry.unwrap().path());
    let mut files: Vec<PathBuf> =
        names.filter(|path| path.extension().is_some_and(|extension| extension == end)).collect();
    files.sort();
    files
}

/// A shipper that dies with the test.
struct Shipper(Child);

impl Drop for Shipper {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// More than one chunk is good, and under way when the damage is found.
#[test]
fn a_log_that_cannot_be_read_is_seen_and_shipped_up_to_there() {
    let dir = tempfile::tempdir().unwrap();
    let log = Options::default().open(dir.path().join("log")).unwrap();
    assert!(ship_once(dir.path(), &[]).status.success());
    for _ in 0..20 {
        log.append(&[b'x'; 1 << 20]).unwrap();
    }
    append(&log, 1000);
    let first = log.begin();
    drop(log);
    let damaged = b"number 500";
    for path in files(dir.path(), "seg") {
        let mut bytes = fs::read(&path).unwrap();
        let at = bytes.windows(damaged.len()).position(|window| window == damaged);
        at.into_iter().for_each(|at| bytes[at] ^= 1);
        fs::write(&path, bytes).unwrap();
    }
    let mut ship = shipping(dir.path());
    let output = ship.arg("--once").env("VELLUM_SHIP_FAULTS", "latency:300ms").output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{}", String::from_utf8_lossy(&output.stderr));
    let log = Options::default().create(Create::Never).open(dir.path().join("log")).unwrap();
    let state = log.ship().state().unwrap();
    assert_eq!(state.fault, Some((ShipFault::Local, 0)));
    assert_eq!(state.status, ShipStatus::None);
    assert!(state.shipped >= Lsn::new(first.get() + (14 << 20)), "{}", state.shipped);
}

/// The control file goes with a reboot.
#[test]
fn a_restarted_shipper_says_what_is_shipped_of_a_log_at_rest() {
    let dir = tempfile::tempdir().unwrap();
    let log = Options::mapped_text().open(dir.path().join("log")).unwrap();
    append(&log, 10);
    let end = log.durable();
    assert!(ship_once(dir.path(), &["--max-unshipped", "10GiB"]).status.success());
    drop(log);
    fs::remove_file(dir.path().join("log/control")).unwrap();
    assert!(ship_once(dir.path(), &[]).status.success());
    let log = Options::default().create(Create::Never).open(dir.path().join("log")).unwrap();
    assert_eq!(log.ship().end(), end);
}

#[test]
fn a_request_that_is_made_again_does_not_hide_a_gap() {
    let dir = tempfile::tempdir().unwrap();
    let options = Options::mapped_text().rotate_bytes(1 << 16);
    let log = options.open(dir.path().join("log")).unwrap();
    append(&log, 100);
    assert!(ship_once(dir.path(), &[]).status.success());
    append(&log, 8000);
    fs::remove_file(&files(dir.path(), "log")[1]).unwrap();
    let mut shipper = shipping(dir.path());
    // Rare enough that no object is cut short three times in a row: that is damage, and ends it.
    shipper.args(["--interval", "1ms"]).env("VELLUM_SHIP_FAULTS", "seed:3,rate:6");
    let told = dir.path().join("told");
    shipper.stderr(fs::File::create(&told).unwrap());
    let mut shipper = Shipper(shipper.spawn().unwrap());
    let mut state = || {
        let told = || fs::read_to_string(&told).unwrap();
        assert_eq!(shipper.0.try_wait().unwrap(), None, "the shipper goes on: {}", told());
        log.ship().state().unwrap()
    };
    while state().gap.is_none() {
        std::thread::yield_now();
    }
    let mut retries = || {
        state();
        Figures::of(&log).unwrap().retries
    };
    let before = retries();
    while retries() < before + 2 {
        append(&log, 1);
    }
    while log.ship().end() < log.durable() {
        state();
        std::thread::yield_now();
    }
    assert_eq!(state().status, ShipStatus::Gap);
}

/// The second record comes when the shipper is at rest.
#[test]
fn what_nobody_commits_is_shipped_all_the_same() {
    let dir = tempfile::tempdir().unwrap();
    let log = Options::default().open(dir.path().join("log")).unwrap();
    let mut shipper = shipping(dir.path());
    let _shipper = Shipper(shipper.stderr(Stdio::null()).spawn().unwrap());
    for record in ["first", "second"] {
        let lsn = log.append(record.as_bytes()).unwrap();
        let begun = Instant::now();
        while log.ship().end() <= lsn {
            assert!(begun.elapsed() < Duration::from_secs(60), "{record} is not shipped");
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}
