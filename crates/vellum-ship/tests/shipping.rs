//! Shipping with real processes over a directory: deaths, take-overs, copies, cuts.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};

use support::{good, text};
use vellum::{Create, Log, Lsn, Options, Tuning};
use vellum_ship_figures::Figures;
use vellum_testing::Over;

mod support;

const SHIP: &str = env!("CARGO_BIN_EXE_vellum-ship");

struct Place {
    dir: tempfile::TempDir,
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

    fn ship(&self, log: &str, options: &[&str]) -> Output {
        let mut command = Command::new(SHIP);
        command.arg("ship").arg(self.path(log)).arg(self.url()).arg("--once").args(options);
        command.output().unwrap()
    }

    fn spawn(&self, log: &str) -> Child {
        let mut command = Command::new(SHIP);
        command.arg("ship").arg(self.path(log)).arg(self.url());
        command.args(["--interval", "5ms", "--min-interval", "1ms"]);
        command.stderr(Stdio::null()).spawn().unwrap()
    }

    fn restored(&self, name: &str) -> Vec<Vec<u8>> {
        good(&self.restore(name));
        records(&self.path(name))
    }

    fn restore(&self, name: &str) -> Output {
        let mut command = Command::new(SHIP);
        command.arg("restore").arg(self.url()).arg(self.path(name)).output().unwrap()
    }

    fn copy(&self, from: &str, to: &str) {
        support::copy(&self.path(from), &self.path(to));
    }
}

fn records(dir: &Path) -> Vec<Vec<u8>> {
    let log = Options::default().create(Create::Never).open(dir).unwrap();
    records_of(&log)
}

fn records_of(log: &Log) -> Vec<Vec<u8>> {
    support::records_of(log, true)
}

fn fill(log: &Log, name: &str, count: usize) -> Lsn {
    let mut end = Lsn::ZERO;
    for index in 0..count {
        end = log.append(format!("{name} {index}").as_bytes()).unwrap();
    }
    log.sync().unwrap();
    end
}

#[test]
fn what_was_shipped_is_restored_and_a_second_time_ships_what_is_new() {
    let place = Place::new();
    let log = Options::default().open(place.path("log")).unwrap();
    fill(&log, "first", 100);
    good(&place.ship("log", &[]));
    fill(&log, "second", 100);
    good(&place.ship("log", &[]));
    assert_eq!(place.restored("copy"), records_of(&log));
}

#[test]
fn a_text_log_with_rotation_is_restored() {
    let place = Place::new();
    let options = Options::mapped_text().rotate_bytes(1 << 16);
    let log = options.open(place.path("log")).unwrap();
    for round in 0..3 {
        for index in 0..2000 {
            log.append(format!("{round} a line of some length, number {index}\n").as_bytes())
                .unwrap();
        }
        good(&place.ship("log", &[]));
    }
    assert_eq!(place.restored("copy"), records_of(&log));
}

/// The files of a text log that rotates have gaps between them: positions without bytes.
#[test]
fn what_is_told_of_a_text_log_are_bytes_and_not_positions() {
    let place = Place::new();
    let log = Options::text().rotate_bytes(1 << 16).open(place.path("log")).unwrap();
    let line = "a line of some length, and of sixty-four bytes with its newline\n";
    (0..5000).for_each(|_| drop(log.append(line.as_bytes())));
    let size = 5000 * line.len() as u64;
    assert!(log.published().get() - log.begin().get() > 10 * size, "there are gaps");
    let run = |words: &[&str]| {
        let output = Command::new(SHIP).args(words).output().unwrap();
        good(&output);
        let texts = [output.stdout, output.stderr].map(|text| String::from_utf8(text).unwrap());
        texts.concat()
    };
    let (url, dir) = (place.url(), place.path("log").display().to_string());
    let told = "312 KiB";
    // No record is committed, and shipping does that first.
    let planned = run(&["ship", "--dry-run", &dir, &url]);
    assert!(
        planned.contains(&format!("{told} would be shipped now, in at least 5 objects")),
        "{planned}"
    );
    let shipped = text(&place.ship("log", &[]));
    assert!(shipped.contains(&format!("shipped {told} of the log")), "{shipped}");
    let planned = run(&["ship", "--dry-run", &dir, &url]);
    assert!(planned.contains("0 bytes would be shipped now"), "{planned}");
    let (list, verified) = (run(&["ls", &url]), run(&["verify", &url]));
    assert!(list.contains(told) && verified.contains(told), "{list} {verified}");
    let copy = place.path("copy").display().to_string();
    let restored = run(&["restore", &url, &copy]);
    assert!(restored.contains(&format!("restored {told} ")), "{restored}");
    for words in
        [&["ls", "--json", &url][..], &["stat", "--json", &url], &["verify", "--json", &url]]
    {
        assert!(run(words).contains(&format!("\"bytes\":{size}")), "{words:?}: {}", run(words));
    }
    // A part of it ends in the middle of a line, which is left out.
    let to = (log.begin().get() + 1000).to_string();
    let part = place.path("part").display().to_string();
    let restored = run(&["restore", "--json", "--to", &to, &url, &part]);
    assert!(restored.contains("\"bytes\":960"), "{restored}");
}

