//! Small filesystems that can be filled up.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::{is_root, scratch, skip};

/// A mounted filesystem, unmounted when dropped.
pub(crate) struct Mount {
    at: PathBuf,
    _dir: tempfile::TempDir,
}

impl Mount {
    /// A tmpfs of `mib` MiB, or `None` where it cannot be had, which is said.
    pub(crate) fn tmpfs(test: &str, mib: u32) -> Option<Mount> {
        Mount::new(test, |_, at| {
            let size = format!("size={mib}m");
            run("mount", &["-t", "tmpfs", "-o", &size, "tmpfs", text(at)])
        })
    }

    /// An ext4 of `mib` MiB on a loop device.
    pub(crate) fn ext4(test: &str, mib: u64) -> Option<Mount> {
        Mount::new(test, |dir, at| {
            let image = dir.join("image");
            let file = std::fs::File::create(&image).unwrap();
            file.set_len(mib << 20).unwrap();
            run("mkfs.ext4", &["-q", "-F", "-m", "0", text(&image)])
                && run("mount", &["-o", "loop", text(&image), text(at)])
        })
    }

    /// An ext4 that believes to have `mib` MiB, on a loop device over a sparse file at `image`.
    pub(crate) fn ext4_on(test: &str, image: &Path, mib: u64) -> Option<Mount> {
        Mount::new(test, |_, at| {
            std::fs::File::create(image).unwrap().set_len(mib << 20).unwrap();
            run("mkfs.ext4", &["-q", "-F", "-m", "0", "-O", "^has_journal", text(image)])
                && run("mount", &["-o", "loop", text(image), text(at)])
        })
    }

    /// A btrfs of `mib` MiB, at least 128, on a loop device.
    pub(crate) fn btrfs(test: &str, mib: u64) -> Option<Mount> {
        Mount::new(test, |dir, at| {
            let image = dir.join("image");
            std::fs::File::create(&image).unwrap().set_len(mib << 20).unwrap();
            run("mkfs.btrfs", &["-q", "-f", text(&image)])
                && run("mount", &["-o", "loop", text(&image), text(at)])
        })
    }

    fn new(test: &str, make: impl FnOnce(&Path, &Path) -> bool) -> Option<Mount> {
        if !is_root(test) {
            return None;
        }
        let dir = scratch();
        let at = dir.path().join("mount");
        std::fs::create_dir(&at).unwrap();
        if make(dir.path(), &at) {
            return Some(Mount { at, _dir: dir });
        }
        skip(test, "no filesystem can be mounted here");
        None
    }

    pub(crate) fn path(&self) -> &Path {
        &self.at
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        run("umount", &["-l", text(&self.at)]);
    }
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

fn run(program: &str, arguments: &[&str]) -> bool {
    let output = Command::new(program).args(arguments).output();
    output.is_ok_and(|output| output.status.success())
}
