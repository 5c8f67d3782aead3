//! Disks that are made for a test, and the causes that they have.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use vellum_testing::mount::{Mount, Thin};

use super::support::{causes, diagnosed, diagnosed_by, program};

#[test]
fn memory_is_named_and_not_good_enough_unless_it_is_accepted() {
    let Some(mount) = Mount::tmpfs("doctor of memory", 64) else { return };
    let (found, code) = diagnosed(mount.path(), &[]);
    assert_eq!((causes(&found)[0], code), ("memory", 6), "{found}");
    let (found, code) = diagnosed(mount.path(), &["--accept", "memory"]);
    assert_eq!(causes(&found)[0], "memory");
    assert_ne!((&found["verdict"], code), (&"not-good-enough".into(), 6), "{found}");
    assert_eq!(fs::read_dir(mount.path()).unwrap().count(), 0);
}

#[test]
fn data_that_is_written_twice_is_named() {
    let Some(mount) = Mount::ext4_with("doctor of a journal", 64, "data=journal") else { return };
    let (found, _) = diagnosed(mount.path(), &[]);
    assert!(causes(&found).contains(&"data-journal"), "{found}");
}

#[test]
fn an_overlay_that_leaves_out_syncs_is_a_danger() {
    let Some(mount) = Mount::overlay_with("doctor of a volatile overlay", ",volatile") else {
        return;
    };
    let (found, code) = diagnosed(mount.path(), &[]);
    assert_eq!((causes(&found)[0], code), ("overlay-volatile", 6), "{found}");
}

#[test]
fn each_word_of_a_mount_is_seen_as_this_kernel_spells_it() {
    for (options, cause) in [
        ("data=writeback", "data-writeback"),
        ("nobarrier", "no-barriers"),
        ("sync", "sync-mount"),
        ("dirsync", "sync-mount"),
        ("usrquota", "quota"),
        ("grpjquota=aquota.group,jqfmt=vfsv1", "quota"),
    ] {
        let Some(mount) = Mount::ext4_with("doctor of words", 64, options) else { return };
        let (found, _) = diagnosed(mount.path(), &[]);
        assert!(causes(&found).contains(&cause), "{options}: {found}");
    }
}

#[test]
fn an_overlay_is_named() {
    let Some(mount) = Mount::overlay("doctor of an overlay") else { return };
    let (found, _) = diagnosed(mount.path(), &[]);
    assert!(causes(&found).contains(&"overlay"), "{found}");
}

#[test]
fn a_disk_without_room_is_a_verdict_and_no_failure() {
    let Some(mount) = Mount::ext4("doctor of a full disk", 16) else { return };
    let ballast = fs::File::create(mount.path().join("ballast")).unwrap();
    let stat = rustix::fs::statvfs(mount.path()).unwrap();
    let len = stat.f_bavail * stat.f_frsize - (256 << 10);
    rustix::fs::fallocate(&ballast, rustix::fs::FallocateFlags::empty(), 0, len).unwrap();
    let (found, code) = diagnosed(mount.path(), &[]);
    assert_eq!((causes(&found)[0], code), ("no-space", 6), "{found}");
    assert!(causes(&found).contains(&"nearly-full"), "{found}");
}

#[test]
fn writes_that_fail_are_a_verdict_and_no_failure() {
    let Some(thin) = Thin::new("doctor of a thin disk") else { return };
    thin.fill();
    let (found, code) = diagnosed(thin.path(), &[]);
    assert_eq!((causes(&found)[0], code), ("write-errors", 6), "{found}");
    assert!(!found["programs"][0]["failures"].as_array().unwrap().is_empty());
}

/// A control group of version 1 with a limit for a device; it goes in the end.
struct Group(PathBuf);

impl Group {
    fn new(device: &str) -> Option<Group> {
        let name = format!("vellum-doctor-test-{}", std::process::id());
        let group = Group(Path::new("/sys/fs/cgroup/blkio").join(name));
        let limit = group.0.join("blkio.throttle.write_iops_device");
        let made = fs::create_dir(&group.0);
        match made.and_then(|()| fs::write(limit, format!("{device} 200"))) {
            Ok(()) => Some(group),
            Err(error) => {
                vellum_testing::missing::skip(format!(
                    "no control group with a limit can be had: {error}"
                ));
                None
            }
        }
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        let _ = fs::remove_dir(&self.0);
    }
}

#[test]
fn a_limit_of_the_control_group_is_named() {
    let Some(mount) = Mount::ext4("doctor of a control group", 64) else { return };
    let device = rustix::fs::stat(mount.path()).unwrap().st_dev;
    let (major, minor) = (rustix::fs::major(device), rustix::fs::minor(device));
    let Some(group) = Group::new(&format!("{major}:{minor}")) else { return };
    // The shell enters the group, and becomes the program.
    let mut shell = Command::new("sh");
    let enter = "echo $$ > \"$0\" && exec \"$@\"";
    shell.args(["-c", enter]).arg(group.0.join("cgroup.procs"));
    let program = program();
    shell.arg(program.get_program()).args(program.get_args());
    let (found, _) = diagnosed_by(shell, mount.path(), &[]);
    assert!(causes(&found).contains(&"cgroup-limit"), "{found}");
}
