//! `vellum cat`.

use std::fs::File;
use std::io::Read;
use std::process::Stdio;

use serde_json::Value;

use super::support::{Place, Running, run, vellum};

#[test]
fn from_and_to_cut_out_a_part() {
    let place = Place::new();
    let told = place.append(&[], b"one\ntwo\nthree\nfour\n");
    let (from, to) = (told[1].to_string(), told[3].to_string());
    assert_eq!(place.run("cat", &["--from", &from, "--to", &to], b"").good(), "two\nthree\n");
    assert_eq!(place.run("cat", &["--to", &from], b"").good(), "one\n");
    let between = (told[1] + 1).to_string();
    assert_eq!(place.run("cat", &["--to", &between], b"").good(), "one\ntwo\n");
    assert_eq!(place.run("cat", &["--from", &to, "--to", &from], b"").good(), "");
}

#[test]
fn positions_outside_the_log_are_refused() {
    let place = Place::new();
    place.append(&[], b"one\n");
    for from in ["1", "9999999999"] {
        place.run("cat", &["--from", from], b"").complaint(1);
    }
}

#[test]
fn json_has_positions_and_text_or_base64() {
    for layout in ["framed", "text"] {
        let place = Place::new();
        let told = place.append(&["--layout", layout], b"caf\xc3\xa9 \"x\"\n\xff\xfe\n\n");
        let text = place.run("cat", &["--json"], b"").good();
        let lines: Vec<Value> = text.lines().map(|l| serde_json::from_str(l).unwrap()).collect();
        assert_eq!(lines.len(), 3, "{text}");
        for (line, lsn) in lines.iter().zip(&told) {
            assert_eq!(line["lsn"], *lsn);
        }
        assert_eq!(lines[0]["next_lsn"], told[1]);
        assert_eq!(lines[0]["payload"], "café \"x\"");
        assert_eq!(lines[1]["payload_base64"], "//4=");
        assert!(lines[1].get("payload").is_none() && lines[0].get("payload_base64").is_none());
        assert_eq!(lines[2]["payload"], "");
    }
}

#[test]
fn a_reader_that_has_enough_ends_it_quietly() {
    let place = Place::new();
    // More than pipes and buffers hold.
    place.append(&[], "a line of some length\n".repeat(200_000).as_bytes());
    for options in [&[][..], &["--json"], &["-0"], &["--follow"]] {
        let mut command = vellum();
        command.arg("cat").args(options).arg(place.log()).stderr(Stdio::piped());
        let mut running = Running::start(&mut command);
        running.stdout.as_mut().unwrap().read_exact(&mut [0]).unwrap();
        running.stdout = None;
        let status = running.child.wait().unwrap();
        let mut complaint = String::new();
        running.child.stderr.as_mut().unwrap().read_to_string(&mut complaint).unwrap();
        assert_eq!((status.code(), complaint.as_str()), (Some(0), ""), "{options:?}");
    }
}

#[test]
fn following_ends_when_nobody_reads_though_no_record_comes() {
    let place = Place::new();
    place.append(&[], b"one\n");
    let mut running = place.start("cat", &["--follow"]);
    assert_eq!(running.line(), "one\n");
    running.stdout = None;
    assert_eq!(running.child.wait().unwrap().code(), Some(0));
}

#[test]
fn output_that_cannot_be_written_is_a_failure() {
    let place = Place::new();
    place.append(&[], b"one\n");
    for command in ["cat", "stat"] {
        let full = File::options().write(true).open("/dev/full").unwrap();
        let output = vellum().arg(command).arg(place.log()).stdout(full).output().unwrap();
        assert_eq!(output.status.code(), Some(1), "{command}");
        let text = String::from_utf8(output.stderr).unwrap();
        assert!(text.starts_with("vellum: cannot write to standard output: "), "{text}");
    }
}

#[test]
fn following_shows_records_as_they_come() {
    for layout in ["framed", "text"] {
        let place = Place::new();
        place.append(&["--layout", layout], b"before\n");
        let mut running = place.start("cat", &["-f"]);
        assert_eq!(running.line(), "before\n");
        for record in ["first\n", "second\n", "third\n"] {
            place.append(&[], record.as_bytes());
            assert_eq!(running.line(), record, "{layout}");
        }
        assert!(running.child.try_wait().unwrap().is_none(), "it waits for more");
    }
}

#[test]
fn following_ends_at_the_position_asked_for() {
    let place = Place::new();
    let told = place.append(&[], b"one\ntwo\n");
    let to = (told[1] + (told[1] - told[0])).to_string();
    let ran = place.run("cat", &["--follow", "--to", &to], b"");
    assert_eq!(ran.good(), "one\ntwo\n");
}

#[test]
fn there_has_to_be_a_log() {
    let place = Place::new();
    for options in [&[][..], &["--follow"]] {
        assert!(place.run("cat", options, b"").complaint(1).contains("no log"));
        assert!(!place.log().exists());
    }
}

