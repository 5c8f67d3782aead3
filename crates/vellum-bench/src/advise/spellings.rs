//! The words of mounts that causes hang on, as the kernels spell them.
//!
//! A kernel may change a word: until 6.17 it wrote `volatile` for what is `fsync=volatile` from
//! 6.18 on. A word that is missed is a cause that is missed. Each kernel keeps its own, so no word
//! is taken out.

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
    (Cause::OverlayVolatile, Option("volatile"), "overlay, 5.10 to 6.17"),
    (Cause::OverlayVolatile, Value("fsync", "volatile"), "overlay, from 6.18"),
    (Cause::Overlay, Kind("overlay"), "from 4.0"),
    (Cause::Overlay, Kind("overlayfs"), "Ubuntu's before 4.0"),
    (Cause::Overlay, Kind("aufs"), "a patch of others"),
    (Cause::Overlay, Kind("unionfs"), "a patch of others"),
    (Cause::Memory, Kind("tmpfs"), "all"),
    (Cause::Memory, Kind("ramfs"), "all"),
    (Cause::Memory, Kind("rootfs"), "all, for an initial ram disk"),
    (Cause::Memory, Kind("devtmpfs"), "all"),
    (Cause::Memory, Kind("hugetlbfs"), "all"),
    (Cause::NetworkFilesystem, Kind("nfs"), "versions 2 and 3"),
    (Cause::NetworkFilesystem, Kind("nfs4"), "version 4"),
    (Cause::NetworkFilesystem, Kind("cifs"), "all"),
    (Cause::NetworkFilesystem, Kind("smb3"), "from 4.18, if mounted by this name"),
    (Cause::NetworkFilesystem, Kind("smbfs"), "before 2.6.37"),
    (Cause::NetworkFilesystem, Kind("9p"), "all"),
    (Cause::NetworkFilesystem, Kind("ceph"), "all"),
    (Cause::NetworkFilesystem, Kind("lustre"), "a module of others"),
    (Cause::NetworkFilesystem, Kind("afs"), "all"),
    (Cause::NetworkFilesystem, Kind("glusterfs"), "a module of others"),
    (Cause::NetworkFilesystem, Kind("virtiofs"), "from 5.4"),
    (Cause::NetworkFilesystem, Kind("ocfs2"), "all"),
    (Cause::NetworkFilesystem, Kind("gfs2"), "all"),
    (Cause::NetworkFilesystem, Kind("orangefs"), "from 4.6"),
    (Cause::NetworkFilesystem, Kind("coda"), "all"),
    (Cause::NetworkFilesystem, Kind("beegfs"), "a module of others"),
    (Cause::NetworkFilesystem, Kind("gpfs"), "a module of others"),
    (Cause::NetworkFilesystem, Kind("vboxsf"), "from 5.4"),
    (Cause::NetworkFilesystem, Kind("prl_fs"), "a module of others"),
    (Cause::Fuse, Kind("fuse"), "all"),
    (Cause::Fuse, Kind("fuseblk"), "all"),
    (Cause::Fuse, KindPrefix("fuse."), "all"),
    (Cause::Fuse, KindPrefix("fuseblk."), "all"),
    (Cause::NoBarriers, Option("nobarrier"), "ext4, btrfs, f2fs, gfs2, hfsplus; XFS before 4.19"),
    (Cause::NoBarriers, Value("barrier", "0"), "ext3; ext4 before 2.6.31"),
    (Cause::NoBarriers, Value("barrier", "none"), "reiserfs"),
    (Cause::NoBarriers, Value("barrier", "off"), "nilfs2 before 2.6.34"),
    (Cause::NoBarriers, Value("fsync_mode", "nobarrier"), "f2fs from 4.18"),
    (Cause::NoBarriers, Option("journal_flush_disabled"), "bcachefs"),
    (Cause::SyncMount, Option("sync"), "all"),
    (Cause::SyncMount, Option("dirsync"), "all"),
    (Cause::CopyOnWrite, Kind("btrfs"), "all, without nodatacow"),
    (Cause::CopyOnWrite, Kind("bcachefs"), "6.7 to 6.17"),
    (Cause::CopyOnWrite, Kind("zfs"), "a module of others"),
    (Cause::CopyOnWrite, Kind("nilfs2"), "all"),
    (Cause::Compression, Option("compress"), "btrfs"),
    (Cause::Compression, Option("compress-force"), "btrfs"),
    (Cause::DataWriteback, Value("data", "writeback"), "ext3, ext4, reiserfs"),
    (Cause::DataJournal, Value("data", "journal"), "ext3, ext4, reiserfs"),
    (Cause::Quota, Option("quota"), "ext3, ext4, f2fs"),
    (Cause::Quota, Option("usrquota"), "ext3, ext4, f2fs, XFS, tmpfs"),
    (Cause::Quota, Option("grpquota"), "ext3, ext4, f2fs, XFS, tmpfs"),
    (Cause::Quota, Option("prjquota"), "ext4, f2fs, XFS"),
    (Cause::Quota, Option("uquota"), "XFS before 2.6.39"),
    (Cause::Quota, Option("gquota"), "XFS before 2.6.39"),
    (Cause::Quota, Option("pquota"), "XFS before 2.6.39"),
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
