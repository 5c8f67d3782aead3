//! What may go wrong here, why, and what to do about it: from what was found, without measuring.

use serde::Serialize;

use super::detect::{Disk, IoLimit, Surroundings};
use crate::cause::Cause;

/// A filesystem that is fuller than this is slow, and may be full before anybody notices.
const USED_SHARE_MAX: f64 = 0.9;

/// How bad it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// What was committed can be lost, or a process can be killed.
    Danger,
    /// It takes more time or space than need be.
    Cost,
    /// Good to know.
    Note,
}

/// Something to beware of.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Trap {
    /// How bad it is.
    pub severity: Severity,
    /// Its name, as `vellum doctor` has it.
    pub cause: Cause,
    /// What it is, and why it matters.
    pub what: String,
    /// What to do about it; empty if that is nothing.
    pub remedy: String,
}

impl Trap {
    /// For people.
    pub(super) fn line(&self) -> String {
        let Trap { severity, what, remedy, .. } = self;
        let remedy = match remedy.as_str() {
            "" => String::new(),
            remedy => format!(". What to do: {remedy}"),
        };
        let severity = match severity {
            Severity::Danger => "danger: ",
            Severity::Cost => "cost: ",
            Severity::Note => "",
        };
        format!("{severity}{what}{remedy}")
    }
}

/// The traps under the heading that they have for people; no heading without any.
pub(super) fn parts(traps: &[Trap]) -> Vec<(&'static str, Vec<&Trap>)> {
    let (notes, bad): (Vec<&Trap>, Vec<&Trap>) =
        traps.iter().partition(|trap| trap.severity == Severity::Note);
    let parts = [("Beware", bad), ("Good to know", notes)];
    parts.into_iter().filter(|(_, traps)| !traps.is_empty()).collect()
}

/// All traps here, the worst first.
pub(crate) fn traps(around: &Surroundings) -> Vec<Trap> {
    let mut traps = Vec::new();
    of_filesystem(around, &mut traps);
    of_copies(around, &mut traps);
    of_mount(around, &mut traps);
    of_ext(around, &mut traps);
    of_devices(around, &mut traps);
    of_limits(around, &mut traps);
    of_space(around, &mut traps);
    traps.sort_by_key(|trap| trap.severity);
    traps
}

fn trap(severity: Severity, cause: Cause, what: impl Into<String>, remedy: &str) -> Trap {
    Trap { severity, cause, what: what.into(), remedy: remedy.into() }
}

fn of_filesystem(around: &Surroundings, traps: &mut Vec<Trap>) {
    let kind = around.kind();
    let is = |cause| around.spelling(cause).is_some();
    if is(Cause::NetworkFilesystem) {
        traps.push(trap(
            Severity::Danger,
            Cause::NetworkFilesystem,
            format!(
                "{kind} is shared with other machines, and they do not see the memory of this one"
            ),
            "keep logs on a local filesystem; the library refuses most of these",
        ));
    } else if is(Cause::Fuse) {
        traps.push(trap(
            Severity::Danger,
            Cause::Fuse,
            format!("{kind} is served by a program, which may refuse mappings or fail a store"),
            "fill logs by pwrite, the default here; for speed, use the filesystem under it",
        ));
    } else if is(Cause::Overlay) {
        traps.push(trap(
            Severity::Cost,
            Cause::Overlay,
            "an overlay copies a file of a lower layer whole when it is first written to",
            "keep logs on a volume of their own: a bind mount of a real filesystem",
        ));
    } else if is(Cause::Memory) {
        traps.push(trap(
            Severity::Danger,
            Cause::Memory,
            format!("{kind} is memory: nothing here survives a reboot, whatever is committed"),
            "use it for what may be lost; a log that commits needs a disk",
        ));
    }
    if let Some(word) = around.spelling(Cause::OverlayVolatile) {
        traps.push(trap(
            Severity::Danger,
            Cause::OverlayVolatile,
            format!("the overlay is mounted with {word}: it leaves out every sync"),
            "mount it without that, or keep what is to last elsewhere",
        ));
    }
}

fn of_copies(around: &Surroundings, traps: &mut Vec<Trap>) {
    let Some(kind) = around.spelling(Cause::CopyOnWrite) else { return };
    if around.is_nocow == Some(true) {
        return;
    }
    if around.option("nodatacow").is_none() {
        traps.push(trap(
            Severity::Cost,
            Cause::CopyOnWrite,
            format!(
                "{kind} writes what is overwritten to new blocks: making space ready is in vain, \
                 and a small log can hold on to gigabytes"
            ),
            "chattr +C on a new directory, for files made in it; staged logs do it for themselves",
        ));
    }
    let compression = ["compress", "compress-force"].iter().find_map(|name| around.option(name));
    if let Some(how) = compression.filter(|how| *how != "no") {
        traps.push(trap(
            Severity::Cost,
            Cause::Compression,
            format!(
                "files are compressed ({how}), so that direct writes go through the page cache"
            ),
            "chattr +C on the directory of logs switches compression off as well",
        ));
    }
}

