//! The directory that a log was opened in is the one that it stays in, and no planted file there
//! leads out of it.

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::sync::mpsc;

use vellum::{ErrorKind, Fill, Layout, Log, Lsn, Options, Preallocate, Tuning};

use crate::support::child::{self, Child};
use crate::support::fork;
use crate::support::{
    LAYOUTS, PATIENCE, assert_sound, become_nobody, is_root, open_to_all, payloads, place, scratch,
    small,
};

/// Every way that records take into files.
pub(crate) const SHAPES: [(Layout, Fill); 5] = [
    (Layout::Framed, Fill::Mapped),
    (Layout::Framed, Fill::Pwrite),
    (Layout::Framed, Fill::Staged),
    (Layout::Text, Fill::Mapped),
    (Layout::Text, Fill::Pwrite),
];

/// The same from the arguments of a role.
pub(crate) fn shape(arguments: &[String]) -> (Layout, Fill) {
    let is_it = |(layout, fill): &&(Layout, Fill)| {
        layout.to_string() == arguments[0] && fill.to_string() == arguments[1]
    };
    *SHAPES.iter().find(is_it).unwrap()
}

/// Lines that fill a segment each.
fn fill_segments(log: &Log, count: usize) {
    for _ in 0..count {
        log.append(&[&[b'x'; 3000][..], b"\n"].concat()).unwrap();
    }
}

/// Names that Vellum gives files which it is about to make.
const PLANTED: [&str; 7] = [
    "segment.new",
    "control.new",
    "compressed.new",
    "current.new",
    "0.spare",
    "new.stage",
    "0000000000001000.stage",
];

#[test]
fn a_planted_link_is_never_followed() {
    for (layout, fill) in SHAPES {
        for name in PLANTED {
            let dir = scratch();
            let victim = dir.path().join("victim");
            fs::write(&victim, "keep me").unwrap();
            fs::set_permissions(&victim, Permissions::from_mode(0o604)).unwrap();
            fs::create_dir(place(&dir)).unwrap();
            symlink(&victim, place(&dir).join(name)).unwrap();
            let options = match layout {
                Layout::Framed if fill != Fill::Staged => {
                    small(layout).tuning(Tuning::new().preallocate(Preallocate::Recycle))
                }
                _ => small(layout),
            };
            let log =
                options.tuning(Tuning::new().fill(fill)).mode(0o666).open(place(&dir)).unwrap();
            #[cfg(feature = "zstd")]
            if layout == Layout::Text {
                let again = Options::default().compress(true).open(place(&dir)).unwrap();
                drop(again);
            }
            // One that was found in the place of a file costs one record at most.
            let _ = log.append(b"first\n");
            fill_segments(&log, 5);
            drop(log);
            assert_eq!(fs::read(&victim).unwrap(), b"keep me", "{layout} {fill} {name}");
            let mode = victim.metadata().unwrap().permissions().mode() & 0o777;
            assert_eq!(mode, 0o604, "{layout} {fill} {name}");
            assert_sound(&Options::default().open(place(&dir)).unwrap());
        }
    }
}

#[test]
fn a_log_whose_own_file_is_a_link_is_refused_and_what_it_leads_to_stays() {
    for layout in LAYOUTS {
        for name in ["lock", "control", "geometry"] {
            let dir = scratch();
            let victim = dir.path().join("victim");
            small(layout).open(place(&dir)).unwrap().append(b"record\n").unwrap();
            let file = place(&dir).join(name);
            fs::rename(&file, &victim).unwrap();
            let bytes = fs::read(&victim).unwrap();
            fs::set_permissions(&victim, Permissions::from_mode(0o604)).unwrap();
            symlink(&victim, &file).unwrap();
            let opened = Options::default().open(place(&dir));
            if name != "geometry" {
                let error = opened.unwrap_err();
                assert_eq!(error.kind(), ErrorKind::Incompatible, "{name}: {error}");
                assert_eq!(error.path(), Some(&*file));
                assert!(error.to_string().contains("no regular file"), "{error}");
            }
            assert_eq!(fs::read(&victim).unwrap(), bytes, "{name}");
            assert_eq!(victim.metadata().unwrap().permissions().mode() & 0o777, 0o604, "{name}");
        }
    }
}

