//! A log after a user has removed one of its closed files.

use std::fs;
use std::process::Command;
use std::time::Instant;

use vellum::{Options, Tuning};

use super::{line, rotating};
use crate::support::{
    FILLS, PATIENCE, assert_sound, concatenated, payloads, place, scratch, segment_files,
};

#[test]
fn what_stands_behind_a_file_that_is_gone_can_be_committed() {
    for fill in FILLS {
        let dir = scratch();
        let log = rotating(100).tuning(Tuning::new().fill(fill)).open(place(&dir)).unwrap();
        for number in 0..5 {
            log.append(&line(number, 90)).unwrap();
        }
        fs::remove_file(&segment_files(&place(&dir))[2]).unwrap();
        log.sync().unwrap();
        let last = log.append(&line(5, 90)).unwrap();
        log.commit(last).unwrap();
        assert_eq!(log.durable(), log.tail(), "{fill}");
        drop(log);
        let log = Options::default().open(place(&dir)).unwrap();
        log.append(&line(6, 90)).unwrap();
        log.sync().unwrap();
        let kept = [0, 1, 3, 4, 5, 6].map(|number| line(number, 90));
        drop(log);
        assert!(concatenated(&place(&dir)) == kept.concat(), "{fill}");
    }
}

#[test]
fn a_log_whose_newest_file_is_gone_goes_on_behind_it() {
    for (fill, forgets) in FILLS.into_iter().flat_map(|fill| [(fill, false), (fill, true)]) {
        let dir = scratch();
        let log = rotating(200).tuning(Tuning::new().fill(fill)).open(place(&dir)).unwrap();
        for number in 0..5 {
            log.append(&line(number, 90)).unwrap();
        }
        let end = log.tail();
        drop(log);
        fs::remove_file(segment_files(&place(&dir)).pop().unwrap()).unwrap();
        if forgets {
            fs::remove_file(place(&dir).join("control")).unwrap();
        }
        let log = Options::default().open(place(&dir)).unwrap();
        let next = log.append(&line(5, 90)).unwrap();
        // Without a control file nothing tells that there was more.
        assert!(forgets || next > end, "{next} was given to a record before {end}");
        log.sync().unwrap();
        let found = concatenated(&place(&dir));
        assert!(found.starts_with(&[0, 1, 2, 3].map(|number| line(number, 90)).concat()), "{fill}");
        let mut reader = log.reader(next).unwrap();
        assert_eq!(reader.next().unwrap().unwrap().payload, line(5, 90));
        drop((reader, log));
        let kept = [0, 1, 2, 3, 5].map(|number| line(number, 90));
        assert!(concatenated(&place(&dir)) == kept.concat(), "{fill}");
    }
}

/// Appends lines until the log has a file of a later position than `file`; returns how many.
fn append_until_left(log: &vellum::Log, file: &std::path::Path, from: usize) -> usize {
    let position = |path: &std::path::Path| {
        let name = path.file_name().unwrap().to_str().unwrap();
        name.split(['-', '.']).nth(1).unwrap().to_string()
    };
    let start = Instant::now();
    for number in from.. {
        log.append(&line(number, 90)).unwrap();
        let files = segment_files(log.path());
        if files.iter().any(|newer| position(newer) > position(file)) {
            return number + 1;
        }
        assert!(start.elapsed() < PATIENCE, "the file was not left");
    }
    unreachable!()
}

#[test]
fn no_line_is_lost_when_the_file_that_is_written_is_packed() {
    for fill in FILLS {
        let dir = scratch();
        let options = Options::mapped_text().tuning(Tuning::new().fill(fill));
        let log = options.open(place(&dir)).unwrap();
        (0..5).for_each(|number| _ = log.append(&line(number, 90)).unwrap());
        let file = segment_files(&place(&dir)).pop().unwrap();
        // gzip takes the zeros of a mapped file too.
        assert!(Command::new("gzip").arg(&file).status().unwrap().success());
        let count = append_until_left(&log, &file, 5);
        let expected: Vec<_> = (0..count).map(|number| line(number, 90)).collect();
        assert!(payloads(&log) == expected, "{fill}");
        drop(log);
        let log = Options::default().open(place(&dir)).unwrap();
        assert!(payloads(&log) == expected, "{fill}");
        assert_sound(&log);
    }
}

#[test]
fn a_file_that_is_removed_or_renamed_while_it_is_written_is_left() {
    for (fill, is_renamed) in FILLS.into_iter().flat_map(|fill| [(fill, false), (fill, true)]) {
        let dir = scratch();
        let options = Options::mapped_text().tuning(Tuning::new().fill(fill));
        let log = options.open(place(&dir)).unwrap();
        (0..5).for_each(|number| _ = log.append(&line(number, 90)).unwrap());
        let file = segment_files(&place(&dir)).pop().unwrap();
        let aside = dir.path().join("aside");
        match is_renamed {
            true => fs::rename(&file, &aside).unwrap(),
            false => fs::remove_file(&file).unwrap(),
        }
        let count = append_until_left(&log, &file, 5);
        let last = line(count - 1, 90);
        let text = concatenated(&place(&dir));
        // Zeros follow in a mapped file.
        let end = text.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
        assert!(text[..end].ends_with(&last), "{fill}");
        if is_renamed {
            let expected: Vec<_> = (0..count - 1).flat_map(|number| line(number, 90)).collect();
            assert!(fs::read(&aside).unwrap() == expected, "{fill}");
        }
        assert!(!log.verify().unwrap().damage.is_empty(), "the missing file is reported");
    }
}
