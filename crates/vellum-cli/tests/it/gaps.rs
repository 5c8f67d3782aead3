//! A file of a log that a user removed, moved away, emptied, cut short or packed is a gap, not the
//! end.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, SystemTime};

use serde_json::Value;

use super::support::{Place, Ran, Running, flip, vellum};

const LINES: usize = 2000;

fn line(number: usize) -> String {
    format!("line {number} {}\n", "x".repeat(number % 40))
}

fn lines(numbers: std::ops::Range<usize>) -> String {
    numbers.map(line).collect()
}

/// A text log of several files.
fn text_log() -> Place {
    let place = Place::new();
    let shape = ["--layout", "text", "--rotate-bytes", "8K"];
    place.append(&shape, lines(0..LINES).as_bytes());
    assert!(place.segments().len() > 4);
    place
}

/// The fate of a file.
type Deed = fn(&Path);

/// Operators' changes of a closed file.
const DEEDS: [(&str, Deed); 5] = [
    ("removed", |file| fs::remove_file(file).unwrap()),
    ("moved", |file| {
        let elsewhere = file.parent().unwrap().with_file_name("elsewhere");
        fs::rename(file, elsewhere).unwrap();
    }),
    ("emptied", |file| drop(File::create(file).unwrap())),
    ("cut", |file| {
        let file = File::options().write(true).open(file).unwrap();
        file.set_len(3).unwrap();
        // It was done a minute later.
        file.set_modified(SystemTime::now() + Duration::from_secs(60)).unwrap();
    }),
    ("packed", |file| {
        let packed = file.with_extension("log.xz");
        fs::rename(file, packed).unwrap();
    }),
];

fn read(file: &Path) -> String {
    fs::read_to_string(file).unwrap()
}

fn json(ran: Ran) -> Value {
    serde_json::from_str(&ran.text()).unwrap()
}

#[test]
fn readers_say_what_is_missing_and_go_on() {
    for (name, deed) in DEEDS {
        let place = text_log();
        let victim = place.segments().remove(2);
        let gone = read(&victim);
        deed(&victim);
        let number = victim.file_stem().unwrap().to_str().unwrap().split_once('-').unwrap().1;
        let stub = if name == "cut" { format!("{}\n", &gone[..3]) } else { String::new() };
        let expected = lines(0..LINES).replace(&gone, &stub);

        let ran = place.run("cat", &[], b"");
        assert_eq!(ran.code, 3, "{name}: {}", ran.stderr);
        assert_eq!(ran.stderr.lines().count(), 1, "{name}: {}", ran.stderr);
        for part in [number, "up to 8", "bytes are missing, from between 20", "restore it"] {
            let is_packed = name == "packed" && part == "restore it";
            let part = if is_packed { ".log.xz may be it: unpack it" } else { part };
            assert!(ran.stderr.contains(part), "{name}: {part} in {}", ran.stderr);
        }
        assert!(ran.text() == expected, "{name}");
        // All wanted records are there.
        let last = place.run("tail", &["-n", "5"], b"").good();
        assert_eq!(last, lines(LINES - 5..LINES), "{name}");
        let all = place.run("tail", &["-n", "99999"], b"");
        assert!((all.code, all.text() == expected) == (3, true), "{name}");
        let from_first = place.run("tail", &["-n", "+1"], b"");
        assert!((from_first.code, from_first.text() == expected) == (3, true), "{name}");

        let stat = place.run("stat", &[], b"");
        assert_eq!(stat.code, 3);
        assert!(stat.text().replace('\n', " ").contains("bytes are missing"), "{name}");
        let stat = json(place.run("stat", &["--json"], b""));
        let gaps = stat["gaps"].as_array().unwrap();
        assert_eq!(gaps.len(), 1, "{name}: {stat}");
        assert!(gaps[0]["path"].as_str().unwrap().contains(number));
        assert!(gaps[0]["bytes_max"].as_u64().unwrap() <= 8192);
        assert!(gaps[0]["after_seconds"].as_u64() <= gaps[0]["before_seconds"].as_u64());
        assert!(gaps[0]["before_seconds"].is_u64());

        let verified = json(place.run("verify", &["--json"], b""));
        let damage = verified["damage"].as_array().unwrap();
        assert_eq!(damage.len(), 1, "{name}: {verified}");
        assert_eq!(
            (&damage[0]["path"], &damage[0]["lsn"]),
            (&gaps[0]["path"], &gaps[0]["first_lsn"])
        );
        let records = verified["records"].as_u64().unwrap();
        assert_eq!(records, expected.lines().count() as u64);
    }
}

