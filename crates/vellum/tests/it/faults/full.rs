//! A process that chose to wait on a full disk, or to drop records and report them.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Instant;

use vellum::{ErrorKind, Fill, Layout, Log, Lsn, OnFull, Options, Preallocate, Tuning};

use crate::support::child::{self, Child};
use crate::support::mount::Mount;
use crate::support::{LAYOUTS, Numbers, assert_sound, payload, payloads, place, scratch};

const BALLAST_BYTES: usize = 2 << 20;

fn small_segments(layout: Layout) -> Options {
    vellum::internal::options(layout).tuning(Tuning::new().segment_capacity_bytes(256 << 10))
}

/// A small filesystem, a log in it, and something that can be removed to make space.
pub(super) struct Small {
    mount: Mount,
}

impl Small {
    fn new(test: &str) -> Option<Small> {
        let small = Small { mount: Mount::tmpfs(test, 4)? };
        small.fill();
        Some(small)
    }

    /// A tmpfs with nothing in it.
    pub(super) fn tmpfs(test: &str) -> Option<Small> {
        Some(Small { mount: Mount::tmpfs(test, 4)? })
    }

    /// An ext4 with nothing in it.
    pub(super) fn ext4(test: &str) -> Option<Small> {
        Some(Small { mount: Mount::ext4(test, 8)? })
    }

    /// A btrfs with nothing in it.
    pub(super) fn btrfs(test: &str) -> Option<Small> {
        Some(Small { mount: Mount::btrfs(test, 128)? })
    }

    pub(super) fn log(&self) -> PathBuf {
        self.mount.path().join("log")
    }

    pub(super) fn fill(&self) {
        self.fill_with("ballast", BALLAST_BYTES);
    }

    pub(super) fn make_space(&self) {
        self.remove("ballast");
    }

    fn fill_with(&self, name: &str, bytes: usize) {
        // Fails where less is left, which is as full.
        let _ = fs::write(self.mount.path().join(name), vec![1; bytes]);
    }

    /// Leaves no space at all, nor what a filesystem sets aside until it has written.
    pub(super) fn take_all(&self) {
        use std::io::Write;
        let mut file = fs::File::create(self.mount.path().join("all")).unwrap();
        loop {
            let mut taken = 0;
            while let Ok(count) = file.write(&[1; 4096]) {
                taken += count;
            }
            file.sync_all().unwrap();
            if taken == 0 {
                return;
            }
        }
    }

    /// Gives back what [`take_all`](Small::take_all) took.
    pub(super) fn leave_all(&self) {
        self.remove("all");
    }

    fn remove(&self, name: &str) {
        fs::remove_file(self.mount.path().join(name)).unwrap();
    }
}

fn line(name: &str, number: usize) -> Vec<u8> {
    format!("{name} {number} {:990}\n", "").into_bytes()
}

/// Appends numbered lines until some were dropped, waits for space, appends some more.
pub(crate) fn drop_on_a_full_disk(arguments: &[String]) {
    let log =
        Options::default().tuning(Tuning::new().on_full(OnFull::Drop)).open(&arguments[0]).unwrap();
    let mut number = 0;
    let mut append = || {
        number += 1;
        log.append(&line(&arguments[1], number)).unwrap() == Lsn::ZERO
    };
    let mut dropped = 0usize;
    while dropped < 20 {
        dropped += usize::from(append());
    }
    let error = log.batch().append().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidOption, "without records");
    assert_eq!(log.reserve(200_000).unwrap_err().kind(), ErrorKind::NoSpace);
    child::say(&dropped.to_string());
    child::hear();
    // Until it is noticed that there is space again.
    while append() {
        dropped += 1;
    }
    for _ in 0..5 {
        assert!(!append(), "there is space again");
    }
    child::say(&dropped.to_string());
    child::say(&number.to_string());
}

/// How many records a line says were dropped.
fn told(line: &[u8]) -> Option<u64> {
    let line = std::str::from_utf8(line).ok()?.strip_prefix("~ vellum: ")?;
    let count = line.strip_suffix(" records dropped: no space left on the disk ~\n")?;
    count.parse().ok()
}