#[test]
fn a_pipe_in_the_place_of_a_file_is_an_error_and_nobody_waits_for_it() {
    for name in ["lock", "control", "geometry", "segment"] {
        let dir = scratch();
        small(Layout::Framed).open(place(&dir)).unwrap().append(b"record").unwrap();
        let file = match name {
            "segment" => place(&dir).join("0000000000001000.seg"),
            name => place(&dir).join(name),
        };
        fs::remove_file(&file).unwrap();
        if name == "geometry" {
            // Which is read where the control file is gone.
            fs::remove_file(place(&dir).join("control")).unwrap();
        }
        assert!(std::process::Command::new("mkfifo").arg(&file).status().unwrap().success());
        for is_read_only in [true, false] {
            if name == "lock" && is_read_only {
                continue;
            }
            let path = place(&dir);
            let (sender, answer) = mpsc::channel();
            std::thread::spawn(move || {
                let opened = Options::default().read_only(is_read_only).open(path);
                let read = opened.and_then(|log| log.reader(Lsn::ZERO)?.next().map(drop));
                let _ = sender.send(read.map_err(|error| error.kind()));
            });
            let answer = answer.recv_timeout(PATIENCE).expect("does not wait for the pipe");
            assert_eq!(answer, Err(ErrorKind::Incompatible), "{name}");
        }
    }
}

/// Opens a log by a relative path, goes elsewhere, and uses it.
pub(crate) fn go_elsewhere(arguments: &[String]) {
    std::env::set_current_dir(&arguments[0]).unwrap();
    let (layout, fill) = shape(&arguments[1..]);
    let log = small(layout).tuning(Tuning::new().fill(fill)).open("log").unwrap();
    std::env::set_current_dir("/").unwrap();
    use_everything(&log);
}

/// Does what touches files; ten records are left.
fn use_everything(log: &Log) {
    fill_segments(log, 5);
    log.prepare(2).unwrap();
    fill_segments(log, 5);
    log.sync().unwrap();
    let cut = log.append(b"is cut\n").unwrap();
    log.truncate(cut).unwrap();
    let begin = log.append(b"begin\n").unwrap();
    log.trim(begin).unwrap();
    if log.layout() == Layout::Text {
        log.rotate().unwrap();
    }
    fill_segments(log, 9);
    assert_eq!(payloads(log).len(), 10);
    assert!(!log.stat().unwrap().segments.is_empty());
    assert_sound(log);
}

#[test]
fn a_process_that_goes_elsewhere_keeps_its_log() {
    for (layout, fill) in SHAPES {
        let dir = scratch();
        let (layout, fill) = (layout.to_string(), fill.to_string());
        let child = Child::start("go elsewhere", &[dir.path().to_str().unwrap(), &layout, &fill]);
        child.finish_well();
        let log = Options::default().open(place(&dir)).unwrap();
        assert_eq!(payloads(&log).len(), 10, "{layout} {fill}");
    }
}

/// Opens a log, and uses it in a child that has closed all descriptors, as daemons do.
pub(crate) fn become_a_daemon(arguments: &[String]) {
    std::env::set_current_dir(&arguments[0]).unwrap();
    let (layout, fill) = shape(&arguments[1..]);
    let log = small(layout).tuning(Tuning::new().fill(fill)).open("log").unwrap();
    let first = log.append(b"a line to come back to\n").unwrap();
    fill_segments(&log, 1);
    // Which keeps its file open.
    let line = log.read_at(first).unwrap();
    let daemon = fork::fork(|| {
        std::env::set_current_dir("/").unwrap();
        // SAFETY: nothing in this process uses a descriptor beyond these but the log.
        let closed = unsafe { libc::syscall(libc::SYS_close_range, 3, libc::c_uint::MAX, 0) };
        assert_eq!(closed, 0);
        // Another log's directory gets the numbers.
        let decoy = Path::new(&arguments[0]).join("decoy");
        let decoys: Vec<_> = (0..64).map(|_| fs::File::open(&decoy).unwrap()).collect();
        assert_eq!(log.read_at(first).unwrap(), line);
        fill_segments(&log, 9);
        log.sync().unwrap();
        assert_eq!(log.read_at(first).unwrap(), line);
        assert_eq!(payloads(&log).len(), 11);
        drop(decoys);
        0
    });
    assert_eq!(fork::wait(daemon), 0);
    assert_eq!(log.read_at(first).unwrap(), line);
    assert_eq!(payloads(&log).len(), 11);
}

