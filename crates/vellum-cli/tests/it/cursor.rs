//! `vellum cursor` and `vellum tail --cursor`.

use serde_json::Value;

use super::support::{Place, run, vellum};

impl Place {
    /// `vellum cursor LOG <words>`.
    fn cursor(&self, words: &[&str]) -> super::support::Ran {
        let log = self.log().to_str().unwrap().to_string();
        run(&[&["cursor", &log], words].concat(), b"")
    }

    fn cursor_json(&self, name: &str) -> Value {
        let text = self.cursor(&["--json", name]).good();
        serde_json::from_str::<Value>(&text).unwrap()[0].clone()
    }
}

const LAYOUTS: [&str; 2] = ["framed", "text"];

#[test]
fn a_cursor_is_made_moved_listed_and_removed() {
    for layout in LAYOUTS {
        let place = Place::new();
        let told = place.append(&["--layout", layout], b"one\ntwo\nthree\n");
        assert_eq!(place.cursor(&[]).good(), "");
        assert!(place.cursor(&["x"]).complaint(1).contains("no cursor x"));
        assert!(place.cursor(&["x", "--delete"]).complaint(1).contains("no cursor x"));
        place.cursor(&["x", "--set", &told[1].to_string()]).good();
        let cursor = place.cursor_json("x");
        assert_eq!((&cursor["lsn"], &cursor["lag_records"]), (&told[1].into(), &2.into()));
        assert_eq!((&cursor["holds"], &cursor["owned"]), (&false.into(), &false.into()));
        assert_eq!(cursor["owner"], Value::Null);
        place.cursor(&["x", "--set", "end"]).good();
        assert_eq!(place.cursor_json("x")["lag_bytes"], 0);
        place.cursor(&["x", "--set", "begin", "--hold", "--max-held", "1MiB"]).good();
        let cursor = place.cursor_json("x");
        assert_eq!((&cursor["lsn"], &cursor["holds"]), (&told[0].into(), &true.into()));
        assert_eq!(cursor["max_held_bytes"], 1 << 20);
        let told = &place.stat()["cursors"];
        assert_eq!(told.as_array().unwrap().len(), 1);
        for (name, value) in cursor.as_object().unwrap() {
            // It grows.
            assert!(told[0][name] == *value || name == "lag_seconds", "{name}: {told}");
        }
        let stored = cursor["position"].as_str().unwrap();
        assert!(stored.starts_with(place.stat()["log_id"].as_str().unwrap()), "{stored}");
        place.cursor(&["x", "--set", "end"]).good();
        place.cursor(&["x", "--set", stored]).good();
        assert_eq!(place.cursor_json("x")["lsn"], cursor["lsn"]);
        let other = stored.replacen(&stored[..4], "0000", 1);
        assert!(place.cursor(&["x", "--set", &other]).complaint(1).contains("is of log 0000"));
        let numbers = place.run("stat", &["--prometheus"], b"").good();
        let holds = numbers.lines().find(|line| line.starts_with("vellum_cursor_holds{"));
        assert!(holds.is_some_and(|line| line.ends_with("cursor=\"x\"} 1")), "{numbers}");
        let text = place.run("stat", &[], b"").good();
        assert!(text.contains("up to 1 MiB") && text.contains("nobody"), "{text}");
        place.cursor(&["x", "--no-hold"]).good();
        assert_eq!(place.cursor_json("x")["holds"], false);
        place.cursor(&["y", "--hold"]).good();
        assert_eq!(place.cursor(&[]).good().lines().count(), 3);
        place.cursor(&["x", "--delete"]).good();
        place.cursor(&["y", "--delete"]).good();
        assert_eq!(place.cursor(&["--json"]).good(), "[]\n");
        for words in [&["x", "--set", "middle"][..], &["--set", "end"], &["x", "--max-held", "1"]] {
            assert_eq!(place.cursor(words).code, 2, "{words:?}");
        }
        assert_eq!(place.cursor(&["a b", "--set", "end"]).code, 2);
    }
}

#[test]
fn trim_says_that_a_cursor_keeps_records() {
    let place = Place::new();
    let told = place.append(&[], b"one\ntwo\nthree\n");
    place.cursor(&["x", "--set", &told[1].to_string(), "--hold"]).good();
    let before = told[2].to_string();
    let ran = place.run("trim", &["--before", &before], b"");
    assert!(ran.stderr.contains(&format!("a cursor keeps the records from {}", told[1])));
    let text = place.run("trim", &["--json", "--before", &before], b"").good();
    let report: Value = serde_json::from_str(&text).unwrap();
    assert_eq!((&report["begin"], &report["held_at"]), (&told[1].into(), &told[1].into()));
}