#[test]
fn what_is_stored_again_in_a_merged_object_does_not_count_as_shipped_again() {
    let place = Place::new();
    let log = Options::default().open(place.path("log")).unwrap();
    for _ in 0..14 {
        (0..70).for_each(|_| drop(log.append(&[b'x'; 10_000])));
        good(&place.ship("log", &[]));
    }
    let listed = Command::new(SHIP).args(["stat", "--json", &place.url()]).output().unwrap();
    let listed = String::from_utf8(listed.stdout).unwrap();
    assert!(!listed.contains("\"merged\":0"), "{listed}");
    let figures = Figures::of(&log).unwrap();
    assert_eq!(figures.log_bytes, log.ship().end().get() - log.begin().get());
    assert!(figures.puts > 14 && figures.shipped_at.is_some(), "{figures:?}");
}

/// `VELLUM_SHIP_KILLS` says how often; the moments are spread by the shipper's stored position.
#[test]
fn a_shipper_that_is_killed_again_and_again_loses_and_doubles_nothing() {
    let place = Place::new();
    let log = Options::default().open(place.path("log")).unwrap();
    let is_over = AtomicBool::new(false);
    let kills = std::env::var("VELLUM_SHIP_KILLS").ok().and_then(|text| text.parse().ok());
    std::thread::scope(|scope| {
        let _over = Over(&is_over);
        scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                fill(&log, "beside", 10);
            }
        });
        for kill in 0..kills.unwrap_or(12_u64) {
            let before = log.ship().end();
            let mut shipper = place.spawn("log");
            // It dies at its beginning, or after it has shipped something.
            while kill % 3 != 0
                && log.ship().end() == before
                && shipper.try_wait().unwrap().is_none()
            {
                std::thread::yield_now();
            }
            shipper.kill().unwrap();
            shipper.wait().unwrap();
        }
    });
    let shipped = log.ship().end();
    assert!(shipped > log.begin());
    good(&place.ship("log", &[]));
    assert_eq!(place.restored("copy"), records_of(&log));
}

#[test]
fn a_shipper_that_is_told_to_end_ends_well() {
    let place = Place::new();
    let log = Options::default().open(place.path("log")).unwrap();
    fill(&log, "a", 100);
    let mut shipper = place.spawn("log");
    while log.ship().end() < log.durable() {
        std::thread::yield_now();
    }
    let pid = rustix::process::Pid::from_child(&shipper);
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
    assert!(shipper.wait().unwrap().success());
    assert_eq!(place.restored("copy"), records_of(&log));
}

#[test]
fn a_copy_that_ships_other_records_is_stopped_at_the_first_difference() {
    let place = Place::new();
    let log = Options::default().open(place.path("log")).unwrap();
    fill(&log, "common", 50);
    good(&place.ship("log", &[]));
    drop(log);
    place.copy("log", "clone");
    let log = Options::default().open(place.path("log")).unwrap();
    fill(&log, "ours", 50);
    good(&place.ship("log", &[]));
    let clone = Options::default().open(place.path("clone")).unwrap();
    fill(&clone, "others", 50);
    let output = place.ship("clone", &[]);
    assert!(!output.status.success());
    assert!(text(&output).contains("something else"), "{}", text(&output));
    assert_eq!(place.restored("copy"), records_of(&log));
}

#[test]
fn a_take_over_fences_the_owner_and_keeps_what_both_have() {
    let place = Place::new();
    let log = Options::default().open(place.path("log")).unwrap();
    fill(&log, "common", 50);
    good(&place.ship("log", &[]));
    place.restored("other");
    let other = Options::default().open(place.path("other")).unwrap();
    fill(&other, "other", 50);
    let refused = place.ship("other", &[]);
    assert!(text(&refused).contains("--take-over"), "{}", text(&refused));
    good(&place.ship("other", &["--take-over"]));
    fill(&log, "late", 10);
    let fenced = place.ship("log", &[]);
    assert!(text(&fenced).contains("taken the log over"), "{}", text(&fenced));
    assert_eq!(place.restored("copy"), records_of(&other));
}

