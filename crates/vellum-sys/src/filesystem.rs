//! Which filesystem a directory is on, and the operations that files there support.

use std::os::fd::AsFd;

use rustix::fs::fstatfs;
use rustix::io;

use crate::file::retry;

/// A filesystem that Vellum knows something about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Filesystem {
    /// ext4, and ext2 and ext3, whose magic number it shares.
    Ext,
    /// XFS.
    Xfs,
    /// Memory: tmpfs, or ramfs.
    Tmpfs,
    /// btrfs.
    Btrfs,
    /// An overlay over filesystems that it does not name.
    Overlay,
    /// A filesystem of a process of the user.
    Fuse,
    /// Shared with other machines, whose page caches and locks know nothing of ours, or not soon
    /// enough.
    Network(&'static str),
    /// Any other, by its magic number.
    Other(u64),
}

impl Filesystem {
    /// The filesystem that an open file or directory is on.
    pub fn of(fd: impl AsFd) -> io::Result<Filesystem> {
        Ok(Filesystem::from_magic(retry(|| fstatfs(&fd))?.f_type as u64))
    }

    /// By the magic number of `statfs(2)`; the numbers are those of `linux/magic.h`.
    pub fn from_magic(magic: u64) -> Filesystem {
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
    pub fn name(self) -> String {
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

    /// Whether `fallocate` is certain to work here.
    pub fn allocates(self) -> bool {
        matches!(self, Filesystem::Ext | Filesystem::Xfs | Filesystem::Btrfs | Filesystem::Tmpfs)
    }

    /// Whether a file takes the room of its bytes: nothing is compressed here.
    pub fn stores_as_is(self) -> bool {
        matches!(self, Filesystem::Ext | Filesystem::Xfs | Filesystem::Tmpfs)
    }

    /// Whether an unwritten range takes no room. FAT and exFAT have no holes.
    pub fn has_holes(self) -> bool {
        !matches!(self, Filesystem::Other(0x4d44 | 0x2011_bab0))
    }

    /// The smallest block that is written directly; smaller ones go through the page cache.
    pub fn direct_block_min(self) -> u64 {
        if self == Filesystem::Btrfs { 4096 } else { 512 }
    }

    /// Whether a direct write that succeeds is to be believed even where the filesystem stops at
    /// that moment (`docs/decisions/0037-failed-syncs.md`).
    pub fn answers_direct_writes(self) -> bool {
        self == Filesystem::Ext
    }

    /// Why nothing must be stored through a mapping here, or `None` where it may.
    ///
    /// The danger is a store that needs a new block when there is none: it kills the process.
    pub fn mapping_hazard(self) -> Option<&'static str> {
        match self {
            Filesystem::Ext | Filesystem::Xfs | Filesystem::Tmpfs => None,
            Filesystem::Btrfs => Some(
                "btrfs may need a new block for every store into a page, and has none to give \
                 when it is full",
            ),
            Filesystem::Overlay => Some("the filesystem under an overlay is not known"),
            Filesystem::Fuse => Some("a FUSE server may fail a store through a mapping"),
            Filesystem::Network(_) => Some("a network filesystem does not keep mappings coherent"),
            Filesystem::Other(_) => Some("nothing is known of this filesystem's mappings"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mapping_is_allowed_only_where_a_full_disk_cannot_kill() {
        assert_eq!(Filesystem::from_magic(0xef53).mapping_hazard(), None);
        assert!(Filesystem::from_magic(0x9123_683e).mapping_hazard().is_some());
        assert!(Filesystem::from_magic(0x1234).mapping_hazard().is_some());
    }
}
