//! The user of the directory swaps what a measurement makes there for links and pipes. None of
//! them is followed, and none is waited for.

use std::process::Command;

use vellum_testing::plants::Outside;
use vellum_testing::scratch;

/// A command that `timeout` has ended.
const ENDED_BY_TIMEOUT: i32 = 124;
/// Files and directories that the measurements make.
const NAMES: [&str; 8] =
    ["directory", "feature", "log", "file", "probe", "wal", "room", "vellum.toml"];

#[track_caller]
fn none_is_followed(runs: u64, words: &[&str]) {
    let (dir, outside) = (scratch(), Outside::new());
    let mut swaps = 0;
    for seed in 0..runs {
        let run = || {
            let mut command = Command::new("timeout");
            command.args(["60", env!("CARGO_BIN_EXE_vellum")]).args(words);
            command.arg(dir.path()).output().unwrap()
        };
        let (output, swapped) = outside.swapped(dir.path(), &NAMES, seed, run);
        swaps += swapped;
        outside.assert_untouched();
        let said = String::from_utf8_lossy(&output.stderr);
        let code = output.status.code().unwrap();
        assert_ne!(code, ENDED_BY_TIMEOUT, "a plant was waited for: {said}");
        assert!(matches!(code, 0 | 1), "{code}: {said}");
    }
    assert!(swaps > runs, "swapped {swaps} times in {runs} runs");
}

#[test]
fn advice_follows_no_plant() {
    none_is_followed(4, &["advise", "--seconds", "1", "--for", "log"]);
}

#[test]
fn a_benchmark_follows_no_plant() {
    let words = ["bench", "sync", "--rounds", "1", "--bytes", "64K", "--big", "1M", "--dir"];
    none_is_followed(6, &words);
}

#[test]
fn the_demo_follows_no_plant() {
    let (dir, outside) = (scratch(), Outside::new());
    let mut swaps = 0;
    for seed in 0..6 {
        let run = || {
            let mut command = Command::new("timeout");
            command.args(["60", env!("CARGO_BIN_EXE_vellum"), "demo", "--no-bench"]);
            command.args(["--records", "200"]).env("TMPDIR", dir.path()).output().unwrap()
        };
        let (output, swapped) = outside.swapped(dir.path(), &NAMES, seed, run);
        swaps += swapped;
        outside.assert_untouched();
        let said = String::from_utf8_lossy(&output.stderr);
        let code = output.status.code().unwrap();
        assert_ne!(code, ENDED_BY_TIMEOUT, "a plant was waited for: {said}");
        assert!(matches!(code, 0 | 1), "{code}: {said}");
    }
    assert!(swaps > 6, "swapped {swaps} times");
}
