//! Facts about filesystems, and the choices that follow from them without a measurement.
//!
//! One place for [`Preallocate::Auto`], for the way to fill that no program chose, and for
//! `vellum_advice::Advice::known`; each with the reason. The figures were taken on
//! Linux 6.18 with 2 cores, ext4, XFS and btrfs on loop devices in memory and ext4 on a virtio
//! disk, to be read as ratios (`docs/benchmarks.md` has the method, `docs/decisions` the
//! decisions); `vellum bench sync`, `commit` and `write` repeat them elsewhere.
//!
//! | | ext4, XFS | btrfs | tmpfs | overlay, FUSE, others |
//! |---|---|---|---|---|
//! | mapping | safe | not on a full disk | safe | not known |
//! | allocating 1 GiB | below 2 ms | below 2 ms | 100 ms: real memory | where supported |
//! | staged logs | written zeros, used again | without copy-on-write too | as ext4 | as ext4 |
//! | other logs | `fallocate`, in steps | nothing: see below | `fallocate`, in steps | where supported |
//! | one large file, synced | direct | direct, without copy-on-write | mapped | buffered |
//! | the same, not synced | mapped | buffered | mapped | buffered |
//!
//! - *Written blocks make the cheapest commit*: overwriting them took 0.5 to 0.8 of the time of
//!   appending (ext4 on the disk, XFS), while blocks that are only allocated cost as much as
//!   appending, or more: each has to be converted when it is written first.
//! - *For a mapping it is the other way round*: a page of an allocated block is touched first in
//!   0.5 to 0.8 µs, one of a written block in 1.2 to 2.6 µs, because it is read from the device.
//! - *btrfs without copy-on-write* (`chattr +C`) took direct writes at 4 times the speed: 4.3 GB/s
//!   against 1.1. It also gives up checksums and compression, so only a log with checksums of
//!   its own (staged, framed) and a file that is written directly ask for it.
//! - *btrfs, other logs*: nothing is allocated ahead. It was neither faster nor slower (1.14
//!   against 1.08 GB/s with the sync), and it holds no promise: on a full disk the second record
//!   that came to a page of allocated blocks was refused (`ENOSPC`), because only the first writing
//!   of a block is in place. Without copy-on-write the blocks would be as good as on ext4, but that
//!   is the owner's to give up.
//! - *XFS extent size hints* are not used: for random writes they came to the rate of `fallocate`
//!   and not beyond.
//! - *`FALLOC_FL_WRITE_ZEROES`* was supported by none of these.

use crate::options::limits::{SEGMENT_CAPACITY_BYTES_DEFAULT, STAGED_CAPACITY_BYTES_DEFAULT};
use crate::options::method::Method;
use crate::sys::device::Device;
use crate::sys::filesystem::Filesystem;
use crate::{CommitPath, DeviceWrite, Fill, Layout, Preallocate};

/// How a segment gets its blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Preparation {
    /// What [`Preallocate::Auto`] comes to; anything else is itself.
    pub preallocate: Preallocate,
    /// Whether to go on where the filesystem cannot allocate.
    pub is_best_effort: bool,
    /// Whether the blocks are written with zeros.
    pub writes_zeros: bool,
    /// Whether trimmed segments are used again.
    pub recycles: bool,
}

/// How the segments of a log with these choices are prepared.
pub fn preparation(filesystem: Filesystem, chosen: Preallocate, fill: Fill) -> Preparation {
    let is_staged = fill == Fill::Staged;
    let preallocate = match chosen {
        Preallocate::Auto if is_staged => Preallocate::Recycle,
        Preallocate::Auto if filesystem == Filesystem::Btrfs => Preallocate::Off,
        Preallocate::Auto => Preallocate::Fallocate,
        chosen => chosen,
    };
    let recycles = preallocate == Preallocate::Recycle;
    Preparation {
        preallocate,
        is_best_effort: chosen == Preallocate::Auto || (recycles && is_staged),
        writes_zeros: preallocate == Preallocate::Zeros || (recycles && is_staged),
        recycles,
    }
}

/// Whether a file gets its blocks in steps, as records come to it, and not all of them when it is
/// made: so a small log takes little. Files that are written with zeros, or used again, are made
/// whole.
pub(crate) fn goes_in_steps(layout: Layout, chosen: Preallocate, fill: Fill) -> bool {
    let is_wanted = matches!(chosen, Preallocate::Auto | Preallocate::Fallocate);
    layout == Layout::Text || (is_wanted && fill != Fill::Staged)
}

/// Whether a file is no longer than its ready part. The first store into a page needs blocks for
/// all of its folio, as far as the file goes. A folio that reaches over a hole makes such a store
/// fail on a full disk, although the page itself has a block.
pub(crate) fn grows_when_ready(layout: Layout, chosen: Preallocate, fill: Fill) -> bool {
    layout == Layout::Text || (fill == Fill::Mapped && goes_in_steps(layout, chosen, fill))
}

/// The way to fill where nobody has chosen one.
pub fn fill(filesystem: Filesystem, preallocate: Preallocate) -> Fill {
    let is_hazardous = filesystem.mapping_hazard().is_some() || preallocate == Preallocate::Sparse;
    if is_hazardous { Fill::Pwrite } else { Fill::Mapped }
}

