//! What `vellum-stress --check` says of logs that are not as they should be.

use std::collections::BTreeSet;
use std::fs;

use vellum::Layout;

use super::support::{Place, flip, found, numbers, set};

/// The lines of a check that finds something wrong, and writes nothing.
#[track_caller]
fn bad(place: &Place) -> String {
    let records = place.records();
    let ran = place.stress(&["--check"]);
    assert_eq!((ran.code, ran.stderr.as_str()), (1, ""), "{:?}", ran.stdout);
    assert!(place.records() == records, "nothing is added to what is bad");
    let text = ran.stdout;
    let lines: Vec<&str> = text.lines().filter(|line| line.starts_with("BAD ")).collect();
    assert!(!lines.is_empty(), "{text}");
    lines.join("\n")
}

#[test]
fn a_log_that_is_not_there_or_not_finished_holds_nothing() {
    let place = Place::new();
    assert!(found(&place).is_empty());
    fs::create_dir(place.log()).unwrap();
    assert!(found(&place).is_empty());
    fs::write(place.log().join("lock"), "").unwrap();
    assert!(found(&place).is_empty());
}

#[test]
fn a_flipped_byte_is_bad() {
    for layout in ["framed", "text"] {
        let place = Place::new();
        place.stress(&["--records", "20", "--layout", layout]).good();
        flip(&place.segments()[0], 4096 + 1000);
        bad(&place);
    }
}

/// The report of a check on a text log whose lines were changed.
fn changed(change: impl FnOnce(&mut Vec<String>)) -> String {
    bad(&with_changed(change))
}

/// A text log of twelve records of two writers, and a marker, whose lines were changed.
fn with_changed(change: impl FnOnce(&mut Vec<String>)) -> Place {
    let place = Place::new();
    let options = ["--layout", "text", "--records", "12", "--threads", "2"];
    place.stress(&options).good();
    found(&place);
    let line =
        |(_, bytes): (u64, Vec<u8>)| String::from_utf8(bytes).unwrap().trim_end().to_string();
    let mut lines: Vec<String> = place.records().into_iter().map(line).collect();
    change(&mut lines);
    fs::remove_dir_all(place.log()).unwrap();
    let lines: Vec<String> = lines.into_iter().map(|line| line + "\n").collect();
    place.append(Layout::Text, &lines);
    place
}

fn place_of(lines: &[String], number: u64) -> usize {
    let name = format!("r{number}/");
    lines.iter().position(|line| line.starts_with(&name)).unwrap()
}

#[test]
fn what_is_lost_doubled_swapped_torn_or_foreign_is_bad() {
    let lost = changed(|lines| drop(lines.remove(place_of(lines, 5))));
    assert!(lost.contains("number 7 of writer 1 stands where 5 should"), "{lost}");
    let first = changed(|lines| drop(lines.remove(place_of(lines, 0))));
    assert!(first.contains("number 2 of writer 0 stands where 0 should"), "{first}");
    let doubled = changed(|lines| lines.push(lines[place_of(lines, 11)].clone()));
    assert!(doubled.contains("number 11 of writer 1 stands where 13 should"), "{doubled}");
    let swapped = changed(|lines| {
        let (one, other) = (place_of(lines, 4), place_of(lines, 6));
        lines.swap(one, other);
    });
    assert!(swapped.contains("number 6 of writer 0 stands where 4 should"), "{swapped}");
    let torn = changed(|lines| lines[3].truncate(20));
    assert!(torn.contains("is wrong from byte"), "{torn}");
    let foreign = changed(|lines| lines.push("hello".into()));
    assert!(foreign.contains("it has no name"), "{foreign}");
    let marker = changed(|lines| lines.push(lines[12].replace("m0", "m1")));
    assert!(marker.contains("m1 of"), "{marker}");
}

/// The numbers that a check finds which accepts torn lines, the first time and the second.
#[track_caller]
fn found_torn(place: &Place) -> BTreeSet<u64> {
    let [first, second] = [(); 2].map(|()| place.stress(&["--check", "--torn"]).good());
    assert_eq!(first, second);
    set(numbers(&first, ""))
}

#[test]
fn what_stands_behind_a_torn_line_is_not_counted_and_the_rest_is() {
    let place = with_changed(|lines| lines[5].truncate(20));
    let found = found_torn(&place);
    assert_eq!(found.len(), 5, "those before it: {found:?}");
    bad(&place);
    // The filler in the place of a line is none by itself.
    let filled = with_changed(|lines| {
        let end = lines.len() - 1;
        lines.insert(end, "~ vellum: 9 bytes lost ~".into());
    });
    assert_eq!(found_torn(&filled).len(), 12);
    let missed = with_changed(|lines| {
        lines.insert(3, "~ vellum: 9 bytes lost ~".into());
        lines.remove(place_of(lines, 7));
        let at = place_of(lines, 9);
        lines.insert(at, "~ vellum: 9 bytes lost ~".into());
    });
    let found = found_torn(&missed);
    assert!(found.contains(&5) && !found.contains(&9) && !found.contains(&11), "{found:?}");
}

#[test]
fn a_power_cut_explains_no_line_that_is_doubled_or_missing_without_a_trace() {
    for is_torn_too in [false, true] {
        let changed = |change: &dyn Fn(&mut Vec<String>)| {
            let place = with_changed(|lines| {
                change(lines);
                let end = lines.len() - 1;
                if is_torn_too {
                    lines.insert(end, "r12/2/0 torn".into());
                }
            });
            let ran = place.stress(&["--check", "--torn"]);
            assert_eq!(ran.code, 1);
            ran.stdout
        };
        let lost = changed(&|lines| drop(lines.remove(place_of(lines, 5))));
        assert!(lost.contains("number 7 of writer 1 stands where 5 should"), "{lost}");
        let doubled = changed(&|lines| lines.insert(12, lines[place_of(lines, 10)].clone()));
        assert!(doubled.contains("number 10 of writer 0 stands where 12 should"), "{doubled}");
    }
}

#[test]
fn files_that_are_not_as_others_expect_them_are_bad() {
    let place = Place::new();
    let words = "--layout text --rotate-bytes 4KiB --records 60";
    place.stress(&words.split(' ').collect::<Vec<_>>()).good();
    found(&place);
    let closed = &place.segments()[1];
    let text = fs::read(closed).unwrap();
    fs::write(closed, &text[..text.len() - 1]).unwrap();
    let said = bad(&place);
    assert!(said.contains("ends within a line"), "{said}");
    fs::write(closed, [&text[..], b"\0\n"].concat()).unwrap();
    let said = bad(&place);
    assert!(said.contains("holds a NUL"), "{said}");
}
