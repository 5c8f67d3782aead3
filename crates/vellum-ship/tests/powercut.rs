//! The power of the local machine is cut while a log is shipped; then shipping continues.
//!
//! `VELLUM_SHIP_CUTS` says at how many moments of each recording. Two kinds of stores:
//!
//! | store | what it shows |
//! |---|---|
//! | on the disk that is cut | a store of that moment, for it keeps what was synced: shipping goes on, and a restore is the local log |
//! | elsewhere | a store that knows more than the disk, as if the disk had lied: shipping goes on where nothing differs, and is refused otherwise |
//!
//! The same program is the test, the harness that cuts, the workload and the check.

use std::fs;
use std::io::{Write, stdout};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Output, Stdio};

use vellum::{Create, Fill, Log, Options, Tuning};

const SHIP: &str = env!("CARGO_BIN_EXE_vellum-ship");
const RECORDS: u64 = 60;
/// Every so manieth record is committed.
const COMMIT: u64 = 6;
/// Each is opened twice: in another boot, and in the same.
const CUTS: u64 = 3;
/// The exit status of the harness where the machine lacks something.
const MACHINE_CANNOT: i32 = 77;
/// The placeholder of the disk in the commands of the harness.
const DISK: &str = "{dir}";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments[..] {
        ["work", kind, dir, store] => work(kind, &Places::new(dir, store)),
        ["check", kind, dir, store] => check(kind, &Places::new(dir, store)),
        ["--work", ..] => return vellum_testkit::powercut::cli::main(),
        _ => test_all(),
    }
    ExitCode::SUCCESS
}

fn test_all() {
    for kind in ["staged", "mapped", "text"] {
        cut(kind, &format!("{DISK}/store"));
        println!("test {kind}_with_the_store_of_that_moment ... ok");
        let elsewhere = tempfile::tempdir().unwrap();
        cut(kind, &elsewhere.path().join("store").display().to_string());
        println!("test {kind}_with_a_store_that_knows_more ... ok");
    }
}

/// Records one workload, and cuts the power at some of its moments.
fn cut(kind: &str, store: &str) {
    let program = std::env::current_exe().unwrap().display().to_string();
    let command = |word| format!("{program} {word} {kind} {DISK} {store}");
    let (work, check) = (command("work"), command("check"));
    let wanted = std::env::var("VELLUM_SHIP_CUTS").ok().and_then(|text| text.parse().ok());
    let points = wanted.unwrap_or(CUTS).to_string();
    let kept = tempfile::tempdir().unwrap();
    let output = Command::new(&program)
        .args(["--work", &work, "--check", &check, "--fs", "ext4", "--points", &points])
        .arg("--keep")
        .arg(kept.path())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    if output.status.code() == Some(MACHINE_CANNOT) {
        return vellum_testing::missing::skip(said);
    }
    assert!(output.status.success(), "{said}");
}

struct Places {
    log: PathBuf,
    store: PathBuf,
    /// Whether the store is cut with the log.
    is_cut: bool,
}

impl Places {
    fn new(dir: &str, store: &str) -> Places {
        let (log, is_cut) = (Path::new(dir).join("log"), store.starts_with(dir));
        Places { log, store: store.into(), is_cut }
    }

    /// The content of the store when the workload ended.
    fn last_store(&self) -> PathBuf {
        self.store.with_extension("last")
    }

    fn url(&self) -> String {
        format!("file://{}", self.store.display())
    }

    fn ship(&self) -> Command {
        let mut command = Command::new(SHIP);
        command.arg("ship").arg(&self.log).arg(self.url());
        command
    }

    fn restored(&self) -> Result<Vec<String>, String> {
        let copy = tempfile::tempdir().unwrap();
        let copy = copy.path().join("copy");
        let output = Command::new(SHIP).arg("restore").arg(self.url()).arg(&copy).output().unwrap();
        match output.status.success() {
            true => Ok(records(&open(&copy).map_err(|error| error.to_string())?)),
            false => Err(text(&output)),
        }
    }
}

fn text(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).trim().to_string()
}

fn options(kind: &str) -> Options {
    let framed = Options::events().tuning(Tuning::new().segment_capacity_bytes(16384));
    match kind {
        "staged" => framed.tuning(Tuning::new().fill(Fill::Staged)),
        "mapped" => framed.tuning(Tuning::new().fill(Fill::Mapped)),
        _ => Options::mapped_text().rotate_bytes(4096),
    }
}

fn open(dir: &Path) -> vellum::Result<Log> {
    Options::default().create(Create::Never).open(dir)
}

/// A line of the workload: its number, or a word, and some text.
fn record(name: &str, number: u64) -> String {
    format!("{name} {number} {}\n", "x".repeat((number * 37 % 301) as usize))
}

