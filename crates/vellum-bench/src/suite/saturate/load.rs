//! The amount that is appended, and the size of a log on the disk.

use super::Config;
use super::round::{KEPT, Load};
use crate::setting::Setting;
use crate::ways::{Way, WayName};

/// No device nor memory takes more in a second, so more generations than for this are not needed.
const BYTES_PER_SECOND_MAX: u64 = 8 << 30;
/// Files are made ahead for so many generations at most.
const GENERATIONS_MAX: u64 = 4096;
/// Segments that are prepared ahead, directories, a control file.
const SPARE_BYTES: u64 = 224 << 20;

/// The size on disk of a log that keeps so many bytes: the generation that is appended to, one that
/// is about to be removed, and prepared space.
pub(super) fn disk_bytes(kept_bytes: u64) -> u64 {
    kept_bytes + kept_bytes / KEPT * 2 + SPARE_BYTES
}

/// How much can be kept in `disk_bytes`.
pub(super) fn kept_bytes(disk_bytes: u64) -> u64 {
    disk_bytes.saturating_sub(SPARE_BYTES) / (KEPT + 2) * KEPT
}

/// A way in one place.
pub(super) struct Racer {
    pub(super) name: WayName,
    pub(super) way: Box<dyn Way>,
}

impl Racer {
    /// As many records to a generation as leave it the size that is kept of it.
    pub(super) fn load(&self, config: &Config, kept_bytes: u64) -> Load {
        let records = |records| self.way.disk_bytes(&Setting::new(1, records, config.bytes));
        let record_bytes = ((records(1025) - records(1)) / 1024).max(1);
        let generation_records = (kept_bytes / KEPT / record_bytes).max(1);
        let seconds = config.duration.as_secs_f64();
        let fastest = (seconds * BYTES_PER_SECOND_MAX as f64) as u64;
        let bytes_max = config.bytes_max.unwrap_or(fastest).min(fastest).max(1);
        let generations = bytes_max.div_ceil(generation_records * record_bytes);
        Load {
            processes: config.processes,
            bytes: config.bytes,
            duration: config.duration,
            generation_records,
            generations: generations.clamp(1, GENERATIONS_MAX),
        }
    }
}