#[test]
fn fewer_lines_than_asked_for_have_a_reason() {
    let place = text_log();
    let segments = place.segments();
    let (newest, older) = segments.split_last().unwrap();
    let left = read(newest);
    older.iter().for_each(|file| fs::remove_file(file).unwrap());
    let count = left.lines().count();
    assert_eq!(place.run("tail", &["-n", &count.to_string()], b"").good(), left);
    let ran = place.run("tail", &["-n", "99999"], b"");
    assert_eq!(ran.code, 3, "{}", ran.stderr);
    assert!(ran.stderr.contains("bytes are missing"), "{}", ran.stderr);
    assert_eq!(ran.text(), left);
}

#[test]
fn writers_and_retention_go_on() {
    for (name, deed) in DEEDS {
        let place = text_log();
        deed(&place.segments()[1]);
        place.append(&[], lines(LINES..LINES + 1000).as_bytes());
        let printed = place.run("cat", &[], b"");
        assert!(printed.text().ends_with(&lines(LINES - 500..LINES + 1000)), "{name}");
        // As after a power cut, of which all that is gone is the control file.
        fs::remove_file(place.log().join("control")).unwrap();
        assert_eq!(place.run("cat", &[], b"").code, 3, "{name}");
        place.append(&[], b"");
        // A repair ends a cut line, and puts a marker into an empty range.
        let is_there = ["cut", "emptied"].contains(&name);
        assert!(is_there || place.run("cat", &[], b"").code == 3, "{name}");

        place.append(&["--retain-files", "2"], b"");
        assert_eq!(place.segments().len(), 3, "{name}");
        let kept = place.run("cat", &[], b"").good();
        assert!(lines(0..LINES + 1000).ends_with(&kept), "{name}");
        assert_eq!(place.stat()["gaps"].as_array().unwrap().len(), 0, "{name}");
    }
}

/// `: > app.log`, where the writer continues at its position.
#[test]
fn a_file_that_was_emptied_under_its_writer_is_a_gap_and_shows_no_nuls() {
    // Less than a block, and more.
    for before in [5, 300] {
        let place = Place::new();
        let mut writer = place.start("append", &["--layout", "text", "--ack"]);
        let mut append = |lines: &str| {
            writer.feed(lines.as_bytes());
            lines.lines().for_each(|_| drop(writer.line()));
        };
        append(&lines(0..before));
        let file = place.segments().remove(0);
        drop(File::create(&file).unwrap());
        let left = lines(before..before + 20);
        append(&left);
        let gone = lines(0..before).len();
        assert_eq!(fs::read(&file).unwrap(), [vec![0; gone], left.clone().into()].concat());

        for command in [&["cat"][..], &["tail", "-n", "99999"], &["tail", "-n", "+1"]] {
            let ran = place.run(command[0], &command[1..], b"");
            assert_eq!(ran.code, 3, "{command:?}: {}", ran.stderr);
            assert_eq!(ran.stderr.lines().count(), 1, "{}", ran.stderr);
            for part in [file.to_str().unwrap(), &format!("up to {gone} bytes are missing")] {
                assert!(ran.stderr.contains(part), "{part} in {}", ran.stderr);
            }
            assert_eq!(ran.text(), left, "{command:?}");
        }
        assert_eq!(place.run("tail", &["-n", "5"], b"").good(), lines(before + 15..before + 20));
        let verified = json(place.run("verify", &["--json"], b""));
        let damage = verified["damage"].as_array().unwrap();
        assert_eq!(damage.len(), 1, "{verified}");
        assert_eq!(
            (&damage[0]["path"], &damage[0]["offset"]),
            (&serde_json::json!(file), &serde_json::json!(0))
        );
        let range = format!("bytes 0 to {gone}");
        assert!(damage[0]["reason"].as_str().unwrap().contains(&range), "{verified}");
        assert_eq!(verified["records"], 20);
    }
}

