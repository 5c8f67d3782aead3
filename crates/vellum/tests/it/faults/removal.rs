//! Writers whose log's directory, or files in it, are removed or moved.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};

use vellum::{Create, ErrorKind, Fill, Layout, Log, Lsn, Options, Tuning};

use crate::support::child::{self, Child};
use crate::support::{assert_sound, payloads, place, scratch, small, until};

const SHAPES: [(Layout, Fill); 4] = [
    (Layout::Framed, Fill::Mapped),
    (Layout::Framed, Fill::Staged),
    (Layout::Text, Fill::Mapped),
    (Layout::Text, Fill::Pwrite),
];

fn line(name: &str, number: usize) -> Vec<u8> {
    format!("{name} {number}\n").into_bytes()
}

/// Appends numbered lines until that is refused because the log has gone; returns how many there
/// are.
fn count_until_refused(log: &Log) -> usize {
    let mut number = 0;
    until("the writer notices", || {
        for _ in 0..1000 {
            if let Err(error) = log.append(&line("x", number)) {
                assert_eq!(error.kind(), ErrorKind::Removed, "{error}");
                return Some(number);
            }
            number += 1;
        }
        None
    })
}

fn lines(count: usize) -> Vec<Vec<u8>> {
    (0..count).map(|number| line("x", number)).collect()
}

#[test]
fn a_writer_whose_log_was_moved_is_told_and_can_go_on_in_a_new_one() {
    for (layout, fill) in SHAPES {
        let dir = scratch();
        let moved = dir.path().join("moved");
        let log = small(layout).tuning(Tuning::new().fill(fill)).open(place(&dir)).unwrap();
        log.append(b"before\n").unwrap();
        fs::rename(place(&dir), &moved).unwrap();
        let count = count_until_refused(&log);
        assert_eq!(log.reserve(3).unwrap_err().kind(), ErrorKind::Removed);
        let mut batch = log.batch();
        batch.push(b"of a batch\n").unwrap();
        assert_eq!(batch.append().unwrap_err().kind(), ErrorKind::Removed);
        let new = log.reopen().unwrap();
        let at = new.append(b"new\n").unwrap();
        new.commit(at).unwrap();
        assert_eq!(payloads(&new), [b"new\n"], "{layout} {fill}");
        assert_eq!(new.stat().unwrap().fill, fill);
        assert_eq!(
            new.stat().unwrap().segment_capacity_bytes,
            log.stat().unwrap().segment_capacity_bytes
        );
        drop(log);
        let old = Options::default().open(&moved).unwrap();
        assert_eq!(payloads(&old)[1..], lines(count));
        assert_sound(&old);
        assert_sound(&new);
    }
}

#[test]
fn a_writer_whose_log_was_removed_is_told_and_can_go_on_in_a_new_one() {
    for (layout, fill) in SHAPES {
        let dir = scratch();
        let log = small(layout).tuning(Tuning::new().fill(fill)).open(place(&dir)).unwrap();
        let second = small(layout).tuning(Tuning::new().fill(fill)).open(place(&dir)).unwrap();
        fs::remove_dir_all(place(&dir)).unwrap();
        count_until_refused(&log);
        let new = log.reopen().unwrap();
        new.append(b"new\n").unwrap();
        drop(log);
        // A process that comes later is in the same log.
        count_until_refused(&second);
        second.reopen().unwrap().append(b"from the second\n").unwrap();
        assert_eq!(payloads(&new), [&b"new\n"[..], b"from the second\n"], "{layout} {fill}");
        assert_sound(&new);
    }
}

#[test]
fn a_new_log_keeps_the_policy_of_the_old_one() {
    let dir = scratch();
    let options = Options::mapped_text().rotate_bytes(5000).retain_files(3);
    let options = options.compress(cfg!(feature = "zstd"));
    let log = options.mode(0o600).open(place(&dir)).unwrap();
    let same = Options::default().open(place(&dir)).unwrap();
    let policy = log.stat().unwrap().policy;
    fs::rename(place(&dir), dir.path().join("moved")).unwrap();
    count_until_refused(&same);
    assert_eq!(same.reopen().unwrap().stat().unwrap().policy, policy);
}

