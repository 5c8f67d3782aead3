//! The different conditions of two runs.

use std::fmt::Display;

use serde::Serialize;

use crate::conditions::Conditions;
use crate::report::Report;

/// Loads that differ by less are alike.
const LOAD_APART: f64 = 0.5;

/// A condition that was not the same.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Difference {
    /// The name of the condition.
    pub what: &'static str,
    /// In the first run.
    pub before: String,
    /// In the second.
    pub after: String,
}

/// The differences between documents of the same suites, each condition once.
pub(super) fn differences(before: &[Report], after: &[Report]) -> Vec<Difference> {
    let mut differences = Vec::new();
    for before in before {
        let Some(after) = after.iter().find(|after| after.suite == before.suite) else { continue };
        let loads = [before, after].map(|side| side.conditions.load_average.map(|[load, ..]| load));
        let loads_differ = match loads {
            [Some(before), Some(after)] => (before - after).abs() >= LOAD_APART,
            _ => false,
        };
        let before = told(&before.conditions, before.rounds);
        let after = told(&after.conditions, after.rounds);
        for ((what, before), (_, after)) in before.into_iter().zip(after) {
            let is_load = what == "load average";
            let differs = if is_load { loads_differ } else { before != after };
            let difference = Difference { what, before, after };
            if differs && !differences.contains(&difference) {
                differences.push(difference);
            }
        }
    }
    differences
}

/// Everything that should be the same, in words.
fn told(conditions: &Conditions, rounds: u32) -> Vec<(&'static str, String)> {
    let Conditions { machine, filesystem, device, writeback, .. } = conditions;
    let filesystem = filesystem.as_ref();
    let device = device.as_ref();
    vec![
        ("vellum", conditions.vellum.clone()),
        ("software", conditions.software.join(", ")),
        ("made filesystems", conditions.scratch.join(", ")),
        ("vellum options", conditions.vellum_options.clone()),
        ("rounds", rounds.to_string()),
        ("processor", shown(machine.cpu.as_ref())),
        ("cores", shown(machine.cores)),
        ("memory, MiB", shown(machine.memory_bytes.map(|bytes| bytes >> 20))),
        ("kernel", conditions.kernel.clone()),
        ("filesystem", shown(filesystem.map(|filesystem| &filesystem.kind))),
        ("mount options", shown(filesystem.map(|filesystem| &filesystem.mount_options))),
        ("source", shown(filesystem.map(|filesystem| &filesystem.source))),
        ("device", shown(device.map(|device| &device.name))),
        ("device model", shown(device.and_then(|device| device.model.as_ref()))),
        ("write cache", shown(device.and_then(|device| device.write_cache.as_ref()))),
        ("scheduler", shown(device.and_then(|device| device.scheduler.as_ref()))),
        ("write-back", format!("{writeback:?}")),
        ("load average", shown(conditions.load_average.map(|[load, ..]| load))),
    ]
}

fn shown(value: Option<impl Display>) -> String {
    value.map_or_else(|| String::from("unknown"), |value| value.to_string())
}
