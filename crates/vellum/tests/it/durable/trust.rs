//! Words that are not about the segments: of a copy, of an older image, of an unknown boot.
//!
//! Everything here happens in one boot, so the boot id alone would let the words be believed.

use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use vellum::stat::RecoveryReason;
use vellum::{Layout, Log, Options};

use super::{after_power_cut, in_another_boot, kinds, stages};
use crate::support::child::{Child, hear, say};
use crate::support::mount::Mount;
use crate::support::{
    adopt_control_as, assert_sound, copy_log, payloads, place, scratch, segment_files,
};

/// A record of the tests.
fn line(index: usize) -> Vec<u8> {
    format!("record {index} {}\n", "x".repeat(index % 300)).into_bytes()
}

/// Appends as many records as it is told, durably, and says how many there are. Always another
/// process: programs that other tests start have open what this one has, until they are executed.
pub(crate) fn acknowledger(arguments: &[String]) {
    let log = Options::default().open(&arguments[0]).unwrap();
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

/// The records of a log, but for torn lines behind the last durable one of a text log.
fn lines(log: &Log) -> Vec<Vec<u8>> {
    let mut lines = payloads(log);
    lines.retain(|line| line != b"\n" && line.first() != Some(&b'~'));
    lines
}

/// Asserts that the first `count` records are there, that the log continues behind them, and that
/// new records are there as well when it is opened again.
#[track_caller]
fn assert_holds_first(path: &Path, count: usize, case: &str) {
    let expected: Vec<_> = (0..count).map(line).collect();
    let reader = Options::default().read_only(true).open(path).unwrap();
    assert!(
        lines(&reader).starts_with(&expected),
        "{case}: a reader finds {}",
        lines(&reader).len()
    );
    drop(reader);
    let log = Options::default().open(path).unwrap_or_else(|error| panic!("{case}: {error}"));
    let found = lines(&log);
    assert!(found.starts_with(&expected), "{case}: {} of {count} records", found.len());
    log.append_durable(&line(1_000_000)).unwrap();
    assert_sound(&log);
    drop(log);
    let log = Options::default().open(path).unwrap();
    assert_eq!(log.recovery(), None, "{case}: a log that was closed is believed");
    let expected = [found, vec![line(1_000_000)]].concat();
    assert!(lines(&log) == expected, "{case}: after it was opened again");
}

/// Gives the control file the bytes that it had before, in its place: the same file, as its
/// filesystem would bring it back.
fn put_back(words: &[u8], log: &Path) {
    let control = File::options().write(true).open(log.join("control"));
    control.unwrap().write_all_at(words, 0).unwrap();
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
                put_back(&words, &place(&dir));
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
        put_back(&words, &place(&dir));
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

/// A filesystem that stops, and is mounted again in the same boot: pages that were written back
/// come back, each in its last written state.
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

/// Hides the boot id from this process, if the kernel lets it.
fn hides_boot_id() -> bool {
    let (random, null) = (c"/proc/sys/kernel/random".as_ptr(), std::ptr::null());
    // SAFETY: the call changes this process alone, and the strings end with NUL.
    let hide = || unsafe { libc::mount(c"none".as_ptr(), random, c"tmpfs".as_ptr(), 0, null) == 0 };
    Mount::alone() && hide()
}

/// Opens a log where the kernel does not tell which boot it is, and says whether it was recovered.
pub(crate) fn without_a_boot_id(arguments: &[String]) {
    if !hides_boot_id() {
        return say("not hidden");
    }
    let log = Options::default().open(&arguments[0]).unwrap();
    say(&format!("recovered {}", log.recovery().is_some()));
    let second = Options::default().open(&arguments[0]).unwrap();
    let reader = Options::default().read_only(true).open(&arguments[0]).unwrap();
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

/// A log whose processes were all killed, one of them in the middle of an append. 150 records are
/// in it, of which 100 are committed.
pub(super) fn killed(options: &Options, path: &Path) {
    drop(options.open(path).unwrap());
    let mut child = start(path);
    acknowledge(&mut child, 100, 100);
    let mut holder = Child::start("hold a reservation", &[path.to_str().unwrap(), "9000"]);
    holder.expect("holds");
    let log = options.open(path).unwrap();
    (100..150).for_each(|index| assert!(log.append(&line(index)).is_ok()));
    // The process that closes it is not the last, so that no process tidies.
    drop(log);
    holder.kill();
    child.kill();
}

#[track_caller]
fn assert_holds_all(path: &Path, recovered: Option<RecoveryReason>, case: &str) {
    let log = Options::default().open(path).unwrap();
    assert_eq!(log.recovery().map(|recovery| recovery.reason), recovered, "{case}");
    // An unfinished record of the dead is half a line of text.
    let found: Vec<_> =
        lines(&log).into_iter().filter(|line| line.starts_with(b"record")).collect();
    assert!(found == (0..150).map(line).collect::<Vec<_>>(), "{case}: {}", found.len());
    assert_sound(&log);
    log.append_durable(&line(150)).unwrap();
    drop(log);
    let log = Options::default().open(path).unwrap();
    assert_eq!(log.recovery(), None, "{case}");
    assert_eq!(payloads(&log).last(), Some(&line(150)), "{case}");
}

#[test]
fn words_that_hold_are_believed_after_everybody_was_killed() {
    for options in kinds() {
        let dir = scratch();
        killed(&options, &place(&dir));
        assert_holds_all(&place(&dir), None, &format!("{options:?}"));
    }
}

/// Makes two segments more than a log has, or a file of a text log.
fn make_files_beyond(options: &Options, path: &Path) {
    let files = segment_files(path);
    // A process that leaves a log that others use does not tidy.
    let log = options.open(path).unwrap();
    if log.layout() == Layout::Framed {
        log.prepare(2).unwrap();
    } else {
        let newest = files.last().and_then(|file| file.file_name()).unwrap().to_str().unwrap();
        let (time, first) = newest.split_once('-').unwrap();
        let next = u64::from_str_radix(&first[..16], 16).unwrap() + 16384;
        File::create(path.join(format!("{time}-{next:016x}-more.log"))).unwrap();
    }
    assert!(segment_files(path).len() > files.len());
}

/// Its maker died between naming it and noting it.
#[test]
fn a_file_more_than_the_words_tell_of_is_no_disagreement() {
    for options in kinds() {
        let case = format!("{options:?}");
        let dir = scratch();
        drop(options.open(place(&dir)).unwrap());
        let mut child = start(&place(&dir));
        acknowledge(&mut child, 20, 20);
        let words = fs::read(place(&dir).join("control")).unwrap();
        make_files_beyond(&options, &place(&dir));
        child.kill();
        put_back(&words, &place(&dir));
        let reader = Options::default().read_only(true).open(place(&dir)).unwrap();
        assert_eq!(lines(&reader).len(), 20, "{case}");
        let log = Options::default().open(place(&dir)).unwrap();
        assert_eq!(log.recovery(), None, "{case}");
        (20..400).for_each(|index| assert!(log.append_durable(&line(index)).is_ok(), "{case}"));
        assert!(lines(&log) == (0..400).map(line).collect::<Vec<_>>(), "{case}");
        assert_sound(&log);
    }
}

/// As a container does whose boot id is its own.
#[test]
fn another_boot_id_loses_nothing_where_nothing_was_booted() {
    for options in kinds() {
        let dir = scratch();
        killed(&options, &place(&dir));
        in_another_boot(&place(&dir));
        let recovered = Some(RecoveryReason::Reboot);
        assert_holds_all(&place(&dir), recovered, &format!("{options:?}"));
    }
}

/// As a filesystem does whose inodes get other numbers, and a copy that is made of files at rest.
#[test]
fn other_files_lose_nothing_where_they_hold_the_same() {
    for options in kinds() {
        let dir = scratch();
        killed(&options, &place(&dir));
        let copy = dir.path().join("copy");
        copy_log(&place(&dir), &copy);
        assert_holds_all(&copy, Some(RecoveryReason::Moved), &format!("{options:?}"));
    }
}

/// The ranges of the dead are no proof where the words do not agree with the files.
#[test]
fn another_boot_id_and_a_damaged_record_are_a_power_cut() {
    for options in kinds().into_iter().take(3).skip(1) {
        let dir = scratch();
        killed(&options, &place(&dir));
        in_another_boot(&place(&dir));
        let is_damaged = segment_files(&place(&dir)).iter().any(|file| {
            let mut bytes = fs::read(file).unwrap();
            let at = bytes.windows(line(140).len()).position(|bytes| bytes == line(140));
            at.is_some_and(|at| {
                bytes[at] ^= 4;
                fs::write(file, bytes).is_ok()
            })
        });
        assert!(is_damaged);
        let log = Options::default().open(place(&dir)).unwrap();
        assert_eq!(lines(&log).len(), 100, "{options:?}");
    }
}

#[test]
fn who_may_only_read_finds_what_was_not_committed_without_words() {
    for options in kinds() {
        let dir = scratch();
        drop(options.open(place(&dir)).unwrap());
        let mut child = start(&place(&dir));
        acknowledge(&mut child, 20, 20);
        let log = options.open(place(&dir)).unwrap();
        (20..60).for_each(|index| assert!(log.append(&line(index)).is_ok()));
        drop(log);
        child.kill();
        in_another_boot(&place(&dir));
        let reader = Options::default().read_only(true).open(place(&dir)).unwrap();
        let mut one = reader.reader(vellum::Lsn::ZERO).unwrap();
        for index in 0..30 {
            assert_eq!(one.next().unwrap().unwrap().payload, line(index), "{options:?}");
        }
        // Recovery moves what is staged to the segments, under the reader.
        let log = Options::default().open(place(&dir)).unwrap();
        log.append_durable(&line(60)).unwrap();
        for index in 30..61 {
            let record = one.follow(Some(Duration::from_secs(20))).unwrap().unwrap();
            assert_eq!(record.payload, line(index), "{options:?}");
        }
    }
}

/// Records that were cut off must not come back from a stage that a power cut brought back.
#[test]
fn a_stage_of_an_earlier_epoch_is_not_believed() {
    for is_truncated in [false, true] {
        let dir = scratch();
        let log = kinds()[0].open(place(&dir)).unwrap();
        // As long as a seal, so that frames of both epochs start at the same places.
        (0..20).for_each(|_| assert!(log.append(&[7; 24]).is_ok()));
        log.sync().unwrap();
        let lost: Vec<_> = (0..20).map(|_| log.append(&[7; 24]).unwrap()).collect();
        let stage = stages(&place(&dir))[0].clone();
        let (name, old) = (stage.file_name().unwrap(), fs::read(&stage).unwrap());
        let copy = after_power_cut(&place(&dir));
        let log = match is_truncated {
            true => {
                log.truncate(lost[0]).unwrap();
                log
            }
            false => Options::default().open(place(&copy)).unwrap(),
        };
        log.append_durable(&[8; 24]).unwrap();
        let (path, kept) = (log.path().to_path_buf(), payloads(&log));
        drop(log);
        fs::write(path.join(name), &old).unwrap();
        in_another_boot(&path);
        assert!(payloads(&Options::default().open(&path).unwrap()) == kept, "{is_truncated}");
    }
}

/// The first process that writes to a file of a lower layer gets a copy of it, with the same
/// number.
#[test]
fn a_log_in_the_lower_layer_of_an_overlay_is_followed_into_the_upper_one() {
    let test = "a_log_in_the_lower_layer_of_an_overlay_is_followed_into_the_upper_one";
    for options in kinds() {
        let mut lower = PathBuf::new();
        let fill = |layer: &Path| {
            lower = layer.join("log");
            let log = options.open(&lower).unwrap();
            (0..3).for_each(|index| assert!(log.append_durable(&line(index)).is_ok()));
        };
        let Some(mount) = Mount::overlay_over(test, fill) else { return };
        let path = mount.path().join("log");
        // As if it had been made in an overlay of the same number.
        adopt_control_as(&lower, &fs::metadata(path.join("control")).unwrap());
        let reader = Options::default().read_only(true).open(&path).unwrap();
        let mut reader = reader.reader(vellum::Lsn::ZERO).unwrap();
        (0..3).for_each(|index| assert_eq!(reader.next().unwrap().unwrap().payload, line(index)));
        let mut child = start(&path);
        for index in 3..9 {
            acknowledge(&mut child, 1, index + 1);
            let record = reader.follow(Some(Duration::from_secs(20))).unwrap();
            assert_eq!(record.unwrap().payload, line(index), "{options:?}");
        }
        child.finish_well();
    }
}

/// A container that has a boot id of its own reads the log that another one writes.
#[test]
fn who_reads_in_another_boot_follows_who_writes() {
    let test = "who_reads_in_another_boot_follows_who_writes";
    if !crate::support::is_root(test) {
        return;
    }
    for options in kinds() {
        let dir = scratch();
        drop(options.open(place(&dir)).unwrap());
        let mut child = start(&place(&dir));
        acknowledge(&mut child, 20, 20);
        child.kill();
        let mut blind =
            Child::start("follower without a boot id", &[place(&dir).to_str().unwrap()]);
        match blind.hears().as_deref() {
            Some("not hidden") => return crate::support::skip(test, "no mount namespaces"),
            answer => assert_eq!(answer, Some("20"), "{options:?}"),
        }
        let mut child = start(&place(&dir));
        acknowledge(&mut child, 20, 40);
        blind.expect("40");
        blind.kill();
        child.finish_well();
    }
}

/// Follows a log where the kernel does not tell which boot it is, and says how many lines there are
/// at first, and when there are twice as many.
pub(crate) fn follower_without_a_boot_id(arguments: &[String]) {
    if !hides_boot_id() {
        return say("not hidden");
    }
    let log = Options::default().read_only(true).open(&arguments[0]).unwrap();
    let mut reader = log.reader(vellum::Lsn::ZERO).unwrap();
    let mut count = 0;
    while reader.next().unwrap().is_some() {
        count += 1;
    }
    say(&count.to_string());
    for _ in 0..count {
        reader.follow(None).unwrap().unwrap();
    }
    say(&(2 * count).to_string());
    hear();
}
