//! The place, the time and the machine of a measurement.

use maud::{Markup, html};
use vellum_bench::Conditions;
use vellum_bench::advise::Surroundings;
use vellum_bench::doctor::Diagnosis;

pub(super) fn conditions(diagnosis: &Diagnosis) -> Markup {
    let facts = facts(&diagnosis.report.conditions, &diagnosis.surroundings);
    html! {
        section {
            h2 { "Conditions" }
            dl .facts {
                @for (name, value) in facts { div { dt { (name) } dd { (value) } } }
            }
        }
    }
}

fn facts(conditions: &Conditions, around: &Surroundings) -> Vec<(&'static str, String)> {
    let Conditions { machine, device, load_average, .. } = conditions;
    let date = conditions.date.replace('T', " ").replace('Z', " UTC");
    let cores = machine.cores.map(|count| format!("{count} cores"));
    let memory = machine.memory_bytes.map(|bytes| format!("{} GiB", bytes >> 30));
    let parts = [machine.cpu.clone(), cores, memory].into_iter().flatten();
    let mut facts = vec![
        ("date", format!("{date}, Vellum {}", conditions.vellum)),
        ("command", conditions.command_line.join(" ")),
        ("machine", parts.collect::<Vec<String>>().join(", ")),
        ("kernel", conditions.kernel.clone()),
    ];
    if let Some(filesystem) = &around.filesystem {
        let (kind, source) = (&filesystem.kind, &filesystem.source);
        let place = filesystem.mount_point.display();
        facts.push(("filesystem", format!("{kind} on {source}, mounted at {place}")));
        facts.push(("mount options", filesystem.mount_options.clone()));
    }
    if let Some(device) = device {
        let cache = device.write_cache.as_ref().map(|cache| format!("cache {cache}"));
        let parts = [Some(device.name.clone()), device.model.clone(), cache];
        facts.push(("device", parts.into_iter().flatten().collect::<Vec<String>>().join(", ")));
    }
    if let Some([one, five, fifteen]) = load_average {
        facts.push((
            "load",
            format!("{one:.2} over 1 minute, {five:.2} over 5, {fifteen:.2} over 15"),
        ));
    }
    facts.retain(|(_, value)| !value.is_empty());
    facts
}