/// Numbers of the lines of one writer; 0 for a line that reports drops.
fn numbers_of(name: &str, lines: &[Vec<u8>]) -> Vec<usize> {
    let number = |line: &Vec<u8>| {
        if told(line).is_some() {
            return Some(0);
        }
        let text = std::str::from_utf8(line).unwrap().strip_prefix(name)?;
        Some(text.split_whitespace().next().unwrap().parse().unwrap())
    };
    lines.iter().filter_map(number).collect()
}

#[test]
fn records_that_were_dropped_are_told_of_once_before_the_next_of_their_process() {
    for fill in [Fill::Mapped, Fill::Pwrite] {
        for preallocate in [Preallocate::Auto, Preallocate::Off] {
            let Some(small) = Small::new("records_that_were_dropped") else { return };
            let options = small_segments(Layout::Text)
                .tuning(Tuning::new().fill(fill).preallocate(preallocate));
            let log = options.open(small.log()).unwrap();
            let path = small.log();
            let start = |name| Child::start("drop on a full disk", &[path.to_str().unwrap(), name]);
            let names = ["a", "b", "c"];
            let mut writers = names.map(start);
            let says = |writer: &mut Child| writer.hears().unwrap().parse::<usize>().unwrap();
            let dropped: usize = writers.iter_mut().map(says).sum();
            assert_eq!(log.stat().unwrap().dropped, dropped as u64);
            small.make_space();
            writers.iter_mut().for_each(|writer| writer.tell("go on"));
            let dropped: usize = writers.iter_mut().map(says).sum();
            let counts: Vec<usize> = writers.iter_mut().map(says).collect();
            writers.into_iter().for_each(Child::finish_well);
            let lines = payloads(&log);
            assert_eq!(lines.iter().filter_map(|line| told(line)).sum::<u64>(), dropped as u64);
            for (name, count) in names.iter().zip(counts) {
                check_writer(&numbers_of(name, &lines), count);
            }
            assert_sound(&log);
        }
    }
}

/// As a user that makes space by hand.
#[test]
fn records_that_were_dropped_are_told_of_where_the_newest_file_was_removed() {
    let test = "records_that_were_dropped_are_told_of_where_the_newest_file_was_removed";
    let Some(small) = Small::new(test) else { return };
    let tuning = Tuning::new().segment_capacity_bytes(256 << 10).on_full(OnFull::Drop);
    let options = vellum::internal::options(Layout::Text).tuning(tuning);
    let log = options.open(small.log()).unwrap();
    let mut dropped = 0;
    while dropped < 20 {
        dropped += u64::from(log.append(&line("a", 0)).unwrap() == Lsn::ZERO);
    }
    drop(log);
    let newest = fs::canonicalize(small.log().join("current")).unwrap();
    fs::remove_file(newest).unwrap();
    let log = options.open(small.log()).unwrap();
    assert_ne!(log.append(&line("a", 1)).unwrap(), Lsn::ZERO);
    assert_eq!(log.stat().unwrap().dropped, dropped);
    let newest = fs::read(small.log().join("current")).unwrap();
    let told: u64 = newest.split_inclusive(|byte| *byte == b'\n').filter_map(told).sum();
    assert_eq!(told, dropped);
}

/// Every gap in a writer's numbers has a line before it that reports drops.
fn check_writer(numbers: &[usize], count: usize) {
    let mut last = 0;
    let mut has_line = false;
    for number in numbers {
        if *number == 0 {
            has_line = true;
            continue;
        }
        assert!(*number > last, "in order and once: {number} after {last}");
        assert!(*number == last + 1 || has_line, "nothing is missing silently before {number}");
        (last, has_line) = (*number, false);
    }
    assert_eq!(last, count, "the last one is there");
}

