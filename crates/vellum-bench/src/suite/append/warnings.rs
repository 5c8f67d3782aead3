//! Warnings for readers of the numbers. A benchmark that notices that its conditions are bad says
//! so itself.

use super::{Config, Entrant, Racer, Sample};
use crate::bytes::mebibytes;
use crate::conditions::{Writeback, filesystem_of, memory_bytes};
use crate::setting::Setting;
use crate::stats::Spread;
use crate::ways::WayName;

/// The slowest round may take so many times as long as the fastest.
const SPREAD_MAX: f64 = 1.5;

/// The warnings before anything is measured.
pub(super) fn before(config: &Config) -> Vec<String> {
    let mut warnings = Vec::new();
    let threads = thread_count();
    if threads > 1 {
        warnings.push(format!(
            "the measuring process has {threads} threads: processes are best forked from one"
        ));
    }
    let cores = std::thread::available_parallelism().map_or(u32::MAX, |cores| cores.get() as u32);
    if config.between_bytes > 0 && config.settings.iter().any(|one| one.processes > cores) {
        warnings.push(format!(
            "more processes than the {cores} cores: the walks of others count where one of them \
             takes the core away during an append"
        ));
    }
    let kind = filesystem_of(&config.scope.directory).map(|filesystem| filesystem.kind);
    if matches!(kind.as_deref(), Some("tmpfs" | "ramfs")) && config.ways.contains(&WayName::Direct)
    {
        warnings.push(String::from("this filesystem is memory: O_DIRECT writes to memory too"));
    }
    let available = memory_bytes("MemAvailable").unwrap_or(u64::MAX);
    let background = Writeback::now().background_bytes(available).unwrap_or(u64::MAX);
    for setting in &config.settings {
        if setting.total_bytes() > background {
            warnings.push(format!(
                "{setting}: the kernel starts to write back at {} of dirty pages, so the device \
                 takes part in this setting",
                mebibytes(background)
            ));
        }
    }
    warnings
}

/// Warnings that the result of a way shows.
pub(super) fn of(entrant: &Entrant<Racer, Sample>, setting: &Setting) -> Vec<String> {
    let name = &entrant.way.entry;
    let uncounted = entrant.way.syscalls.as_ref().and_then(|count| count.as_ref().err());
    let uncounted = uncounted.map(|why| format!("no syscalls of {name}: {why}"));
    let spread = Spread::of(&entrant.figures(|sample| sample.wall_ns as f64));
    let spread = spread.filter(|ns| ns.max > ns.min * SPREAD_MAX).map(|ns| {
        let times = ns.max / ns.min;
        format!("{name} {setting}: the slowest round took {times:.1} times as long as the fastest")
    });
    uncounted.into_iter().chain(spread).collect()
}

fn thread_count() -> usize {
    std::fs::read_dir("/proc/self/task").map_or(1, Iterator::count)
}
