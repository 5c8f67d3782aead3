//! Which filesystem a directory is on; what is known of each stands in `knowledge`.

use std::os::fd::AsFd;

use rustix::fs::fstatfs;
use rustix::io;

use super::file::retry;

/// A filesystem that Vellum knows something about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Filesystem {
    Ext,
    Xfs,
    Tmpfs,
    Btrfs,
    Overlay,
    Fuse,
    /// Shared with other machines, whose page caches and locks know nothing of ours, or not soon
    /// enough.
    Network(&'static str),
    /// Any other, by its magic number.
    Other(u64),
}

impl Filesystem {
    /// The filesystem that an open file or directory is on.
    pub(crate) fn of(fd: impl AsFd) -> io::Result<Filesystem> {
        Ok(Filesystem::from_magic(retry(|| fstatfs(&fd))?.f_type as u64))
    }

    /// By the magic number of `statfs(2)`; the numbers are those of `linux/magic.h`.
    pub(crate) fn from_magic(magic: u64) -> Filesystem {
        match magic & 0xffff_ffff {
            0xef53 => Filesystem::Ext,
            0x5846_5342 => Filesystem::Xfs,
            0x0102_1994 | 0x8584_58f6 => Filesystem::Tmpfs,
            0x9123_683e => Filesystem::Btrfs,
            0x794c_7630 => Filesystem::Overlay,
            0x6573_5546 => Filesystem::Fuse,
            0x6969 => Filesystem::Network("NFS"),
            0xff53_4d42 | 0xfe53_4d42 | 0x517b => Filesystem::Network("SMB"),
            0x0102_1997 => Filesystem::Network("9p"),
            0x00c3_6400 => Filesystem::Network("Ceph"),
            0x0bd0_0bd0 => Filesystem::Network("Lustre"),
            // Not in `linux/magic.h`: their own sources have them.
            0x0116_1970 => Filesystem::Network("GFS2"),
            0x7461_636f => Filesystem::Network("OCFS2"),
            0x4750_4653 => Filesystem::Network("GPFS"),
            0x1983_0326 => Filesystem::Network("BeeGFS"),
            0x2003_0528 => Filesystem::Network("OrangeFS"),
            0x5346_414f | 0x6b41_4653 => Filesystem::Network("AFS"),
            0x7375_7245 => Filesystem::Network("Coda"),
            0x786f_4256 => Filesystem::Network("vboxsf"),
            other => Filesystem::Other(other),
        }
    }

    /// The name to show.
    pub(crate) fn name(self) -> String {
        match self {
            Filesystem::Ext => "ext4".into(),
            Filesystem::Xfs => "xfs".into(),
            Filesystem::Tmpfs => "tmpfs".into(),
            Filesystem::Btrfs => "btrfs".into(),
            Filesystem::Overlay => "overlay".into(),
            Filesystem::Fuse => "fuse".into(),
            Filesystem::Network(name) => name.into(),
            Filesystem::Other(magic) => format!("filesystem {magic:#x}"),
        }
    }
}
