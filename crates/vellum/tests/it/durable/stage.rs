//! The stage: files beside the segments in which records wait until they are committed.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use vellum::stat::RecoveryReason;
use vellum::{ErrorKind, Log, OnStageFull, Options, Tuning};

use super::staged;
use super::trust::killed;
use crate::support::child::Child;
use crate::support::mount::Mount;
use crate::support::{assert_holds, payload, payloads, place, read_all, scratch};

/// The files of the stage, but for one that waits to be used again.
fn stages(log: &Path) -> Vec<PathBuf> {
    let paths = fs::read_dir(log).unwrap().map(|entry| entry.unwrap().path());
    let is_stage = |path: &PathBuf| path.extension() == Some("stage".as_ref());
    let is_spare = |path: &PathBuf| path.ends_with("spare.stage");
    let mut stages: Vec<_> = paths.filter(|path| is_stage(path) && !is_spare(path)).collect();
    stages.sort();
    stages
}

fn append(log: &Log, seed: u64) -> vellum::Result<vellum::Lsn> {
    log.append(&payload(log.layout(), seed, 1000))
}

#[test]
fn a_stage_lies_beside_the_segments_for_those_who_may_use_the_log() {
    let dir = scratch();
    let log = staged().mode(0o600).open(place(&dir)).unwrap();
    append(&log, 1).unwrap();
    let stage = &log.stat().unwrap().stage.unwrap();
    assert_eq!(stages(&place(&dir)).first(), Some(stage));
    let metadata = fs::metadata(stage).unwrap();
    assert_eq!(metadata.permissions().mode() & 0o777, 0o600);
    let blocks = metadata.blocks();
    assert!(blocks * 512 <= 16384 + 4096, "{blocks} blocks");
}

#[test]
fn a_stage_goes_when_all_of_its_segment_is_durable() {
    let dir = scratch();
    let log = staged().open(place(&dir)).unwrap();
    for seed in 0..100 {
        log.commit(append(&log, seed).unwrap()).unwrap();
        let count = stages(&place(&dir)).len();
        assert!(count <= 2, "{count} stages after record {seed}");
    }
    let expected = read_all(&log);
    assert_eq!(expected.len(), 100);
    assert_holds(&Options::default().read_only(true).open(place(&dir)).unwrap(), &expected);
}

#[test]
fn who_would_fill_more_segments_than_may_be_staged_commits_first() {
    for segments in [2, 3, 5] {
        let dir = scratch();
        let log =
            staged().tuning(Tuning::new().staged_segments_max(segments)).open(place(&dir)).unwrap();
        for seed in 0..200 {
            append(&log, seed).unwrap();
            let count = stages(&place(&dir)).len() as u64;
            // One more, so that a commit has room for its seal.
            assert!(count <= segments + 1, "{count} stages after record {seed}");
        }
        assert!(log.durable().get() > log.begin().get() + (12 - segments) * 16384);
        assert_eq!(payloads(&log).len(), 200);
        // A record that is longer than all of it goes there too.
        log.append(&payload(log.layout(), 1, 150_000)).unwrap();
        assert_eq!(payloads(&log).len(), 201);
    }
}

#[test]
fn a_full_stage_is_an_error_where_that_was_chosen_and_costs_nothing() {
    let dir = scratch();
    let options =
        staged().tuning(Tuning::new().staged_segments_max(2).on_stage_full(OnStageFull::Error));
    let log = options.open(place(&dir)).unwrap();
    let mut kept = 0;
    let error = (0..).find_map(|seed| append(&log, seed).inspect(|_| kept += 1).err()).unwrap();
    assert_eq!(error.kind(), ErrorKind::NoSpace, "{error}");
    assert!(error.to_string().contains("staged_segments_max"), "{error}");
    assert!((20..=32).contains(&kept), "{kept}");
    let mut batch = log.batch();
    batch.push(&[0; 9000]).unwrap();
    assert!(append(&log, 0).is_err() && batch.append().is_err());
    assert_eq!(log.durable(), log.begin());
    log.sync().unwrap();
    append(&log, kept).unwrap();
    let wanted = (0..=kept).map(|seed| payload(log.layout(), seed, 1000));
    assert!(payloads(&log) == wanted.collect::<Vec<_>>());
}

