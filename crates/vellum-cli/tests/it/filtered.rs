//! The command in a service of systemd whose system calls are filtered (`SystemCallFilter=`), by a
//! filter that kills, and by ones that have calls fail.

use std::fs::{self, File};
use std::path::Path;
use std::process::Output;

use rustix::io::Errno;
use vellum_testing::kernel::{Refusal, run_filtered};
use vellum_testing::scratch;

use crate::support::vellum;

/// As `SystemCallErrorNumber=` of systemd and filters of containers have it, or as an old kernel.
const REFUSALS: [Refusal; 3] = [Refusal::Kill, failing(Errno::PERM), failing(Errno::NOSYS)];

const fn failing(errno: Errno) -> Refusal {
    Refusal::Fail(errno.raw_os_error())
}

/// Runs a command line under a filter; `LOG` and `NEW` are places.
fn run(dir: &Path, line: &str, refusal: Refusal) -> Output {
    let mut command = vellum();
    for word in line.split(' ') {
        match word {
            "LOG" => command.arg(dir.join("log")),
            "NEW" => command.arg(dir.join("new")),
            word => command.arg(word),
        };
    }
    command.stdin(File::open(dir.join("input")).unwrap());
    run_filtered(&mut command, refusal);
    command.output().unwrap()
}

/// The commands for a log, after the first line has made it.
fn lines(made: &str) -> Vec<&str> {
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
        "prepare --force LOG",
    ];
    lines.extend(match made.contains("text") {
        true => ["cat --since 10:30 --until 10:40 LOG", "rotate LOG"],
        false => ["checkpoint LOG", "append --commit end LOG"],
    });
    lines
}

/// Numbers of system calls are those of x86-64.
#[test]
#[cfg(target_arch = "x86_64")]
fn every_command_does_its_work_in_a_filtered_service() {
    for refusal in REFUSALS {
        for made in [
            "append --layout text --rotate-bytes 10000 LOG",
            "append --layout text --fill mapped --rotate-bytes 10000 --compress LOG",
            "append --layout framed --fill mapped --commit end LOG",
            "append --layout framed --fill staged --commit end LOG",
        ] {
            let dir = scratch();
            let input = "2026-11-28 10:00:00 one\n2026-11-28 11:00:00 two\n".repeat(2000);
            fs::write(dir.path().join("input"), input).unwrap();
            for line in lines(made) {
                let output = run(dir.path(), line, refusal);
                let said = String::from_utf8_lossy(&output.stderr);
                assert!(
                    output.status.success(),
                    "{refusal:?}: {made}; {line}: {} {said}",
                    output.status
                );
            }
        }
    }
}