#[test]
fn a_log_that_was_removed_is_made_again_only_by_who_may_write() {
    let dir = scratch();
    drop(Options::default().open(place(&dir)).unwrap());
    let log = Options::default().create(Create::Never).open(place(&dir)).unwrap();
    let view = Options::default().read_only(true).open(place(&dir)).unwrap();
    fs::remove_dir_all(place(&dir)).unwrap();
    assert_eq!(view.reopen().unwrap_err().kind(), ErrorKind::NotFound);
    assert!(!place(&dir).exists());
    log.reopen().unwrap().append(b"new").unwrap();
}

#[test]
fn a_log_that_is_put_back_goes_on() {
    let dir = scratch();
    let log = small(Layout::Text).open(place(&dir)).unwrap();
    fs::rename(place(&dir), dir.path().join("moved")).unwrap();
    count_until_refused(&log);
    fs::rename(dir.path().join("moved"), place(&dir)).unwrap();
    log.append(b"again\n").unwrap();
}

#[test]
fn a_writer_notices_in_the_middle_of_a_file() {
    for layout in [Layout::Framed, Layout::Text] {
        let dir = scratch();
        let log = vellum::internal::options(layout).open(place(&dir)).unwrap();
        fs::rename(place(&dir), dir.path().join("moved")).unwrap();
        count_until_refused(&log);
        assert_eq!(log.tail().get() / log.stat().unwrap().segment_capacity_bytes, 1);
    }
}

#[test]
fn going_on_in_a_new_file_makes_none_in_a_log_that_was_moved() {
    for layout in [Layout::Framed, Layout::Text] {
        let dir = scratch();
        let log = small(layout).open(place(&dir)).unwrap();
        let long = vec![b'x'; 3000];
        fs::rename(place(&dir), dir.path().join("moved")).unwrap();
        // Segments of a page, of which one or two are ready.
        let refused = (0..10).find_map(|_| log.append(&long).err());
        assert_eq!(refused.unwrap().kind(), ErrorKind::Removed);
    }
}

#[test]
fn without_its_lock_file_a_log_is_left_and_another_is_made() {
    for (layout, fill) in SHAPES {
        let dir = scratch();
        let log = small(layout).tuning(Tuning::new().fill(fill)).open(place(&dir)).unwrap();
        log.append(b"before\n").unwrap();
        fs::remove_file(place(&dir).join("lock")).unwrap();
        count_until_refused(&log);
        let new = log.reopen().unwrap();
        new.append(b"new\n").unwrap();
        assert_eq!(payloads(&new), [b"new\n"]);
        let aside = |name: &str| name.starts_with("log.removed-");
        let names = fs::read_dir(dir.path()).unwrap().map(|e| e.unwrap().file_name());
        let names: Vec<String> = names.map(|name| name.into_string().unwrap()).collect();
        assert_eq!(names.iter().filter(|name| aside(name)).count(), 1, "{names:?}");
    }
}

#[test]
fn an_emptied_directory_holds_a_new_log() {
    let dir = scratch();
    let log = small(Layout::Text).open(place(&dir)).unwrap();
    for entry in fs::read_dir(place(&dir)).unwrap() {
        fs::remove_file(entry.unwrap().path()).unwrap();
    }
    count_until_refused(&log);
    let new = log.reopen().unwrap();
    new.append(b"new\n").unwrap();
    assert_eq!(payloads(&Options::default().open(place(&dir)).unwrap()), [b"new\n"]);
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1, "nothing is left beside it");
}

#[test]
fn a_process_that_has_gone_elsewhere_makes_the_new_log_where_the_old_one_was() {
    crate::support::in_own_process(|| {
        let dir = scratch();
        std::env::set_current_dir(dir.path()).unwrap();
        let log = small(Layout::Text).open("log").unwrap();
        std::env::set_current_dir("/").unwrap();
        fs::rename(place(&dir), dir.path().join("moved")).unwrap();
        count_until_refused(&log);
        log.reopen().unwrap().append(b"new\n").unwrap();
        assert_eq!(payloads(&Options::default().open(place(&dir)).unwrap()), [b"new\n"]);
    });
}

/// Appends numbered lines, in a new log whenever the old one has gone, until it is told to stop.
pub(crate) fn append_and_follow(arguments: &[String]) {
    let (path, name) = (&arguments[0], &arguments[1]);
    let stop = Path::new(&arguments[2]);
    let mut log = small(Layout::Text).open(path).unwrap();
    child::say("ready");
    let mut number = 0;
    while !stop.exists() {
        match log.append(&line(name, number)) {
            Ok(at) => {
                assert_ne!(at, Lsn::ZERO);
                number += 1;
            }
            Err(error) if error.kind() == ErrorKind::Removed => log = log.reopen().unwrap(),
            Err(error) => panic!("{error}"),
        }
    }
    child::say(&number.to_string());
}

