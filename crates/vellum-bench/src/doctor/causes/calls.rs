//! Causes by what single calls cost.

use crate::cause::Cause;
use crate::doctor::evidence::{Evidence, Finding, Weight};
use crate::doctor::program::FileState;
use crate::doctor::series::median;
use crate::doctor::trials::AT_ONCE;

/// A call that takes so long is slow.
const SLOW_US: f64 = 3000.0;
/// Where processors are scarce, any call takes longer.
const SLOW_IF_SCARCE_US: f64 = 8000.0;
/// One call is what takes the time if it takes so many times as long as the other.
const APART: f64 = 3.0;
/// An experiment has decided if one takes so many times as long. A sound journal has two flushes
/// for one.
const DECIDED: f64 = 5.0;
/// A write of a part of a block takes so many times as long where the disk reads first …
const SECTOR: f64 = 1.8;
/// … and so much longer.
const SECTOR_MIN_US: f64 = 100.0;
const SECTOR_IF_SCARCE_US: f64 = 5000.0;
/// … and by this share of the time of a flush.
const SECTOR_OF_FLUSH: f64 = 0.1;
/// Simultaneous commits wait for each other if all take this share of their time one by one.
const QUEUED: f64 = 0.75;
/// A program that writes so rarely in a second lets a disk sleep.
const RARE_RATE: f64 = 2.0;
/// No device can have answered before.
const PHYSICS_US: f64 = 5.0;

pub(super) fn causes(evidence: &Evidence<'_>) -> Vec<Finding> {
    let rules = [
        slow_journal(evidence),
        first_writes(evidence),
        sleeps(evidence),
        slow_call(evidence),
        emulated_sectors(evidence),
        too_fast(evidence),
    ];
    rules.into_iter().flatten().collect()
}

/// An experiment: so long with the suspected cause, and so long without it, in microseconds.
fn apart(evidence: &Evidence<'_>, with: Option<f64>, without: Option<f64>) -> Option<(f64, f64)> {
    let slow = if evidence.processors.are_scarce() { SLOW_IF_SCARCE_US } else { SLOW_US };
    let (with, without) = (with?, without?);
    (with >= DECIDED * without && with - without >= slow).then_some((with, without))
}

/// Is it a reason for figures of this program? If not, it is good to know.
fn reason_if(is_reason: bool) -> Weight {
    if is_reason { Weight::Reason } else { Weight::Note }
}

/// Does a write take long only where the journal of the filesystem is written, too?
fn slow_journal(evidence: &Evidence<'_>) -> Option<Finding> {
    let probe = evidence.probe?;
    let (grown, overwritten) = apart(evidence, probe.grown_us, probe.overwritten_us)?;
    let weight = reason_if(evidence.program.pattern.file != FileState::Written);
    let what = format!(
        "it is the journal of the filesystem, because overwriting takes {:.2} ms and growing {:.2}",
        overwritten / 1e3,
        grown / 1e3
    );
    Some(Finding::new(Cause::SlowJournal, weight, what))
}

/// Does a place take longer when it is written for the first time?
fn first_writes(evidence: &Evidence<'_>) -> Option<Finding> {
    let probe = evidence.probe?;
    let (first, again) = apart(evidence, probe.first_us, probe.again_us)?;
    let weight = reason_if(evidence.program.pattern.file != FileState::Written);
    let what = format!(
        "it is the first write of a place, because that takes {:.2} ms and the second {:.2}: space is \
         made when it is written",
        first / 1e3,
        again / 1e3
    );
    Some(Finding::new(Cause::FirstWrites, weight, what))
}

/// Does the disk sleep while nothing is written?
fn sleeps(evidence: &Evidence<'_>) -> Option<Finding> {
    let probe = evidence.probe?;
    let (rested, woken) = apart(evidence, probe.rested_us, probe.woken_us)?;
    let is_rare = |rate: f64| rate <= RARE_RATE;
    let weight = reason_if(evidence.program.pattern.rate.is_some_and(is_rare));
    let what = format!(
        "the disk sleeps, because after a rest a write takes {:.2} ms and the next one {:.2}",
        rested / 1e3,
        woken / 1e3
    );
    Some(Finding::new(Cause::Sleeps, weight, what))
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
            "a write takes {:.2} ms and a flush after it {:.2} ms: {what}{}",
            write / 1e3,
            flush / 1e3,
            queue(evidence)
        ),
    ))
}

/// Does the disk do one commit at a time?
fn queue(evidence: &Evidence<'_>) -> String {
    let both = evidence.probe.and_then(|probe| probe.overwritten_us.zip(probe.together_us));
    let queued = both.filter(|(one, all)| *all >= QUEUED * AT_ONCE as f64 * one);
    queued.map_or_else(String::new, |(one, all)| {
        format!(
            "; commits wait for each other, because one takes {:.2} ms and {AT_ONCE} at a time take \
             {:.2}",
            one / 1e3,
            all / 1e3
        )
    })
}

fn emulated_sectors(evidence: &Evidence<'_>) -> Option<Finding> {
    let probe = evidence.probe?;
    let scarce = evidence.processors.are_scarce();
    let apart = if scarce { SECTOR_IF_SCARCE_US } else { SECTOR_MIN_US };
    let is_slower = |short: f64, long: f64| {
        let more = short - long;
        // Beside a slow flush it would be no reason, and the time of a few short calls is chance.
        let is_reason = more >= SECTOR_OF_FLUSH * probe.flush_us;
        short >= SECTOR * long && more >= apart && is_reason
    };
    let sector = probe.sector_us.map(|short| (512, short, 4096, probe.write_us));
    let block = probe.large_us.map(|long| (4096, probe.write_us, 65_536, long));
    let found = [sector, block].into_iter().flatten();
    let (bytes, short, more_bytes, long) =
        found.into_iter().find(|(_, short, _, long)| is_slower(*short, *long))?;
    let what = format!(
        "a direct write of {bytes} bytes takes {:.2} ms and one of {more_bytes} bytes {:.2} ms: the \
         disk reads before it writes less than its sector",
        short / 1e3,
        long / 1e3
    );
    Some(Finding::new(Cause::EmulatedSectors, Weight::Reason, what))
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
