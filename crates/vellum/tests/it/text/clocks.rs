//! A clock that was wrong for a while delays or hastens one rotation, and no more.

use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::time::{Duration, SystemTime};

use vellum::Options;

use super::{append_lines, line, parts, rotating};
use crate::support::{payloads, place, scratch, segment_files, until};

const DAY: Duration = Duration::from_secs(86_400);
const YEAR: Duration = Duration::from_secs(365 * 86_400);

/// Gives all files of a closed log names of the year 2999, and has the log know of it.
fn move_to_the_future(log: &std::path::Path) {
    for file in segment_files(log) {
        let name = format!("29991231T235959Z-{:016x}.log", parts(&file).1);
        fs::rename(&file, log.join(name)).unwrap();
    }
    for name in ["control", "current"] {
        fs::remove_file(log.join(name)).unwrap();
    }
    drop(Options::default().open(log).unwrap());
}

#[test]
fn a_log_whose_newest_name_is_from_the_future_rotates_by_time() {
    let dir = scratch();
    let log = rotating(1 << 20).open(place(&dir)).unwrap();
    log.append(&line(0, 90)).unwrap();
    drop(log);
    move_to_the_future(&place(&dir));
    let log = Options::default().rotate_every(Duration::from_secs(1)).open(place(&dir)).unwrap();
    until("there are three files", || {
        log.append(&line(1, 90)).unwrap();
        (segment_files(&place(&dir)).len() >= 3).then_some(())
    });
}

#[test]
fn a_clock_that_is_put_back_delays_no_rotation() {
    let dir = scratch();
    let log = Options::mapped_text().rotate_every(Duration::from_secs(1));
    let log = log.open(place(&dir)).unwrap();
    log.append(&line(0, 90)).unwrap();
    // As an append has left it that saw a clock ten years ahead.
    let control = File::options().write(true).open(place(&dir).join("control")).unwrap();
    let rule = 4096 + 199_680 + 128;
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap();
    let moment = (now + 10 * YEAR).as_secs();
    control.write_all_at(&moment.to_le_bytes(), rule + 2 * 8).unwrap();
    control.write_all_at(&(moment - 1).to_le_bytes(), rule + 5 * 8).unwrap();
    until("there are two files", || {
        log.append(&line(1, 90)).unwrap();
        (segment_files(&place(&dir)).len() >= 2).then_some(())
    });
}

#[test]
fn files_from_the_future_are_as_old_as_they_can_be_told_to_be() {
    let dir = scratch();
    let log = rotating(100).open(place(&dir)).unwrap();
    append_lines(&log, 0..6, 90);
    drop(log);
    let now = SystemTime::now();
    let old = now - Duration::from_secs(3600);
    move_to_the_future(&place(&dir));
    // The first was written while the clock was wrong, and the second after that.
    let changed = [now + 10 * YEAR, old, old, now, now + YEAR, now];
    for (file, changed) in segment_files(&place(&dir)).iter().zip(changed) {
        File::options().write(true).open(file).unwrap().set_modified(changed).unwrap();
    }
    let log = Options::default().retain_age(Duration::from_secs(600)).open(place(&dir)).unwrap();
    assert_eq!(payloads(&log), (3..6).map(|number| line(number, 90)).collect::<Vec<_>>());
}

#[test]
fn what_was_written_before_the_clock_was_set_is_as_old_as_what_came_next() {
    let dir = scratch();
    let log = rotating(100).open(place(&dir)).unwrap();
    append_lines(&log, 0..4, 90);
    drop(log);
    // The first boot knew no time.
    for file in &segment_files(&place(&dir))[..2] {
        let name = format!("19700101T000042Z-{:016x}.log", parts(file).1);
        File::options()
            .write(true)
            .open(file)
            .unwrap()
            .set_modified(SystemTime::UNIX_EPOCH)
            .unwrap();
        fs::rename(file, place(&dir).join(name)).unwrap();
    }
    let keeping = |age| Options::default().retain_age(age).open(place(&dir)).unwrap();
    assert_eq!(payloads(&keeping(30 * DAY)).len(), 4, "nothing is known to be that old");
    // The time at which the third file was begun: the first two came before.
    let third = segment_files(&place(&dir))[2].clone();
    let name = format!("20250701T000000Z-{:016x}.log", parts(&third).1);
    fs::rename(&third, place(&dir).join(name)).unwrap();
    assert_eq!(payloads(&keeping(30 * DAY)), [line(2, 90), line(3, 90)]);
}