#[test]
fn a_log_that_was_truncated_begins_a_generation() {
    let place = Place::new();
    let log = Options::default().open(place.path("log")).unwrap();
    fill(&log, "kept", 50);
    good(&place.ship("log", &[]));
    let cut = fill(&log, "cut", 50);
    good(&place.ship("log", &[]));
    log.truncate(cut).unwrap();
    fill(&log, "new", 50);
    drop(log);
    good(&place.ship("log", &[]));
    assert!(place.path("store/g00000001").exists());
    assert_eq!(place.restored("copy"), records(&place.path("log")));
}

/// The claim was about to seal the end of the store, when the shipper died.
#[test]
fn a_claim_that_did_not_end_does_not_hide_that_the_log_was_truncated_since() {
    let place = Place::new();
    let log = Options::default().open(place.path("log")).unwrap();
    let cut = fill(&log, "kept", 50);
    fill(&log, "cut", 50);
    good(&place.ship("log", &[]));
    let file = place.path("log/ship");
    let mut state: serde_json::Value = serde_json::from_slice(&fs::read(&file).unwrap()).unwrap();
    let nonce = format!("{:032x}", 7);
    state["claim"] = serde_json::json!({ "nonce": nonce, "fork": null, "only": null });
    fs::write(&file, state.to_string()).unwrap();
    log.truncate(cut).unwrap();
    fill(&log, "new", 80);
    drop(log);
    good(&place.ship("log", &[]));
    assert_eq!(place.restored("copy"), records(&place.path("log")));
}

/// A file that an operator removed is a gap in the store too, which a restart knows again.
#[test]
fn a_gap_in_the_midst_of_the_log_is_shipped_once() {
    let place = Place::new();
    // The gap is longer than any chunk.
    let options = Options::mapped_text().rotate_bytes(1 << 16);
    let options = options.tuning(Tuning::new().segment_capacity_bytes(64 << 20));
    let log = options.open(place.path("log")).unwrap();
    let lines = |count| {
        for index in 0..count {
            log.append(format!("a line of some length, number {index}\n").as_bytes()).unwrap();
        }
        log.sync().unwrap();
    };
    lines(100);
    good(&place.ship("log", &[]));
    let state = fs::read(place.path("log/ship")).unwrap();
    lines(8000);
    let names = fs::read_dir(place.path("log")).unwrap().map(|entry| entry.unwrap().path());
    let mut files: Vec<PathBuf> =
        names.filter(|path| path.extension().is_some_and(|end| end == "log")).collect();
    files.sort();
    fs::remove_file(&files[1]).unwrap();
    good(&place.ship("log", &[]));
    fs::write(place.path("log/ship"), state).unwrap();
    lines(10);
    good(&place.ship("log", &[]));
    let restored = place.restore("copy");
    assert!(text(&restored).contains("were lost before they were shipped"), "{}", text(&restored));
    assert_eq!(records(&place.path("copy")), records_of(&log));
}

#[test]
fn a_store_whose_content_was_deleted_is_not_filled_again() {
    let place = Place::new();
    let log = Options::default().open(place.path("log")).unwrap();
    fill(&log, "a", 10);
    good(&place.ship("log", &[]));
    fs::remove_dir_all(place.path("store")).unwrap();
    fs::create_dir(place.path("store")).unwrap();
    let output = place.ship("log", &[]);
    assert!(text(&output).contains("was deleted"), "{}", text(&output));
}

#[test]
fn old_generations_are_deleted_and_the_rest_can_be_restored() {
    let place = Place::new();
    let log = Options::default().open(place.path("log")).unwrap();
    fill(&log, "old", 50);
    good(&place.ship("log", &[]));
    good(&place.ship("log", &["--take-over"]));
    fill(&log, "new", 50);
    good(&place.ship("log", &[]));
    let mut trim = Command::new(SHIP);
    good(&trim.arg("trim").arg(place.url()).args(["--retain", "0s"]).output().unwrap());
    let all = records_of(&log);
    let kept = place.restored("copy");
    assert_eq!(kept, all[50..]);
}

/// Ships what is durable to another directory.
fn ship_to(place: &Place, name: &str, options: &[&str]) -> Output {
    let mut command = Command::new(SHIP);
    command.arg("ship").arg(place.path("log")).args(options);
    command.arg(format!("file://{}", place.path(name).display())).arg("--once").output().unwrap()
}