struct Followers {
    dir: tempfile::TempDir,
    writers: Vec<Child>,
}

const NAMES: [&str; 3] = ["a", "b", "c"];

impl Followers {
    fn start() -> Followers {
        let dir = scratch();
        let (log, stop) = (place(&dir), dir.path().join("stop"));
        let start = |name: &str| {
            let arguments = [log.to_str().unwrap(), name, stop.to_str().unwrap()];
            Child::start("append and follow", &arguments)
        };
        let mut writers: Vec<Child> = NAMES.into_iter().map(start).collect();
        writers.iter_mut().for_each(|writer| writer.expect("ready"));
        Followers { dir, writers }
    }

    /// Waits until a line of each writer is in the log at the path.
    fn wait_for_all(&self) {
        until("all are in the log", || {
            let mut text = Vec::new();
            for entry in fs::read_dir(place(&self.dir)).ok()?.flatten() {
                if entry.file_name().to_string_lossy().ends_with(".log") {
                    text.extend(fs::read(entry.path()).ok()?);
                }
            }
            let text = String::from_utf8_lossy(&text).into_owned();
            NAMES.iter().all(|name| text.contains(&format!("{name} "))).then_some(())
        });
    }

    /// How many lines each has appended.
    fn stop(&mut self) -> HashMap<&'static str, usize> {
        fs::write(self.dir.path().join("stop"), "").unwrap();
        let writers = self.writers.drain(..);
        let counts = NAMES.into_iter().zip(writers).map(|(name, mut writer)| {
            let count = writer.hears().unwrap().parse().unwrap();
            writer.finish_well();
            (name, count)
        });
        counts.collect()
    }
}

#[test]
fn every_line_is_in_the_moved_logs_or_in_the_new_one_once() {
    let mut followers = Followers::start();
    let moved: Vec<PathBuf> =
        (0..4).map(|number| followers.dir.path().join(format!("moved{number}"))).collect();
    for to in &moved {
        followers.wait_for_all();
        fs::rename(place(&followers.dir), to).unwrap();
    }
    followers.wait_for_all();
    let counts = followers.stop();
    let mut found: HashMap<Vec<u8>, usize> = HashMap::new();
    for path in moved.iter().chain([&place(&followers.dir)]) {
        let log = Options::default().create(Create::Never).open(path).unwrap();
        assert_sound(&log);
        payloads(&log).into_iter().for_each(|line| *found.entry(line).or_default() += 1);
    }
    assert!(found.values().all(|times| *times == 1));
    for (name, count) in counts {
        let is_there = |number| found.contains_key(&line(name, number));
        assert!((0..count).all(is_there), "{count} of {name}");
    }
    let beside = fs::read_dir(followers.dir.path()).unwrap().count();
    assert_eq!(beside, moved.len() + 2, "the log, the moved ones and `stop`");
}

#[test]
fn writers_end_up_in_one_whole_log_however_far_a_removal_comes() {
    let mut followers = Followers::start();
    for round in 0..6 {
        followers.wait_for_all();
        let log = place(&followers.dir);
        match round % 3 {
            0 => drop(fs::remove_dir_all(&log)),
            1 => drop(std::process::Command::new("rm").arg("-rf").arg(&log).output().unwrap()),
            // Does not come to its end.
            _ => {
                for name in ["control", "lock"] {
                    let _ = fs::remove_file(log.join(name));
                }
            }
        }
        until("the old one is left", || {
            let Ok(entries) = fs::read_dir(&log) else { return None };
            (entries.count() > 2 && log.join("control").exists() && log.join("lock").exists())
                .then_some(())
        });
    }
    followers.wait_for_all();
    followers.stop();
    let log = Options::default().create(Create::Never).open(place(&followers.dir)).unwrap();
    assert_sound(&log);
    for name in NAMES {
        let lines = payloads(&log);
        let own = lines.iter().filter(|line| line.starts_with(name.as_bytes()));
        let numbers: Vec<usize> = own
            .map(|line| std::str::from_utf8(&line[2..]).unwrap().trim_end().parse().unwrap())
            .collect();
        assert!(!numbers.is_empty() && numbers.windows(2).all(|pair| pair[0] + 1 == pair[1]));
    }
}
