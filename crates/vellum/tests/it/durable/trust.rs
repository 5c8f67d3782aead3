//! Words that do not tell of the segments: of a copy, of an older image, of an unknown boot.
//!
//! Everything here happens in one boot, so the boot id alone would let the words be believed.

use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::process::Command;

use vellum::{Layout, Log, Options};

use super::kinds;
use crate::support::child::{Child, hear, say};
use crate::support::mount::Mount;
use crate::support::{assert_sound, payloads, place, scratch};

/// A record of the tests.
fn line(index: usize) -> Vec<u8> {
    format!("record {index} {}\n", "x".repeat(index % 300)).into_bytes()
}

/// Appends as many records as it is told, durably, and says how many there are. Always another
/// process: programs that other tests start have open what this one has, until they are executed.
pub(crate) fn acknowledger(arguments: &[String]) {
    let log = Options::new().open(&arguments[0]).unwrap();
    say("ready");
    let mut count = payloads(&log).len();
    while let Some(more) = hear() {
        for _ in 0..more.parse::<usize>().unwrap() {
            log.append_durable(&line(count)).unwrap();
            count += 1;
        }
        say(&count.to_string());
    }
}

fn start(log: &Path) -> Child {
    let mut child = Child::start("acknowledger", &[log.to_str().unwrap()]);
    child.expect("ready");
    child
}

fn acknowledge(child: &mut Child, more: usize, all: usize) {
    child.tell(&more.to_string());
    child.expect(&all.to_string());
}

/// Asserts that the first `count` records are there, that the log goes on behind them, and that
/// what it appends is there as well when it is opened again.
#[track_caller]
fn assert_holds_first(path: &Path, count: usize, case: &str) {
    let lines = |log: &Log| {
        let mut lines = payloads(log);
        // What was torn behind the last durable record of a text log.
        lines.retain(|line| line != b"\n" && line.first() != Some(&b'~'));
        lines
    };
    let expected: Vec<_> = (0..count).map(line).collect();
    let reader = Options::new().read_only(true).open(path).unwrap();
    assert!(
        lines(&reader).starts_with(&expected),
        "{case}: a reader finds {}",
        lines(&reader).len()
    );
    drop(reader);
    let log = Options::new().open(path).unwrap_or_else(|error| panic!("{case}: {error}"));
    let found = lines(&log);
    assert!(found.starts_with(&expected), "{case}: {} of {count} records", found.len());
    log.append_durable(&line(1_000_000)).unwrap();
    assert_sound(&log);
    drop(log);
    let log = Options::new().open(path).unwrap();
    assert_eq!(log.recovery(), None, "{case}: a log that was closed is believed");
    let expected = [found, vec![line(1_000_000)]].concat();
    assert!(lines(&log) == expected, "{case}: after it was opened again");
}

#[test]
fn words_that_are_older_than_the_segments_are_not_believed() {
    for options in kinds() {
        for (before, after) in [(0, 1), (1, 30), (25, 100), (100, 300)] {
            for is_closed in [false, true] {
                let case = format!("{before}, {after}, {is_closed}, {options:?}");
                let dir = scratch();
                drop(options.open(place(&dir)).unwrap());
                let mut child = start(&place(&dir));
                acknowledge(&mut child, before, before);
                let words = fs::read(place(&dir).join("control")).unwrap();
                acknowledge(&mut child, after, before + after);
                match is_closed {
                    true => child.finish_well(),
                    false => child.kill(),
                }
                // In its place: the same file, as its filesystem would bring it back.
                let control = File::options().write(true).open(place(&dir).join("control"));
                control.unwrap().write_all_at(&words, 0).unwrap();
                assert_holds_first(&place(&dir), before + after, &case);
            }
        }
    }
}

#[test]
fn words_of_a_closed_log_that_went_on_are_not_believed() {
    for options in kinds() {
        let dir = scratch();
        drop(options.open(place(&dir)).unwrap());
        let mut child = start(&place(&dir));
        acknowledge(&mut child, 20, 20);
        child.finish_well();
        let words = fs::read(place(&dir).join("control")).unwrap();
        let mut child = start(&place(&dir));
        acknowledge(&mut child, 30, 50);
        child.finish_well();
        let control = File::options().write(true).open(place(&dir).join("control"));
        control.unwrap().write_all_at(&words, 0).unwrap();
        assert_holds_first(&place(&dir), 50, &format!("{options:?}"));
    }
}

