//! A full disk: F10.
//!
//! The predecessor's host program was killed by `SIGBUS`. Here an append is refused before anything
//! is reserved, and the log continues when there is space again.

use std::fs::{self, File};
use std::path::Path;

use vellum::{ErrorKind, Fill, Layout, Log, Options, Preallocate, Tuning};

use super::full::Small;
use crate::support::child::{self, Child};
use crate::support::mount::Mount;
use crate::support::{LAYOUTS, assert_sound, payload, payloads, read_all};

/// The bytes that are removed to make space again.
const BALLAST_BYTES: usize = 2 << 20;

/// Appends until the disk is full, waits for space, and appends again.
pub(crate) fn fill_the_disk(arguments: &[String]) {
    let log = Options::default().open(&arguments[0]).unwrap();
    let len: usize = arguments[1].parse().unwrap();
    let record = payload(log.layout(), 1, len);
    let mut count = append_until_full(&log, &record, Path::new(&arguments[0]));
    assert_eq!(append_until_refused(&log, &record), 0, "it stays full");
    child::say(&count.to_string());
    child::hear();
    for _ in 0..(400_000 / len).clamp(1, 5) {
        log.append(&record).expect("there is space again");
        count += 1;
    }
    assert_eq!(log.published(), log.tail());
    child::say(&count.to_string());
}

/// ext4 gives the blocks of removed and shortened files away only after its next journal commit.
fn append_until_full(log: &Log, record: &[u8], path: &Path) -> usize {
    let mut count = 0;
    loop {
        let more = append_until_refused(log, record);
        rustix::fs::syncfs(File::open(path).unwrap()).unwrap();
        if more == 0 {
            return count;
        }
        count += more;
    }
}

fn append_until_refused(log: &Log, record: &[u8]) -> usize {
    let mut count = 0;
    loop {
        match log.append(record) {
            Ok(_) => count += 1,
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::NoSpace, "{error}");
                assert!(error.raw_os_error().is_some() && error.path().is_some(), "{error}");
                return count;
            }
        }
    }
}

/// The ways to keep records that a full disk meets in different places.
fn ways() -> Vec<Options> {
    use Preallocate::*;
    let mut ways = Vec::new();
    for preallocate in [Auto, Off, Fallocate, Zeros, Sparse, Recycle] {
        for fill in [Fill::Mapped, Fill::Pwrite] {
            for layout in [Layout::Framed, Layout::Text] {
                let is_valid = !(preallocate == Sparse && fill == Fill::Mapped
                    || matches!(preallocate, Recycle | Zeros) && layout == Layout::Text);
                if is_valid {
                    let way = vellum::internal::options(layout)
                        .tuning(Tuning::new().preallocate(preallocate).fill(fill));
                    let way = way.tuning(Tuning::new().segment_capacity_bytes(256 << 10));
                    if layout == Layout::Text {
                        ways.push(way.clone().rotate_bytes(40_000));
                    }
                    ways.push(way);
                }
            }
        }
    }
    ways
}

fn check_full_disk(mount: &Path, options: &Options, len: usize) {
    let case = format!("{options:?}, {len} bytes");
    let (path, ballast) = (mount.join("log"), mount.join("ballast"));
    fs::write(&ballast, vec![1; BALLAST_BYTES]).unwrap();
    let log = options.open(&path).unwrap();
    let arguments = [path.to_str().unwrap(), &len.to_string()];
    let mut writer = Child::start("fill the disk", &arguments);
    let hears = |writer: &mut Child| {
        let answer = writer.hears();
        let answer = answer.unwrap_or_else(|| panic!("the writer died: {case}"));
        answer.parse::<usize>().unwrap()
    };
    let record = payload(log.layout(), 1, len);
    let count = hears(&mut writer);
    let found = payloads(&log).into_iter().filter(|found| *found == record).count();
    // Records behind a reservation that could be neither filled nor padded wait for space.
    assert!(found <= count, "nothing twice: {case}");
    assert_sound(&log);
    fs::remove_file(&ballast).unwrap();
    writer.tell("go on");
    let count = hears(&mut writer);
    writer.finish_well();
    log.append(&payload(log.layout(), 2, 100)).unwrap();
    let mut found = payloads(&log);
    found.retain(|found| *found == record);
    assert_eq!(found.len(), count, "all that was acknowledged: {case}");
    assert_sound(&log);
    drop(log);
    fs::remove_dir_all(path).unwrap();
}

