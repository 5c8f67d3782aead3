//! The shippers of `docs/operations.md`, with writers and shippers that are killed, over rotation,
//! retention and a reboot.

use std::collections::HashMap;
use std::fs;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use super::support::{Place, Running};

/// The program that ships to `at-least.txt`: every line, with the position behind it. It starts a
/// program for each, so that many wait in the pipe when it is killed.
const AT_LEAST_ONCE: &str = r#"
test -p acks-a || mkfifo acks-a
vellum tail test.log --cursor a --ack $FOLLOW --positions 0<>acks-a |
while IFS= read -r r; do printf '%s\n' "$r" | cat >> at-least.txt && echo "${r%%$TAB*}"; done 1<>acks-a
"#;

/// The program that ships to `exactly.txt`, where each line is stored with its position by one
/// write.
const EXACTLY_ONCE: &str = r#"
test -p acks-b || mkfifo acks-b
last=$(tail -n 1 exactly.txt 2>/dev/null | cut -f 1)
vellum tail test.log --cursor b --ack $FOLLOW --positions 0<>acks-b |
while IFS= read -r r; do next=${r%%$TAB*}
  test "$next" -le "${last:-0}" || printf '%s\n' "$r" >> exactly.txt && echo "$next"
done 1<>acks-b
"#;

/// Starts a shipper in a process group of its own.
fn ship(place: &Place, script: &str, follow: &str) -> Child {
    let program = Path::new(env!("CARGO_BIN_EXE_vellum"));
    let path = std::env::var("PATH").unwrap();
    let mut shell = Command::new("sh");
    shell.args(["-c", script]).current_dir(place.dir()).process_group(0);
    shell.env("PATH", format!("{}:{path}", program.parent().unwrap().display()));
    shell.env("FOLLOW", follow).env("TAB", "\t").stdin(Stdio::null());
    shell.stdout(Stdio::null()).spawn().unwrap()
}

/// Kills a shipper with all its processes.
fn kill(mut shipper: Child) {
    let group = format!("-{}", shipper.id());
    Command::new("kill").args(["-KILL", "--", &group]).stderr(Stdio::null()).status().unwrap();
    shipper.wait().unwrap();
}

fn shipped(place: &Place, name: &str) -> Vec<String> {
    let text = fs::read_to_string(place.dir().join(name)).unwrap_or_default();
    text.lines().map(|line| line.split_once('\t').unwrap().1.to_string()).collect()
}

/// Makes an unused log one of another boot.
fn reboot(log: &Path) {
    for name in ["control", "geometry"] {
        let path = log.join(name);
        let mut bytes = fs::read(&path).unwrap();
        bytes[48] ^= 1;
        bytes[12..16].fill(0);
        let check = crc32c(&bytes[..72]);
        bytes[12..16].copy_from_slice(&check.to_le_bytes());
        fs::write(&path, bytes).unwrap();
    }
}

fn crc32c(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(!0, |crc, byte| {
        (0..8).fold(crc ^ u32::from(*byte), |crc: u32, _| (crc >> 1) ^ (0x82f6_3b78 * (crc & 1)))
    })
}

/// Appends lines until so many are acknowledged, and is killed; returns those.
fn append(place: &Place, round: usize, writer: usize) -> Vec<String> {
    let lines: Vec<String> =
        (0..300).map(|number| format!("{writer}-{round}-{number} \\ {}", "x".repeat(40))).collect();
    let mut running: Running = place.start("append", &["--ack"]);
    running.feed((lines.join("\n") + "\n").as_bytes());
    let count = 50 + 60 * round;
    for _ in 0..count {
        running.line();
    }
    lines[..count].to_vec()
}

#[test]
fn every_line_is_shipped_at_least_once_and_by_positions_exactly_once() {
    let place = Place::new();
    let policy = ["--layout", "text", "--rotate-bytes", "3000", "--retain-files", "1"];
    place.append(&policy, b"");
    let log = place.log().to_str().unwrap().to_string();
    for name in ["a", "b"] {
        super::support::run(&["cursor", &log, name, "--set", "begin", "--hold"], b"").good();
    }
    let mut acknowledged = Vec::new();
    for round in 0..4 {
        let shippers = [AT_LEAST_ONCE, EXACTLY_ONCE].map(|script| ship(&place, script, "-f"));
        let before = shipped(&place, "at-least.txt").len();
        for writer in 0..2 {
            acknowledged.extend(append(&place, round, writer));
        }
        // Killed in the middle of shipping.
        while shipped(&place, "at-least.txt").len() < before + 10 * (round + 1) {
            std::thread::yield_now();
        }
        shippers.into_iter().for_each(kill);
        reboot(&place.log());
    }
    assert!(place.segments().len() > 3, "what is not shipped is kept");
    for script in [AT_LEAST_ONCE, EXACTLY_ONCE] {
        assert!(ship(&place, script, "").wait().unwrap().success());
    }
    let counts = |name| {
        let mut counts: HashMap<String, usize> = HashMap::new();
        for line in shipped(&place, name).into_iter().filter(|line| !line.starts_with('~')) {
            *counts.entry(line).or_default() += 1;
        }
        counts
    };
    let (at_least, exactly) = (counts("at-least.txt"), counts("exactly.txt"));
    for line in &acknowledged {
        assert!(at_least.contains_key(line), "{line} is missing");
        assert!(exactly.contains_key(line), "{line} is missing by positions");
    }
    let doubled: Vec<_> = exactly.iter().filter(|(_, count)| **count > 1).collect();
    assert!(doubled.is_empty(), "{doubled:?}");
    // A shipped file is removed when the next file is begun.
    let long = format!("{}\n", "y".repeat(100));
    place.append(&[], long.repeat(60).as_bytes());
    for script in [AT_LEAST_ONCE, EXACTLY_ONCE] {
        assert!(ship(&place, script, "").wait().unwrap().success());
    }
    place.append(&[], long.repeat(60).as_bytes());
    assert!(place.stat()["begin"].as_u64() > place.stat()["segment_capacity_bytes"].as_u64());
}
