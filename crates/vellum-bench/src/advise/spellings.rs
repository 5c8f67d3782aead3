//! The words of mounts that causes hang on, as the kernels spell them.
//!
//! A kernel may change a word: where older ones write `volatile`, 6.18 writes `fsync=volatile`. A
//! word that is missed is a cause that is missed. Each kernel keeps its own, so no word is taken
//! out. Beside each is the filesystem or the module that writes it, with the version of a kernel
//! only where its documentation or a mount has shown it.

use super::Surroundings;
use crate::cause::Cause;

/// A word, and the place in which it is searched.
#[derive(Clone, Copy, Debug)]
pub(super) enum Word {
    /// The name of a filesystem.
    Kind(&'static str),
    /// How names of filesystems begin.
    KindPrefix(&'static str),
    /// An option, with a value or without one.
    Option(&'static str),
    /// An option with this value.
    Value(&'static str, &'static str),
}

use Word::{Kind, KindPrefix, Option, Value};

/// A cause, the word, and what writes it so.
pub(super) const SPELLINGS: [(Cause, Word, &str); 60] = [
    (Cause::OverlayVolatile, Option("volatile"), "overlay, in the documentation of 5.10"),
    (Cause::OverlayVolatile, Value("fsync", "volatile"), "overlay, seen on 6.18"),
    (Cause::Overlay, Kind("overlay"), "overlay"),
    (Cause::Overlay, Kind("overlayfs"), "a patch of others, before it was called overlay"),
    (Cause::Overlay, Kind("aufs"), "a patch of others"),
    (Cause::Overlay, Kind("unionfs"), "a patch of others"),
    (Cause::Memory, Kind("tmpfs"), "tmpfs"),
    (Cause::Memory, Kind("ramfs"), "ramfs"),
    (Cause::Memory, Kind("rootfs"), "the initial ram disk"),
    (Cause::Memory, Kind("devtmpfs"), "devtmpfs"),
    (Cause::Memory, Kind("hugetlbfs"), "hugetlbfs"),
    (Cause::NetworkFilesystem, Kind("nfs"), "NFS"),
    (Cause::NetworkFilesystem, Kind("nfs4"), "NFS"),
    (Cause::NetworkFilesystem, Kind("cifs"), "cifs"),
    (Cause::NetworkFilesystem, Kind("smb3"), "cifs, if mounted by this name"),
    (Cause::NetworkFilesystem, Kind("smbfs"), "an older module than cifs"),
    (Cause::NetworkFilesystem, Kind("9p"), "9p"),
    (Cause::NetworkFilesystem, Kind("ceph"), "ceph"),
    (Cause::NetworkFilesystem, Kind("lustre"), "a module of others"),
    (Cause::NetworkFilesystem, Kind("afs"), "afs"),
    (Cause::NetworkFilesystem, Kind("glusterfs"), "a module of others"),
    (Cause::NetworkFilesystem, Kind("virtiofs"), "virtiofs"),
    (Cause::NetworkFilesystem, Kind("ocfs2"), "ocfs2"),
    (Cause::NetworkFilesystem, Kind("gfs2"), "gfs2"),
    (Cause::NetworkFilesystem, Kind("orangefs"), "orangefs"),
    (Cause::NetworkFilesystem, Kind("coda"), "coda"),
    (Cause::NetworkFilesystem, Kind("beegfs"), "a module of others"),
    (Cause::NetworkFilesystem, Kind("gpfs"), "a module of others"),
    (Cause::NetworkFilesystem, Kind("vboxsf"), "vboxsf"),
    (Cause::NetworkFilesystem, Kind("prl_fs"), "a module of others"),
    (Cause::Fuse, Kind("fuse"), "fuse"),
    (Cause::Fuse, Kind("fuseblk"), "fuseblk"),
    (Cause::Fuse, KindPrefix("fuse."), "fuse"),
    (Cause::Fuse, KindPrefix("fuseblk."), "fuseblk"),
    (Cause::NoBarriers, Option("nobarrier"), "ext4, btrfs, f2fs, gfs2, hfsplus; older XFS"),
    (Cause::NoBarriers, Value("barrier", "0"), "ext3; ext4, which takes it still"),
    (Cause::NoBarriers, Value("barrier", "none"), "reiserfs"),
    (Cause::NoBarriers, Value("barrier", "off"), "nilfs2, the older word"),
    (Cause::NoBarriers, Value("fsync_mode", "nobarrier"), "f2fs"),
    (Cause::NoBarriers, Option("journal_flush_disabled"), "bcachefs"),
    (Cause::SyncMount, Option("sync"), "all"),
    (Cause::SyncMount, Option("dirsync"), "all"),
    (Cause::CopyOnWrite, Kind("btrfs"), "btrfs, without nodatacow"),
    (Cause::CopyOnWrite, Kind("bcachefs"), "bcachefs"),
    (Cause::CopyOnWrite, Kind("zfs"), "a module of others"),
    (Cause::CopyOnWrite, Kind("nilfs2"), "nilfs2"),
    (Cause::Compression, Option("compress"), "btrfs"),
    (Cause::Compression, Option("compress-force"), "btrfs"),
    (Cause::DataWriteback, Value("data", "writeback"), "ext3, ext4, reiserfs"),
    (Cause::DataJournal, Value("data", "journal"), "ext3, ext4, reiserfs"),
    (Cause::Quota, Option("quota"), "ext3, ext4, f2fs"),
    (Cause::Quota, Option("usrquota"), "ext3, ext4, f2fs, XFS, tmpfs"),
    (Cause::Quota, Option("grpquota"), "ext3, ext4, f2fs, XFS, tmpfs"),
    (Cause::Quota, Option("prjquota"), "ext4, f2fs, XFS"),
    (Cause::Quota, Option("uquota"), "XFS, the older word"),
    (Cause::Quota, Option("gquota"), "XFS, the older word"),
    (Cause::Quota, Option("pquota"), "XFS, the older word"),
    (Cause::Quota, Option("uqnoenforce"), "XFS, which counts and refuses nothing"),
    (Cause::Quota, Option("usrjquota"), "ext3, ext4, f2fs"),
    (Cause::Quota, Option("grpjquota"), "ext3, ext4, f2fs"),
];

impl Surroundings {
    /// The first word of `cause` that the mount has.
    pub(super) fn spelling(&self, cause: Cause) -> std::option::Option<String> {
        let words = SPELLINGS.iter().filter(|(of, ..)| *of == cause);
        words.map(|(_, word, _)| *word).find(|word| self.has(*word)).map(|word| word.to_string())
    }

    fn has(&self, word: Word) -> bool {
        match word {
            Kind(name) => self.kind() == name,
            KindPrefix(start) => self.kind().starts_with(start),
            Option(name) => self.option(name).is_some(),
            Value(name, value) => self.option(name) == Some(value),
        }
    }
}

impl std::fmt::Display for Word {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Kind(name) | KindPrefix(name) | Option(name) => f.write_str(name),
            Value(name, value) => write!(f, "{name}={value}"),
        }
    }
}
