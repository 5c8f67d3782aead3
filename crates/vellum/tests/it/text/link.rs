//! Text logs at the path of a file.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::thread;

use vellum::{Create, ErrorKind, Log, Options};

use crate::support::{payloads, scratch};

fn linked() -> Options {
    Options::text().file_link(true)
}

/// A log at `DIR/app.log` with one line, which no process has open.
fn closed(dir: &Path) -> PathBuf {
    let path = dir.join("app.log");
    linked().open(&path).unwrap().append(b"one\n").unwrap();
    path
}

fn text(path: &Path) -> String {
    fs::read_to_string(path).unwrap()
}

fn takes(path: &Path) -> vellum::Result<Log> {
    Options::default().create(Create::Never).open(path)
}

#[test]
fn the_text_is_at_the_path_before_and_after_rotations() {
    let dir = scratch();
    let path = dir.path().join("app.log");
    let log = linked().open(&path).unwrap();
    log.append(b"one\n").unwrap();
    assert_eq!(text(&path), "one\n");
    assert_eq!(fs::read_link(&path).unwrap(), Path::new("app.log.d/current"));
    log.rotate().unwrap();
    log.append(b"two\n").unwrap();
    assert_eq!(text(&path), "two\n");
    assert_eq!(payloads(&log), [b"one\n", b"two\n"]);
}

#[test]
fn the_link_and_the_directory_are_names_of_the_log_for_every_opener() {
    let dir = scratch();
    let path = closed(dir.path());
    let id = takes(&path).unwrap().id();
    for name in [path.clone(), dir.path().join("app.log.d"), dir.path().join("app.log.d/")] {
        assert_eq!(takes(&name).unwrap().id(), id, "{}", name.display());
        let reader = Options::default().read_only(true).open(&name).unwrap();
        assert_eq!(payloads(&reader), [b"one\n"]);
        assert_eq!(vellum::ship::open(&name).unwrap().id(), id);
    }
    assert_eq!(vellum::repair(&path, dir.path().join("copy")).unwrap().records, 1);
    assert_eq!(text(&path), "one\n", "the link is still there");
}

#[test]
fn a_link_that_is_gone_is_made_again_and_the_log_is_found_meanwhile() {
    let dir = scratch();
    let path = closed(dir.path());
    fs::remove_file(&path).unwrap();
    assert_eq!(payloads(&takes(&path).unwrap()), [b"one\n"]);
    assert!(!path.exists(), "who did not ask for a link makes none");
    drop(linked().open(&path).unwrap());
    assert_eq!(text(&path), "one\n");
    // As a script does that knows nothing of it.
    fs::rename(&path, dir.path().join("app.log.1")).unwrap();
    linked().open(&path).unwrap().append(b"two\n").unwrap();
    assert_eq!(text(&path), "one\ntwo\n");
}

#[test]
fn a_writer_makes_the_link_again_within_a_second() {
    let dir = scratch();
    let path = closed(dir.path());
    let log = linked().open(&path).unwrap();
    fs::rename(&path, dir.path().join("app.log.1")).unwrap();
    while !path.exists() {
        log.append(b"a line\n").unwrap();
    }
    assert_eq!(payloads(&log).concat(), fs::read(&path).unwrap());
}

#[test]
fn what_else_is_at_the_path_stays() {
    let dir = scratch();
    let path = dir.path().join("app.log");
    fs::write(&path, "an old file\n").unwrap();
    let error = linked().open(&path).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Incompatible);
    assert!(error.to_string().contains("app.log"), "{error}");
    assert_eq!(text(&path), "an old file\n");
    assert!(!dir.path().join("app.log.d").exists(), "nothing is made beside it");
    fs::remove_file(&path).unwrap();
    fs::write(dir.path().join("secret"), "of others").unwrap();
    symlink("secret", &path).unwrap();
    assert_eq!(linked().open(&path).unwrap_err().kind(), ErrorKind::Incompatible);
    assert_eq!(text(&path), "of others");
}

#[test]
fn a_file_in_the_place_of_the_link_is_refused_and_both_are_kept() {
    let dir = scratch();
    let path = closed(dir.path());
    // As `sed -i` does.
    fs::remove_file(&path).unwrap();
    fs::write(&path, "edited\n").unwrap();
    let error = linked().open(&path).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Incompatible);
    assert_eq!(text(&path), "edited\n");
    assert_eq!(payloads(&takes(&dir.path().join("app.log.d")).unwrap()), [b"one\n"]);
}

#[test]
fn a_log_in_a_directory_stays_one() {
    let dir = scratch();
    let path = dir.path().join("app.log");
    for name in [path.clone(), path.join("")] {
        drop(Options::text().open(&name).unwrap());
        linked().open(&name).unwrap().append(b"one\n").unwrap();
        assert_eq!(text(&path.join("current")), "one\n");
        fs::remove_dir_all(&path).unwrap();
    }
    linked().open(path.join("")).unwrap().append(b"one\n").unwrap();
    assert_eq!(text(&path.join("current")), "one\n", "a path that ends with a slash");
    fs::remove_dir_all(&path).unwrap();
    fs::create_dir(&path).unwrap();
    linked().open(&path).unwrap().append(b"one\n").unwrap();
    assert_eq!(text(&path.join("current")), "one\n", "as a container mounts it");
}

