//! Where a log is asked for: links, roots of volumes, long paths and names, things that are no
//! directory.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use vellum::{Create, ErrorKind, Options, Tuning};

use crate::support::child::{self, Child};
use crate::support::mount::Mount;
use crate::support::{LAYOUTS, payloads, place, scratch, small};

/// Makes a log at `path`, and opens it again.
fn make_and_open(path: &Path) {
    Options::default().create(Create::New).open(path).unwrap().append(b"record").unwrap();
    assert_eq!(payloads(&Options::default().open(path).unwrap()), [b"record"]);
}

#[test]
fn a_log_is_made_where_a_link_points_to() {
    let dir = scratch();
    fs::create_dir(dir.path().join("volume")).unwrap();
    let target = dir.path().join("volume/logs");
    symlink(&target, dir.path().join("absolute")).unwrap();
    make_and_open(&dir.path().join("absolute"));
    assert!(target.join("control").exists());
    symlink("volume/more", dir.path().join("relative")).unwrap();
    symlink("relative", place(&dir)).unwrap();
    make_and_open(&place(&dir));
    assert!(dir.path().join("volume/more/control").exists());
}

#[test]
fn a_link_that_leads_nowhere_makes_nothing() {
    let dir = scratch();
    symlink("missing/log", dir.path().join("a")).unwrap();
    let error = Options::default().open(dir.path().join("a")).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound);
    assert!(error.to_string().contains("missing/log"), "{error}");
    symlink("loop", dir.path().join("loop")).unwrap();
    assert!(Options::default().open(dir.path().join("loop")).is_err());
    symlink("unmade", dir.path().join("b")).unwrap();
    let error = Options::default().create(Create::Never).open(dir.path().join("b")).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound);
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 3);
}

#[test]
fn a_log_may_be_the_root_of_a_fresh_volume() {
    let test = "a_log_may_be_the_root_of_a_fresh_volume";
    let Some(mount) = Mount::ext4(test, 64) else { return };
    assert!(mount.path().join("lost+found").exists());
    make_and_open(mount.path());
    assert!(mount.path().join("lost+found").exists());
}

#[test]
fn what_is_no_directory_is_told_by_its_kind() {
    let dir = scratch();
    let pipe = std::process::Command::new("mkfifo").arg(place(&dir)).status().unwrap();
    assert!(pipe.success());
    for (path, kind) in [(place(&dir), "a pipe"), ("/dev/null".into(), "a device")] {
        let error = Options::default().open(path).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Incompatible);
        assert!(error.to_string().contains(kind), "{error}");
    }
}

/// Makes a log in a directory whose path is longer than the kernel takes.
pub(crate) fn go_deep(arguments: &[String]) {
    std::env::set_current_dir(&arguments[0]).unwrap();
    let name = "d".repeat(250);
    for _ in 0..20 {
        fs::create_dir(&name).unwrap();
        std::env::set_current_dir(&name).unwrap();
    }
    let log = Options::default()
        .tuning(Tuning::new().advice_from(vellum_advice::nearest))
        .open("log")
        .unwrap();
    log.append(b"record").unwrap();
    assert_eq!(payloads(&log), [b"record"]);
    drop(log);
    make_and_open(Path::new("another"));
    child::say("done");
}

#[test]
fn a_log_may_lie_deeper_than_a_path_can_say() {
    let dir = scratch();
    let mut child = Child::start("go deep", &[dir.path().to_str().unwrap()]);
    child.expect("done");
    child.finish_well();
}

#[test]
fn a_log_with_a_long_name_goes_on_in_a_new_one_after_its_lock_was_removed() {
    for layout in LAYOUTS {
        let dir = scratch();
        let place = dir.path().join("n".repeat(250));
        let log = small(layout).open(&place).unwrap();
        log.append(b"old\n").unwrap();
        fs::remove_file(place.join("lock")).unwrap();
        let new = log.reopen().unwrap();
        new.append(b"new\n").unwrap();
        assert_eq!(payloads(&new), [b"new\n"]);
    }
}