fn of_mount(around: &Surroundings, traps: &mut Vec<Trap>) {
    if let Some(word) = around.spelling(Cause::NoBarriers) {
        let cached = around.disks.iter().find(|disk| disk.has_volatile_cache == Some(true));
        let (severity, cache) = match cached {
            Some(disk) => (Severity::Danger, format!("the cache of {} is volatile", disk.name)),
            None => (Severity::Note, "no volatile cache was found".into()),
        };
        traps.push(trap(
            severity,
            Cause::NoBarriers,
            format!(
                "mounted without barriers ({word}): a sync does not empty the disk's cache; {cache}"
            ),
            "mount with barriers, unless a battery keeps the cache",
        ));
    }
    if let Some(option) = around.spelling(Cause::SyncMount) {
        traps.push(trap(
            Severity::Cost,
            Cause::SyncMount,
            format!("mounted with {option}: everybody waits for the disk at every change"),
            "mount without it; commits wait for the disk by themselves",
        ));
    }
    if let Some(quota) = around.spelling(Cause::Quota) {
        traps.push(trap(
            Severity::Note,
            Cause::Quota,
            format!("there are quotas ({quota}): you may have less than what is free"),
            "look at `quota`; a log that meets its limit says so and loses nothing",
        ));
    }
}

fn of_ext(around: &Surroundings, traps: &mut Vec<Trap>) {
    let is = |cause| around.spelling(cause).is_some();
    if is(Cause::DataWriteback) {
        traps.push(trap(
            Severity::Danger,
            Cause::DataWriteback,
            "data=writeback: after a power cut, files can hold what others had deleted",
            "mount with data=ordered; logs that commit check what they find",
        ));
    }
    if is(Cause::DataJournal) {
        traps.push(trap(
            Severity::Cost,
            Cause::DataJournal,
            "data=journal writes everything twice, and takes direct writes through the page cache",
            "mount with data=ordered",
        ));
    }
    let is_ext = around.is_kind(&["ext2", "ext3", "ext4"]);
    let fallocate = around.features.iter().find(|feature| feature.name == "fallocate");
    if is_ext && fallocate.is_some_and(|feature| !feature.works) {
        traps.push(trap(
            Severity::Cost,
            Cause::NoExtents,
            "this filesystem has no extents: space can't be allocated ahead without writing it",
            "make it anew as ext4, or convert it with tune2fs -O extents",
        ));
    }
}

fn of_devices(around: &Surroundings, traps: &mut Vec<Trap>) {
    for disk in &around.disks {
        of_device(disk, traps);
    }
    // Only the lowest has a cache of its own; those above hand the flushes down.
    let lowest = around.disks.last().filter(|disk| disk.has_volatile_cache == Some(true));
    if let Some(disk) = lowest.filter(|disk| disk.has_fua == Some(false)) {
        traps.push(trap(
            Severity::Note,
            Cause::NoFua,
            format!(
                "{} has a volatile cache and no FUA: a commit is a write and a flush; on a device \
                 with FUA, or with a battery, commits cost half",
                disk.name
            ),
            "",
        ));
    }
}

fn of_device(disk: &Disk, traps: &mut Vec<Trap>) {
    let name = &disk.name;
    if disk.is_memory() {
        traps.push(trap(
            Severity::Danger,
            Cause::Memory,
            format!("{name} is memory: a power cut takes all of it"),
            "use it for what may be lost",
        ));
    }
    if disk.has_volatile_cache == Some(false) && disk.has_fua == Some(true) {
        traps.push(trap(
            Severity::Danger,
            Cause::HiddenCache,
            format!(
                "{name} knows FUA, as disks with a volatile cache do, and the kernel takes it for \
                 one without: somebody may have said so, and syncs do not empty that cache"
            ),
            "unless a battery keeps the cache: echo 'write back' > /sys/block/…/queue/write_cache",
        ));
    }
    of_blocks(disk, traps);
    if disk.mapper.as_deref() == Some("CRYPT") {
        traps.push(trap(
            Severity::Note,
            Cause::Encryption,
            format!("{name} encrypts: each write waits for a worker of the kernel as well"),
            "for fast devices: cryptsetup refresh --perf-no_write_workqueue",
        ));
    }
    let is_cached_twice = disk.is_direct == Some(false) && !disk.is_memory();
    let file = disk.file.as_ref().filter(|_| is_cached_twice);
    if let Some(file) = file {
        traps.push(trap(
            Severity::Cost,
            Cause::LoopDevice,
            format!("{name} is the file {}: what is written is cached twice", file.display()),
            "losetup --direct-io=on",
        ));
    }
}

fn of_blocks(disk: &Disk, traps: &mut Vec<Trap>) {
    let block = disk.physical_block_bytes.filter(|_| disk.is_misaligned());
    if let Some(block) = block {
        traps.push(trap(
            Severity::Cost,
            Cause::Misaligned,
            format!("the partition on {} does not begin with a block of {block} bytes", disk.name),
            "make the partition anew, aligned to 1 MiB",
        ));
    }
}

fn of_limits(around: &Surroundings, traps: &mut Vec<Trap>) {
    for limit in &around.limits {
        let IoLimit { device, what, value, group } = limit;
        let unit = if *what == "wbps" { "bytes" } else { "writes" };
        traps.push(trap(
            Severity::Cost,
            Cause::CgroupLimit,
            format!(
                "the control group {} allows {value} {unit} a second to {device}",
                group.display()
            ),
            "give the group more, or take the limit away",
        ));
    }
}

fn of_space(around: &Surroundings, traps: &mut Vec<Trap>) {
    if let Some(used) = around.used_share().filter(|used| *used > USED_SHARE_MAX) {
        traps.push(trap(
            Severity::Cost,
            Cause::NearlyFull,
            format!("the filesystem is {:.0} % full: free space is in small pieces", used * 100.0),
            "make room; a log that can't get its next segment refuses records, and loses none",
        ));
    }
}

#[cfg(test)]
#[path = "traps_tests.rs"]
mod tests;