#[test]
fn a_full_tmpfs_refuses_records_and_the_log_goes_on_when_there_is_space() {
    let Some(mount) = Mount::tmpfs("a_full_tmpfs", 4) else { return };
    for options in ways() {
        for len in [1000, 50_000, 300_000] {
            check_full_disk(mount.path(), &options, len);
        }
    }
}

#[test]
fn a_full_ext4_refuses_records_and_the_log_goes_on_when_there_is_space() {
    let Some(mount) = Mount::ext4("a_full_ext4", 8) else { return };
    for options in ways() {
        check_full_disk(mount.path(), &options, 2500);
    }
}

/// Has a thread meet the full disk and end, and another one continue when there is space.
pub(crate) fn fail_in_a_thread(arguments: &[String]) {
    let log = Options::default().open(&arguments[0]).unwrap();
    let record = payload(log.layout(), 1, 50_000);
    log.append(&record).unwrap();
    let count = std::thread::scope(|scope| {
        scope.spawn(|| append_until_refused(&log, &record)).join().unwrap()
    });
    child::say("full");
    child::hear();
    log.append(&record).expect("there is space again");
    let found = read_all(&log).into_iter().filter(|read| read.1 == record).count();
    child::say(&format!("{found} of {}", count + 2));
    child::hear();
}

#[test]
fn a_thread_that_met_the_full_disk_and_ended_holds_nobody_up() {
    let Some(mount) = Mount::tmpfs("a_thread_that_met_the_full_disk", 4) else { return };
    for options in ways() {
        let (path, ballast) = (mount.path().join("log"), mount.path().join("ballast"));
        fs::write(&ballast, vec![1; BALLAST_BYTES]).unwrap();
        drop(options.open(&path).unwrap());
        let mut writer = Child::start("fail in a thread", &[path.to_str().unwrap()]);
        writer.expect("full");
        fs::remove_file(&ballast).unwrap();
        writer.tell("go on");
        let answer = writer.hears().expect("survives");
        let (found, appended) = answer.split_once(" of ").unwrap();
        assert_eq!(found, appended, "records are visible: {options:?}");
        writer.finish_well();
        fs::remove_dir_all(path).unwrap();
    }
}

#[test]
fn a_log_on_a_full_disk_can_be_opened_read_and_trimmed() {
    let Some(mount) = Mount::tmpfs("a_log_on_a_full_disk", 2) else { return };
    let path = mount.path().join("log");
    let options = Options::default().tuning(Tuning::new().segment_capacity_bytes(64 << 10));
    let log = options.open(&path).unwrap();
    let record = payload(Layout::Framed, 1, 3000);
    let count = append_until_refused(&log, &record);
    // Eats what is left, so that not one page is free.
    let _ = fs::write(mount.path().join("rest"), vec![1; 2 << 20]);
    drop(log);
    let log = options.open(&path).unwrap();
    assert_eq!(payloads(&log).len(), count);
    let middle = read_all(&log)[count / 2].0;
    assert!(log.trim(middle).unwrap().segments_removed > 0);
    for _ in 0..count / 4 {
        log.append(&record).expect("trimming made space");
    }
    assert_sound(&log);
}

/// Appends and commits, whatever comes of it.
pub(crate) fn use_a_full_disk(arguments: &[String]) {
    let log = Options::default().open(&arguments[0]).unwrap();
    let record = payload(log.layout(), 1, 1000);
    log.append_durable(&record).unwrap();
    child::say("ready");
    child::hear();
    for _ in 0..500 {
        // The filesystem chooses how much space is left.
        let _ = log.append(&record);
    }
    let _ = log.sync();
    child::say("lives");
}

#[test]
fn a_full_btrfs_kills_nobody() {
    let Some(small) = Small::btrfs("a_full_btrfs") else { return };
    let wal =
        Options::wal().exclusive(false).tuning(Tuning::new().segment_capacity_bytes(256 << 10));
    let small_segments = |layout| {
        vellum::internal::options(layout).tuning(Tuning::new().segment_capacity_bytes(256 << 10))
    };
    for options in LAYOUTS.map(small_segments).into_iter().chain([wal]) {
        drop(options.open(small.log()).unwrap());
        let mut user = Child::start("use a full disk", &[small.log().to_str().unwrap()]);
        user.expect("ready");
        // Rewritten blocks are written elsewhere on btrfs, unless the file forbids that.
        small.take_all();
        user.tell("go on");
        user.expect("lives");
        user.finish_well();
        small.leave_all();
        fs::remove_dir_all(small.log()).unwrap();
    }
}
