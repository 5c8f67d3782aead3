//! What the control groups of this process allow it to do with a device.
//!
//! Both versions are read: `io.max` of version 2, `blkio.throttle.*_device` of version 1.

use std::fs;
use std::path::{Path, PathBuf};

use serde::Serialize;

use super::Disk;

/// The files of version 1, with what they limit as version 2 calls it.
const VERSION_1: [(&str, &str); 2] =
    [("blkio.throttle.write_bps_device", "wbps"), ("blkio.throttle.write_iops_device", "wiops")];

/// A limit that a control group has for writes to a device.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct IoLimit {
    /// The device, such as `vda`.
    pub device: String,
    /// `wbps`, bytes a second, or `wiops`, writes a second.
    pub what: &'static str,
    /// How many.
    pub value: u64,
    /// The directory of the control group.
    pub group: PathBuf,
}

/// The limits for `disks`, of the groups that `memberships` (`/proc/self/cgroup`) names, below
/// `root` (`/sys/fs/cgroup`).
pub(super) fn limits(root: &Path, memberships: &str, disks: &[Disk]) -> Vec<IoLimit> {
    let mut limits = Vec::new();
    for membership in memberships.lines() {
        let Some((controllers, group)) = parsed(membership) else { continue };
        let version_2 = controllers.is_empty();
        if !version_2 && !controllers.split(',').any(|name| name == "blkio") {
            continue;
        }
        for base in bases(root, version_2) {
            // A limit of a group holds for the groups in it.
            for dir in Path::new(group.trim_start_matches('/')).ancestors() {
                of_group(&base.join(dir), version_2, disks, &mut limits);
            }
        }
    }
    limits
}

/// `12:blkio:/a/b` is the controllers and the group.
fn parsed(line: &str) -> Option<(&str, &str)> {
    let (_, rest) = line.split_once(':')?;
    rest.split_once(':')
}

/// Where the groups of a version can be.
fn bases(root: &Path, version_2: bool) -> Vec<PathBuf> {
    match version_2 {
        true => vec![root.to_path_buf(), root.join("unified")],
        false => vec![root.join("blkio")],
    }
}

fn of_group(dir: &Path, version_2: bool, disks: &[Disk], limits: &mut Vec<IoLimit>) {
    let read = |name: &str| fs::read_to_string(dir.join(name)).unwrap_or_default();
    let mut add = |disk: &Disk, what, value: &str| {
        let limit = value.parse().ok().map(|value| {
            let (device, group) = (disk.name.clone(), dir.to_path_buf());
            IoLimit { device, what, value, group }
        });
        limits.extend(limit);
    };
    for disk in disks {
        let Some(number) = disk.number.as_deref() else { continue };
        if version_2 {
            let text = read("io.max");
            let words = of_device(&text, number).unwrap_or_default();
            for (name, value) in words.split(' ').filter_map(|word| word.split_once('=')) {
                let known = VERSION_1.into_iter().find(|(_, what)| *what == name);
                known.into_iter().for_each(|(_, what)| add(disk, what, value));
            }
        } else {
            for (file, what) in VERSION_1 {
                let text = read(file);
                of_device(&text, number).into_iter().for_each(|value| add(disk, what, value));
            }
        }
    }
}

/// What a file with a line for each device says of one.
fn of_device<'a>(text: &'a str, number: &str) -> Option<&'a str> {
    text.lines().find_map(|line| line.strip_prefix(number)?.strip_prefix(' '))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn group(root: &Path, dir: &str, file: &str, text: &str) {
        fs::create_dir_all(root.join(dir)).unwrap();
        fs::write(root.join(dir).join(file), text).unwrap();
    }

    fn found(root: &Path, memberships: &str) -> Vec<(&'static str, u64)> {
        let disk = Disk { name: "sda".into(), number: Some("8:0".into()), ..Disk::default() };
        let limits = limits(root, memberships, &[disk]);
        limits.into_iter().map(|limit| (limit.what, limit.value)).collect()
    }

    #[test]
    fn limits_of_both_versions_are_found_up_to_the_root() {
        let root = tempfile::tempdir().unwrap();
        let root = root.path();
        group(root, "blkio/a", "blkio.throttle.write_iops_device", "8:16 7\n8:0 100\n");
        group(root, "a", "io.max", "8:0 rbps=max wbps=1048576 riops=max wiops=max\n");
        assert_eq!(found(root, "7:blkio:/a/b\n"), [("wiops", 100)]);
        assert_eq!(found(root, "0::/a\n"), [("wbps", 1 << 20)]);
        assert_eq!(found(root, "3:cpu:/a\n0::/\n"), []);
    }
}
