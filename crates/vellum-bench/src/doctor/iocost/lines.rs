//! From what was measured to lines to paste.

use super::device::Device;
use super::rates::Model;
use crate::bytes::mebibytes;
use crate::report;

/// Smaller limits would stop a neighbour.
const LIMIT_MIN: u64 = 1 << 20;

/// p99 of the log beside a neighbour.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Beside {
    /// What the neighbour writes, in a second or at once.
    pub(super) bytes: u64,
    pub(super) p99_ms: f64,
}

/// What was measured.
#[derive(Clone, Debug)]
pub(super) struct Figures {
    pub(super) model: Model,
    /// p99 of a commit of the log is to be no more.
    pub(super) goal_ms: f64,
    pub(super) alone_ms: f64,
    /// Beside a neighbour without a limit.
    pub(super) unlimited_ms: f64,
    /// From the highest rate down; none where no limit is needed, or none would help.
    pub(super) rates: Vec<Beside>,
    /// From the longest burst down.
    pub(super) bursts: Vec<Beside>,
}

impl Figures {
    /// The first of `tried` beside which the log keeps its p99.
    pub(super) fn kept<'a>(&self, tried: &'a [Beside]) -> Option<&'a Beside> {
        tried.iter().find(|one| one.p99_ms <= self.goal_ms)
    }

    /// Does the disk do for the log if nobody else writes?
    fn is_kept_alone(&self) -> bool {
        self.alone_ms <= self.goal_ms
    }
}

/// A setting: the reason in a sentence, and the lines to paste where there are any.
#[derive(Debug)]
pub(super) struct Setting {
    pub(super) name: &'static str,
    pub(super) reason: String,
    pub(super) paste: Vec<String>,
}

/// All settings, for people.
pub(super) fn text(device: &Device, figures: &Figures) -> String {
    let Figures { goal_ms, alone_ms, unlimited_ms, .. } = figures;
    let mut told = format!("{}, disk {} ({}).", device.filesystem, device.name, device.number);
    told.push_str(&format!(" p99 of a commit of a log: {alone_ms:.2} ms alone"));
    if figures.is_kept_alone() {
        told.push_str(&format!(", {unlimited_ms:.2} ms beside a neighbour without a limit"));
    }
    told.push_str(&format!("; it is to be {goal_ms} ms at most."));
    let mut text = report::wrapped(&told);
    for Setting { name, reason, paste } in settings(device, figures) {
        text.push('\n');
        let told = format!("{name}: {reason}");
        text.push_str(&report::lines(&told, report::WIDTH, ""));
        text.push('\n');
        paste.iter().for_each(|line| text.push_str(&format!("    {line}\n")));
    }
    text
}

/// All of them, in the order of help.
pub(super) fn settings(device: &Device, figures: &Figures) -> Vec<Setting> {
    let mut settings = vec![model(device, &figures.model)];
    if !figures.is_kept_alone() {
        let reason = "none of its limits helps, for the log does not keep its p99 when it is alone: \
                      `vellum doctor` tells why.";
        settings.push(Setting { name: "io.max", reason: reason.into(), paste: Vec::new() });
        return settings;
    }
    settings.extend(qos(device, figures.goal_ms));
    settings.push(limit(device, figures));
    settings.push(dirty(figures));
    settings
}

fn model(device: &Device, model: &Model) -> Setting {
    let Model { rbps, rseqiops, rrandiops, wbps, wseqiops, wrandiops } = model;
    let name = "io.cost.model";
    let Some((queued, number)) = &device.queued else {
        let reason = format!(
            "{} has no queue of its own and stands on no single disk that has one, and the kernel \
             has a model for such disks alone.",
            device.name
        );
        return Setting { name, reason, paste: Vec::new() };
    };
    let reason = format!(
        "what {queued} can do, so that the kernel shares its time by io.weight; for cgroup v2, in \
         its root."
    );
    let line = format!(
        "echo '{number} ctrl=user model=linear rbps={rbps} rseqiops={rseqiops} \
         rrandiops={rrandiops} wbps={wbps} wseqiops={wseqiops} wrandiops={wrandiops}' \
         > /sys/fs/cgroup/io.cost.model"
    );
    Setting { name, reason, paste: vec![line] }
}

/// A commit is a write and a flush, so each has half of its time.
fn qos(device: &Device, goal_ms: f64) -> Option<Setting> {
    let (_, number) = device.queued.as_ref()?;
    let latency_us = (goal_ms * 1e3 / 2.0) as u64;
    let reason = format!(
        "switches the model on, and slows everybody down while one of twenty requests takes more \
         than {latency_us} µs, half of a commit; for cgroup v2, in its root. Then give the log a \
         larger io.weight. Not tried here."
    );
    let line = format!(
        "echo '{number} enable=1 ctrl=user rpct=95.00 rlat={latency_us} wpct=95.00 \
         wlat={latency_us} min=25.00 max=100.00' > /sys/fs/cgroup/io.cost.qos"
    );
    Some(Setting { name: "io.cost.qos", reason, paste: vec![line] })
}

fn limit(device: &Device, figures: &Figures) -> Setting {
    let name = "io.max";
    let without = |reason: String| Setting { name, reason, paste: Vec::new() };
    if figures.unlimited_ms <= figures.goal_ms {
        return without("no limit is needed: the log keeps its p99 beside a neighbour.".into());
    }
    let Some(Beside { bytes, p99_ms }) = figures.kept(&figures.rates) else {
        let least = figures.rates.last().map_or(LIMIT_MIN, |one| one.bytes);
        return without(format!(
            "no limit that was tried will do, down to {}: the log needs a disk of its own.",
            rate(least)
        ));
    };
    let number = &device.number;
    let reason = format!(
        "beside a neighbour with {} p99 of the log is {p99_ms:.2} ms; for the control group of \
         the neighbour, with cgroup v2 or v1. With v1 it holds for direct and synchronous writes \
         alone.",
        rate(*bytes)
    );
    let paste = vec![
        format!("echo '{number} wbps={bytes}' > /sys/fs/cgroup/NEIGHBOUR/io.max"),
        format!(
            "echo '{number} {bytes}' > \
             /sys/fs/cgroup/blkio/NEIGHBOUR/blkio.throttle.write_bps_device"
        ),
    ];
    Setting { name, reason, paste }
}

fn dirty(figures: &Figures) -> Setting {
    let name = "vm.dirty_bytes";
    let (bytes, reason) = match (figures.kept(&figures.bursts), figures.bursts.last()) {
        (Some(Beside { bytes, p99_ms }), _) => (
            *bytes,
            format!(
                "beside bursts of {} p99 of the log is {p99_ms:.2} ms, and no more than that waits \
                 in memory then; for the whole machine, and for good in /etc/sysctl.d/.",
                mebibytes(*bytes)
            ),
        ),
        (None, last) => {
            let least = last.map_or_else(String::new, |one| {
                format!(" that was tried, down to {},", mebibytes(one.bytes))
            });
            let reason = format!(
                "no burst{least} leaves the log its p99: have the neighbour write past the page \
                 cache, or on another disk."
            );
            return Setting { name, reason, paste: Vec::new() };
        }
    };
    let line = format!("sysctl -w vm.dirty_background_bytes={} vm.dirty_bytes={bytes}", bytes / 2);
    Setting { name, reason, paste: vec![line] }
}

/// A limit in whole mebibytes, and no less than one.
pub(super) fn rounded(bytes: u64) -> u64 {
    (bytes >> 20 << 20).max(LIMIT_MIN)
}

/// For people.
pub(super) fn rate(bytes: u64) -> String {
    format!("{} a second", mebibytes(bytes))
}
