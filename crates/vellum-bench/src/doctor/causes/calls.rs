//! Causes by what single calls cost.

use crate::cause::Cause;
use crate::doctor::evidence::{Evidence, Finding, Weight};
use crate::doctor::series::median;

/// A call that takes so long is slow.
const SLOW_US: f64 = 3000.0;
/// Where processors are scarce, any call takes longer.
const SLOW_IF_SCARCE_US: f64 = 8000.0;
/// One call is what takes the time if it takes so many times as long as the other.
const APART: f64 = 3.0;
/// A write of a part of a block takes so many times as long where the disk reads first …
const SECTOR: f64 = 1.8;
/// … and so much longer.
const SECTOR_MIN_US: f64 = 100.0;
const SECTOR_IF_SCARCE_US: f64 = 5000.0;
/// … and by so much of what a flush takes.
const SECTOR_OF_FLUSH: f64 = 0.1;
/// No device can have answered before.
const PHYSICS_US: f64 = 5.0;

pub(super) fn causes(evidence: &Evidence<'_>) -> Vec<Finding> {
    let rules = [slow_call(evidence), emulated_sectors(evidence), too_fast(evidence)];
    rules.into_iter().flatten().collect()
}

/// Is it the write or the flush that takes the time?
fn slow_call(evidence: &Evidence<'_>) -> Option<Finding> {
    let (write, flush) = match evidence.probe {
        Some(probe) => (probe.write_us, probe.flush_us),
        None if evidence.is_synced() => {
            let write = median(&evidence.series.all(|tick| tick.write_p50_us));
            (write, median(&evidence.series.all(|tick| tick.p50_us)) - write)
        }
        None => return None,
    };
    // A few single calls do not outweigh thousands of the program.
    let usual = median(&evidence.series.all(|tick| tick.p50_us));
    if evidence.is_synced() && usual < (write + flush) / 2.0 {
        return None;
    }
    let slow = if evidence.processors.are_scarce() { SLOW_IF_SCARCE_US } else { SLOW_US };
    let (cause, what) = if flush >= slow && flush >= APART * write {
        (
            Cause::SlowFlush,
            "the flush is what takes the time, and a test without one sees none of it",
        )
    } else if write >= slow {
        (Cause::SlowDevice, "it is the write itself that takes the time")
    } else {
        return None;
    };
    Some(Finding::new(
        cause,
        Weight::Reason,
        format!(
            "a write takes {:.2} ms and a flush after it {:.2} ms: {what}",
            write / 1e3,
            flush / 1e3
        ),
    ))
}

fn emulated_sectors(evidence: &Evidence<'_>) -> Option<Finding> {
    let probe = evidence.probe?;
    let sector = probe.sector_us?;
    let scarce = evidence.processors.are_scarce();
    let apart = if scarce { SECTOR_IF_SCARCE_US } else { SECTOR_MIN_US };
    let more = sector - probe.write_us;
    let is_slower = sector >= SECTOR * probe.write_us && more >= apart;
    // Beside a slow flush it would be no reason, and what a few short calls take is chance.
    let is_reason = more >= SECTOR_OF_FLUSH * probe.flush_us;
    (is_slower && is_reason).then(|| {
        Finding::new(
            Cause::EmulatedSectors,
            Weight::Reason,
            format!(
                "a direct write of 512 bytes takes {:.2} ms and one of 4096 bytes {:.2} ms: the \
                 disk reads before it writes less than its sector",
                sector / 1e3,
                probe.write_us / 1e3
            ),
        )
    })
}

fn too_fast(evidence: &Evidence<'_>) -> Option<Finding> {
    let times = evidence.series.all(|tick| tick.p50_us);
    let usual = median(&times);
    (evidence.is_synced() && !times.is_empty() && usual < PHYSICS_US).then(|| {
        Finding::new(
            Cause::TooFast,
            Weight::Danger,
            format!(
                "a write and its flush take {usual:.1} µs, and no device answers so soon: this is \
                 no disk, or somebody leaves out the flush"
            ),
        )
    })
}
