//! When the next file begins: by length, by time, by a call.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};
use vellum::{ErrorKind, Fill, Options, Tuning};

use super::{assert_orderly, lens, line, parts, rotating};
use crate::support::mount::Mount;
use crate::support::{
    FILLS, assert_sound, concatenated, payloads, place, scratch, segment_files, until,
};

#[test]
fn a_file_is_as_long_as_whole_records_allow() {
    for fill in FILLS {
        let dir = scratch();
        let log = rotating(1000).tuning(Tuning::new().fill(fill)).open(place(&dir)).unwrap();
        let lens_appended = [400, 600, 10, 990, 10, 1000, 300, 701, 5000, 200, 90];
        let lines: Vec<_> = lens_appended.iter().map(|len| line(0, *len)).collect();
        for line in &lines {
            log.append(line).unwrap();
        }
        assert_sound(&log);
        assert_orderly(&place(&dir));
        drop(log);
        assert_eq!(lens(&place(&dir)), [1000, 1000, 10, 1000, 300, 701, 5000, 290], "{fill}");
        assert!(concatenated(&place(&dir)) == lines.concat());
    }
}

/// XFS gives a file that grows as many blocks behind its end as it has, and leaves them there.
#[test]
fn a_closed_file_has_no_blocks_behind_its_end() {
    let test = "a_closed_file_has_no_blocks_behind_its_end";
    for disk in [Mount::xfs(test), Mount::ext4(test, 256), Mount::btrfs(test, 256)] {
        let Some(disk) = disk else { continue };
        fill_files_to_the_last_byte(disk.path());
    }
}

fn fill_files_to_the_last_byte(disk: &Path) {
    const FILE_BYTES: u64 = 4 << 20;
    let whole = Options::mapped_text().tuning(Tuning::new().segment_capacity_bytes(FILE_BYTES));
    for (kind, options) in [("whole", whole), ("rotating", rotating(FILE_BYTES))] {
        for fill in FILLS {
            let path = disk.join(format!("{kind} {fill}"));
            let log = options.clone().tuning(Tuning::new().fill(fill)).open(&path).unwrap();
            // They fill each file to its last byte, so nothing is cut off.
            for number in 0..4 * (FILE_BYTES as usize >> 12) {
                log.append(&line(number, 4096)).unwrap();
            }
            for file in segment_files(&path).iter().take(3) {
                let status = fs::metadata(file).unwrap();
                assert_eq!(status.len(), FILE_BYTES, "{kind} {fill}");
                let bytes = status.blocks() * 512;
                assert!(bytes <= FILE_BYTES + (64 << 10), "{kind} {fill}: {bytes} bytes of blocks");
            }
            drop(log);
            fs::remove_dir_all(path).unwrap();
        }
    }
}

#[test]
fn reservations_and_batches_go_on_in_a_new_file_as_records_do() {
    use std::io::Write;
    for fill in FILLS {
        let dir = scratch();
        let log = rotating(1000).tuning(Tuning::new().fill(fill)).open(place(&dir)).unwrap();
        log.append(&line(0, 700)).unwrap();
        let mut reservation = log.reserve(400).unwrap();
        reservation.write_all(&line(1, 400)).unwrap();
        reservation.publish().unwrap();
        let mut batch = log.batch();
        batch.push(&line(2, 500)).unwrap();
        batch.push(&line(3, 300)).unwrap();
        batch.append().unwrap();
        log.rotate().unwrap();
        log.reserve(10).map(drop).unwrap();
        drop(log);
        assert_eq!(lens(&place(&dir)), [700, 400, 800, 10], "{fill}");
    }
}

