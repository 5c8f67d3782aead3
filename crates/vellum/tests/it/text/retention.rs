//! Which files are kept, and that those that are written never go.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::time::Duration;

use vellum::{ErrorKind, Fill, Lsn, Options, Tuning};

use super::{append_lines, assert_orderly, lens, line, parts, rotating};
use crate::support::child::{self, Child};
use crate::support::{
    FILLS, assert_sound, become_user, concatenated, is_root, open_to_all, payloads, place, scratch,
    segment_files, until,
};

#[test]
fn so_many_closed_files_are_kept_beside_the_current_one() {
    for fill in FILLS {
        for kept in [0, 1, 3] {
            let dir = scratch();
            let log = rotating(200)
                .retain_files(kept)
                .tuning(Tuning::new().fill(fill))
                .open(place(&dir))
                .unwrap();
            for number in 0..20 {
                let lsn = append_lines(&log, number..number + 1, 100);
                let files = segment_files(&place(&dir)).len() as u64;
                assert_eq!(files, (number as u64 / 2 + 1).min(kept + 1), "{lsn:?}");
            }
            let expected: Vec<_> = (18 - 2 * kept as usize..20).map(|n| line(n, 100)).collect();
            assert_eq!(payloads(&log), expected);
            assert_eq!(log.reader(Lsn::new(1)).unwrap_err().kind(), ErrorKind::Trimmed);
            assert_orderly(&place(&dir));
            assert_sound(&log);
        }
    }
}

#[test]
fn so_many_bytes_are_kept_the_current_file_included() {
    let dir = scratch();
    let log = rotating(1000).retain_bytes(3500).open(place(&dir)).unwrap();
    append_lines(&log, 0..95, 100);
    drop(log);
    assert_eq!(lens(&place(&dir)), [1000, 1000, 1000, 500], "when the current one began");
    let log = Options::default().retain_bytes(1).open(place(&dir)).unwrap();
    assert_eq!(segment_files(&place(&dir)).len(), 1, "an opener with another policy tidies");
    assert_eq!(payloads(&log).len(), 5);
}

#[test]
fn a_file_is_kept_for_so_long_after_its_last_record() {
    let dir = scratch();
    let log = rotating(100).retain_age(Duration::from_secs(2)).open(place(&dir)).unwrap();
    append_lines(&log, 0..5, 90);
    assert_eq!(segment_files(&place(&dir)).len(), 5, "all of them are young");
    let mut number = 5;
    until("the first files are old", || {
        append_lines(&log, number..number + 1, 90);
        number += 1;
        (log.begin() > Lsn::new(6 * log.stat().unwrap().segment_capacity_bytes)).then_some(())
    });
    // The kept file was followed by another less than two seconds ago.
    let files = segment_files(&place(&dir));
    let newest = parts(files.last().unwrap()).0;
    let seconds = |stamp: &str| stamp[13..15].parse::<i64>().unwrap();
    let age = (seconds(&newest) - seconds(&parts(&files[1]).0)).rem_euclid(60);
    assert!(age <= 2, "{files:?}");
    assert_orderly(&place(&dir));
}

#[test]
fn what_a_slow_writer_still_holds_is_kept_until_it_is_done() {
    use std::io::Write;
    let dir = scratch();
    let log = rotating(1000)
        .retain_files(0)
        .tuning(Tuning::new().fill(Fill::Pwrite))
        .open(place(&dir))
        .unwrap();
    let mut slow = log.reserve(100).unwrap();
    append_lines(&log, 1..40, 100);
    assert_eq!(segment_files(&place(&dir)).len(), 4, "all behind the slow one");
    slow.write_all(&line(0, 100)).unwrap();
    slow.publish().unwrap();
    append_lines(&log, 40..41, 100);
    assert_eq!(payloads(&log).len(), 1);
    assert_eq!(segment_files(&place(&dir)).len(), 1);
}

