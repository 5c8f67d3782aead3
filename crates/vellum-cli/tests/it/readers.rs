//! Readers change nothing in a log, and go past the dead.

use std::fs;
use std::io::{BufRead, Read, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::thread;

use super::support::{Place, Ran, Running, vellum};

/// A user that owns nothing.
const NOBODY: u32 = 65534;
/// The place of a participant's namespaces in the control file: behind the header, the words
/// before, and generation, number and start time of the first one.
const NAMESPACE_OFFSET: usize = 4096 + 1024 + 24;

/// Name, length, blocks, time of the last change and of the last change of rights, of every file
/// and of the directory.
fn state(log: &Path) -> Vec<(PathBuf, u64, u64, i64, i64)> {
    let entries = fs::read_dir(log).unwrap().map(|entry| entry.unwrap().path());
    let mut all: Vec<_> = entries.chain([log.to_path_buf()]).collect();
    all.sort();
    let look = |path: PathBuf| {
        let status = fs::symlink_metadata(&path).unwrap();
        (path, status.len(), status.blocks(), status.mtime_nsec(), status.ctime_nsec())
    };
    all.into_iter().map(look).collect()
}

fn is_root() -> bool {
    let is_root = fs::metadata("/proc/self").unwrap().uid() == 0;
    if !is_root {
        vellum_testing::missing::skip(format_args!("as who may only read: it needs root"));
    }
    is_root
}

/// The program, where every user may start it.
fn program_for_all(place: &Place) -> PathBuf {
    let open = fs::Permissions::from_mode(0o755);
    fs::set_permissions(place.dir(), open.clone()).unwrap();
    let program = place.dir().join("vellum");
    fs::copy(env!("CARGO_BIN_EXE_vellum"), &program).unwrap();
    fs::set_permissions(&program, open).unwrap();
    program
}

/// Runs a command as a user that may only read.
fn run_as_nobody(program: &Path, log: &Path, command: &str) -> Ran {
    let mut command_line = std::process::Command::new(program);
    command_line.arg(command).arg(log).uid(NOBODY).gid(NOBODY);
    let output = command_line.output().unwrap();
    Ran {
        code: output.status.code().unwrap(),
        stdout: output.stdout,
        stderr: String::from_utf8(output.stderr).unwrap(),
    }
}

/// A text log of several files that a policy would remove, if a process came by that may write.
fn old_files(place: &Place, options: &[&str]) -> usize {
    let shape = [&["--layout", "text", "--rotate-bytes", "4K", "--retain-age", "30d"], options];
    place.append(&shape.concat(), "a line of some length\n".repeat(1000).as_bytes());
    let files = place.segments();
    for file in &files[..files.len() - 1] {
        let name = file.file_name().unwrap().to_str().unwrap();
        let renamed = format!("20200101T000000Z{}", &name[16..]);
        fs::rename(file, file.with_file_name(renamed)).unwrap();
    }
    files.len()
}

#[test]
fn reading_changes_nothing() {
    for options in [&[][..], &["--fill", "pwrite"]] {
        let place = Place::new();
        assert!(old_files(&place, options) > 3);
        let before = state(&place.log());
        for (command, options) in [
            ("cat", &[][..]),
            ("cat", &["--json"]),
            ("tail", &[]),
            ("stat", &[]),
            ("stat", &["--json"]),
            ("verify", &[]),
        ] {
            assert_eq!(place.run(command, options, b"").code, 0);
            assert_eq!(state(&place.log()), before, "{command} {options:?}");
        }
        for (command, options) in [("cat", &["--follow"][..]), ("tail", &["-n", "1", "-f"])] {
            let mut follower = place.start(command, options);
            assert_eq!(follower.line(), "a line of some length\n");
            // It is killed, as followers are.
            drop(follower);
            assert_eq!(state(&place.log()), before, "{command} {options:?}");
        }
        assert_eq!(place.stat()["participants"].as_array().unwrap().len(), 0);
    }
}

#[test]
fn who_may_only_read_reads_and_follows() {
    if !is_root() {
        return;
    }
    let place = Place::new();
    let program = program_for_all(&place);
    place.append(&["--layout", "text"], b"one\n");
    let before = state(&place.log());
    for command in ["cat", "tail", "verify", "stat"] {
        assert_eq!(run_as_nobody(&program, &place.log(), command).code, 0, "{command}");
    }
    let mut command = std::process::Command::new(&program);
    command.args(["tail", "-f"]).arg(place.log()).uid(NOBODY).gid(NOBODY);
    let mut follower = Running::start(&mut command);
    assert_eq!(follower.line(), "one\n");
    assert_eq!(state(&place.log()), before);
    place.append(&[], b"two\n");
    assert_eq!(follower.line(), "two\n");
}

/// A writer with half a record in flight, and records of others behind it.
fn half_way(place: &Place, layout: &str) -> Running {
    place.append(&["--layout", layout], b"");
    let mut command = vellum();
    command.args(["internal", "demo-writer", "--writer", "1", "--records", "9"]);
    let mut writer = Running::start(command.args(["--stop-after", "3"]).arg(place.log()));
    assert_eq!(writer.report(), 0, "ready");
    writer.feed(b"!");
    while writer.report() != u64::MAX {}
    place.append(&[], b"behind\nlast\n");
    writer
}

fn kill(mut writer: Running) {
    writer.child.kill().unwrap();
    writer.child.wait().unwrap();
}

#[test]
fn what_stands_behind_a_killed_writer_is_read_at_once() {
    for layout in ["framed", "text"] {
        let place = Place::new();
        let program = program_for_all(&place);
        let writer = half_way(&place, layout);
        assert!(!place.run("cat", &[], b"").good().contains("behind"), "it may go on");
        kill(writer);
        let before = state(&place.log());
        let all = place.run("cat", &[], b"").good();
        assert_eq!(all.lines().count(), 5, "{layout}: {all}");
        assert!(all.ends_with("\nbehind\nlast\n"), "{layout}: {all}");
        assert_eq!(place.run("tail", &["-n", "3"], b"").good().lines().count(), 3);
        assert_eq!(place.run("tail", &["-n", "1"], b"").good(), "last\n");
        let mut follower = place.start("cat", &["--follow"]);
        (0..5).for_each(|_| drop(follower.line()));
        let verified = place.run("verify", &[], b"");
        assert!((verified.code, verified.stdout.len()) == (0, 0), "{verified:?}");
        assert!(verified.stderr.contains("5 records"), "{}", verified.stderr);
        if is_root() {
            assert_eq!(run_as_nobody(&program, &place.log(), "cat").good(), all);
        }
        assert_eq!(state(&place.log()), before, "nobody has padded it");

        // A process pads it: the follower continues, and nothing is shown twice.
        place.append(&[], b"more\n");
        assert_eq!(follower.line(), "more\n");
        let padded = place.run("cat", &[], b"").good();
        let is_marker = |line: &&str| line.starts_with('~');
        assert_eq!(padded.lines().filter(|line| !is_marker(line)).count(), 6, "{padded}");
    }
}

#[test]
fn the_exit_code_says_that_records_may_be_missing() {
    let place = Place::new();
    kill(half_way(&place, "text"));
    // As if it were a process of another PID namespace, and the caller might not ask for locks.
    let (control, lock) = (place.log().join("control"), place.log().join("lock"));
    let mut bytes = fs::read(&control).unwrap();
    bytes[NAMESPACE_OFFSET] ^= 1;
    let file = fs::File::options().write(true).open(&control).unwrap();
    std::os::unix::fs::FileExt::write_all_at(&file, &bytes, 0).unwrap();
    fs::rename(&lock, place.dir().join("lock")).unwrap();
    for command in ["cat", "tail"] {
        let ran = place.run(command, &[], b"");
        assert_eq!(ran.code, 4, "{ran:?}");
        assert!(ran.stderr.contains("may be missing: the reservation"), "{}", ran.stderr);
        assert_eq!(ran.text().lines().count(), 3);
    }
    // The lock tells.
    fs::rename(place.dir().join("lock"), &lock).unwrap();
    assert!(place.run("cat", &[], b"").good().ends_with("behind\nlast\n"));
}

#[test]
fn a_follower_of_a_log_that_nobody_has_opened_since_a_power_cut_goes_on_with_it() {
    for layout in ["framed", "text"] {
        let place = Place::new();
        place.append(&["--layout", layout], b"one\n");
        fs::remove_file(place.log().join("control")).unwrap();
        let mut follower = place.start("tail", &["-f"]);
        assert_eq!(follower.line(), "one\n");
        place.append(&[], b"two\n");
        assert_eq!(follower.line(), "two\n", "{layout}");
    }
}

/// A writer that appends `<name> <number>` until it is killed, and its acknowledged lines.
struct Writer {
    running: Running,
    name: String,
    acknowledged: usize,
}

impl Writer {
    fn start(place: &Place, name: String) -> Writer {
        let mut running = place.start("append", &["--ack"]);
        let mut stdin = running.child.stdin.take().unwrap();
        let line = name.clone();
        thread::spawn(move || {
            for number in 0.. {
                let padding = "x".repeat(number * 37 % 6000);
                if stdin.write_all(format!("{line} {number} {padding}\n").as_bytes()).is_err() {
                    break;
                }
            }
        });
        Writer { running, name, acknowledged: 0 }
    }

    fn hear(&mut self, count: usize) {
        for _ in 0..count {
            assert!(!self.running.line().is_empty(), "it goes on");
        }
        self.acknowledged += count;
    }

    /// Counts what it had been told when it was killed: whole lines only.
    fn hear_the_rest(&mut self) {
        self.running.child.wait().unwrap();
        let mut rest = Vec::new();
        self.running.stdout.as_mut().unwrap().read_to_end(&mut rest).unwrap();
        self.acknowledged += rest.lines().filter(|line| line.is_ok()).count();
        if rest.last().is_some_and(|byte| *byte != b'\n') {
            self.acknowledged -= 1;
        }
    }

    #[track_caller]
    fn check(&self, printed: &str) {
        let name = format!("{} ", self.name);
        let mine = printed.lines().filter_map(|line| line.strip_prefix(&name));
        let numbers: Vec<usize> =
            mine.map(|line| line.split(' ').next().unwrap().parse().unwrap()).collect();
        assert!(numbers.len() >= self.acknowledged, "{} of {}", numbers.len(), self.acknowledged);
        assert!(numbers.iter().copied().eq(0..numbers.len()), "once, in order: {name}");
    }
}

/// All writers are killed at once, again and again; acknowledged lines are printed at once, by a
/// user that may write and by one that may not. `VELLUM_STORMS` says how often.
#[test]
fn after_all_writers_were_killed_every_acknowledged_line_is_printed() {
    let is_root = is_root();
    let storms = std::env::var("VELLUM_STORMS").map_or(3, |count| count.parse().unwrap());
    for shape in [
        &["--layout", "framed"][..],
        &["--layout", "text"],
        &["--layout", "text", "--fill", "pwrite", "--rotate-bytes", "64K"],
    ] {
        // A few in the same log, whose next writers pad what the last ones left.
        for from in (0..storms).step_by(5) {
            let place = Place::new();
            let program = program_for_all(&place);
            place.append(shape, b"");
            let mut writers: Vec<Writer> = Vec::new();
            for storm in from..storms.min(from + 5) {
                let start = |number| Writer::start(&place, format!("w{storm}.{number}"));
                let mut running: Vec<Writer> = (0..3).map(start).collect();
                running.iter_mut().for_each(|writer| writer.hear(200 + 37 * storm % 1000));
                running.iter_mut().for_each(|writer| writer.running.child.kill().unwrap());
                running.iter_mut().for_each(Writer::hear_the_rest);
                writers.extend(running);
                let printed = place.run("cat", &[], b"").good();
                writers.iter().for_each(|writer| writer.check(&printed));
                if is_root {
                    assert!(run_as_nobody(&program, &place.log(), "cat").good() == printed);
                }
            }
        }
    }
}
