//! Everything that is made for a run is there, and is removed.

use std::fs;
use std::io::{Read, Write};
use std::path::Path;
use std::time::{Duration, Instant};

use super::*;
use crate::conditions::filesystem_of;
use crate::process::fork_child;

/// Free memory in the room, in bytes.
fn free(dir: &Path) -> u64 {
    let stat = rustix::fs::statvfs(dir).unwrap();
    stat.f_bfree * stat.f_frsize
}

/// Does a loop device have an image that this process made for `kind`?
fn has_device(kind: ScratchKind) -> bool {
    let end = format!("-{}.image", std::process::id());
    let devices = fs::read_dir("/sys/block").unwrap().map(|entry| entry.unwrap().path());
    let images = devices.filter_map(|dir| fs::read_to_string(dir.join("loop/backing_file")).ok());
    let mut names = images.map(|image| image.rsplit('/').next().unwrap_or_default().to_string());
    names.any(|name| name.starts_with(kind.as_str()) && name.contains(&end))
}

/// One test for all kinds, for it moves its thread to mounts of its own, and there is memory for
/// one at a time.
#[test]
fn each_kind_is_there_takes_what_was_promised_and_is_given_back() {
    let home = tempfile::tempdir().unwrap();
    let dir = home.path().join("room");
    let bytes = 48 << 20;
    let missing = ScratchKind::check(&[ScratchKind::Ext4]);
    let room = match missing
        .and_then(|()| Room::new(home.path(), Room::bytes_for(bytes, &Making::default())))
    {
        Ok(room) => room,
        Err(error) => return vellum_testing::missing::skip(error),
    };
    let empty = free(&dir);
    for kind in ScratchKind::ALL {
        let made = ScratchKind::check(&[kind])
            .and_then(|()| room.furnish(kind, bytes, &Making::default()));
        match made {
            Ok(scratch) => {
                let mount = filesystem_of(scratch.dir()).unwrap();
                assert!(kind.as_str().contains(&mount.kind), "{kind}: {}", mount.kind);
                assert_eq!(has_device(kind), kind != ScratchKind::Tmpfs, "{kind}");
                fs::write(scratch.dir().join("file"), vec![1; bytes as usize]).unwrap();
            }
            // No tool mends that.
            Err(_) if kind == ScratchKind::Raid0Ext4 && !Path::new("/proc/mdstat").exists() => {
                eprintln!("{kind} left out: this kernel knows no arrays");
            }
            Err(error) => vellum_testing::missing::skip(format_args!("{kind}: {error}")),
        }
        // A child that another test forks meanwhile may hold our open files, as long as it lives.
        let is_given_back = || !has_device(kind) && free(&dir) >= empty - (1 << 20);
        let begun = Instant::now();
        while !is_given_back() {
            assert!(begun.elapsed() < Duration::from_secs(60), "{kind}: {} B free", free(&dir));
            std::thread::yield_now();
        }
    }
    drop(room);
    assert_eq!(fs::read_dir(home.path()).unwrap().count(), 1, "an empty room, and no note");
    assert_eq!(fs::read_dir(&dir).unwrap().count(), 0);
}

/// The keeper of a run may be faster than the end of its last process: it then removes directories
/// that others have mounted something on.
#[test]
fn a_directory_removed_from_outside_while_it_is_mounted_leaves_no_device() {
    let home = tempfile::tempdir().unwrap();
    let outside = home.path().join("run");
    fs::create_dir(&outside).unwrap();
    if let Err(missing) = ScratchKind::check(&[ScratchKind::Ext4]) {
        return vellum_testing::missing::skip(missing);
    }
    let (mut ready, tell) = std::io::pipe().unwrap();
    let child = fork_child(|| {
        let making = Making::default();
        let made = Room::new(&outside, Room::bytes_for(1 << 20, &making));
        let made = made.and_then(|room| {
            room.furnish(ScratchKind::Ext4, 1 << 20, &making).map(|made| (room, made))
        });
        let _ = (&tell).write_all(&[u8::from(made.is_ok())]);
        let _file = made.as_ref().map(|(_, made)| fs::File::create(made.dir().join("open")));
        loop {
            std::thread::park();
        }
    });
    let child = child.unwrap();
    let image = format!("/ext4-{}.image", child.pid().as_raw_nonzero());
    let is_attached = || {
        let devices = fs::read_dir("/sys/block").unwrap().map(|entry| entry.unwrap().path());
        let mut images =
            devices.filter_map(|dir| fs::read_to_string(dir.join("loop/backing_file")).ok());
        images.any(|attached| attached.contains(&image))
    };
    let mut answer = [0];
    ready.read_exact(&mut answer).unwrap();
    if answer == [0] {
        return vellum_testing::missing::skip("no filesystem can be made here");
    }
    assert!(is_attached());
    fs::remove_dir_all(&outside).unwrap();
    // Killed and reaped.
    drop(child);
    let begun = Instant::now();
    while is_attached() {
        assert!(begun.elapsed() < Duration::from_secs(30), "{image} stays attached");
        std::thread::yield_now();
    }
}

/// Its free space, in percent, as `df` tells it.
fn free_percent(dir: &Path) -> u64 {
    let stat = rustix::fs::statvfs(dir).unwrap();
    stat.f_bavail * 100 / stat.f_blocks
}

#[test]
fn a_filesystem_is_made_with_options_and_filled_in_pieces_as_asked_for() {
    let home = tempfile::tempdir().unwrap();
    let options = ["ext4=-O bigalloc -C 65536", "xfs=-l size=64m"].map(|one| one.parse().unwrap());
    let making = Making::new(options.to_vec(), Some(60));
    // More than the 32 MiB that XFS keeps for itself, in one piece.
    let bytes = 64 << 20;
    for kind in [ScratchKind::Ext4, ScratchKind::Xfs, ScratchKind::Btrfs] {
        let made = ScratchKind::check(&[kind])
            .and_then(|()| Room::new(home.path(), Room::bytes_for(bytes, &making)))
            .and_then(|room| Ok((room.furnish(kind, bytes, &making)?, room)));
        let (scratch, _room) = match made {
            Ok(made) => made,
            Err(error) => return vellum_testing::missing::skip(format_args!("{kind}: {error}")),
        };
        let free = free_percent(scratch.dir());
        assert!((40..45).contains(&free), "{kind}: {free} % are free");
        let path = scratch.dir().join("file");
        let file = fs::File::create_new(&path).unwrap();
        fs::write(&path, vec![1; bytes as usize]).unwrap();
        let extents = crate::sys::extents(&file).unwrap();
        assert!(extents > 8, "{kind}: 64 MiB lie in {extents} pieces");
    }
}

#[test]
fn options_that_mkfs_refuses_are_told_in_its_words() {
    let home = tempfile::tempdir().unwrap();
    let making = Making::new(vec!["ext4=-O nonsense".parse().unwrap()], None);
    let made = ScratchKind::check(&[ScratchKind::Ext4])
        .and_then(|()| Room::new(home.path(), Room::bytes_for(1 << 20, &making)));
    let room = match made {
        Ok(room) => room,
        Err(missing) => return vellum_testing::missing::skip(missing),
    };
    let error = room.furnish(ScratchKind::Ext4, 1 << 20, &making).err().unwrap().to_string();
    assert!(error.starts_with("mkfs.ext4 -q -F "), "{error}");
    assert!(error.contains("-O nonsense failed: ") && error.ends_with("nonsense"), "{error}");
}
