//! The command: what it shows, what a cut leaves, and that nothing of it remains.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use vellum_zoo::filesystem::Filesystem;

use super::support::is_possible;

/// The command at work.
struct Zoo {
    child: Child,
    lines: BufReader<ChildStdout>,
}

impl Zoo {
    fn run(animal: &str, dir: &Path) -> Zoo {
        fs::create_dir_all(dir.join("at")).unwrap();
        let mut child = Command::new(env!("CARGO_BIN_EXE_vellum-zoo"))
            .args(["run", animal, "--size", "64M", "--mkfs", "ext4", "--file"])
            .arg(dir.join("image"))
            .arg("--mount")
            .arg(dir.join("at"))
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap());
        let mut zoo = Zoo { child, lines };
        zoo.wait_for("ready");
        zoo
    }

    /// The next line that begins so.
    fn wait_for(&mut self, start: &str) -> String {
        loop {
            let mut line = String::new();
            assert!(self.lines.read_line(&mut line).unwrap() > 0, "no line begins with {start}");
            if line.starts_with(start) {
                return line;
            }
        }
    }

    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    /// Reads to the end, which comes when both processes are gone.
    fn wait_for_end(mut self) -> Option<i32> {
        let mut line = String::new();
        while self.lines.read_line(&mut line).unwrap() > 0 {}
        self.child.wait().unwrap().code()
    }
}

pub(crate) fn is_mounted(dir: &Path) -> bool {
    fs::read_to_string("/proc/self/mounts").unwrap().contains(dir.to_str().unwrap())
}

pub(crate) fn is_ext4_possible() -> bool {
    if !is_possible() {
        return false;
    }
    match Filesystem::Ext4.look_for_maker() {
        Ok(()) => true,
        Err(missing) => {
            vellum_testing::missing::skip(missing);
            false
        }
    }
}

#[test]
fn a_cut_takes_what_the_disk_lied_about_and_nothing_remains() {
    if !is_ext4_possible() {
        return;
    }
    for (animal, survives) in [("lying", false), ("forgets", true)] {
        let dir = tempfile::tempdir().unwrap();
        let mut zoo = Zoo::run(animal, dir.path());
        let path = dir.path().join("at/file");
        let mut file = File::create(&path).unwrap();
        file.write_all(b"promised").unwrap();
        file.sync_all().unwrap();
        drop(file);
        File::open(dir.path().join("at")).unwrap().sync_all().unwrap();
        zoo.signal(Signal::USR1);
        let cut = zoo.wait_for("cut ");
        zoo.wait_for("power on");
        assert_eq!(fs::read(&path).is_ok_and(|text| text == b"promised"), survives, "{cut}");
        zoo.signal(Signal::INT);
        assert_eq!(zoo.wait_for_end(), Some(0));
        assert!(!is_mounted(dir.path()));
    }
}

#[test]
fn a_command_that_is_killed_leaves_no_mount() {
    if !is_ext4_possible() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let zoo = Zoo::run("sound", dir.path());
    zoo.signal(Signal::KILL);
    assert_eq!(zoo.wait_for_end(), None);
    assert!(!is_mounted(dir.path()));
}

#[test]
fn what_is_wrong_with_the_arguments_is_said() {
    let run = |arguments: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_vellum-zoo"));
        let output = command.arg("run").args(arguments).output().unwrap();
        (output.status.code(), String::from_utf8(output.stderr).unwrap())
    };
    let (status, text) = run(&["tame", "--file", "image"]);
    assert_eq!(status, Some(2));
    assert!(text.contains("\"tame\" is no animal"), "{text}");
    if is_possible() {
        let (status, text) = run(&["sound", "--file", "/nowhere/image"]);
        assert_eq!(status, Some(2));
        assert!(text.contains("--size says how large"), "{text}");
    }
}
