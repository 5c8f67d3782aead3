//! What a reader should know before trusting the numbers. A benchmark that notices that its
//! conditions are bad says so itself.

use super::{Case, Config};
use crate::conditions::{Conditions, memory_bytes};
use crate::stats::Spread;
use crate::suite::load_warning;
use crate::ways::WayName;

/// The slowest round may take so many times as long as the fastest.
const SPREAD_MAX: f64 = 1.5;

/// What can be seen before anything is measured.
pub(super) fn before(config: &Config, conditions: &Conditions) -> Vec<String> {
    let mut warnings = load_warning(conditions);
    let threads = thread_count();
    if threads > 1 {
        warnings.push(format!(
            "the measuring process has {threads} threads: processes are best forked from one"
        ));
    }
    let kind = conditions.filesystem.as_ref().map(|filesystem| filesystem.kind.as_str());
    if matches!(kind, Some("tmpfs" | "ramfs")) && config.ways.contains(&WayName::Direct) {
        warnings.push(String::from("this filesystem is memory: O_DIRECT writes to memory too"));
    }
    let available = memory_bytes("MemAvailable").unwrap_or(u64::MAX);
    let background = conditions.writeback.background_bytes(available).unwrap_or(u64::MAX);
    for setting in &config.settings {
        if setting.total_bytes() > background {
            warnings.push(format!(
                "{setting}: the kernel starts to write back at {} MiB of dirty pages, so the \
                 device takes part in this setting",
                background >> 20
            ));
        }
    }
    warnings
}

/// What shows in the results of one setting.
pub(super) fn after(cases: &[Case]) -> Vec<String> {
    let warning = |case: &Case| {
        let ns = Spread::of(&case.ns_per_record).filter(|ns| ns.max > ns.min * SPREAD_MAX)?;
        Some(format!(
            "{} {}x{}x{}: the slowest round took {:.1} times as long as the fastest",
            case.name,
            case.processes,
            case.records,
            case.bytes,
            ns.max / ns.min
        ))
    };
    cases.iter().filter_map(warning).collect()
}

fn thread_count() -> usize {
    std::fs::read_dir("/proc/self/task").map_or(1, Iterator::count)
}
