//! The mount that a directory is in, from `/proc/thread-self/mountinfo`.
//!
//! ```text
//! 36 35 98:0 /mnt1 /mnt2 rw,noatime master:1 - ext3 /dev/root rw,errors=continue
//!       |          |     |          |          |    |         options of the filesystem
//!       number     point options    any number type source
//! ```

use std::ffi::OsString;
use std::fs;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

use super::Filesystem;

/// A mounted filesystem and the number of its device.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Mount {
    pub(crate) filesystem: Filesystem,
    /// `major:minor`
    pub(crate) device_number: String,
}

/// The mount that `directory`, an absolute path without links, is in.
pub(super) fn of(directory: &Path) -> Option<Mount> {
    let mountinfo = fs::read_to_string("/proc/thread-self/mountinfo").ok()?;
    find(&mountinfo, directory)
}

/// The longest mount point above `directory`; of several mounts on one point the last covers the
/// others.
pub(crate) fn find(mountinfo: &str, directory: &Path) -> Option<Mount> {
    mountinfo
        .lines()
        .filter_map(parse)
        .filter(|mount| directory.starts_with(&mount.filesystem.mount_point))
        .max_by_key(|mount| mount.filesystem.mount_point.components().count())
}

fn parse(line: &str) -> Option<Mount> {
    let (mount, filesystem) = line.split_once(" - ")?;
    let mount: Vec<&str> = mount.split(' ').collect();
    let [_id, _parent, device_number, _root, mount_point, mount_options, ..] = mount[..] else {
        return None;
    };
    let mut filesystem = filesystem.split(' ');
    let kind = filesystem.next()?.to_string();
    let source = unescape(filesystem.next()?).to_string_lossy().into_owned();
    let own_options = filesystem.next()?;
    Some(Mount {
        filesystem: Filesystem {
            kind,
            source,
            mount_point: PathBuf::from(unescape(mount_point)),
            mount_options: format!("{mount_options}; {own_options}"),
        },
        device_number: device_number.to_string(),
    })
}

/// Undoes the kernel's octal escapes (`\040` is a blank).
fn unescape(text: &str) -> OsString {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((byte, after)) = rest.split_first() {
        let escape = after.get(..3).filter(|_| *byte == b'\\');
        let code = escape
            .and_then(|digits| std::str::from_utf8(digits).ok())
            .and_then(|digits| u8::from_str_radix(digits, 8).ok());
        bytes.push(code.unwrap_or(*byte));
        rest = if code.is_some() { &after[3..] } else { after };
    }
    OsString::from_vec(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOUNTINFO: &str = "\
22 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw,discard
23 22 0:5 / /proc rw,nosuid - proc proc rw
24 22 0:40 / /mnt/a\\040b rw shared:9 master:2 - btrfs /dev/vdb rw,compress=zstd
25 22 0:41 / /mnt/a\\040b rw,noatime - xfs /dev/vdc rw
this line is no mount
";

    #[test]
    fn the_innermost_and_last_mount_is_the_one() {
        let kind = |path: &str| find(MOUNTINFO, Path::new(path)).unwrap().filesystem.kind;
        assert_eq!(kind("/"), "ext4");
        assert_eq!(kind("/procedure"), "ext4");
        assert_eq!(kind("/proc/1"), "proc");
        assert_eq!(kind("/mnt/a b/c"), "xfs");
    }

    #[test]
    fn all_fields_are_found() {
        let mount = find(MOUNTINFO, Path::new("/home")).unwrap();
        assert_eq!(mount.device_number, "254:0");
        assert_eq!(mount.filesystem.source, "/dev/vda");
        assert_eq!(mount.filesystem.mount_options, "rw,relatime; rw,discard");
    }
}
