//! The ways that commit groups take to the device, and where the choice is kept.

use std::fs;
use std::os::unix::fs::MetadataExt;

use vellum::stat::PathOrigin;
use vellum::{CommitPath, ErrorKind, Fill, Layout, Log, Lsn, OnStageFull, Options, Tuning};

use crate::support::{assert_sound, copy_log, payload, payloads, place, read_all, segment_files};

fn path(text: &str) -> CommitPath {
    text.parse().unwrap()
}

fn origin(log: &Log) -> PathOrigin {
    log.stat().unwrap().commit_path.unwrap().origin
}

fn inode(file: &std::path::Path) -> u64 {
    fs::metadata(file).unwrap().ino()
}

/// A log with nothing in flight after a power cut: the segments.
fn after_a_power_cut(log: &std::path::Path, name: &str) -> Log {
    let copy = log.with_file_name(name);
    copy_log(log, &copy);
    fs::remove_file(copy.join("control")).unwrap();
    for entry in fs::read_dir(&copy).unwrap() {
        let entry = entry.unwrap().path();
        if entry.extension().is_some_and(|extension| extension == "stage") {
            fs::remove_file(entry).unwrap();
        }
    }
    Options::default().open(copy).unwrap()
}

#[test]
fn what_is_committed_by_any_path_survives() {
    for text in ["dsync/512/1", "dsync/4096/2", "fdatasync/512/2", "fdatasync/4096/4"] {
        let dir = tempfile::tempdir().unwrap();
        let options = Options::wal()
            .exclusive(false)
            .tuning(Tuning::new().segment_capacity_bytes(64 << 10).commit_path(path(text)));
        let log = options.open(place(&dir)).unwrap();
        assert_eq!(
            (log.stat().unwrap().commit_path.unwrap().path, origin(&log)),
            (path(text), PathOrigin::Options)
        );
        let commit = |seed| {
            log.append_durable(&payload(Layout::Framed, seed, 700)).unwrap();
        };
        std::thread::scope(|scope| {
            for thread in 0..4_u64 {
                scope.spawn(move || (0..50).for_each(|seed| commit(thread * 50 + seed)));
            }
        });
        let (found, all) = (payloads(&after_a_power_cut(&place(&dir), "copy")), payloads(&log));
        assert_eq!((found.len(), found), (200, all), "{text}");
    }
}

/// Groups end in the middle of the longer blocks, where the shorter ones of the others begin.
#[test]
fn processes_with_blocks_of_both_sizes_lose_nothing_of_each_other() {
    let dir = tempfile::tempdir().unwrap();
    let options = |text| {
        Options::wal()
            .exclusive(false)
            .tuning(Tuning::new().segment_capacity_bytes(64 << 10).commit_path(path(text)))
    };
    let logs = ["dsync/512/2", "fdatasync/4096/2"].map(|it| options(it).open(place(&dir)).unwrap());
    std::thread::scope(|scope| {
        for (index, log) in logs.iter().enumerate() {
            for thread in 0..2 {
                let seed = 1000 * (2 * index as u64 + thread);
                let commit = move |seed| {
                    let record = payload(Layout::Framed, seed, 472);
                    log.append_durable(&record).unwrap();
                };
                scope.spawn(move || (seed..seed + 100).for_each(commit));
            }
        }
    });
    let found = payloads(&after_a_power_cut(&place(&dir), "copy"));
    assert_eq!((found.len(), found), (400, payloads(&logs[0])));
}

/// A program that changes its mind while it runs, as a server does whose options can be set.
#[test]
fn all_but_the_way_to_fill_may_be_changed_by_opening_again() {
    let dir = tempfile::tempdir().unwrap();
    let first = Tuning::new().segment_capacity_bytes(64 << 10).commit_path(path("dsync/4096/2"));
    let log = Options::wal().tuning(first).open(place(&dir)).unwrap();
    let append = |log: &Log, seed| log.append(&payload(Layout::Framed, seed, 700)).unwrap();
    // When the log commits is a matter of calls: each record, now and then, or never.
    log.commit(append(&log, 0)).unwrap();
    append(&log, 1);
    assert!(log.durable() < log.published());
    log.sync().unwrap();
    append(&log, 2);
    let segments = || segment_files(&place(&dir)).iter().map(|it| inode(it)).collect::<Vec<_>>();
    let (kept, files) = (read_all(&log), segments());
    log.close().unwrap();

    let second = Tuning::new()
        .commit_path(path("fdatasync/512/1"))
        .staged_segments_max(8)
        .on_stage_full(OnStageFull::Error)
        .spare_segments_max(0)
        .checkpoint_after_bytes(1000);
    let log = Options::wal().tuning(second).exclusive(false).open(place(&dir)).unwrap();
    assert_eq!(log.stat().unwrap().commit_path.unwrap().path, path("fdatasync/512/1"));
    assert_eq!((read_all(&log), segments()), (kept.clone(), files), "nothing was copied");
    log.commit(append(&log, 3)).unwrap();
    assert!(log.checkpoint().is_due());
    log.close().unwrap();

    // A way to fill, and a kind of log, are for new ones: this one stays as it is.
    for options in [Options::events(), Options::default().tuning(Tuning::new().fill(Fill::Mapped))]
    {
        let log = options.open(place(&dir)).unwrap();
        assert_eq!(log.stat().unwrap().fill, Fill::Staged);
        assert_eq!(read_all(&log).len(), kept.len() + 1);
    }
}