#[test]
fn a_copy_holds_what_was_durable_when_it_was_made() {
    for options in kinds() {
        for is_closed in [false, true] {
            let case = format!("{is_closed}, {options:?}");
            let dir = scratch();
            drop(options.open(place(&dir)).unwrap());
            let mut child = start(&place(&dir));
            acknowledge(&mut child, 40, 40);
            let copy = dir.path().join("copy");
            let copied = |from: &Path| {
                let status = Command::new("cp").arg("-a").arg(from).arg(&copy).status();
                assert!(status.unwrap().success());
            };
            if is_closed {
                child.finish_well();
                copied(&place(&dir));
            } else {
                copied(&place(&dir));
                acknowledge(&mut child, 20, 60);
            }
            assert_holds_first(&copy, 40, &case);
        }
    }
}

/// A filesystem that stops, and is mounted again in the same boot: what was written back comes
/// back, each page as old as that was.
#[test]
fn a_disk_that_was_lost_and_mounted_again_has_everything_durable() {
    let test = "a_disk_that_was_lost_and_mounted_again_has_everything_durable";
    for options in kinds() {
        for (before, after) in [(0, 30), (20, 1), (20, 200)] {
            let Some(disk) = Mount::ext4(test, 64) else { return };
            let path = disk.path().join("log");
            drop(options.open(&path).unwrap());
            let mut child = start(&path);
            acknowledge(&mut child, before, before);
            // The words as they are now, and whatever else.
            rustix::fs::syncfs(File::open(disk.path()).unwrap()).unwrap();
            acknowledge(&mut child, after, before + after);
            child.kill();
            disk.cut_power();
            assert_holds_first(&path, before + after, &format!("{before}, {after}, {options:?}"));
        }
    }
}

/// Opens a log where the kernel does not tell which boot it is, and says whether it was recovered.
pub(crate) fn without_a_boot_id(arguments: &[String]) {
    let (random, null) = (c"/proc/sys/kernel/random".as_ptr(), std::ptr::null());
    // SAFETY: the call changes this process alone, and the strings end with NUL.
    let hide = || unsafe { libc::mount(c"none".as_ptr(), random, c"tmpfs".as_ptr(), 0, null) == 0 };
    if !Mount::alone() || !hide() {
        return say("not hidden");
    }
    let log = Options::new().open(&arguments[0]).unwrap();
    say(&format!("recovered {}", log.recovery().is_some()));
    let second = Options::new().open(&arguments[0]).unwrap();
    let reader = Options::new().read_only(true).open(&arguments[0]).unwrap();
    let seen = payloads(&reader).len();
    log.append_durable(b"blind\n").unwrap();
    second.append_durable(b"blind\n").unwrap();
    assert_eq!(payloads(&reader).len(), seen + 2, "who joins others believes the words");
    say("went on");
    hear();
}

#[test]
fn an_unknown_boot_is_another_boot() {
    let test = "an_unknown_boot_is_another_boot";
    if !crate::support::is_root(test) {
        return;
    }
    for options in kinds() {
        let dir = scratch();
        let layout = options.open(place(&dir)).unwrap().layout();
        let mut child = start(&place(&dir));
        acknowledge(&mut child, 40, 40);
        child.kill();
        for round in 0..2 {
            let mut blind = Child::start("without a boot id", &[place(&dir).to_str().unwrap()]);
            match blind.hears().as_deref() {
                Some("not hidden") => return crate::support::skip(test, "no mount namespaces"),
                // Text logs are recovered without a word.
                answer if layout == Layout::Framed => assert_eq!(answer, Some("recovered true")),
                _ => {}
            }
            blind.expect("went on");
            // One that knows the boot joins it.
            let log = options.open(place(&dir)).unwrap();
            log.append_durable(b"joined\n").unwrap();
            let expected = (0..40).map(line).chain(
                (0..=round).flat_map(|_| [&b"blind\n"[..], b"blind\n", b"joined\n"].map(Vec::from)),
            );
            assert!(payloads(&log).into_iter().eq(expected), "round {round}, {options:?}");
            blind.kill();
        }
    }
}

#[test]
fn words_that_hold_are_believed_after_everybody_was_killed() {
    for options in kinds() {
        let dir = scratch();
        drop(options.open(place(&dir)).unwrap());
        let mut child = start(&place(&dir));
        acknowledge(&mut child, 100, 100);
        let mut holder =
            Child::start("hold a reservation", &[place(&dir).to_str().unwrap(), "9000"]);
        holder.expect("holds");
        let log = options.open(place(&dir)).unwrap();
        (100..150).for_each(|index| assert!(log.append(&line(index)).is_ok()));
        // Whoever closes it is not the last, so that nobody tidies.
        drop(log);
        holder.kill();
        child.kill();
        let log = options.open(place(&dir)).unwrap();
        assert_eq!(log.recovery(), None);
        let mut found = payloads(&log);
        found.retain(|line| line.first() != Some(&b'~'));
        assert!(found == (0..150).map(line).collect::<Vec<_>>(), "{options:?}");
        assert_sound(&log);
    }
}
