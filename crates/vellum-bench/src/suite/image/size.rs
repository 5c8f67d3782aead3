//! How large an image is: as asked for, unless disk or memory would not hold it.

use super::Config;
use super::content::BLOCK_BYTES;
use super::load::CLUSTER_BYTES;
use crate::conditions::{filesystem_of, free_bytes, memory_bytes};
use crate::error::Result;

/// No image is smaller: with less there is not even room for the writes on their way.
pub(super) const BYTES_MIN: u64 = 4 << 20;
/// Images of more blocks than this have not been thought of.
pub(super) const BYTES_MAX: u64 = (u32::MAX as u64) * BLOCK_BYTES as u64;
/// For directories, journals and other data of the filesystem.
const SPARE_BYTES: u64 = 64 << 20;
/// A tenth of the disk stays free: filesystems that are nearly full are slow.
const FREE_SHARE: u64 = 10;

/// How large the images are, and how much room is to be made for each.
pub(super) struct Size {
    pub(super) bytes: u64,
    pub(super) room_bytes: u64,
    pub(super) warning: Option<String>,
}

/// A size that fits everywhere. A disk that has no room for the smallest image gets one all the
/// same: the outcome is reported for each case.
pub(super) fn fitting(config: &Config) -> Result<Size> {
    let mut room = u64::MAX;
    let versions = config.scope.versions();
    if config.scope.in_directory {
        room = room.min(directory(config)? / versions);
    }
    if !config.scope.scratch.is_empty() {
        // The filesystem itself takes a quarter more, and half of the memory can be used.
        room = room.min(available() / 2 / versions * 3 / 4);
    }
    let usable = (room.saturating_sub(SPARE_BYTES)).max(BYTES_MIN);
    let bytes = if config.bytes > usable { usable - usable % (1 << 20) } else { config.bytes };
    let bytes = bytes - bytes % CLUSTER_BYTES as u64;
    let warning = (bytes < config.bytes).then(|| {
        format!(
            "the images have {} MiB and not {}: there is no room for more",
            bytes >> 20,
            config.bytes >> 20
        )
    });
    Ok(Size { bytes, room_bytes: bytes * versions + SPARE_BYTES, warning })
}

/// The usable bytes of the filesystem of the directory.
fn directory(config: &Config) -> Result<u64> {
    let free = free_bytes(&config.scope.directory)?;
    let kind = filesystem_of(&config.scope.directory).map(|filesystem| filesystem.kind);
    Ok(match kind.as_deref() {
        Some("tmpfs" | "ramfs") => free.min(available() / 2),
        _ => free - free / FREE_SHARE,
    })
}

fn available() -> u64 {
    memory_bytes("MemAvailable").unwrap_or(u64::MAX)
}
