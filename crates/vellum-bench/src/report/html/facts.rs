//! The place, the time and the machine of the measurements.
//!
//! A page of several reports has their common facts once.

use super::super::Report;
use super::number::number;
use crate::conditions::{Conditions, Device};

/// A name and its values: one for all reports, or one for each that has another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Fact {
    pub(super) name: &'static str,
    /// The suites that it holds for, none if for all, and the value.
    pub(super) values: Vec<(String, String)>,
}

/// A function that reads a fact from a report.
type Reader = fn(&Report) -> Option<String>;

const READERS: [(&str, Reader); 12] = [
    ("Date", |document| Some(date(&document.conditions))),
    ("Command", |document| Some(document.conditions.command_line.join(" "))),
    ("Software", |document| Some(document.conditions.software.join(", "))),
    ("Made for the run", |document| Some(document.conditions.scratch.join(", "))),
    ("Machine", |document| Some(machine(&document.conditions))),
    ("Kernel", |document| Some(document.conditions.kernel.clone())),
    ("Filesystem", |document| filesystem(&document.conditions)),
    ("Mount options", |document| {
        Some(document.conditions.filesystem.as_ref()?.mount_options.clone())
    }),
    ("Device", |document| Some(device(document.conditions.device.as_ref()?))),
    ("Write-back", |document| writeback(&document.conditions)),
    ("Load", |document| load(&document.conditions)),
    ("Rounds", |document| Some(rounds(document))),
];

/// The facts of these reports.
pub(super) fn facts(documents: &[Report]) -> Vec<Fact> {
    let facts = READERS.iter().map(|(name, read)| {
        let mut values: Vec<(String, String)> = Vec::new();
        for document in documents {
            let Some(value) = read(document).filter(|value| !value.is_empty()) else { continue };
            match values.iter_mut().find(|(_, known)| *known == value) {
                Some((suites, _)) => *suites = format!("{suites}, {}", document.suite),
                None => values.push((document.suite.clone(), value)),
            }
        }
        if let [(suites, _)] = &mut values[..] {
            suites.clear();
        }
        Fact { name, values }
    });
    facts.filter(|fact| !fact.values.is_empty()).collect()
}

fn date(conditions: &Conditions) -> String {
    let (date, version) =
        (conditions.date.replace('T', " ").replace('Z', " UTC"), &conditions.vellum);
    format!("{date}, Vellum {version}")
}

fn machine(conditions: &Conditions) -> String {
    let machine = &conditions.machine;
    let cores = machine.cores.map(|count| format!("{count} cores"));
    let memory = machine.memory_bytes.map(gibibytes).map(|size| format!("{size} memory"));
    joined([machine.cpu.clone(), cores, memory])
}

fn gibibytes(bytes: u64) -> String {
    format!("{} GiB", number(bytes as f64 / 1_073_741_824.0))
}

fn filesystem(conditions: &Conditions) -> Option<String> {
    let found = conditions.filesystem.as_ref()?;
    let mount_point = found.mount_point.display();
    let directory = conditions.directory.display();
    Some(format!(
        "{} on {}, mounted at {mount_point}; run in {directory}",
        found.kind, found.source
    ))
}

fn device(device: &Device) -> String {
    let turning = device.rotational.map(|turns| if turns { "rotating" } else { "not rotating" });
    let cache = device.write_cache.as_ref().map(|cache| format!("{cache} cache"));
    let scheduler = device.scheduler.as_ref().map(|scheduler| format!("scheduler {scheduler}"));
    let block = device.logical_block_bytes.map(|bytes| format!("blocks of {bytes} B"));
    let (name, model) = (Some(device.name.clone()), device.model.clone());
    joined([name, model, turning.map(str::to_string), cache, scheduler, block])
}

fn writeback(conditions: &Conditions) -> Option<String> {
    let settings = &conditions.writeback;
    let limit = |bytes: Option<u64>, ratio: Option<u64>| match (bytes, ratio) {
        (Some(bytes), _) if bytes > 0 => Some(gibibytes(bytes)),
        (_, ratio) => Some(format!("{} % of memory", ratio?)),
    };
    let background = limit(settings.dirty_background_bytes, settings.dirty_background_ratio)?;
    let hard = limit(settings.dirty_bytes, settings.dirty_ratio)?;
    Some(format!("begins at {background}, writers wait at {hard}"))
}

fn load(conditions: &Conditions) -> Option<String> {
    let [one, five, fifteen] = conditions.load_average?;
    Some(format!("{one:.2} over 1 minute, {five:.2} over 5, {fifteen:.2} over 15"))
}

fn rounds(document: &Report) -> String {
    match document.rounds {
        1 => String::from("1, after a warm-up that is not counted"),
        count => format!("{count}, after a warm-up that is not counted"),
    }
}

fn joined<const N: usize>(parts: [Option<String>; N]) -> String {
    parts.into_iter().flatten().collect::<Vec<String>>().join(", ")
}