#[test]
fn both_may_be_moved_and_renamed_together() {
    let dir = scratch();
    let path = closed(dir.path());
    let elsewhere = dir.path().join("elsewhere");
    fs::create_dir(&elsewhere).unwrap();
    for name in ["app.log", "app.log.d"] {
        fs::rename(dir.path().join(name), elsewhere.join(name)).unwrap();
    }
    assert_eq!(payloads(&takes(&elsewhere.join("app.log")).unwrap()), [b"one\n"]);
    fs::rename(elsewhere.join("app.log.d"), elsewhere.join("old.log.d")).unwrap();
    fs::rename(elsewhere.join("app.log"), elsewhere.join("old.log")).unwrap();
    let old = elsewhere.join("old.log");
    assert_eq!(payloads(&takes(&old).unwrap()), [b"one\n"], "its link leads to nothing");
    drop(linked().open(&old).unwrap());
    assert_eq!(text(&old), "one\n", "the link is right again");
    // And a new log is at the old path.
    linked().open(&path).unwrap().append(b"new\n").unwrap();
    assert_eq!(text(&path), "new\n");
}

#[test]
fn a_link_to_a_log_that_was_removed_serves_the_next_one() {
    let dir = scratch();
    let path = closed(dir.path());
    let log = linked().open(&path).unwrap();
    fs::remove_dir_all(dir.path().join("app.log.d")).unwrap();
    assert_eq!(takes(&path).unwrap_err().kind(), ErrorKind::NotFound);
    let again = log.reopen().unwrap();
    again.append(b"two\n").unwrap();
    assert_eq!(text(&path), "two\n");
    drop(again);
    for name in ["app.log.d", "app.log"] {
        let aside = dir.path().join(format!("{name}.old"));
        fs::rename(dir.path().join(name), aside).unwrap();
    }
    log.reopen().unwrap().append(b"three\n").unwrap();
    assert_eq!(text(&path), "three\n", "link and directory are made again");
}

#[test]
fn many_make_one_log_and_one_link() {
    let dir = scratch();
    for round in 0..20 {
        let path = dir.path().join(format!("app {round}.log"));
        thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| linked().open(&path).unwrap().append(b"a line\n").unwrap());
            }
        });
        assert_eq!(text(&path).lines().count(), 4);
    }
}

#[test]
fn a_link_to_the_link_of_a_log_is_followed() {
    let dir = scratch();
    let path = closed(dir.path());
    fs::create_dir(dir.path().join("other")).unwrap();
    let (near, far) = (dir.path().join("l.log"), dir.path().join("other/far.log"));
    symlink(&path, &near).unwrap();
    symlink("../l.log", &far).unwrap();
    for link in [near, far] {
        linked().open(&link).unwrap().append(b"two\n").unwrap();
        assert_eq!(takes(&link).unwrap().id(), takes(&path).unwrap().id());
        assert!(fs::read_link(&link).is_ok(), "the link stays");
    }
    assert_eq!(payloads(&takes(&path).unwrap()), [b"one\n", b"two\n", b"two\n"]);
    let (a, b) = (dir.path().join("a"), dir.path().join("b"));
    symlink("b", &a).unwrap();
    symlink("a", &b).unwrap();
    assert!(takes(&a).is_err(), "links in a circle");
}

#[test]
fn a_link_to_a_link_that_is_gone_leads_to_the_log_all_the_same() {
    let dir = scratch();
    let path = closed(dir.path());
    let link = dir.path().join("l.log");
    symlink("app.log", &link).unwrap();
    fs::remove_file(&path).unwrap();
    assert_eq!(payloads(&takes(&link).unwrap()), [b"one\n"]);
    linked().open(&link).unwrap().append(b"two\n").unwrap();
    assert_eq!(text(&link), "one\ntwo\n", "the link of the log is made again");
    fs::remove_file(&path).unwrap();
    fs::create_dir(&path).unwrap();
    let error = takes(&link).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound, "what is at the path is another thing: {error}");
}

#[test]
fn a_log_whose_name_leaves_no_room_for_a_link_is_a_directory() {
    for (len, is_link) in [(253, true), (254, false), (255, false)] {
        let dir = scratch();
        let path = dir.path().join("n".repeat(len));
        linked().open(&path).unwrap().append(b"one\n").unwrap();
        assert_eq!(fs::symlink_metadata(&path).unwrap().is_symlink(), is_link, "{len}");
        assert_eq!(payloads(&takes(&path).unwrap()), [b"one\n"]);
    }
}
