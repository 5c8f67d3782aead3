//! No alarm about the right workload, and one about each wrong one.

use crate::harness::run_reference;

const FILESYSTEMS: [&str; 3] = ["ext4", "xfs", "btrfs"];

/// Runs a workload that breaks promises, on each of these filesystems.
#[track_caller]
fn assert_caught(work: &str, check: &str, filesystems: &[&str], arguments: &[&str]) {
    for filesystem in filesystems {
        let arguments = [&["--fs", filesystem], arguments].concat();
        let Some(run) = run_reference(work, check, &arguments) else { continue };
        run.assert_status(1);
        assert!(!run.violations().is_empty(), "{}", run.stdout);
        assert!(!run.kept_files().is_empty());
    }
}

/// Runs the right workload, on each filesystem.
#[track_caller]
fn assert_kept(work: &str, arguments: &[&str]) {
    for filesystem in FILESYSTEMS {
        let arguments = [&["--fs", filesystem, "--prefix"], arguments].concat();
        let Some(run) = run_reference(work, "good", &arguments) else { continue };
        run.assert_status(0);
    }
}

#[test]
fn the_right_workload_keeps_its_promises() {
    assert_kept("good", &["--points", "60", "--nested"]);
}

#[test]
fn the_right_workload_keeps_its_promises_wherever_writes_are_dropped() {
    assert_kept("--records 30 good", &["--exhaustive"]);
}

#[test]
fn the_right_workload_keeps_its_promises_on_a_failing_disk() {
    for failure in ["write:31", "flush:20", "lose:20"] {
        assert_kept("--records 20 good", &["--exhaustive", "--fail", failure]);
    }
}

#[test]
fn a_promise_before_the_sync_is_caught() {
    assert_caught("early-ack", "good", &FILESYSTEMS, &["--points", "30"]);
}

#[test]
fn a_promise_without_any_sync_is_caught() {
    assert_caught("no-sync", "good", &FILESYSTEMS, &["--points", "10"]);
}

#[test]
fn a_directory_that_is_not_synced_after_a_rename_is_caught() {
    assert_caught("no-directory-sync", "good", &FILESYSTEMS, &["--points", "70"]);
}

/// Not on btrfs, which never overwrites, so that no record there is torn.
#[test]
fn a_torn_record_that_is_taken_for_whole_is_caught() {
    assert_caught("good", "unchecked", &["ext4"], &["--points", "350"]);
}

/// Not on btrfs, which becomes read-only.
#[test]
fn a_failed_sync_that_is_tried_again_is_caught() {
    let arguments = ["--exhaustive", "--fail", "lose:40"];
    assert_caught("--records 35 retry-sync", "good", &["ext4", "xfs"], &arguments);
}

#[test]
fn a_deletion_that_is_not_announced_is_caught() {
    assert_caught("no-drop", "good", &["ext4"], &["--points", "40"]);
}

#[test]
fn a_recording_is_replayed_to_the_same_violations() {
    let arguments = ["--fs", "ext4", "--points", "60"];
    let Some(first) = run_reference("early-ack", "good", &arguments) else { return };
    let recording = first
        .kept_files()
        .into_iter()
        .find(|path| path.extension().is_some_and(|extension| extension == "recording"));
    let recording = recording.expect("a recording is kept");
    let check = format!("{} self-check good {{dir}}", crate::harness::BINARY);
    let replay = ["--replay", recording.to_str().expect("a path in UTF-8"), "--check", &check];
    let arguments =
        [&replay[..], &["--boots", "another", "--seed", "1", "--points", "60"]].concat();
    let run = crate::harness::run(&arguments).expect("it ran before");
    run.assert_status(1);
    // The last part names files, which differ.
    let told = |run: &crate::harness::Run| -> Vec<String> {
        let lines = run.violations().into_iter().filter_map(|line| line.rsplit_once(';'));
        lines.map(|(line, _)| line.to_owned()).collect()
    };
    assert_eq!(told(&first), told(&run));
}