#[test]
fn a_stored_path_holds_from_the_next_opening_on_until_it_is_forgotten() {
    let dir = tempfile::tempdir().unwrap();
    let open = || Options::wal().exclusive(false).open(place(&dir)).unwrap();
    let log = open();
    assert_eq!(origin(&log), PathOrigin::Default);
    let default = log.stat().unwrap().commit_path.unwrap().path;
    // As a process left it that died while it stored one.
    fs::write(place(&dir).join("commit-path.new"), b"half").unwrap();
    path("fdatasync/4096/1").store_measured(&log).unwrap();
    assert_eq!(log.stat().unwrap().commit_path.unwrap().path, default);
    drop(log);
    let log = open();
    let found = log.stat().unwrap().commit_path.unwrap();
    assert_eq!((found.path, found.origin), (path("fdatasync/4096/1"), PathOrigin::Measured));
    assert!(found.stored_at.is_some() && found.reason.contains("fastest"), "{found:?}");
    log.append_durable(b"one").unwrap();
    path("dsync/4096/1").store_chosen(&log).unwrap();
    drop(log);
    let view = Options::default().read_only(true).open(place(&dir)).unwrap();
    assert_eq!(origin(&view), PathOrigin::Chosen);
    assert_eq!(CommitPath::forget_stored(&view).unwrap_err().kind(), ErrorKind::ReadOnly);
    CommitPath::forget_stored(&open()).unwrap();
    CommitPath::forget_stored(&open()).unwrap();
    let log = open();
    assert_eq!(
        (log.stat().unwrap().commit_path.unwrap().path, origin(&log)),
        (default, PathOrigin::Default)
    );
    assert_sound(&log);
}

#[test]
fn a_file_that_cannot_be_understood_counts_as_none() {
    let dir = tempfile::tempdir().unwrap();
    let open = || Options::wal().exclusive(false).open(place(&dir)).unwrap();
    path("fdatasync/4096/1").store_measured(&open()).unwrap();
    let file = place(&dir).join("commit-path");
    let stored = fs::read_to_string(&file).unwrap();
    assert!(stored.starts_with("vellum-commit-path 1\npath fdatasync/4096/1\n"), "{stored}");
    for text in ["", "vellum-commit-path 2\n", &stored.replace("4096/1", "4096/2")] {
        fs::write(&file, text).unwrap();
        assert_eq!(origin(&open()), PathOrigin::Default, "{text}");
    }
    fs::remove_file(&file).unwrap();
    fs::create_dir(&file).unwrap();
    let log = open();
    assert_eq!(origin(&log), PathOrigin::Default);
    assert!(path("fdatasync/4096/1").store_measured(&log).is_err());
    assert_eq!(
        log.append_durable(b"one").unwrap(),
        log.reader(Lsn::ZERO).unwrap().next().unwrap().unwrap().lsn
    );
    assert!(!place(&dir).join("commit-path.new").exists());
}

#[test]
fn a_path_out_of_range_or_of_another_log_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let wrong = CommitPath { lanes: 9, ..path("dsync/512/1") };
    let error = Options::wal()
        .exclusive(false)
        .tuning(Tuning::new().commit_path(wrong))
        .open(place(&dir))
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidOption);
    let log = Options::wal().exclusive(false).open(place(&dir)).unwrap();
    assert_eq!(wrong.store_measured(&log).unwrap_err().kind(), ErrorKind::InvalidOption);
    let text = Options::mapped_text().open(dir.path().join("text")).unwrap();
    assert!(text.stat().unwrap().commit_path.is_none());
    let error = path("dsync/512/1").store_chosen(&text).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported);
}
