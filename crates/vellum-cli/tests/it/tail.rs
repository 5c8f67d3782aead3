//! `vellum tail`.

use std::fs;

use super::support::{Place, run};

fn numbered(count: usize) -> String {
    (1..=count).map(|number| format!("line {number} {}\n", "x".repeat(number % 90))).collect()
}

#[track_caller]
fn assert_ends_with(printed: &str, all: &str, count: usize) {
    let expected: Vec<_> = all.lines().rev().take(count).collect();
    let found: Vec<_> = printed.lines().rev().collect();
    assert_eq!(found, expected);
}

#[test]
fn the_last_records_are_printed_and_no_more() {
    for layout in ["framed", "text"] {
        let place = Place::new();
        let all = numbered(5000);
        place.append(&["--layout", layout, "--segment-bytes", "4KiB"], all.as_bytes());
        assert_ends_with(&place.run("tail", &[], b"").good(), &all, 10);
        for count in ["0", "1", "50", "1500", "4999", "5000", "9999999"] {
            let printed = place.run("tail", &["-n", count], b"").good();
            assert_ends_with(&printed, &all, count.parse().unwrap());
        }
    }
}

#[test]
fn lines_are_counted_as_tail_counts_them() {
    for layout in ["framed", "text"] {
        let place = Place::new();
        let all = numbered(300);
        place.append(&["--layout", layout, "--segment-bytes", "4KiB"], all.as_bytes());
        for (words, first) in [
            (&["-n", "+298"][..], 298),
            (&["-n+1"], 1),
            (&["--lines=+0"], 1),
            (&["-n", "+301"], 301),
            (&["-n", "+9999"], 301),
            (&["-5"], 296),
            (&["-n", "-5"], 296),
        ] {
            let printed = place.run("tail", words, b"").good();
            let expected: String = all.split_inclusive('\n').skip(first - 1).collect();
            assert!(printed == expected, "{words:?}: {printed}");
        }
        let mut running = place.start("tail", &["-2f"]);
        assert_eq!(running.line(), all.split_inclusive('\n').nth(298).unwrap());
    }
}

#[test]
fn records_longer_than_segments_are_records_too() {
    for layout in ["framed", "text"] {
        let place = Place::new();
        let all = format!("{}\nshort\n{}\n", "a".repeat(20_000), "b".repeat(200_000));
        place.append(&["--layout", layout, "--segment-bytes", "4KiB"], all.as_bytes());
        for count in ["1", "2", "3", "4"] {
            let printed = place.run("tail", &["-n", count], b"").good();
            assert_ends_with(&printed, &all, count.parse().unwrap());
        }
    }
}

#[test]
fn an_empty_log_has_no_last_records() {
    for layout in ["framed", "text"] {
        let place = Place::new();
        place.append(&["--layout", layout], b"");
        assert_eq!(place.run("tail", &[], b"").good(), "");
    }
}

#[test]
fn following_goes_on_over_the_files_of_the_log() {
    for layout in ["framed", "text"] {
        let place = Place::new();
        place.append(&["--layout", layout, "--segment-bytes", "4KiB"], b"one\ntwo\nthree\n");
        let mut running = place.start("tail", &["-n", "2", "-f"]);
        assert_eq!((running.line().as_str(), running.line().as_str()), ("two\n", "three\n"));
        let more = numbered(300);
        place.append(&[], more.as_bytes());
        for line in more.lines() {
            assert_eq!(running.line().trim_end_matches('\n'), line);
        }
        assert!(place.segments().len() > 1);
        assert!(running.child.try_wait().unwrap().is_none(), "it waits for more");
    }
}

#[test]
fn json_is_that_of_cat() {
    let place = Place::new();
    place.append(&[], b"one\ntwo\n");
    let all = place.run("cat", &["--json"], b"").good();
    let last = place.run("tail", &["--json", "-n", "1"], b"").good();
    assert_eq!(all.lines().last(), last.lines().next());
    assert_eq!(place.run("tail", &["-0"], b"").good(), "one\0two\0");
}

#[test]
fn there_has_to_be_a_log() {
    let place = Place::new();
    for options in [&[][..], &["--follow"]] {
        assert!(place.run("tail", options, b"").complaint(1).contains("no log"));
        assert!(!place.log().exists());
    }
}

#[test]
fn a_log_that_comes_and_goes_is_followed() {
    for layout in ["framed", "text"] {
        let place = Place::new();
        let mut tail = place.start("tail", &["-F"]);
        place.append(&["--layout", layout], numbered(20).as_bytes());
        for line in numbered(20).lines() {
            assert_eq!(tail.line().trim_end_matches('\n'), line, "from its beginning");
        }
        // Moved, with the record that was appended just before.
        place.append(&[], b"before\n");
        fs::rename(place.log(), place.dir().join("moved")).unwrap();
        place.append(&["--layout", layout], b"moved\n");
        assert_eq!((tail.line().as_str(), tail.line().as_str()), ("before\n", "moved\n"));
        // Removed.
        fs::remove_dir_all(place.log()).unwrap();
        place.append(&["--layout", layout], b"removed\n");
        assert_eq!(tail.line(), "removed\n");
        // Emptied.
        for entry in fs::read_dir(place.log()).unwrap() {
            fs::remove_file(entry.unwrap().path()).unwrap();
        }
        place.append(&["--layout", layout], b"emptied\n");
        assert_eq!(tail.line(), "emptied\n");
        assert!(tail.child.try_wait().unwrap().is_none(), "it waits for more");
    }
}

#[test]
fn following_what_comes_begins_with_the_newest_and_refuses_what_is_no_log() {
    let place = Place::new();
    place.append(&[], numbered(20).as_bytes());
    let mut tail = place.start("tail", &["-n", "1", "-F"]);
    assert_eq!(tail.line(), numbered(20).lines().last().unwrap().to_string() + "\n");
    let file = place.dir().join("file");
    fs::write(&file, "text").unwrap();
    assert!(run(&["tail", "-F", file.to_str().unwrap()], b"").complaint(1).contains("not a log"));
}
