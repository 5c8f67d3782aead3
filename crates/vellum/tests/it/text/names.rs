//! Names of files, and the time when files get them.

use std::fs;

use vellum::{Fill, Options, Tuning};

use super::{append_lines, assert_orderly, line, parts, rotating};
use crate::support::{
    FILLS, assert_sound, concatenated, copy_log, payloads, place, scratch, segment_files,
};

/// The time of the clock, in the form of names.
fn now() -> String {
    // The clock that names are made by, which lags behind the others by a tick.
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the call fills in the time.
    assert_eq!(unsafe { libc::clock_gettime(libc::CLOCK_REALTIME_COARSE, &raw mut time) }, 0);
    let seconds = time.tv_sec;
    let output = std::process::Command::new("date")
        .args(["-u", "-d", &format!("@{seconds}"), "+%Y%m%dT%H%M%SZ"])
        .output()
        .unwrap();
    String::from_utf8(output.stdout).unwrap().trim().to_string()
}

#[test]
fn a_file_is_named_by_the_time_and_the_position_of_its_first_record() {
    let dir = scratch();
    let log = rotating(100).open(place(&dir)).unwrap();
    assert!(segment_files(&place(&dir)).is_empty(), "no record, no file");
    let before = now();
    let first = log.append(&line(1, 90)).unwrap();
    let second = log.append(&line(2, 90)).unwrap();
    let after = now();
    let files = segment_files(&place(&dir));
    assert_eq!(files.len(), 2, "the file that comes next has no name yet");
    for (file, lsn) in files.iter().zip([first, second]) {
        let (time, named) = parts(file);
        assert!((&before..=&after).contains(&&time), "{before} {time} {after}");
        assert_eq!(named, lsn.get());
    }
    assert_orderly(&place(&dir));
    assert_eq!(log.stat().unwrap().segments[1].path, files[1]);
}

#[test]
fn a_name_is_never_earlier_than_the_one_before() {
    let dir = scratch();
    let log = rotating(100).open(place(&dir)).unwrap();
    log.append(&line(1, 90)).unwrap();
    drop(log);
    // As if the clock had been an hour ahead then, and a user had put it right.
    let [old] = &segment_files(&place(&dir))[..] else { panic!() };
    let future = format!("29991231T235959Z-{:016x}.log", parts(old).1);
    fs::rename(old, place(&dir).join(&future)).unwrap();
    for name in ["control", "current"] {
        fs::remove_file(place(&dir).join(name)).unwrap();
    }
    let log = Options::default().open(place(&dir)).unwrap();
    log.append(&line(2, 90)).unwrap();
    log.append(&line(3, 90)).unwrap();
    let files = segment_files(&place(&dir));
    assert!(files.iter().all(|file| parts(file).0 == "29991231T235959Z"), "{files:?}");
    assert_eq!(payloads(&log), [line(1, 90), line(2, 90), line(3, 90)]);
    assert_orderly(&place(&dir));
}

#[test]
fn a_link_that_is_gone_dangles_or_leads_astray_is_put_right() {
    let dir = scratch();
    let link = place(&dir).join("current");
    let log = rotating(100).open(place(&dir)).unwrap();
    for number in 0..3 {
        log.append(&line(number, 90)).unwrap();
    }
    drop(log);
    for wrong in [None, Some("nowhere"), Some("control")] {
        fs::remove_file(&link).unwrap();
        if let Some(target) = wrong {
            std::os::unix::fs::symlink(target, &link).unwrap();
        }
        let log = Options::default().open(place(&dir)).unwrap();
        assert_orderly(&place(&dir));
        fs::remove_file(&link).unwrap();
        log.append(&line(9, 90)).unwrap();
        assert_orderly(&place(&dir));
        assert_eq!(fs::read(&link).unwrap()[..90], line(9, 90));
    }
}

#[test]
fn files_of_a_log_that_had_no_readable_names_keep_theirs() {
    for fill in FILLS {
        let dir = scratch();
        let options =
            Options::mapped_text().tuning(Tuning::new().segment_capacity_bytes(4096).fill(fill));
        let log = options.open(place(&dir)).unwrap();
        let mut expected = append_lines(&log, 0..6, 1500);
        drop(log);
        for file in segment_files(&place(&dir)) {
            let old = format!("{:016x}.seg", parts(&file).1);
            fs::rename(&file, place(&dir).join(old)).unwrap();
        }
        for name in ["control", "current"] {
            fs::remove_file(place(&dir).join(name)).unwrap();
        }
        let log = Options::default().open(place(&dir)).unwrap();
        expected.extend(append_lines(&log, 6..10, 1500));
        assert!(payloads(&log) == expected);
        assert_sound(&log);
        drop(log);
        let files = segment_files(&place(&dir));
        let is_old = |file: &std::path::PathBuf| file.extension().unwrap() == "seg";
        assert_eq!(files.iter().filter(|file| is_old(file)).count(), 3);
        assert!(files.len() == 5 && concatenated(&place(&dir)) == expected.concat());
    }
}

#[test]
fn the_file_that_comes_next_has_no_name_and_goes_when_the_last_leaves() {
    let dir = scratch();
    let log = rotating(1000).tuning(Tuning::new().fill(Fill::Pwrite)).open(place(&dir)).unwrap();
    log.append(&line(1, 90)).unwrap();
    assert_eq!(log.prepare(5).unwrap(), 0, "it is there already");
    assert_eq!(segment_files(&place(&dir)).len(), 1);
    assert!(place(&dir).join("segment.new").exists());
    // Removing it does no harm.
    fs::remove_file(place(&dir).join("segment.new")).unwrap();
    append_lines(&log, 0..30, 90);
    assert_orderly(&place(&dir));
    drop(log);
    let names = fs::read_dir(place(&dir)).unwrap().map(|entry| entry.unwrap().file_name());
    assert!(!names.into_iter().any(|name| name == "segment.new"));
}

#[test]
fn an_image_of_a_rotating_log_is_rebuilt_from_its_files() {
    for fill in FILLS {
        let dir = scratch();
        let log = rotating(1000).tuning(Tuning::new().fill(fill)).open(place(&dir)).unwrap();
        let mut expected = append_lines(&log, 0..50, 90);
        let image = dir.path().join("image");
        copy_log(&place(&dir), &image);
        fs::remove_file(image.join("control")).unwrap();
        let reader = Options::default().read_only(true).open(&image).unwrap();
        assert!(payloads(&reader) == expected, "{fill}: read without a change");
        let log = Options::default().open(&image).unwrap();
        assert_eq!(log.stat().unwrap().policy.rotate_bytes, Some(1000));
        expected.push(line(50, 990));
        log.append(&expected[50]).unwrap();
        assert!(payloads(&log) == expected, "{fill}");
        assert_sound(&log);
        assert_orderly(&image);
    }
}

#[test]
fn an_empty_file_that_a_failed_creation_left_hides_no_records() {
    for keeps_control in [true, false] {
        let dir = scratch();
        let log = rotating(100).open(place(&dir)).unwrap();
        let lines: Vec<_> = (1..5).map(|number| line(number, 90)).collect();
        for line in &lines {
            log.append(line).unwrap();
        }
        drop(log);
        for file in segment_files(&place(&dir)) {
            let earlier = format!("20200101T000000Z-{:016x}.log", parts(&file).1);
            fs::write(place(&dir).join(earlier), "").unwrap();
        }
        if !keeps_control {
            fs::remove_file(place(&dir).join("control")).unwrap();
        }
        let log = Options::default().open(place(&dir)).unwrap();
        assert_eq!(payloads(&log), lines);
        assert_sound(&log);
    }
}