/// Bytes of the blocks that commit groups are written in, at most.
pub(crate) const COMMIT_BLOCK_BYTES_MAX: u64 = 4096;

/// The smallest block in which commit groups may be written, and why.
///
/// The block in which a commit group ends is written again with the next one, so it holds durable
/// bytes. A device that is given less than a physical sector reads the sector, changes it and
/// writes it back. A power cut in between leaves neither old nor new. A device that is not known
/// may be such a one.
pub(crate) fn commit_block(filesystem: Filesystem, device: &Device) -> (u64, String) {
    let safe = |why: &str| (512, why.to_string());
    if filesystem == Filesystem::Tmpfs {
        return safe("blocks of 512 bytes, because a power cut leaves nothing here");
    }
    let max = COMMIT_BLOCK_BYTES_MAX;
    match (device.keeps_neighbours(512), device.physical_block_bytes) {
        (Some(true), Some(512)) => safe("blocks of 512 bytes, the device's physical sector"),
        (Some(true), _) => safe("blocks of 512 bytes, which the device promises not to tear"),
        (Some(false), Some(bytes)) => {
            (max, format!("blocks of {max} bytes, because a physical sector has {bytes}"))
        }
        _ => (max, format!("blocks of {max} bytes, because the device is not known")),
    }
}

/// How commit groups get to the device without a measurement.
pub(crate) fn commit_path(block_bytes: u64) -> CommitPath {
    CommitPath { write: DeviceWrite::Dsync, block_bytes, lanes: 2 }
}

/// Whether a file that grows gets blocks behind its end which it keeps when it grows no more: XFS
/// gives it as many again as it has. Only a file that one process opened once loses them when it
/// is closed.
pub(crate) fn grows_behind_end(filesystem: Filesystem) -> bool {
    filesystem == Filesystem::Xfs
}

/// The method for one large file that several threads write, without a choice.
pub fn method(filesystem: Filesystem, is_synced: bool) -> Method {
    match filesystem {
        // With the sync 1.0 to 1.6 times the speed of many buffered files, 2.7 times on btrfs.
        Filesystem::Ext | Filesystem::Xfs | Filesystem::Btrfs if is_synced => Method::Direct,
        // In huge pages 1.8 to 3 times the speed of many files.
        Filesystem::Tmpfs => Method::Mapped,
        // Threads that take turns do better than any that store beside them: decision 7.
        _ => Method::Buffered,
    }
}

/// Bytes of log in a segment where nobody has chosen.
pub fn segment_capacity_bytes(fill: Fill) -> u64 {
    match fill {
        Fill::Staged => STAGED_CAPACITY_BYTES_DEFAULT,
        _ => SEGMENT_CAPACITY_BYTES_DEFAULT,
    }
}

/// Why a log cannot be kept here at all, or `None` where it can.
pub fn refusal(filesystem: Filesystem) -> Option<&'static str> {
    match filesystem {
        Filesystem::Network(_) => Some(
            "a log on a network filesystem cannot be shared, because its control file is \
             shared memory of one machine; use a local directory",
        ),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_filesystem_of_several_machines_is_refused() {
        for shared in [0x6969, 0x0116_1970, 0x7461_636f, 0x4750_4653] {
            assert!(refusal(Filesystem::from_magic(shared)).is_some(), "{shared:#x}");
        }
        assert_eq!(refusal(Filesystem::Ext), None);
    }

    #[test]
    fn a_mapping_is_chosen_only_where_a_full_disk_cannot_kill() {
        let from = Filesystem::from_magic;
        assert_eq!(fill(from(0xef53), Preallocate::Auto), Fill::Mapped);
        assert_eq!(fill(from(0xef53), Preallocate::Sparse), Fill::Pwrite);
        assert_eq!(fill(from(0x9123_683e), Preallocate::Auto), Fill::Pwrite);
    }

    #[test]
    fn only_what_was_asked_for_by_name_has_to_be_had() {
        let preparation = |chosen, fill| preparation(Filesystem::Ext, chosen, fill);
        let auto = preparation(Preallocate::Auto, Fill::Mapped);
        assert!(auto.is_best_effort && !auto.writes_zeros && !auto.recycles);
        let staged = preparation(Preallocate::Auto, Fill::Staged);
        assert_eq!(staged, preparation(Preallocate::Recycle, Fill::Staged));
        assert!(staged.is_best_effort && staged.writes_zeros && staged.recycles);
        let recycle = preparation(Preallocate::Recycle, Fill::Mapped);
        assert!(!recycle.is_best_effort && !recycle.writes_zeros && recycle.recycles);
        assert!(!preparation(Preallocate::Zeros, Fill::Staged).is_best_effort);
    }

    #[test]
    fn blocks_that_cannot_be_kept_are_not_asked_for() {
        let auto = |fill| preparation(Filesystem::Btrfs, Preallocate::Auto, fill).preallocate;
        assert_eq!(auto(Fill::Pwrite), Preallocate::Off);
        assert_eq!(auto(Fill::Staged), Preallocate::Recycle);
        let chosen = preparation(Filesystem::Btrfs, Preallocate::Fallocate, Fill::Pwrite);
        assert_eq!(chosen.preallocate, Preallocate::Fallocate);
    }
}