#[test]
fn a_stage_of_something_else_is_not_believed() {
    let (dir, other) = (scratch(), scratch());
    let foreign = staged().open(place(&other)).unwrap();
    append(&foreign, 77).unwrap();
    drop(staged().open(place(&dir)).unwrap());
    let mut child = Child::start("stager", &[place(&dir).to_str().unwrap()]);
    child.expect("done");
    child.kill();
    for stage in stages(&place(&dir)) {
        fs::copy(&stages(&place(&other))[0], stage).unwrap();
    }
    let seen = payloads(&Options::default().read_only(true).open(place(&dir)).unwrap());
    let log = Options::default().open(place(&dir)).unwrap();
    assert_eq!(seen, payloads(&log));
    let wanted: Vec<_> = (0..=50).map(|seed| payload(log.layout(), seed, 500)).collect();
    assert!(seen.starts_with(&wanted) && seen.len() < 200, "{} records", seen.len());
    append(&log, 1).unwrap();
    assert_eq!(log.sync().unwrap(), log.published());
}

#[test]
fn what_is_left_of_stages_goes_with_the_next_who_opens_the_log() {
    let dir = scratch();
    drop(staged().open(place(&dir)).unwrap());
    let left = ["new.stage", "0000000000000000.stage", "00000000000f4000.stage"];
    let left = left.map(|name| place(&dir).join(name));
    left.iter().for_each(|path| fs::write(path, [1; 5000]).unwrap());
    let log = Options::default().open(place(&dir)).unwrap();
    assert!(left.iter().all(|path| !path.exists()));
    append(&log, 1).unwrap();
    drop(log);
    assert_eq!(stages(&place(&dir)).len(), 0);
}

#[test]
fn a_file_that_was_linked_under_the_name_of_a_stage_keeps_its_bytes() {
    let dir = scratch();
    drop(staged().open(place(&dir)).unwrap());
    let (mine, planted) = (dir.path().join("mine"), place(&dir).join("00000000000f4000.stage"));
    fs::write(&mine, "precious").unwrap();
    fs::hard_link(&mine, &planted).unwrap();
    append(&Options::default().open(place(&dir)).unwrap(), 1).unwrap();
    assert!(!planted.exists());
    assert_eq!(fs::read(&mine).unwrap(), b"precious");
}

#[test]
fn who_joins_while_a_stage_is_missing_is_told_so_and_nothing_is_lost() {
    let dir = scratch();
    let log = staged().open(place(&dir)).unwrap();
    append(&log, 1).unwrap();
    let stage = log.stat().unwrap().stage.unwrap();
    fs::remove_file(stage).unwrap();
    let error = Options::default().open(place(&dir)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corrupt);
    assert!(error.to_string().contains("missing although processes use the log"), "{error}");
    // A process that has it open has it.
    log.sync().unwrap();
    drop(log);
    assert_eq!(payloads(&Options::default().open(place(&dir)).unwrap()).len(), 1);
}

#[test]
fn records_are_staged_by_system_calls_where_a_mapping_is_not_safe() {
    let test = "records_are_staged_by_system_calls_where_a_mapping_is_not_safe";
    let mounts = [Mount::btrfs(test, 160), Mount::overlay(test), Mount::fuse(test)];
    for mount in mounts.into_iter().flatten() {
        let path = mount.path().join("log");
        drop(staged().open(&path).unwrap());
        let mut child = Child::start("stager", &[path.to_str().unwrap()]);
        child.expect("done");
        let log = Options::default().open(&path).unwrap();
        assert_eq!(payloads(&log).len(), 200, "read from the stage");
        child.kill();
        log.append(&payload(log.layout(), 200, 150_000)).unwrap();
        log.sync().unwrap();
        let expected = read_all(&log);
        assert_eq!(expected.len(), 201);
        drop(log);
        super::in_another_boot(&path);
        assert_holds(&Options::default().open(&path).unwrap(), &expected);
    }
}

#[test]
fn a_log_whose_stage_is_gone_has_what_was_committed_and_says_why() {
    let dir = scratch();
    killed(&staged(), &place(&dir));
    stages(&place(&dir)).iter().for_each(|stage| fs::remove_file(stage).unwrap());
    let log = Options::default().open(place(&dir)).unwrap();
    assert_eq!(log.recovery().map(|recovery| recovery.reason), Some(RecoveryReason::StageLost));
    assert_eq!(payloads(&log).len(), 100);
}
