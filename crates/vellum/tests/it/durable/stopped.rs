//! A sync that succeeds while the filesystem stops: the bytes may be on no device.

use std::fs::{File, OpenOptions};
use std::path::Path;

use libc::EROFS;
use rustix::io::Errno;
use vellum::{Lsn, Options, Result};
use vellum_sys::filesystem::Filesystem;
use vellum_sys::sync::check_in_service_on;
use vellum_testing::syncs::where_a_sync_meets;

use super::{in_another_boot, staged};
use crate::support::mount::Mount;

#[test]
fn a_filesystem_that_has_stopped_says_so_when_asked() {
    let test = "a_filesystem_that_has_stopped_says_so_when_asked";
    for disk in [Mount::ext4(test, 60), Mount::xfs(test)].into_iter().flatten() {
        let directory = File::open(disk.path()).unwrap();
        let filesystem = Filesystem::of(&directory).unwrap();
        let ask = || check_in_service_on(filesystem, &directory);
        assert_eq!(ask(), Ok(()));
        disk.shut_down();
        assert_eq!(ask(), Err(Errno::IO), "{filesystem:?}");
    }
}

#[test]
fn an_aborted_journal_is_noticed_by_every_kind_of_descriptor() {
    let test = "an_aborted_journal_is_noticed_by_every_kind_of_descriptor";
    let Some(disk) = Mount::ext4(test, 60) else { return };
    let Some(overlay) = disk.overlaid(test) else { return };
    let mut open = Vec::new();
    for at in [disk.path(), overlay.path()] {
        let path = at.join("file");
        let written = OpenOptions::new().write(true).create_new(true).open(&path).unwrap();
        open.push((format!("written, {}", at.display()), written));
        open.push((format!("read, {}", at.display()), File::open(&path).unwrap()));
        open.push((format!("a directory, {}", at.display()), File::open(at).unwrap()));
    }
    let ask = |file: &File| check_in_service_on(Filesystem::of(file).unwrap(), file);
    for (what, file) in &open {
        assert_eq!(ask(file), Ok(()), "{what}");
    }
    disk.abort_journal();
    for (what, file) in &open {
        assert_eq!(ask(file), Err(Errno::ROFS), "{what}");
    }
}

/// Whether a path, with that of the log, is of a sync.
type IsIt = fn(&Path, &Path) -> bool;

/// Does `act` with a log, and has the journal abort while the first sync of what `is_it` finds
/// waits. The sync succeeds; `act` must not, and its error has `words`.
fn assert_noticed(
    disk: &Mount,
    (what, words, is_it): (&str, &str, IsIt),
    act: impl FnOnce(&Path) -> Result<()> + Send,
) {
    let place = disk.path().join("log");
    let mut has_met = false;
    let stop = || {
        disk.abort_journal();
        has_met = true;
    };
    let answer = where_a_sync_meets(|path| is_it(path, &place), stop, || act(&place));
    assert!(has_met, "{what}: there was no such sync, {answer:?}");
    let error = answer.expect_err(what);
    assert_eq!(error.raw_os_error(), Some(EROFS), "{what}: {error}");
    assert!(error.to_string().contains(words), "{what}: {error}");
}

fn is_directory(path: &Path, log: &Path) -> bool {
    path == log
}

fn is_segment(path: &Path, log: &Path) -> bool {
    path.starts_with(log) && path.extension().is_some_and(|end| end == "seg" || end == "log")
}

#[test]
fn a_commit_beside_which_the_journal_aborts_is_not_acknowledged() {
    let test = "a_commit_beside_which_the_journal_aborts_is_not_acknowledged";
    let syncs: [(&str, &str, IsIt); 5] = [
        ("the records", "sync the log", is_segment),
        ("the geometry file", "could not", |path, log| path == log.join("geometry")),
        ("the control file", "could not", |path, log| path == log.join("control")),
        ("the names", "could not", is_directory),
        ("the log's own name", "could not", |path, log| Some(path) == log.parent()),
    ];
    for sync in syncs {
        let Some(disk) = Mount::ext4(test, 60) else { return };
        let commit = |place: &Path| {
            let log = Options::mapped_text().open(place)?;
            log.append_durable(b"a line").map(drop)
        };
        assert_noticed(&disk, sync, commit);
    }
}

#[test]
fn a_segment_beside_which_the_journal_aborts_takes_no_commit() {
    let test = "a_segment_beside_which_the_journal_aborts_takes_no_commit";
    let Some(disk) = Mount::ext4(test, 60) else { return };
    let log = staged().open(disk.path().join("log")).unwrap();
    log.append_durable(b"first").unwrap();
    let fill = |_: &Path| (0..100).try_for_each(|_| log.append_durable(&[b'a'; 900]).map(drop));
    assert_noticed(&disk, ("its name", "sync a file of the log", is_directory), fill);
}

fn some_records(place: &Path) -> Lsn {
    let log = staged().open(place).unwrap();
    (0..40).fold(Lsn::ZERO, |_, _| log.append_durable(&[b'a'; 900]).unwrap())
}

#[test]
fn wiping_beside_which_the_journal_aborts_is_not_done() {
    let test = "wiping_beside_which_the_journal_aborts_is_not_done";
    for sync in
        [("the end", "wipe the end", is_segment as IsIt), ("names", "sync the names", is_directory)]
    {
        let Some(disk) = Mount::ext4(test, 60) else { return };
        let last = some_records(&disk.path().join("log"));
        let truncate = |place: &Path| Options::default().open(place)?.truncate(last).map(drop);
        assert_noticed(&disk, sync, truncate);
    }
}

#[test]
fn an_opening_beside_which_the_journal_aborts_fails() {
    let test = "an_opening_beside_which_the_journal_aborts_fails";
    let Some(disk) = Mount::ext4(test, 60) else { return };
    let place = disk.path().join("log");
    some_records(&place);
    in_another_boot(&place);
    // The last one is wiped.
    let is_early = |path: &Path, log: &Path| path == log.join("0000000000004000.seg");
    let open = |place: &Path| Options::default().open(place).map(drop);
    assert_noticed(&disk, ("a segment", "sync the segment", is_early), open);
}
