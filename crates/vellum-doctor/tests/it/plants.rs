//! The user of the directory swaps what the program makes there for links and pipes. None of them
//! is followed, and none is waited for.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use rustix::fs::{CWD, FileType, Mode, mknodat};
use vellum_testing::mount::Mount;
use vellum_testing::plants::Outside;
use vellum_testing::scratch;

use super::support::run;

/// A command that `timeout` has ended.
const ENDED_BY_TIMEOUT: i32 = 124;
/// Files that the program makes.
const NAMES: [&str; 8] =
    ["etcd-0", "postgres-0", "kafka-0", "sqlite-0", "probe", "neighbour", "log", "overwritten"];

/// Runs the program several times beside a swapper.
#[track_caller]
fn none_is_followed(dir: &Path, runs: u64, words: &[&str]) {
    let outside = Outside::new();
    let mut swaps = 0;
    for seed in 0..runs {
        let words = [words, &[dir.to_str().unwrap()]].concat();
        let (output, swapped) = outside.swapped(dir, &NAMES, seed, || run(&words));
        swaps += swapped;
        let said = String::from_utf8_lossy(&output.stderr);
        outside.assert_untouched();
        let code = output.status.code().unwrap();
        assert_ne!(code, ENDED_BY_TIMEOUT, "a plant was waited for: {said}");
        assert!(matches!(code, 0 | 1 | 5 | 6 | 7), "{code}: {said}");
        // A directory of an earlier run would be refused.
        let _ = fs::remove_dir_all(dir.join("vellum-lies"));
    }
    assert!(swaps > runs, "swapped {swaps} times in {runs} runs");
}

#[test]
fn the_doctor_follows_no_plant() {
    let dir = scratch();
    none_is_followed(dir.path(), 8, &["--for", "etcd,postgres,kafka,sqlite", "--seconds", "1"]);
}

#[test]
fn limits_for_a_neighbour_follow_no_plant() {
    let Some(mount) = Mount::ext4("limits for a neighbour beside a swapper", 256) else { return };
    none_is_followed(mount.path(), 12, &["--iocost", "--p99", "1d", "--seconds", "1"]);
}

#[test]
fn blocks_of_promises_follow_no_plant() {
    let dir = scratch();
    none_is_followed(dir.path(), 4, &["--lies", "--seconds", "1"]);
}

fn pipe(path: &Path) {
    mknodat(CWD, path, FileType::Fifo, Mode::from_raw_mode(0o666), 0).unwrap();
}

/// What `--lies --check` says of a planted directory.
fn checked(dir: &Path, witness: &str) -> (Option<i32>, String) {
    let words = ["--lies", "--check", "--was-cut", "--witness", witness, dir.to_str().unwrap()];
    let output = run(&words);
    let said = [output.stdout, output.stderr].concat();
    (output.status.code(), String::from_utf8_lossy(&said).into_owned())
}

#[test]
fn a_check_waits_for_nothing_and_reads_nothing_without_end() {
    let (dir, other) = (scratch(), scratch());
    let Ok(memory) = tempfile::tempdir_in("/dev/shm") else {
        return vellum_testing::missing::skip("/dev/shm cannot be written to");
    };
    let witness = memory.path().join("promises");
    let witness = witness.to_str().unwrap();
    let path = dir.path().to_str().unwrap();
    let output = run(&["--lies", "--seconds", "1", "--witness", witness, path]);
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    let lies = dir.path().join("vellum-lies");
    for name in ["run", "overwritten", "new-1000000", "foreign"] {
        let away = other.path().join(name);
        let was_there = fs::rename(lies.join(name), &away).is_ok();
        for thing in ["pipe", "zeros", "sparse"] {
            match thing {
                "pipe" => pipe(&lies.join(name)),
                "zeros" => symlink("/dev/zero", lies.join(name)).unwrap(),
                _ => fs::File::create(lies.join(name)).unwrap().set_len(3 << 30).unwrap(),
            }
            let (code, said) = checked(dir.path(), witness);
            assert_ne!(code, Some(ENDED_BY_TIMEOUT), "{name}, {thing}: {said}");
            fs::remove_file(lies.join(name)).unwrap();
        }
        if was_there {
            fs::rename(&away, lies.join(name)).unwrap();
        }
    }
    // The witness is a file of a user, too.
    let planted = other.path().join("witness");
    pipe(&planted);
    for witness in [planted.to_str().unwrap(), "/dev/zero"] {
        let (code, said) = checked(dir.path(), witness);
        assert!(code == Some(1) && said.contains("regular file"), "{code:?} {said}");
    }
}

#[test]
fn no_output_is_waited_for() {
    let dir = scratch();
    let planted = dir.path().join("planted");
    pipe(&planted);
    for form in ["--json", "--junit", "--html"] {
        let words = ["--for", "etcd", "--seconds", "1", form, planted.to_str().unwrap()];
        let output = run(&[&words[..], &[dir.path().to_str().unwrap()]].concat());
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{form}: {said}");
        assert!(said.contains("regular file"), "{said}");
    }
    for path in [planted.to_str().unwrap(), "/dev/zero"] {
        let output = run(&["compare", path, path]);
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.code() == Some(1) && said.contains("regular file"), "{said}");
    }
}