/// Appends numbered lines for ever, full disk or not.
pub(crate) fn append_and_drop_for_ever(arguments: &[String]) {
    let log =
        Options::default().tuning(Tuning::new().on_full(OnFull::Drop)).open(&arguments[0]).unwrap();
    child::say("ready");
    for number in 0.. {
        log.append(&line("x", number)).unwrap();
    }
}

#[test]
fn writers_that_are_killed_lose_no_count_and_repeat_none() {
    let Some(small) = Small::new("writers_that_are_killed") else { return };
    let log = small_segments(Layout::Text).open(small.log()).unwrap();
    let path = small.log();
    let mut numbers = Numbers::new(5);
    let mut sum = 0;
    let start = || Child::start("append and drop for ever", &[path.to_str().unwrap()]);
    for _ in 0..12 {
        small.fill_with("reserve", 600_000);
        small.fill();
        let mut writers = [start(), start()];
        writers.iter_mut().for_each(|writer| writer.expect("ready"));
        for _ in 0..numbers.below(6) {
            small.make_space();
            small.fill();
        }
        writers.into_iter().for_each(Child::kill);
        small.make_space();
        small.remove("reserve");
        log.append(b"the next\n").unwrap();
        sum += payloads(&log).iter().filter_map(|line| told(line)).sum::<u64>();
        assert_eq!(sum, log.stat().unwrap().dropped, "each once");
        log.trim(log.published()).unwrap();
    }
}

const MANY: usize = 500_000;

/// Appends many lines, of which most find the disk full, then some more when there is space.
pub(crate) fn drop_many(arguments: &[String]) {
    let log =
        Options::default().tuning(Tuning::new().on_full(OnFull::Drop)).open(&arguments[0]).unwrap();
    let line = line(&arguments[1], 1);
    let append = || log.append(&line).unwrap() != Lsn::ZERO;
    let kept = (0..MANY).filter(|_| append()).count();
    child::say(&kept.to_string());
    child::hear();
    let dropped = (0..).take_while(|_| !append()).count();
    child::say(&dropped.to_string());
}

#[test]
fn a_full_disk_is_looked_at_now_and_then_and_not_for_each_record() {
    for fill in [Fill::Mapped, Fill::Pwrite] {
        let mount = Mount::tmpfs("a_full_disk_is_looked_at", 24);
        let Some(small) = mount.map(|mount| Small { mount }) else { return };
        let options = Options::mapped_text().tuning(Tuning::new().segment_capacity_bytes(1 << 20));
        let log = options.tuning(Tuning::new().fill(fill)).open(small.log()).unwrap();
        small.fill();
        let path = small.log();
        let began = Instant::now();
        let start = |name| Child::start("drop many", &[path.to_str().unwrap(), name]);
        let mut writers = ["a", "b"].map(start);
        let says = |writer: &mut Child| writer.hears().unwrap().parse::<usize>().unwrap();
        let kept: usize = writers.iter_mut().map(says).sum();
        let stat = log.stat().unwrap();
        assert_eq!(kept as u64 + stat.dropped, 2 * MANY as u64);
        let most = began.elapsed().as_millis() as u64 / 50 + 4;
        assert!((1..=most).contains(&stat.full_tries), "{} tries", stat.full_tries);
        small.make_space();
        writers.iter_mut().for_each(|writer| writer.tell("go on"));
        let dropped: usize = writers.iter_mut().map(says).sum();
        writers.into_iter().for_each(Child::finish_well);
        let lines = payloads(&log);
        let told_of: u64 = lines.iter().filter_map(|line| told(line)).sum();
        assert_eq!(told_of, stat.dropped + dropped as u64);
        assert_eq!(lines.iter().filter(|line| told(line).is_none()).count(), kept + 2);
    }
}

#[test]
fn a_log_that_makes_space_itself_appends_at_once() {
    let Some(small) = Small::new("a_log_that_makes_space_itself") else { return };
    let options = small_segments(Layout::Text).tuning(Tuning::new().on_full(OnFull::Drop));
    let log = options.open(small.log()).unwrap();
    let is_dropped = || log.append(&line("x", 1)).unwrap() == Lsn::ZERO;
    while !is_dropped() {}
    log.trim(log.published()).unwrap();
    assert!(!is_dropped());
    while !is_dropped() {}
    small.make_space();
    drop(options.open(small.log()).unwrap());
    assert!(!is_dropped(), "another has opened the log");
}