#[test]
fn files_that_a_dead_process_was_about_to_remove_go_with_the_next() {
    let dir = scratch();
    let log = rotating(100).retain_files(2).open(place(&dir)).unwrap();
    append_lines(&log, 0..5, 90);
    let oldest = segment_files(&place(&dir))[0].clone();
    let kept = fs::read(&oldest).unwrap();
    append_lines(&log, 5..6, 90);
    fs::write(&oldest, kept).unwrap();
    append_lines(&log, 6..7, 90);
    assert_eq!(segment_files(&place(&dir)).len(), 3);
    assert_eq!(payloads(&log), (4..7).map(|number| line(number, 90)).collect::<Vec<_>>());
}

#[test]
fn a_reader_that_is_overtaken_is_told_and_can_go_on_at_the_beginning() {
    let dir = scratch();
    let log = rotating(1000).retain_files(1).open(place(&dir)).unwrap();
    append_lines(&log, 0..5, 100);
    let reader = Options::default().read_only(true).open(place(&dir)).unwrap();
    let mut lines = reader.reader(Lsn::ZERO).unwrap();
    assert_eq!(lines.next().unwrap().unwrap().payload, line(0, 100));
    append_lines(&log, 5..100, 100);
    let error = std::iter::repeat_with(|| lines.next().map(|line| line.is_some()))
        .take(200)
        .find_map(Result::err);
    assert_eq!(error.unwrap().kind(), ErrorKind::Trimmed);
    let mut lines = reader.reader(Lsn::ZERO).unwrap();
    assert_eq!(lines.next().unwrap().unwrap().payload, line(80, 100));
    drop(log);
    assert_eq!(concatenated(&place(&dir)).len(), 2000);
}

/// Options of a text log whose segments are full after a page.
fn of_pages() -> Options {
    Options::mapped_text().tuning(Tuning::new().segment_capacity_bytes(4096))
}

/// The files that only continue the one before them.
fn continuations(log: &std::path::Path) -> usize {
    let is_continuation =
        |file: &&std::path::PathBuf| file.to_str().unwrap().ends_with("-more.log");
    segment_files(log).iter().filter(is_continuation).count()
}

#[test]
fn so_many_files_are_kept_only_where_a_rule_ends_them() {
    for fill in FILLS {
        let dir = scratch();
        let log =
            of_pages().retain_files(2).tuning(Tuning::new().fill(fill)).open(place(&dir)).unwrap();
        let lines = append_lines(&log, 0..400, 100);
        assert_eq!(payloads(&log), lines, "nothing started a file but that one was full");
        assert_eq!(continuations(&place(&dir)) + 1, segment_files(&place(&dir)).len());
        assert_orderly(&place(&dir));
        assert_sound(&log);
        assert_eq!(log.stat().unwrap().removed, Default::default());
    }
}

#[test]
fn what_continues_a_file_goes_with_it() {
    let dir = scratch();
    let log = of_pages().retain_files(1).open(place(&dir)).unwrap();
    for day in 0..4 {
        append_lines(&log, day * 100..(day + 1) * 100, 100);
        log.rotate().unwrap();
    }
    let last = append_lines(&log, 400..401, 100);
    let kept: Vec<_> = (300..400).map(|number| line(number, 100)).chain(last).collect();
    assert_eq!(payloads(&log), kept, "the newest file and all of the one before");
    assert_eq!(log.stat().unwrap().removed.by_files.bytes, 300 * 100);
    assert_eq!(log.stat().unwrap().removed.by_files.files, 3 * 3);
    assert_sound(&log);
}

#[test]
fn a_limit_beyond_a_segment_holds_for_the_files_that_continue_one_another() {
    let dir = scratch();
    let log = of_pages().rotate_bytes(2000).open(place(&dir)).unwrap();
    append_lines(&log, 0..20, 100);
    drop(log);
    let log = Options::default().rotate_bytes(10_000).retain_files(1).open(place(&dir)).unwrap();
    append_lines(&log, 20..320, 100);
    let kept = payloads(&log);
    assert_eq!(kept.len(), 120, "a whole file and what was begun");
    assert_eq!(kept.last(), Some(&line(319, 100)));
    drop(log);
    // The words of another boot are worked out from the names.
    std::fs::remove_file(place(&dir).join("control")).unwrap();
    let log = Options::default().open(place(&dir)).unwrap();
    append_lines(&log, 320..390, 100);
    let firsts: Vec<_> = segment_files(&place(&dir));
    let starts = firsts.iter().filter(|file| !file.to_str().unwrap().ends_with("-more.log"));
    assert_eq!(starts.count(), 2, "{firsts:?}");
    assert_sound(&log);
}

