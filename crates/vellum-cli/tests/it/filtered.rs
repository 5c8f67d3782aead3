//! The command in a service of systemd whose system calls are filtered (`SystemCallFilter=`), by a
//! filter that kills.

use std::fs::{self, File};
use std::path::Path;
use std::process::Output;

use vellum_testing::kernel::run_as_service;
use vellum_testing::scratch;

use crate::support::vellum;

/// Runs a command line under the filter; `LOG` and `NEW` are places.
fn run(dir: &Path, line: &str) -> Output {
    let mut command = vellum();
    for word in line.split(' ') {
        match word {
            "LOG" => command.arg(dir.join("log")),
            "NEW" => command.arg(dir.join("new")),
            word => command.arg(word),
        };
    }
    command.stdin(File::open(dir.join("input")).unwrap());
    run_as_service(&mut command);
    command.output().unwrap()
}

/// Numbers of system calls are those of x86-64.
#[test]
#[cfg(target_arch = "x86_64")]
fn no_command_makes_a_call_that_kills_a_filtered_service() {
    for made in [
        "append --layout text --rotate-bytes 10000 LOG",
        "append --layout text --fill mapped --rotate-bytes 10000 --compress LOG",
        "append --layout framed --fill mapped --commit end LOG",
        "append --layout framed --fill staged --commit end LOG",
    ] {
        let dir = scratch();
        let lines = "2026-11-28 10:00:00 one\n2026-11-28 11:00:00 two\n".repeat(2000);
        fs::write(dir.path().join("input"), lines).unwrap();
        let is_text = made.contains("text");
        let mut lines = vec![
            made,
            "cat LOG",
            "cat --durable LOG",
            "tail -n 5 LOG",
            "stat LOG",
            "stat --json LOG",
            "verify LOG",
            "repair LOG NEW",
            "cursor LOG mine --set begin",
            "prepare LOG",
        ];
        lines.extend(match is_text {
            true => ["cat --since 10:30 --until 10:40 LOG", "rotate LOG"],
            false => ["checkpoint LOG", "append --commit end LOG"],
        });
        for line in lines {
            let output = run(dir.path(), line);
            let said = String::from_utf8_lossy(&output.stderr);
            assert!(output.status.code().is_some(), "{made}; {line}: {} {said}", output.status);
            assert_ne!(output.status.code(), Some(2), "{made}; {line}: {said}");
        }
    }
}
