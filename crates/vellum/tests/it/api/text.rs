//! Text logs are plain text: lines, and files that `cat`, `grep` and `wc` understand.

use vellum::{Layout, Lsn, Options, Preallocate, Tuning};

use crate::support::child::Child;
use crate::support::{
    FILLS, concatenated, payload, payloads, place, scratch, segment_files, small,
};

const PREALLOCATES: [Preallocate; 3] =
    [Preallocate::Auto, Preallocate::Off, Preallocate::Fallocate];

#[test]
fn a_closed_text_log_is_exactly_what_was_appended_in_plain_files() {
    for fill in FILLS {
        for preallocate in PREALLOCATES {
            let dir = scratch();
            let options =
                small(Layout::Text).tuning(Tuning::new().fill(fill).preallocate(preallocate));
            let mut appended = Vec::new();
            for life in 0..3 {
                let log = options.open(place(&dir)).unwrap();
                for (index, len) in [1, 80, 3000, 500, 4096, 4095, 9000, 1].iter().enumerate() {
                    let line = payload(Layout::Text, life * 10 + index as u64, *len);
                    log.append(&line).unwrap();
                    appended.extend(line);
                }
                drop(log);
                assert!(concatenated(&place(&dir)) == appended, "{fill} {preallocate} {life}");
            }
            assert!(
                segment_files(&place(&dir)).iter().all(|file| file.metadata().unwrap().len() > 0)
            );
        }
    }
}

/// Appends numbered lines and leaves.
pub(crate) fn append_lines(arguments: &[String]) {
    let log = Options::default().open(&arguments[0]).unwrap();
    for index in 0..300 {
        log.append(format!("{} {index}\n", arguments[1]).as_bytes()).unwrap();
    }
}

#[test]
fn a_text_log_of_several_processes_is_plain_text_when_the_last_has_left() {
    let dir = scratch();
    let log = small(Layout::Text).open(place(&dir)).unwrap();
    let path = place(&dir);
    let start = |name: &str| Child::start("append lines", &[path.to_str().unwrap(), name]);
    let children = ["a", "b", "c"].map(start);
    for index in 0..300 {
        log.append(format!("parent {index}\n").as_bytes()).unwrap();
    }
    children.into_iter().for_each(Child::finish_well);
    let seen = payloads(&log).concat();
    drop(log);
    let text = concatenated(&path);
    assert!(text == seen, "the files hold what readers saw");
    assert!(!text.contains(&0));
    let text = String::from_utf8(text).unwrap();
    for name in ["parent", "a", "b", "c"] {
        let lines = text.lines().filter_map(|line| line.strip_prefix(&format!("{name} ")));
        assert!(lines.eq((0..300).map(|index: i32| index.to_string())), "all of {name}, in order");
    }
}

#[test]
fn an_unterminated_tail_is_read_as_it_is_and_what_follows_comes_after_it() {
    let dir = scratch();
    let log = small(Layout::Text).open(place(&dir)).unwrap();
    log.append(b"one\ntwo\nthr").unwrap();
    assert_eq!(payloads(&log), [b"one\n".to_vec(), b"two\n".to_vec(), b"thr".to_vec()]);
    log.append(b"ee\nfour\n").unwrap();
    assert_eq!(payloads(&log)[2..], [b"three\n".to_vec(), b"four\n".to_vec()]);
    drop(log);
    assert_eq!(concatenated(&place(&dir)), b"one\ntwo\nthree\nfour\n");
}

#[test]
fn a_record_of_many_lines_is_read_line_by_line_with_their_positions() {
    let dir = scratch();
    let log = small(Layout::Text).open(place(&dir)).unwrap();
    let lsn = log.append(b"a\n\nccc\n").unwrap();
    let mut reader = log.reader(Lsn::ZERO).unwrap();
    for (offset, line) in [(0, b"a\n".as_slice()), (2, b"\n"), (3, b"ccc\n")] {
        let record = reader.next().unwrap().unwrap();
        assert_eq!((record.lsn.get(), record.payload), (lsn.get() + offset, line));
    }
    assert_eq!(reader.next().unwrap(), None);
}

#[test]
fn a_line_longer_than_many_segments_is_one_record() {
    for fill in FILLS {
        for len in [4097, 8192, 8193, 100_000, 4096 * 7] {
            let dir = scratch();
            let options = small(Layout::Text).tuning(Tuning::new().fill(fill));
            let log = options.open(place(&dir)).unwrap();
            let giant = payload(Layout::Text, 5, len);
            log.append(b"before\n").unwrap();
            log.append(&giant).unwrap();
            log.append(b"after\n").unwrap();
            let expected = [b"before\n".to_vec(), giant.clone(), b"after\n".to_vec()];
            assert!(payloads(&log) == expected);
            drop(log);
            assert!(concatenated(&place(&dir)) == expected.concat());
            let log = options.open(place(&dir)).unwrap();
            log.append(b"later\n").unwrap();
            assert!(payloads(&log)[..3] == expected);
        }
    }
}

#[test]
fn while_it_is_open_other_tools_see_whole_segments_as_plain_text() {
    let dir = scratch();
    let log = small(Layout::Text).open(place(&dir)).unwrap();
    let mut appended = Vec::new();
    for index in 0..200 {
        let line = payload(Layout::Text, index, 90);
        log.append(&line).unwrap();
        appended.extend(line);
    }
    let files = segment_files(&place(&dir));
    let sealed: Vec<u8> =
        files[..files.len() - 2].iter().flat_map(|file| std::fs::read(file).unwrap()).collect();
    assert!(!sealed.is_empty() && appended.starts_with(&sealed));
}