#[test]
fn lines_with_nuls_that_were_appended_are_printed_as_they_are() {
    // In UTF-16, of NULs alone, and in the middle of a file.
    let wide = "\0w\0i\0d\0e\0\n";
    for first in [wide, "\0\0\0\n", "text\n\0\0\0text\n"] {
        let place = Place::new();
        let all = format!("{first}{}", lines(0..20));
        place.append(&["--layout", "text"], all.as_bytes());
        assert_eq!(place.run("cat", &[], b"").good(), all);
        assert_eq!(place.run("tail", &["-n", "99999"], b"").good(), all);
        assert_eq!(place.run("verify", &[], b"").code, 0);
    }
}

#[test]
fn a_follower_loses_nothing_that_is_there() {
    for (name, deed) in DEEDS {
        let place = text_log();
        let mut command = vellum();
        command.args(["tail", "-n", "99999", "-f"]).arg(place.log()).stderr(Stdio::piped());
        let mut follower = Running::start(&mut command);
        let is_line = |follower: &mut Running, number| assert_eq!(follower.line(), line(number));
        (0..LINES).for_each(|number| is_line(&mut follower, number));
        let files = place.segments();
        deed(&files[1]);
        deed(&files[files.len() - 2]);
        place.append(&[], lines(LINES..LINES + 1000).as_bytes());
        (LINES..LINES + 1000).for_each(|number| is_line(&mut follower, number));
        drop(follower.stdout.take());
        assert_eq!(follower.child.wait().unwrap().code(), Some(0), "{name}");
        let mut said = String::new();
        follower.child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
        assert_eq!(said, "", "{name}");
    }
}

#[test]
fn a_follower_that_comes_to_a_gap_says_so_and_goes_on() {
    let place = text_log();
    let files = place.segments();
    let gone = read(&files[1]);
    fs::remove_file(&files[1]).unwrap();
    let mut command = vellum();
    command.args(["cat", "--follow"]).arg(place.log()).stderr(Stdio::piped());
    let mut follower = Running::start(&mut command);
    for expected in lines(0..LINES).replace(&gone, "").lines() {
        assert_eq!(follower.line().trim_end(), expected.trim_end());
    }
    let mut said = String::new();
    BufReader::new(follower.child.stderr.take().unwrap()).read_line(&mut said).unwrap();
    assert!(said.contains("the file is missing"), "{said}");
    place.append(&[], b"more\n");
    assert_eq!(follower.line(), "more\n");
}

#[test]
fn a_framed_log_goes_on_behind_damage_where_it_is_asked_to() {
    let damage: [Deed; 3] = [
        |file| fs::remove_file(file).unwrap(),
        |file| flip(file, 4096 + 2000),
        |file| File::options().write(true).open(file).unwrap().set_len(5000).unwrap(),
    ];
    for (number, damage) in damage.into_iter().enumerate() {
        let place = Place::new();
        place.append(&["--segment-bytes", "8KiB"], lines(0..LINES).as_bytes());
        let victim = place.segments().remove(2);
        damage(&victim);
        let stopped = place.run("cat", &[], b"");
        assert_eq!(stopped.code, 3);
        assert!(stopped.stderr.contains(victim.to_str().unwrap()), "{}", stopped.stderr);
        let stopped = stopped.text();
        assert!(lines(0..LINES).starts_with(&stopped));

        let ran = place.run("cat", &["--skip-damage"], b"");
        assert_eq!(ran.code, 3);
        assert!(ran.stderr.contains(victim.to_str().unwrap()), "{}", ran.stderr);
        assert!(ran.stderr.contains("bytes are missing"), "{}", ran.stderr);
        let printed = ran.text();
        assert!(printed.starts_with(&stopped) && printed.len() > stopped.len());
        assert!(printed.ends_with(&lines(LINES - 500..LINES)));
        let verified = json(place.run("verify", &["--json"], b""));
        assert_eq!(verified["records"], printed.lines().count(), "{number}");
        let last = place.run("tail", &["-n", "99999", "--skip-damage"], b"");
        assert!((last.code, last.text() == printed) == (3, true));
        assert_eq!(place.run("stat", &[], b"").code, if number == 0 { 3 } else { 0 });
    }
}
