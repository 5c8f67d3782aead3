//! A text log at the path of a file, as people and their tools expect it.

use std::fs;
use std::process::Command;

use super::support::{Place, Running, run, vellum};

fn lines(count: usize) -> String {
    (1..=count).map(|number| format!("line {number}\n")).collect()
}

#[test]
fn a_new_text_log_is_a_file_for_every_tool_and_a_log_for_every_command() {
    let place = Place::new();
    let path = place.dir().join("app.log");
    let log = path.to_str().unwrap();
    let mut writer = Running::start(vellum().args(["append", "--layout", "text", "--ack", log]));
    for number in 1..=3 {
        writer.feed(format!("line {number}\n").as_bytes());
        writer.line();
        assert_eq!(fs::read_to_string(&path).unwrap(), lines(number), "while it is written");
    }
    drop(writer.child.stdin.take());
    assert!(writer.child.wait().unwrap().success());
    for (tool, args) in [("cat", &[][..]), ("grep", &["line"]), ("tail", &["-n", "9"])] {
        let output = Command::new(tool).args(args).arg(log).output().unwrap();
        assert_eq!(String::from_utf8(output.stdout).unwrap(), lines(3), "{tool}");
    }
    assert_eq!(run(&["cat", log], b"").good(), lines(3));
    assert_eq!(run(&["tail", "-n", "9", log], b"").good(), lines(3));
    for command in ["stat", "verify", "rotate"] {
        assert_eq!(run(&[command, log], b"").code, 0, "{command}");
    }
    run(&["append", log], b"line 4\n").good();
    assert_eq!(fs::read_to_string(&path).unwrap(), "line 4\n", "the newest file");
    assert_eq!(run(&["cat", log], b"").good(), lines(4));
}

#[test]
fn an_option_of_text_logs_makes_a_link_too_and_a_slash_a_directory() {
    let place = Place::new();
    let path = place.dir().join("app.log");
    run(&["append", "--rotate-bytes", "1M", path.to_str().unwrap()], b"one\n").good();
    assert_eq!(fs::read_to_string(&path).unwrap(), "one\n");
    let path = place.dir().join("other.log/");
    run(&["append", "--rotate-bytes", "1M", path.to_str().unwrap()], b"one\n").good();
    assert_eq!(fs::read_to_string(path.join("current")).unwrap(), "one\n");
}

#[test]
fn a_file_at_the_path_is_kept_and_the_error_names_it() {
    let place = Place::new();
    let path = place.dir().join("app.log");
    fs::write(&path, "old\n").unwrap();
    let ran = run(&["append", "--layout", "text", path.to_str().unwrap()], b"one\n");
    let complaint = ran.complaint(1);
    assert!(complaint.contains("this is a file") && complaint.contains("app.log"), "{complaint}");
    assert_eq!(fs::read_to_string(&path).unwrap(), "old\n");
    assert_eq!(fs::read_dir(place.dir()).unwrap().count(), 1);
}

#[test]
fn a_repaired_log_is_at_the_path_of_a_file_if_the_damaged_one_is() {
    let place = Place::new();
    for (from, to) in [("app.log", "saved.log"), ("other.log/", "also.log")] {
        let (from, to) = (place.dir().join(from), place.dir().join(to));
        run(&["append", "--layout", "text", from.to_str().unwrap()], b"one\n").good();
        let repaired = run(&["repair", from.to_str().unwrap(), to.to_str().unwrap()], b"");
        assert_eq!(repaired.code, 0);
        let is_file = fs::read_to_string(&to).is_ok_and(|text| text == "one\n");
        assert_eq!(is_file, fs::read_to_string(&from).is_ok(), "{}", to.display());
        assert_eq!(run(&["cat", to.to_str().unwrap()], b"").good(), "one\n");
    }
}
