//! `vellum stat` of many logs.

use std::fs;
use std::io::Write;
use std::path::Path;

use serde_json::Value;
use vellum_testing::mount::Mount;

use super::stat::half_way_in;
use super::support::{Place, Ran, Running, run, vellum};

/// Logs below a directory: two, one of them deeper, beside what is no log.
fn logs() -> Place {
    let place = Place::new();
    for (name, input) in [("a.log", "one\n"), ("deep/er/b.log", "one\ntwo\n")] {
        let path = place.dir().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        run(&["append", "--layout", "text", path.to_str().unwrap()], input.as_bytes()).good();
    }
    fs::create_dir_all(place.dir().join("empty/dir")).unwrap();
    fs::write(place.dir().join("a file"), "no log").unwrap();
    place
}

fn stat(place: &Place, options: &[&str]) -> Ran {
    run(&[&["stat", place.dir().to_str().unwrap()], options].concat(), b"")
}

/// The line of the table for the log whose name ends so.
#[track_caller]
fn line(text: &str, name: &str) -> String {
    let is_its =
        |line: &&str| line.split_whitespace().next().is_some_and(|log| log.ends_with(name));
    let line = text.lines().find(is_its).unwrap_or_else(|| panic!("{name} in {text}"));
    line.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn a_directory_of_logs_is_a_line_for_each() {
    let place = logs();
    let text = stat(&place, &[]).good();
    assert_eq!(text.lines().count(), 3, "{text}");
    for word in ["log", "on disk", "unsynced", "trouble"] {
        assert!(text.lines().next().unwrap().contains(word), "{text}");
    }
    assert!(line(&text, "/a.log").ends_with("KiB 4 B -"), "{text}");
    assert!(line(&text, "/deep/er/b.log").ends_with("KiB 8 B -"), "{text}");
    let (a, b) = (place.dir().join("a.log"), place.dir().join("deep/er/b.log"));
    let named = run(&["stat", b.to_str().unwrap(), a.to_str().unwrap()], b"").good();
    let [_, first, second] = named.lines().collect::<Vec<_>>()[..] else { panic!("{named}") };
    assert!(first.contains("b.log") && second.contains("a.log"), "in the order of their names");
}

#[test]
fn the_json_of_many_is_an_object_a_line_like_that_of_one() {
    let place = logs();
    let many = stat(&place, &["--json"]).good();
    let many: Vec<Value> = many.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let paths = ["a.log", "deep/er/b.log"].map(|name| place.dir().join(name));
    assert_eq!(many.len(), 2);
    for (object, path) in many.iter().zip(&paths) {
        let path = path.to_str().unwrap();
        let one = run(&["stat", "--json", path], b"").good();
        assert_eq!(*object, serde_json::from_str::<Value>(&one).unwrap());
        assert_eq!(object["log"], path);
        assert!(object["disk_bytes"].as_u64() > Some(0));
    }
}

#[test]
fn the_page_for_prometheus_has_each_family_once_and_a_sample_of_each_log() {
    let place = logs();
    let page = stat(&place, &["--prometheus"]).good();
    let count = |start: &str| page.lines().filter(|line| line.starts_with(start)).count();
    assert_eq!(count("# TYPE vellum_disk_bytes "), 1, "{page}");
    assert_eq!(count("vellum_disk_bytes{"), 2);
    assert!(page.contains("a.log\"} 4\n") && page.contains("b.log\"} 8\n"), "{page}");
}

#[test]
fn a_log_in_trouble_says_so_on_its_line_and_the_others_are_shown() {
    let place = logs();
    let at = |name: &str| place.dir().join(name);
    half_way_in(&at("held.log")).child.kill().unwrap();
    run(&["append", at("broken.log").to_str().unwrap()], b"one\n").good();
    fs::write(at("broken.log/control"), "not Vellum's").unwrap();
    fs::remove_file(segment(&at("deep/er/b.log.d"))).unwrap();
    let missing = at("nothing");
    let ran = run(&["stat", place.dir().to_str().unwrap(), missing.to_str().unwrap()], b"");
    assert_eq!((ran.code, ran.stderr.as_str()), (3, ""));
    let text = ran.text();
    assert_eq!(text.lines().count(), 6, "{text}");
    assert!(line(&text, "a.log").ends_with('-'), "{text}");
    assert!(line(&text, "b.log").ends_with("1 file is missing or cut short"), "{text}");
    assert!(line(&text, "broken.log").contains("not a log"), "{text}");
    assert!(line(&text, "held.log").contains(", which died"), "{text}");
    assert!(line(&text, "nothing").contains("there is no log"), "{text}");
    let ran = stat(&place, &["--json"]);
    assert_eq!(ran.code, 3);
    let json = ran.text();
    assert!(json.lines().any(|line| line.contains("\"error\":\"not a log")), "{json}");
    let ran = stat(&place, &["--prometheus"]);
    // A script that writes the page to a file continues.
    assert_eq!(ran.code, 0);
    assert!(ran.stderr.contains("broken.log"), "{}", ran.stderr);
    let page = ran.text();
    assert!(page.contains("a.log\"} 4\n"));
    for (log, is_readable) in [("a.log", 1), ("broken.log", 0)] {
        let log = at(log).display().to_string();
        assert!(
            page.contains(&format!("vellum_readable{{log=\"{log}\"}} {is_readable}\n")),
            "{page}"
        );
    }
}

/// The newest file of a log.
fn segment(log: &Path) -> std::path::PathBuf {
    let entries = fs::read_dir(log).unwrap().map(|entry| entry.unwrap().path());
    entries.filter(|path| path.extension().is_some_and(|end| end == "log")).max().unwrap()
}

#[test]
fn readers_and_shippers_that_are_behind_are_told() {
    let place = logs();
    let a = place.dir().join("a.log");
    run(&["cursor", a.to_str().unwrap(), "slow", "--set", "begin"], b"").good();
    let text = stat(&place, &[]).good();
    assert!(text.contains("readers behind") && !text.contains("to ship"), "{text}");
    assert!(line(&text, "a.log").ends_with("4 B 4 B -"), "{text}");
    assert!(line(&text, "b.log").ends_with("8 B - -"), "{text}");
    let log = vellum::Options::default().open(&a).unwrap();
    let shipper = log.ship().elect().unwrap().unwrap();
    log.sync().unwrap();
    shipper.set_shipped(vellum::Lsn::new(shipper.durable().unwrap().get() - 2)).unwrap();
    let text = stat(&place, &[]).good();
    assert!(line(&text, "a.log").ends_with("0 B 4 B 2 B -"), "{text}");
}

#[test]
fn processes_that_died_beside_others_are_counted() {
    let place = Place::new();
    let mut alive = place.start("append", &["--ack"]);
    let mut dead = place.start("append", &["--ack"]);
    for writer in [&mut alive, &mut dead] {
        writer.feed(b"one\n");
        writer.line();
    }
    assert!(line(&stat(&place, &[]).good(), "test.log").ends_with('-'));
    dead.child.kill().unwrap();
    dead.child.wait().unwrap();
    let text = stat(&place, &[]).good();
    assert!(line(&text, "test.log").ends_with("1 process died with it open"), "{text}");
}

#[test]
fn a_log_at_the_path_of_a_file_is_told_by_that_path_with_all_its_files() {
    let place = Place::new();
    let link = place.dir().join("linked.log");
    run(&["append", "--layout", "text", link.to_str().unwrap()], b"one\n").good();
    let directory = place.dir().join("linked.log.d");
    assert!(link.is_symlink() && directory.is_dir());
    let text = stat(&place, &[]).good();
    assert!(text.contains("/linked.log ") && !text.contains("linked.log.d"), "{text}");
    let of = |path: &Path| -> Value {
        let text = run(&["stat", "--json", path.to_str().unwrap()], b"").good();
        serde_json::from_str(&text).unwrap()
    };
    assert_eq!(of(&link)["disk_bytes"], of(&directory)["disk_bytes"]);
    // Where something else is there, the directory has its own name.
    fs::remove_file(&link).unwrap();
    fs::write(&link, "no link").unwrap();
    assert!(stat(&place, &[]).good().contains("linked.log.d "));
}

#[test]
fn a_full_disk_is_told() {
    let Some(mount) = Mount::tmpfs("a_full_disk_is_told", 2) else { return };
    let log = mount.path().join("a.log");
    run(&["append", "--layout", "text", log.to_str().unwrap()], b"one\n").good();
    let stat = || run(&["stat", mount.path().to_str().unwrap()], b"").good();
    assert!(line(&stat(), "a.log").ends_with('-'), "{}", stat());
    let mut hog = fs::File::create(mount.path().join("hog")).unwrap();
    while hog.write_all(&[1; 4096]).is_ok() {}
    assert!(line(&stat(), "a.log").ends_with("the disk is full"), "{}", stat());
}

#[test]
fn who_watches_many_sees_rates_and_logs_that_are_new() {
    let place = logs();
    let mut watching = Running::start(vellum().args(["stat", "-w"]).arg(place.dir()));
    assert!(watching.line().contains("appended/s"));
    let mut json = Running::start(vellum().args(["stat", "-w", "--json"]).arg(place.dir()));
    json.line();
    let late = place.dir().join("late.log");
    run(&["append", late.to_str().unwrap()], b"one\n").good();
    let told = std::iter::repeat_with(|| watching.line());
    assert!(told.take(300).any(|line| line.contains("late.log")));
    let mut told = std::iter::repeat_with(|| serde_json::from_str::<Value>(&json.line()).unwrap());
    // A rate is the difference to the look before.
    assert!(told.by_ref().take(300).any(|log| log["log"].as_str() == late.to_str()));
    run(&["append", late.to_str().unwrap()], &b"more\n".repeat(1000)).good();
    assert!(told.take(300).any(|log| log["rates"]["appended_bytes"].as_u64() > Some(0)));
}

#[test]
fn a_directory_without_logs_and_positions_of_many_are_refused() {
    let place = Place::new();
    let dir = place.dir().to_str().unwrap();
    assert!(run(&["stat", dir], b"").complaint(1).contains("there is no log"));
    let many = logs();
    let refused = run(&["stat", "--positions", many.dir().to_str().unwrap()], b"");
    assert!(refused.complaint(2).contains("--positions"));
}

#[test]
fn more_logs_than_descriptors_are_looked_at() {
    let place = Place::new();
    for number in 0..40 {
        let path = place.dir().join(format!("{number}.log"));
        run(&["append", path.to_str().unwrap()], b"one\n").good();
    }
    let mut command = std::process::Command::new("sh");
    command.args(["-c", "ulimit -n 40; exec \"$0\" stat \"$1\"", env!("CARGO_BIN_EXE_vellum")]);
    let output = command.arg(place.dir()).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    assert_eq!(String::from_utf8(output.stdout).unwrap().lines().count(), 41);
}
