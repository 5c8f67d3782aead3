//! Mounts and devices, from literal texts.

use std::os::unix::fs::symlink;

use super::*;

const MOUNTINFO: &str = "\
22 1 8:1 / / rw,relatime - ext4 /dev/sda1 rw,nobarrier,data=writeback
24 22 0:41 / /data rw,noatime - btrfs /dev/mapper/vg-data rw,compress=zstd:3
25 22 7:0 / /image rw - xfs /dev/loop0 rw,usrquota
26 22 0:50 / /merged rw - overlay overlay rw,lowerdir=/l,upperdir=/data/upper,workdir=/w,volatile
27 22 0:51 / /home rw - fuse.sshfs host:/home rw,user_id=0
";

/// A `/sys` with a disk that has a partition, a mapped volume on it, and a loop device.
fn sys() -> tempfile::TempDir {
    let sys = tempfile::tempdir().unwrap();
    let device = |path: &str, files: &[(&str, &str)]| {
        for (name, text) in files {
            let file = sys.path().join("devices").join(path).join(name);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, format!("{text}\n")).unwrap();
        }
    };
    device("sda", &[("queue/write_cache", "write back"), ("queue/fua", "0")]);
    device("sda", &[("queue/rotational", "1"), ("queue/logical_block_size", "512")]);
    device("sda/sda1", &[("partition", "1")]);
    device("dm-0", &[("queue/write_cache", "write back"), ("dm/uuid", "LVM-abc")]);
    device("dm-0", &[("slaves/none", ""), ("queue/discard_max_bytes", "4096")]);
    device("loop0", &[("queue/write_cache", "write through"), ("loop/dio", "0")]);
    device("loop0", &[("loop/backing_file", "/data/disk.img")]);
    fs::remove_file(sys.path().join("devices/dm-0/slaves/none")).unwrap();
    let link = |from: &str, to: &str| {
        let from = sys.path().join(from);
        fs::create_dir_all(from.parent().unwrap()).unwrap();
        symlink(sys.path().join("devices").join(to), from).unwrap();
    };
    link("dev/block/8:1", "sda/sda1");
    link("dev/block/7:0", "loop0");
    link("class/block/mapper!vg-data", "dm-0");
    link("devices/dm-0/slaves/sda1", "sda/sda1");
    sys
}

fn around(dir: &str) -> Surroundings {
    let sys = sys();
    mounts_and_disks(Path::new(dir), MOUNTINFO, sys.path())
}

fn names(found: &Surroundings) -> Vec<&str> {
    found.disks.iter().map(|disk| disk.name.as_str()).collect()
}

#[test]
fn a_partition_stands_for_its_disk() {
    let found = around("/srv");
    assert_eq!((found.kind(), names(&found)), ("ext4", vec!["sda"]));
    let disk = &found.disks[0];
    assert_eq!((disk.has_volatile_cache, disk.has_fua), (Some(true), Some(false)));
    assert_eq!((disk.is_rotational, disk.logical_block_bytes), (Some(true), Some(512)));
    assert_eq!(disk.takes_discard, None);
}

#[test]
fn what_a_device_stands_on_is_found() {
    assert_eq!(names(&around("/data/x")), ["dm-0", "sda"]);
    assert_eq!(around("/data/x").disks[0].mapper.as_deref(), Some("LVM"));
    let image = around("/image");
    assert_eq!(names(&image), ["loop0", "dm-0", "sda"]);
    assert_eq!(image.disks[0].file.as_deref(), Some(Path::new("/data/disk.img")));
    assert_eq!(image.disks[0].is_direct, Some(false));
}

#[test]
fn an_overlay_is_looked_through() {
    let found = around("/merged/a");
    assert_eq!(found.kind(), "overlay");
    assert_eq!(found.upper_filesystem.as_ref().unwrap().kind, "btrfs");
    assert_eq!(names(&found), ["dm-0", "sda"]);
    assert!(found.option("volatile").is_some());
    assert_eq!(found.option("compress"), Some("zstd:3"));
}

#[test]
fn options_are_whole_words() {
    let found = around("/");
    assert_eq!(found.option("data"), Some("writeback"));
    assert!(found.option("nobarrier").is_some() && found.option("barrier").is_none());
    assert!(found.option("compress").is_none());
}

#[test]
fn a_filesystem_without_a_device_has_none() {
    let found = around("/home/me");
    assert_eq!((found.kind(), found.disks.len()), ("fuse.sshfs", 0));
}

#[test]
fn this_machine_is_looked_at() {
    let dir = tempfile::tempdir().unwrap();
    let found = Surroundings::of(dir.path()).unwrap();
    assert!(found.total_bytes > 0 && found.cores > 0 && found.filesystem.is_some());
    assert!(found.used_share().unwrap() <= 1.0);
}
