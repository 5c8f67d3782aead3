//! Each trap is seen in the text that gives it away, and not in one without.

use std::path::Path;

use super::*;
use crate::advise::detect::{Feature, mounts_and_disks};
use crate::advise::spellings::{SPELLINGS, Word};

/// What a mount of this kind, with these options, is found to be.
fn around(kind: &str, options: &str) -> Surroundings {
    let mountinfo = format!("22 1 8:1 / / rw,relatime - {kind} source {options}\n");
    let mut found = mounts_and_disks(Path::new("/"), &mountinfo, Path::new("/nonexistent"));
    found.total_bytes = 100 << 30;
    found.free_bytes = 50 << 30;
    found
}

fn disk(cache: &str, fua: bool) -> Disk {
    Disk {
        name: "sda".into(),
        has_volatile_cache: Some(cache == "write back"),
        has_fua: Some(fua),
        ..Disk::default()
    }
}

/// The traps, in a line each.
fn seen(around: &Surroundings) -> Vec<String> {
    let line = |trap: &Trap| format!("{:?}: {}", trap.severity, trap.what);
    traps(around).iter().map(line).collect()
}

#[track_caller]
fn assert_seen(around: &Surroundings, what: &str) {
    let seen = seen(around);
    assert_eq!(seen.len(), 1, "{seen:?}");
    assert!(seen[0].contains(what), "{seen:?}");
}

#[test]
fn a_plain_disk_has_no_traps() {
    for kind in ["ext4", "xfs"] {
        let mut plain = around(kind, "rw");
        plain.disks = vec![disk("write back", true)];
        assert_eq!(seen(&plain), [""; 0]);
        plain.disks = vec![disk("write through", false)];
        assert_eq!(seen(&plain), [""; 0]);
    }
}

#[test]
fn filesystems_with_a_mind_of_their_own_are_told() {
    assert_seen(&around("nfs4", "rw"), "other machines");
    assert_seen(&around("fuse.bindfs", "rw"), "served by a program");
    assert_seen(&around("fuseblk", "rw"), "served by a program");
    assert_seen(&around("overlay", "rw,upperdir=/u"), "copies a file");
    assert_seen(&around("tmpfs", "rw"), "Danger: tmpfs is memory");
    for word in ["volatile", "fsync=volatile"] {
        assert_eq!(seen(&around("overlay", &format!("rw,upperdir=/u,{word}"))).len(), 2);
    }
    assert_eq!(seen(&around("overlay", "rw,upperdir=/u,fsync=strict")).len(), 1);
}

#[test]
fn copy_on_write_and_compression_are_told_of_btrfs() {
    assert_seen(&around("btrfs", "rw"), "new blocks");
    assert_eq!(seen(&around("btrfs", "rw,nodatacow")), [""; 0]);
    let compressed = seen(&around("btrfs", "rw,compress=zstd:3"));
    assert!(compressed[1].contains("compressed (zstd:3)"), "{compressed:?}");
    assert_eq!(seen(&around("btrfs", "rw,compress-force=lzo")).len(), 2);
    assert_eq!(seen(&around("btrfs", "rw,compress=no")).len(), 1);
    let mut nocow = around("btrfs", "rw,compress=zstd");
    nocow.is_nocow = Some(true);
    assert_eq!(seen(&nocow), [""; 0]);
}

#[test]
fn missing_barriers_are_a_danger_where_a_cache_is_volatile() {
    for options in ["rw,nobarrier", "rw,barrier=0"] {
        let mut open = around("ext4", options);
        open.disks = vec![disk("write back", true)];
        assert_seen(&open, "Danger: mounted without barriers");
        open.disks = vec![disk("write through", false)];
        assert_seen(&open, "Note: mounted without barriers");
    }
    assert_eq!(seen(&around("ext4", "rw,barrier=1")), [""; 0]);
}

#[test]
fn mounts_that_wait_or_share_are_told() {
    assert_seen(&around("ext4", "rw,sync"), "mounted with sync");
    assert_seen(&around("ext4", "rw,dirsync"), "mounted with dirsync");
    assert_seen(&around("xfs", "rw,usrquota"), "quotas (usrquota)");
    assert_eq!(seen(&around("xfs", "rw,noquota")), [""; 0]);
}