#[test]
fn a_log_that_is_asked_to_goes_on_in_a_new_file_at_the_next_record() {
    for fill in FILLS {
        let dir = scratch();
        let log =
            Options::mapped_text().tuning(Tuning::new().fill(fill)).open(place(&dir)).unwrap();
        log.rotate().unwrap();
        log.append(&line(0, 100)).unwrap();
        assert_eq!(segment_files(&place(&dir)).len(), 1, "an empty log has nothing to leave");
        log.rotate().unwrap();
        log.rotate().unwrap();
        assert_eq!(segment_files(&place(&dir)).len(), 1, "nothing happens until a record comes");
        log.append(&line(1, 100)).unwrap();
        log.append(&line(2, 100)).unwrap();
        assert_eq!(segment_files(&place(&dir)).len(), 2);
        assert_eq!(payloads(&log), [line(0, 100), line(1, 100), line(2, 100)]);
        assert_orderly(&place(&dir));
        assert_sound(&log);
        log.rotate().unwrap();
        drop(log);
        let log = Options::default().open(place(&dir)).unwrap();
        log.append(&line(3, 100)).unwrap();
        drop(log);
        assert_eq!(lens(&place(&dir)), [100, 200, 100], "what was asked for outlives who asked");
    }
    let dir = scratch();
    let log = Options::default().open(place(&dir)).unwrap();
    assert_eq!(log.rotate().unwrap_err().kind(), ErrorKind::Unsupported);
}

#[test]
fn leaving_a_long_segment_writes_nothing_to_the_rest_of_it() {
    let dir = scratch();
    let log = Options::mapped_text()
        .tuning(Tuning::new().segment_capacity_bytes(1 << 30).fill(Fill::Mapped))
        .open(place(&dir))
        .unwrap();
    for number in 0..20 {
        log.append(&line(number, 100)).unwrap();
        log.rotate().unwrap();
    }
    let stat = log.stat().unwrap();
    let closed = &stat.segments[..19];
    assert!(closed.iter().all(|segment| segment.file_bytes == 100), "{closed:?}");
    assert!(closed.iter().all(|segment| segment.allocated_bytes <= 64 << 10), "{closed:?}");
}

/// The clock that the log looks at.
fn seconds() -> u64 {
    clock_gettime(ClockId::RealtimeCoarse).tv_sec as u64
}

/// Appends until the log has `files` files; each line tells the second it was appended in.
fn append_until(log: &vellum::Log, path: &std::path::Path, files: usize) {
    until("the log goes on in a new file", || {
        log.append(format!("{}\n", seconds()).as_bytes()).unwrap();
        (segment_files(path).len() >= files).then_some(())
    });
}

#[test]
fn a_file_holds_records_of_one_period() {
    for fill in FILLS {
        let dir = scratch();
        let options = Options::mapped_text().tuning(Tuning::new().fill(fill));
        let log = options.rotate_every(Duration::from_secs(2)).open(place(&dir)).unwrap();
        append_until(&log, &place(&dir), 3);
        drop(log);
        let files = segment_files(&place(&dir));
        for file in &files {
            let text = std::fs::read_to_string(file).unwrap();
            let text = text.trim_end_matches('\0');
            let times: Vec<u64> = text.lines().map(|line| line.parse().unwrap()).collect();
            // The first may have been made a moment before the file.
            let (second, last) = (times.get(1).unwrap_or(&times[0]), times[times.len() - 1]);
            assert_eq!(second / 2, last / 2, "{file:?}");
        }
        assert!(parts(&files[0]).0 < parts(&files[1]).0);
    }
}

#[test]
fn what_nobody_writes_makes_no_file_and_a_moment_that_passed_meanwhile_counts() {
    let dir = scratch();
    let options = Options::mapped_text().rotate_every(Duration::from_secs(1));
    let log = options.open(place(&dir)).unwrap();
    log.append(&line(0, 50)).unwrap();
    drop(log);
    // Without the words of the control file, as after a reboot, the name shows which one is over.
    std::fs::remove_file(place(&dir).join("control")).unwrap();
    let since = seconds();
    until("two moments have passed", || (seconds() > since + 1).then_some(()));
    let log = Options::default().open(place(&dir)).unwrap();
    assert_eq!(segment_files(&place(&dir)).len(), 1);
    log.append(&line(1, 50)).unwrap();
    assert_eq!(segment_files(&place(&dir)).len(), 2);
    assert_orderly(&place(&dir));
}