#[test]
fn a_daemon_that_has_closed_all_descriptors_keeps_its_log() {
    for (layout, fill) in SHAPES {
        let dir = scratch();
        let decoy = dir.path().join("decoy");
        small(layout)
            .tuning(Tuning::new().fill(fill))
            .open(&decoy)
            .unwrap()
            .append(b"decoy\n")
            .unwrap();
        let (layout, fill) = (layout.to_string(), fill.to_string());
        let arguments = [dir.path().to_str().unwrap(), &layout, &fill];
        Child::start("become a daemon", &arguments).finish_well();
        let log = Options::default().open(place(&dir)).unwrap();
        assert_eq!(payloads(&log).len(), 11, "{layout} {fill}");
        assert_sound(&log);
        let decoy = Options::default().open(decoy).unwrap();
        assert_eq!(payloads(&decoy), [b"decoy\n"]);
    }
}

#[test]
fn a_log_whose_parent_is_renamed_stays_in_its_directory() {
    for (layout, fill) in SHAPES {
        let dir = scratch();
        let (before, after) = (dir.path().join("before"), dir.path().join("after"));
        fs::create_dir(&before).unwrap();
        let log = small(layout).tuning(Tuning::new().fill(fill)).open(before.join("log")).unwrap();
        fs::rename(&before, &after).unwrap();
        use_everything(&log);
        drop(log);
        assert_eq!(payloads(&Options::default().open(after.join("log")).unwrap()).len(), 10);
    }
}

#[test]
fn a_log_whose_path_another_one_has_taken_is_left() {
    for (layout, fill) in SHAPES {
        let dir = scratch();
        let (before, after) = (dir.path().join("before"), dir.path().join("after"));
        fs::create_dir(&before).unwrap();
        let log = small(layout).tuning(Tuning::new().fill(fill)).open(before.join("log")).unwrap();
        fs::rename(&before, &after).unwrap();
        // Another process makes a log of the same name.
        fs::create_dir(&before).unwrap();
        let other =
            small(layout).tuning(Tuning::new().fill(fill)).open(before.join("log")).unwrap();
        let mut count = 0;
        let error = loop {
            match log.append(b"a line\n") {
                Ok(_) => count += 1,
                Err(error) => break error,
            }
        };
        assert_eq!(error.kind(), ErrorKind::Removed, "{error}");
        log.reopen().unwrap().append(b"goes on\n").unwrap();
        drop(log);
        assert_eq!(payloads(&other), [b"goes on\n"]);
        assert_eq!(payloads(&Options::default().open(after.join("log")).unwrap()).len(), count);
    }
}

/// Creates logs below a directory as another user, and commits.
pub(crate) fn commit_below_0711(arguments: &[String]) {
    become_nobody();
    let home = Path::new(&arguments[0]);
    let framed = Options::events();
    let text = Options::mapped_text();
    for (index, options) in [Options::wal().exclusive(false), framed, text].into_iter().enumerate()
    {
        // The directory of the log is this user's, the one above may only be passed through.
        let log = options
            .tuning(Tuning::new().segment_capacity_bytes(1 << 20))
            .open(home.join(format!("log{index}")));
        let log = log.unwrap();
        assert!(!log.stat().unwrap().can_sync_name);
        let lsn = log.append(b"record\n").unwrap();
        log.commit(lsn).unwrap();
        log.append(b"another\n").unwrap();
        log.sync().unwrap();
    }
    child::say("done");
}

#[test]
fn a_log_below_a_directory_that_may_not_be_read_commits() {
    if !is_root("a_log_below_a_directory_that_may_not_be_read") {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let home = dir.path().join("home");
    fs::create_dir(&home).unwrap();
    for index in 0..3 {
        let log = home.join(format!("log{index}"));
        fs::create_dir(&log).unwrap();
        open_to_all(&log);
    }
    fs::set_permissions(dir.path(), Permissions::from_mode(0o711)).unwrap();
    fs::set_permissions(&home, Permissions::from_mode(0o711)).unwrap();
    let mut child = Child::start("commit below 0711", &[home.to_str().unwrap()]);
    child.expect("done");
    child.finish_well();
    for index in 0..3 {
        let log = Options::default().open(home.join(format!("log{index}"))).unwrap();
        assert_eq!(payloads(&log).len(), 2);
        let stat = log.stat().unwrap();
        assert!(stat.poison.is_none() && stat.can_sync_name);
    }
}
