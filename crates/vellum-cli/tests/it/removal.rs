//! `vellum append` whose log is removed or moved.

use std::collections::BTreeMap;
use std::fs;

use super::support::{Place, Running, run};

/// Has each writer append lines, until both have one in the log at the path; returns how many each
/// has appended.
fn feed_until_both_are_there(place: &Place, writers: &mut [Running; 2], counts: &mut [usize; 2]) {
    let is_there = |name: &str| {
        let text = fs::read_to_string(place.log().join("current")).unwrap_or_default();
        text.contains(&format!("{name} "))
    };
    while !(is_there("a") && is_there("b")) {
        for (index, name) in ["a", "b"].into_iter().enumerate() {
            writers[index].feed(format!("{name} {}\n", counts[index]).as_bytes());
            // Each line is told when it is in the log.
            writers[index].line();
            counts[index] += 1;
        }
    }
}

#[test]
fn writers_go_on_together_in_a_new_log_and_no_line_is_lost_that_was_moved() {
    let place = Place::new();
    let options = ["--layout", "text", "--fill", "pwrite", "--ack"];
    let mut writers = [(); 2].map(|()| place.start("append", &options));
    let mut counts = [0, 0];
    let moved = place.dir().join("moved");
    feed_until_both_are_there(&place, &mut writers, &mut counts);
    fs::rename(place.log(), &moved).unwrap();
    feed_until_both_are_there(&place, &mut writers, &mut counts);
    for mut writer in writers {
        drop(writer.child.stdin.take());
        assert!(writer.child.wait().unwrap().success());
    }
    let mut found = BTreeMap::new();
    for log in [&moved, &place.log()] {
        for line in run(&["cat".as_ref(), log.as_os_str()], b"").good().lines() {
            *found.entry(line.to_string()).or_insert(0) += 1;
        }
    }
    assert!(found.values().all(|times| *times == 1), "{found:?}");
    assert_eq!(found.len(), counts[0] + counts[1]);
}

#[test]
fn writers_go_on_together_in_a_new_log_after_the_old_one_was_removed() {
    let place = Place::new();
    let options = ["--layout", "text", "--fill", "pwrite", "--ack", "--commit", "every"];
    let mut writers = [(); 2].map(|()| place.start("append", &options));
    let mut counts = [0, 0];
    for _ in 0..2 {
        feed_until_both_are_there(&place, &mut writers, &mut counts);
        fs::remove_dir_all(place.log()).unwrap();
    }
    feed_until_both_are_there(&place, &mut writers, &mut counts);
    for mut writer in writers {
        drop(writer.child.stdin.take());
        assert!(writer.child.wait().unwrap().success());
    }
    assert_eq!(fs::read_dir(place.dir()).unwrap().count(), 1);
    assert_eq!(run(&["verify".as_ref(), place.log().as_os_str()], b"").code, 0);
}

#[test]
fn a_writer_makes_the_log_anew_that_another_had_made() {
    for options in [["--ack", "--commit", "every"], ["--ack", "--commit", "none"]] {
        let place = Place::new();
        place.append(&[], b"made by another\n");
        let mut writer = place.start("append", &options);
        writer.feed(b"before\n");
        writer.line();
        fs::remove_dir_all(place.log()).unwrap();
        while !place.log().exists() {
            writer.feed(b"behind\n");
            writer.line();
        }
        drop(writer.child.stdin.take());
        assert!(writer.child.wait().unwrap().success());
        assert!(place.run("cat", &[], b"").good().starts_with("behind\n"));
    }
}
