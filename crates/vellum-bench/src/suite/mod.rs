//! The suites: what is compared, and how a run goes.
//!
//! A suite has a module with `Config`, `Case` and `run`, and builds on the same ground as the
//! others: [`crate::ways`], [`crate::process::race`], [`crate::verify`] and [`crate::report`].

pub mod append;
pub mod commit;

use crate::conditions::Conditions;

/// Above this load on the machine, something else is running.
const LOAD_MAX: f64 = 0.5;

/// Says so if other work shares the machine.
pub(crate) fn load_warning(conditions: &Conditions) -> Vec<String> {
    let load = conditions.load_average.map(|[load, ..]| load).filter(|load| *load > LOAD_MAX);
    let warning = load.map(|load| {
        let cores = conditions.machine.cores.unwrap_or(1);
        format!(
            "the load average was {load:.2} before the start: other work shares the {cores} cores"
        )
    });
    warning.into_iter().collect()
}