#[test]
fn only_what_was_committed_is_printed_where_that_is_asked_for() {
    for layout in ["framed", "text"] {
        let place = Place::new();
        let never = ["--layout", layout, "--commit", "none"];
        // The last process that leaves a log may commit all of it.
        let log = vellum::internal::options(layout.parse().unwrap());
        let log = log.open(place.log()).unwrap();
        place.append(&["--commit", "every"], b"one\ntwo\n");
        place.append(&never, b"three\n");
        assert_eq!(place.run("cat", &["--durable"], b"").good(), "one\ntwo\n");
        assert_eq!(place.run("tail", &["-n", "1", "--durable"], b"").good(), "two\n");
        assert_eq!(place.run("tail", &["-n", "1"], b"").good(), "three\n");
        let mut cat = place.start("cat", &["-f", "--durable"]);
        let mut tail = place.start("tail", &["-n", "1", "-f", "--durable"]);
        let mut again = place.start("tail", &["-n", "1", "-F", "--durable"]);
        assert_eq!((cat.line().as_str(), cat.line().as_str()), ("one\n", "two\n"));
        assert_eq!((tail.line().as_str(), again.line().as_str()), ("two\n", "two\n"));
        let mut expected = vec!["three\n".to_string()];
        for number in 4..20 {
            expected.push(format!("{number}\n"));
            place.append(&never, expected.last().unwrap().as_bytes());
            log.sync().unwrap();
            for line in expected.drain(..) {
                assert_eq!([cat.line(), tail.line(), again.line()], [line.as_str(); 3]);
            }
        }
    }
}

#[test]
fn raw_is_the_bytes_of_the_records_and_nothing_else() {
    let commands = ["*1\r\n$4\r\nPING\r\n", "\0\n", "", "no end"];
    for text in [false, true] {
        let place = Place::new();
        let options = if text { vellum::Options::text() } else { vellum::Options::events() };
        let log = options.open(place.log()).unwrap();
        // In a text log each record is a line.
        let commands = if text { &["one\n", "\n", "two\n"][..] } else { &commands[..] };
        for command in commands {
            log.append(command.as_bytes()).unwrap();
        }
        drop(log);
        let whole = commands.concat();
        assert_eq!(place.run("cat", &["--raw"], b"").good(), whole);
        assert_eq!(place.run("tail", &["--raw"], b"").good(), whole);
        assert_eq!(place.run("tail", &["--raw", "--cursor", "x"], b"").good(), whole);
        assert_eq!(place.run("tail", &["--raw", "-n", "1"], b"").good(), *commands.last().unwrap());
        let mut follower = place.start("cat", &["--raw", "-f"]);
        let mut bytes = vec![0; whole.len()];
        follower.stdout.as_mut().unwrap().read_exact(&mut bytes).unwrap();
        assert_eq!(bytes, whole.as_bytes());
    }
}

#[test]
fn raw_goes_with_nothing_that_says_more_of_a_record() {
    for rest in [
        &["cat", "--raw", "--json", "x"][..],
        &["cat", "--raw", "-0", "x"],
        &["tail", "--raw", "--json", "x"],
        &["tail", "--raw", "--cursor", "y", "--positions", "x"],
        &["tail", "--raw", "--cursor", "y", "--ack", "x"],
    ] {
        let ran = run(rest, b"");
        assert!(ran.code == 2 && ran.stderr.contains("--raw"), "{rest:?}: {ran:?}");
        assert!(ran.stderr.contains("cannot be used with"), "{rest:?}: {ran:?}");
    }
}

/// Two logs in a directory, a framed one and a text one.
fn two() -> (Place, [String; 2]) {
    let place = Place::new();
    let paths = ["a.log", "b.log"].map(|name| place.dir().join(name).to_str().unwrap().to_string());
    run(&["append", &paths[0]], b"one\ntwo\n").good();
    run(&["append", "--layout", "text", &paths[1]], b"three\n").good();
    (place, paths)
}

#[test]
fn several_logs_are_printed_one_after_the_other() {
    let (place, [a, b]) = two();
    assert_eq!(run(&["cat", &a, &b, &a], b"").good(), "one\ntwo\nthree\none\ntwo\n");
    assert_eq!(run(&["cat", "--raw", &b, &a], b"").good(), "three\nonetwo");
    let json = run(&["cat", "--json", &a, &b], b"").good();
    let objects = json.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let logs: Vec<Value> = objects.map(|object| object["log"].clone()).collect();
    assert_eq!(logs, [&a, &a, &b].map(|path| Value::from(path.as_str())));
    let ran = run(&["cat", "--since", "1h", &b, &b], b"");
    let names_it = |line: &str| line.contains(&b) && line.contains("no line begins with a time");
    assert!(ran.stderr.lines().count() == 2 && ran.stderr.lines().all(names_it), "{ran:?}");
    assert_eq!((ran.code, ran.text()), (0, "three\nthree\n".into()));
    // One that is not there, or damaged, does not keep the command from the others.
    let missing = place.dir().join("missing").to_str().unwrap().to_string();
    let ran = run(&["cat", &missing, &b], b"");
    assert!(ran.code == 1 && ran.stderr.contains("there is no log"), "{ran:?}");
    assert_eq!((ran.stderr.lines().count(), ran.text().as_str()), (1, "three\n"));
    let segment = std::fs::read_dir(&a).unwrap().map(|file| file.unwrap().path());
    let segment = segment.filter(|path| path.extension().is_some_and(|end| end == "seg")).min();
    super::support::flip(&segment.unwrap(), 4096 + 8);
    let ran = run(&["cat", &a, &b], b"");
    assert_eq!((ran.code, ran.text().ends_with("three\n")), (3, true));
}

#[test]
fn what_means_one_log_is_refused_for_several() {
    let (_place, [a, b]) = two();
    for option in [&["-f"][..], &["--from", "5"], &["--to", "5"]] {
        let ran = run(&[&["cat", &a, &b], option].concat(), b"");
        assert!(ran.complaint(2).contains("one log"), "{option:?}");
    }
}