#[test]
fn a_log_that_is_detached_ships_elsewhere() {
    let place = Place::new();
    let log = Options::default().open(place.path("log")).unwrap();
    fill(&log, "first", 100);
    good(&ship_to(&place, "one", &[]));
    let refused = ship_to(&place, "two", &[]);
    assert_eq!(refused.status.code(), Some(1));
    assert!(text(&refused).contains("vellum ship --detach LOG"), "{refused:?}");
    let detach = || {
        let mut command = Command::new(SHIP);
        command.args(["ship", "--detach"]).arg(place.path("log")).output().unwrap()
    };
    let detached = detach();
    good(&detached);
    assert!(text(&detached).contains("keeps nothing for a shipper"), "{detached:?}");
    assert_eq!(log.ship().state().unwrap().held_from, None);
    assert!(text(&detach()).contains("was not shipped"));
    good(&ship_to(&place, "two", &[]));
    let shipper = log.ship().elect().unwrap();
    assert_eq!(detach().status.code(), Some(1), "somebody ships");
    drop(shipper);
    fill(&log, "second", 100);
    good(&ship_to(&place, "new", &["--take-over"]));
    let from = |name| format!("file://{}", place.path(name).display());
    for (name, count) in [("one", 100), ("two", 100), ("new", 200)] {
        let copy = place.path(&format!("copy-{name}"));
        let mut command = Command::new(SHIP);
        good(&command.arg("restore").arg(from(name)).arg(&copy).output().unwrap());
        assert_eq!(records(&copy), records_of(&log)[..count], "{name}");
    }
}

#[test]
fn a_target_in_the_logs_own_directory_is_refused() {
    let place = Place::new();
    let log = Options::text().file_link(true).open(place.path("app.log")).unwrap();
    fill(&log, "line", 10);
    std::os::unix::fs::symlink(place.path("app.log.d"), place.path("by-link")).unwrap();
    for target in ["app.log.d", "app.log.d/store", "by-link/store"] {
        let url = format!("file://{}", place.path(target).display());
        let mut command = Command::new(SHIP);
        command.arg("ship").arg(place.path("app.log")).args([&url, "--once"]);
        let refused = command.output().unwrap();
        assert_eq!(refused.status.code(), Some(2), "{target}: {}", text(&refused));
        assert!(text(&refused).contains("the directory of the log itself"), "{}", text(&refused));
        assert!(!place.path("app.log.d/store").exists());
    }
}

#[test]
fn a_log_is_closed_when_the_shipper_ends() {
    let place = Place::new();
    let log = Options::mapped_text().open(place.path("log")).unwrap();
    fill(&log, "line", 100);
    drop(log);
    let lens = || {
        let files = fs::read_dir(place.path("log")).unwrap().flatten();
        let files = files.filter(|file| file.path().extension().is_some_and(|end| end == "log"));
        files.map(|file| file.metadata().unwrap().len()).sum::<u64>()
    };
    let before = lens();
    good(&place.ship("log", &[]));
    assert_eq!(lens(), before);
    let view = Options::default().read_only(true).open(place.path("log")).unwrap();
    assert_eq!(view.stat().unwrap().participants.len(), 0);
}

#[test]
fn shipping_a_log_to_which_nothing_came_makes_no_object() {
    let place = Place::new();
    let log = Options::wal().open(place.path("log")).unwrap();
    log.append_durable(b"one").unwrap();
    drop(log);
    let ship = || {
        good(&place.ship("log", &[]));
        let mut command = Command::new(SHIP);
        let output = command.arg("ls").arg("--json").arg(place.url()).output().unwrap();
        good(&output);
        output.stdout
    };
    let before = ship();
    assert_eq!(ship(), before);
}

#[test]
fn once_says_what_it_did_and_a_wrong_url_is_a_usage_error() {
    let place = Place::new();
    let log = Options::default().open(place.path("log")).unwrap();
    fill(&log, "first", 100);
    let shipped = place.ship("log", &[]);
    good(&shipped);
    let said = text(&shipped);
    assert!(said.contains("shipped ") && said.lines().count() == 1, "{said}");
    assert!(text(&place.ship("log", &[])).contains("nothing new to ship"));
    for url in ["/a/path", "nothing://x/y", "https://host/x"] {
        for command in ["ls", "cat", "stat"] {
            let ran = Command::new(SHIP).args([command, url]).output().unwrap();
            assert_eq!(ran.status.code(), Some(2), "{command} {url}: {ran:?}");
        }
        let mut command = Command::new(SHIP);
        let ran = command.arg("ship").arg(place.path("log")).arg(url).output().unwrap();
        assert_eq!(ran.status.code(), Some(2), "{url}: {ran:?}");
    }
}