#[test]
fn tail_goes_on_where_it_was_left() {
    for layout in LAYOUTS {
        let place = Place::new();
        place.append(&["--layout", layout], b"one\ntwo\n");
        assert_eq!(place.run("tail", &["--cursor", "x"], b"").good(), "one\ntwo\n");
        assert_eq!(place.run("tail", &["--cursor", "x"], b"").good(), "");
        place.append(&[], b"three\n");
        assert_eq!(place.run("tail", &["--cursor", "y"], b"").good(), "one\ntwo\nthree\n");
        assert_eq!(place.run("tail", &["--cursor", "x"], b"").good(), "three\n");
        // Lines that no reader takes are not finished.
        place.append(&[], b"four\n");
        let log = place.log();
        let words = ["tail", "--cursor", "x", log.to_str().unwrap()];
        vellum().args(words).stdout(super::support::closed_pipe()).output().unwrap();
        assert_eq!(place.run("tail", &["--cursor", "x"], b"").good(), "four\n");
    }
}

#[test]
fn a_follower_owns_its_cursor_and_leaves_it_to_the_next() {
    for layout in LAYOUTS {
        let place = Place::new();
        place.append(&["--layout", layout], b"one\n");
        let mut follower = place.start("tail", &["--cursor", "x", "-f"]);
        assert_eq!(follower.line(), "one\n");
        place.append(&[], b"two\n");
        assert_eq!(follower.line(), "two\n");
        let pid = follower.child.id();
        let second = place.run("tail", &["--cursor", "x"], b"");
        assert!(second.complaint(1).contains(&format!("process {pid}")), "{second:?}");
        assert_eq!(place.cursor_json("x")["owner"], pid);
        assert_eq!(place.cursor(&["x", "--delete"]).code, 1);
        // It prints before it moves the cursor.
        while place.cursor_json("x")["lag_bytes"] != 0 {
            std::thread::yield_now();
        }
        drop(follower);
        place.append(&[], b"three\n");
        assert_eq!(place.run("tail", &["--cursor", "x"], b"").good(), "three\n");
    }
}

/// Has `tail --cursor x --ack` print `count` records, acknowledges as `acks` makes of the positions
/// behind them, and ends the input; returns the output, and the exit code.
fn acknowledge(place: &Place, count: usize, acks: impl Fn(&[String]) -> String) -> (String, i32) {
    let mut tail = place.start("tail", &["--cursor", "x", "--ack", "--positions"]);
    let lines: Vec<String> = (0..count).map(|_| tail.line()).collect();
    let next = |line: &String| line.split_once('\t').unwrap().0.to_string();
    tail.feed(acks(&lines.iter().map(next).collect::<Vec<_>>()).as_bytes());
    drop(tail.child.stdin.take());
    assert_eq!(tail.line(), "");
    (lines.concat(), tail.child.wait().unwrap().code().unwrap())
}

#[test]
fn what_is_not_acknowledged_is_printed_again() {
    for layout in LAYOUTS {
        let place = Place::new();
        place.append(&["--layout", layout], b"one\ntwo\nthree\n");
        let ran = place.run("tail", &["--cursor", "x", "--ack"], b"");
        assert_eq!((ran.code, ran.stdout.as_slice()), (1, &b"one\ntwo\nthree\n"[..]));
        assert!(ran.stderr.contains("printed again next time"), "{}", ran.stderr);
        let (all, code) = acknowledge(&place, 3, |next| format!("{}\n{}\n", next[0], next[1]));
        assert_eq!((all.lines().count(), code), (3, 1));
        let (rest, code) = acknowledge(&place, 1, |next| format!("{}\n", next[0]));
        assert_eq!((rest.trim_end(), code), (all.lines().last().unwrap(), 0));
        assert_eq!(acknowledge(&place, 0, |_| String::new()), (String::new(), 0));
        place.append(&[], b"more\n");
        for wrong in ["x\n", "\n", "99999999999\n"] {
            assert_eq!(acknowledge(&place, 1, |_| wrong.into()).1, 1);
        }
    }
}

#[test]
fn who_was_overrun_is_told_so() {
    for layout in LAYOUTS {
        let place = Place::new();
        let told = place.append(&["--layout", layout], b"one\ntwo\nthree\n");
        place.cursor(&["x", "--set", "begin"]).good();
        place.run("trim", &["--before", &told[2].to_string()], b"");
        let text = place.run("stat", &[], b"").good();
        assert!(text.contains("cursor x is overrun"), "{text}");
        let missing = told[2] - told[0];
        assert_eq!(place.cursor_json("x")["overrun"]["missing_bytes"], missing);
        let ran = place.run("tail", &["--cursor", "x"], b"");
        assert_eq!((ran.code, ran.stdout.as_slice()), (3, &b"three\n"[..]));
        assert!(ran.stderr.contains(&format!("{missing} bytes are missing")), "{}", ran.stderr);
        let overrun = &place.cursor_json("x")["overrun"];
        assert_eq!((&overrun["missing_bytes"], &overrun["count"]), (&0.into(), &1.into()));
        assert_eq!(overrun["bytes"], missing);
        assert_eq!(place.run("tail", &["--cursor", "x"], b"").good(), "");
    }
}