/// Waits for space for one record.
pub(crate) fn wait_for_space(arguments: &[String]) {
    let log = Options::default()
        .tuning(Tuning::new().on_full(OnFull::Block))
        .open(&arguments[0])
        .unwrap();
    child::say("trying");
    let record = payload(log.layout(), 7, 100_000);
    log.append(&record).unwrap();
    let mut batch = log.batch();
    batch.push(&record).unwrap();
    batch.append().unwrap();
    let mut reservation = log.reserve(record.len()).unwrap();
    std::io::Write::write_all(&mut reservation, &record).unwrap();
    reservation.publish().unwrap();
    child::say("done");
}

fn append_until_full(log: &Log) -> Vec<Lsn> {
    let record = payload(log.layout(), 1, 50_000);
    let mut lsns = Vec::new();
    loop {
        match log.append(&record) {
            Ok(lsn) => lsns.push(lsn),
            Err(error) if error.kind() == ErrorKind::NoSpace => return lsns,
            Err(error) => panic!("{error}"),
        }
    }
}

/// At least `kept` of the six records that two processes wait to append are there in the end.
fn check_waiting(test: &str, kept: usize, make_space: impl Fn(&Small, &Log, &[Lsn])) {
    for layout in LAYOUTS {
        let Some(small) = Small::new(test) else { return };
        let log = small_segments(layout).open(small.log()).unwrap();
        let lsns = append_until_full(&log);
        let path = small.log();
        let start = || Child::start("wait for space", &[path.to_str().unwrap()]);
        let mut waiting = [start(), start(), start()];
        waiting.iter_mut().for_each(|child| child.expect("trying"));
        let [first, second, killed] = waiting;
        killed.kill();
        assert!(append_until_full(&log).is_empty(), "who waits makes no space");
        make_space(&small, &log, &lsns);
        for mut child in [first, second] {
            child.expect("done");
            child.finish_well();
        }
        let record = payload(layout, 7, 100_000);
        let found = payloads(&log).into_iter().filter(|found| *found == record).count();
        assert!((kept..=9).contains(&found), "found {found}");
        assert_sound(&log);
    }
}

#[test]
fn who_waits_for_space_goes_on_when_there_is_some() {
    check_waiting("who_waits_for_space", 6, |small, _, _| small.make_space());
}

#[test]
fn who_waits_for_space_goes_on_when_the_log_is_trimmed() {
    check_waiting("who_waits_for_space", 6, |_, log, lsns| {
        log.trim(*lsns.last().unwrap()).unwrap();
    });
}

#[test]
fn what_the_policy_lets_go_of_makes_space() {
    check_waiting("what_the_policy_lets_go_of", 1, |small, log, _| {
        let policy = match log.layout() {
            Layout::Text => Options::default().retain_bytes(512 << 10),
            _ => return small.make_space(),
        };
        // No process can continue in a new file, which would be the moment to apply the policy.
        drop(policy.open(small.log()).unwrap());
        // This process has the removed files open, and is not about to append.
        log.trim(log.begin()).unwrap();
    });
}

fn is_empty(path: &Path) -> bool {
    !path.exists() || fs::read_dir(path).unwrap().all(|e| e.unwrap().file_name() == "lock")
}

#[test]
fn a_framed_log_drops_nothing() {
    let dir = scratch();
    let dropping = Options::default().tuning(Tuning::new().on_full(OnFull::Drop));
    assert_eq!(dropping.open(place(&dir)).unwrap_err().kind(), ErrorKind::InvalidOption);
    assert!(is_empty(&place(&dir)), "nothing was made");
    drop(Options::default().open(place(&dir)).unwrap());
    assert_eq!(dropping.open(place(&dir)).unwrap_err().kind(), ErrorKind::InvalidOption);
}