#[test]
fn journals_that_say_too_little_or_too_much_are_told() {
    assert_seen(&around("ext4", "rw,data=writeback"), "Danger: data=writeback");
    assert_seen(&around("ext4", "rw,data=journal"), "twice");
    assert_eq!(seen(&around("ext4", "rw,data=ordered")), [""; 0]);
    let mut old = around("ext4", "rw");
    old.features = vec![Feature { name: "fallocate", works: false, reason: None }];
    assert_seen(&old, "no extents");
}

#[test]
fn devices_that_are_not_what_they_seem_are_told() {
    let mut found = around("ext4", "rw");
    found.disks = vec![disk("write through", true)];
    assert_seen(&found, "Danger: sda knows FUA");
    found.disks = vec![disk("write back", false)];
    assert_seen(&found, "Note: sda has a volatile cache and no FUA");
    found.disks = vec![Disk { name: "zram0".into(), ..Disk::default() }];
    assert_seen(&found, "zram0 is memory");
    let file = Some("/disk.img".into());
    found.disks =
        vec![Disk { name: "loop0".into(), file, is_direct: Some(false), ..Disk::default() }];
    assert_seen(&found, "cached twice");
    found.disks[0].is_direct = Some(true);
    assert_eq!(seen(&found), [""; 0]);
}

#[test]
fn little_space_is_told() {
    let mut full = around("xfs", "rw");
    full.free_bytes = 9 << 30;
    assert_seen(&full, "91 % full");
    full.free_bytes = 11 << 30;
    assert_eq!(seen(&full), [""; 0]);
}

#[test]
fn the_worst_comes_first() {
    let mut found = around("ext4", "rw,usrquota,sync,data=writeback");
    found.free_bytes = 1 << 30;
    let severities: Vec<Severity> = traps(&found).iter().map(|trap| trap.severity).collect();
    assert_eq!(severities[0], Severity::Danger);
    assert_eq!(severities.last(), Some(&Severity::Note));
}

#[test]
fn memory_under_a_loop_device_is_told_once() {
    let mut found = around("ext4", "rw");
    let (file, file_filesystem) = (Some("/dev/shm/disk.img".into()), Some("tmpfs".into()));
    let is_direct = Some(false);
    found.disks =
        vec![Disk { name: "loop0".into(), file, file_filesystem, is_direct, ..Disk::default() }];
    assert_seen(&found, "Danger: loop0 is memory");
}

#[test]
fn limits_encryption_and_blocks_are_told() {
    let mut found = around("ext4", "rw");
    let (device, what, value, group) = ("vda".into(), "wiops", 100, "/g".into());
    found.limits = vec![IoLimit { device, what, value, group }];
    assert_seen(&found, "/g allows 100 writes a second to vda");
    found.limits.clear();
    let mapper = Some("CRYPT".to_string());
    found.disks = vec![Disk { name: "dm-0".into(), mapper, ..Disk::default() }];
    assert_seen(&found, "dm-0 encrypts");
    let blocks = Disk { physical_block_bytes: Some(4096), ..Disk::default() };
    found.disks = vec![Disk { partition_start_bytes: Some(1 << 20), ..blocks.clone() }];
    assert_eq!(seen(&found), [""; 0]);
    found.disks = vec![Disk { partition_start_bytes: Some(63 * 512), ..blocks }];
    assert_eq!(traps(&found)[0].cause, Cause::Misaligned);
}

#[test]
fn each_spelling_is_seen_as_its_cause() {
    for (cause, word, kernels) in SPELLINGS {
        let around = match word {
            Word::Kind(kind) => around(kind, "rw"),
            Word::KindPrefix(start) => around(&format!("{start}x"), "rw"),
            _ if cause == Cause::OverlayVolatile => around("overlay", &format!("rw,{word}")),
            _ if cause == Cause::Compression => around("btrfs", &format!("rw,{word}=zstd")),
            _ => around("ext4", &format!("rw,{word}")),
        };
        let found = traps(&around);
        assert!(found.iter().any(|trap| trap.cause == cause), "{word} of {kernels}: {found:?}");
    }
}