#[test]
fn what_was_removed_is_told_with_the_rule_it_went_by() {
    let dir = scratch();
    let log = rotating(1000).retain_bytes(3500).open(place(&dir)).unwrap();
    append_lines(&log, 0..95, 100);
    let removed = log.stat().unwrap().removed;
    assert_eq!((removed.by_bytes.files, removed.by_bytes.bytes), (6, 6000));
    assert_eq!((removed.by_files.files, removed.by_age.files), (0, 0));
    drop(log);
    let log = Options::default().retain_bytes(0).retain_files(0).open(place(&dir)).unwrap();
    let removed = log.stat().unwrap().removed;
    assert_eq!((removed.by_bytes.files, removed.by_files.files), (6, 3));
    assert_eq!(removed.by_files.bytes, 3000);
}

#[test]
fn a_moment_starts_a_file_that_counts_also_where_the_one_before_was_just_full() {
    let dir = scratch();
    let log = of_pages().retain_files(0).open(place(&dir)).unwrap();
    log.append(&line(0, 4096)).unwrap();
    log.rotate().unwrap();
    log.append(&line(1, 100)).unwrap();
    assert_eq!((payloads(&log).len(), continuations(&place(&dir))), (1, 0));
}

#[test]
fn a_line_longer_than_the_limit_has_a_file_of_its_own() {
    for fill in FILLS {
        let dir = scratch();
        let log = rotating(100_000)
            .retain_files(1)
            .tuning(Tuning::new().fill(fill))
            .open(place(&dir))
            .unwrap();
        append_lines(&log, 0..10, 100);
        let long = [b"x".repeat(10_000_000), b"\n".to_vec()].concat();
        log.append(&long).unwrap();
        let short = append_lines(&log, 10..11, 100);
        assert_eq!(lens(&place(&dir))[0], long.len(), "{fill}");
        assert_eq!(payloads(&log), [long, short[0].clone()], "{fill}");
        assert_sound(&log);
    }
}

/// Appends `count` lines as another user, whose files all users may write to.
pub(crate) fn append_as_user(arguments: &[String]) {
    let [path, user, count] = arguments else { panic!("three arguments") };
    let user = user.parse().unwrap();
    become_user(user, user, &[]);
    // SAFETY: the mask is a number.
    unsafe { libc::umask(0) };
    let log = rotating(100).mode(0o666).retain_files(1).open(path).unwrap();
    append_lines(&log, 0..count.parse().unwrap(), 90);
    child::say("done");
}

#[test]
fn files_that_another_user_has_to_remove_are_told_and_keep_no_others() {
    if !is_root("files_that_another_user_has_to_remove_are_told_and_keep_no_others") {
        return;
    }
    let dir = scratch();
    let place = place(&dir);
    open_to_all(dir.path());
    fs::create_dir(&place).unwrap();
    fs::set_permissions(&place, fs::Permissions::from_mode(0o1777)).unwrap();
    let append = |user: &str, count: &str| {
        let mut child = Child::start("append as user", &[place.to_str().unwrap(), user, count]);
        child.expect("done");
        child.finish_well();
    };
    let left_over = || {
        let view = Options::default().read_only(true).open(&place).unwrap();
        (view.stat().unwrap().left_over.files, segment_files(&place).len())
    };
    append("1001", "2");
    append("1002", "5");
    // The second user's own file beyond the limit has gone, and the first user's two stay.
    let (files, all) = left_over();
    assert_eq!((files, all), (2, 4), "{:?}", segment_files(&place));
    append("1001", "0");
    assert_eq!(left_over().0, 0);
}