/// The numbers of the workload and the records that were appended afterwards, without marker lines.
fn records(log: &Log) -> Vec<String> {
    let mut reader = log.reader(log.begin()).unwrap();
    reader.skip_damage(true);
    let mut all = Vec::new();
    while let Some(found) = reader.next().unwrap() {
        let line = String::from_utf8_lossy(found.payload);
        let mut words = line.split(' ');
        let (name, number) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
        if number.parse().is_ok_and(|number| record(name, number) == *line) {
            all.push(format!("{name} {number}"));
        }
    }
    all
}

/// Prints a line by one call, so that it is in the recording where it was printed.
#[expect(clippy::disallowed_methods, reason = "who records the disk reads it at once")]
fn say(line: &str) {
    stdout().lock().write_all(format!("{line}\n").as_bytes()).unwrap();
}

/// Appends beside a shipper, and reports the durable end here; every other time also in the store.
/// Records that are not committed must not be shipped.
fn work(kind: &str, places: &Places) {
    let log = options(kind).open(&places.log).unwrap();
    let mut shipper = places.ship();
    shipper.args(["--interval", "5ms", "--min-interval", "1ms"]).stderr(Stdio::null());
    let mut shipper = shipper.spawn().unwrap();
    while log.ship().state().unwrap().pid.is_none() {
        std::thread::yield_now();
    }
    let mut committed = log.begin();
    for number in 1..=RECORDS {
        let lsn = log.append(record("work", number).as_bytes()).unwrap();
        if number % COMMIT != 0 {
            continue;
        }
        // By now the shipper has seen all records, and has shipped those that were committed.
        while log.ship().end() < committed {
            std::thread::yield_now();
        }
        let is_remote = number % (2 * COMMIT) == 0;
        if is_remote { log.ship().commit(lsn) } else { log.commit(lsn) }.unwrap();
        say(&format!("ACK {}-{number}", number + 1 - COMMIT));
        committed = log.durable();
    }
    shipper.kill().unwrap();
    shipper.wait().unwrap();
    if !places.is_cut {
        copy(&places.store, &places.last_store());
    }
}

fn copy(from: &Path, to: &Path) {
    let _ = fs::remove_dir_all(to);
    assert!(Command::new("cp").arg("-a").arg(from).arg(to).status().unwrap().success());
}

/// Prints the records of the local log, and complains if shipping does not continue as it should.
fn check(kind: &str, places: &Places) {
    // Before anything was acknowledged there may be no log.
    let Ok(log) = open(&places.log) else { return };
    for line in records(&log) {
        say(line.strip_prefix("work ").unwrap_or("BAD a record of nobody"));
    }
    drop(log);
    let fault = match places.is_cut {
        true => go_on(kind, places),
        false => go_on_or_refuse(kind, places),
    };
    if let Err(fault) = fault {
        say(&format!("BAD {}", fault.replace('\n', "; ")));
    }
}

/// Appends what the log never had, and ships it.
fn ship_more(kind: &str, places: &Places) -> Output {
    let log = options(kind).open(&places.log).unwrap();
    for number in 0..20 {
        log.append(record("after", number).as_bytes()).unwrap();
    }
    log.sync().unwrap();
    drop(log);
    places.ship().arg("--once").output().unwrap()
}

fn is_local(places: &Places, restored: &[String]) -> Result<(), String> {
    let local = records(&open(&places.log).map_err(|error| error.to_string())?);
    match restored == local {
        true => Ok(()),
        false => Err(format!("restored {restored:?}, and the log has {local:?}")),
    }
}

fn go_on(kind: &str, places: &Places) -> Result<(), String> {
    let shipped = ship_more(kind, places);
    if !shipped.status.success() {
        return Err(format!("it does not go on: {}", text(&shipped)));
    }
    // A log that has lost what was shipped begins a generation, as if it had been truncated.
    if places.store.join("g00000001").exists() {
        return Err("the store had what the disk has lost".to_string());
    }
    is_local(places, &places.restored()?)
}

/// The store has all that the workload shipped, also what the disk has lost.
fn go_on_or_refuse(kind: &str, places: &Places) -> Result<(), String> {
    copy(&places.last_store(), &places.store);
    let shipped = ship_more(kind, places);
    let restored = places.restored()?;
    if shipped.status.success() {
        return is_local(places, &restored);
    }
    let (said, all) = (text(&shipped), (1..=RECORDS).map(|number| format!("work {number}")));
    let is_refused =
        ["something else", "another copy", "does not own"].map(|why| said.contains(why));
    match is_refused.contains(&true) {
        false => Err(format!("it was not refused, but: {said}")),
        // No acknowledged record is missing.
        true if restored == all.collect::<Vec<_>>() => Ok(()),
        true => Err(format!("refused, and restored {restored:?}")),
    }
}
