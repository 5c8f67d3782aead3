//! The keyword arguments of `Log`, one by one.

use std::time::Duration;

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDelta, PyDict};
use vellum::{Compression, Create, Options, Tuning};

use crate::error::exception;

/// Options of the process and not of the log: a copy in another process keeps all of them.
const OF_THE_PROCESS: [&str; 9] = [
    "on_full",
    "on_stage_full",
    "timeout",
    "read_only",
    "prefault_bytes",
    "mapped_bytes_max",
    "staged_segments_max",
    "spare_segments_max",
    "checkpoint_after_bytes",
];

/// The options of keyword arguments. `None` leaves an option alone.
pub(crate) fn options(given: Option<&Bound<'_, PyDict>>) -> PyResult<Options> {
    let Some(given) = given else {
        return Ok(Options::default().tuning(Tuning::new().advice_from(vellum_advice::nearest)));
    };
    let mut options = match given.get_item("kind")?.filter(|kind| !kind.is_none()) {
        Some(kind) => of_kind(&kind.extract::<String>()?)?,
        None => Options::default(),
    };
    options = options.create(create(given)?);
    if follows_advice(given)? {
        options = options.tuning(Tuning::new().advice_from(vellum_advice::nearest));
    }
    for (name, value) in given {
        let name: String = name.extract()?;
        if !value.is_none() {
            options = with(options, &name, &value)?;
        }
    }
    Ok(options)
}

fn of_kind(kind: &str) -> PyResult<Options> {
    Ok(match kind {
        "wal" => Options::wal(),
        "events" => Options::events(),
        "text" => Options::text(),
        "mapped-text" => Options::mapped_text(),
        _ => {
            let message =
                format!("{kind:?} is no kind of log; it is wal, events, text or mapped-text");
            return Err(PyValueError::new_err(message));
        }
    })
}

/// What `create` and `create_new` say together.
fn create(given: &Bound<'_, PyDict>) -> PyResult<Create> {
    let said = |name, default| {
        let value = given.get_item(name)?.filter(|value| !value.is_none());
        value.map_or(Ok(default), |value| value.extract())
    };
    Ok(match (said("create_new", false)?, said("create", true)?) {
        (true, _) => Create::New,
        (false, true) => Create::IfMissing,
        (false, false) => Create::Never,
    })
}

fn follows_advice(given: &Bound<'_, PyDict>) -> PyResult<bool> {
    let asked = given.get_item("advice")?.filter(|value| !value.is_none());
    asked.map_or(Ok(true), |value| value.extract())
}

/// The arguments with which a copy in another process joins the log: it takes files and policy as
/// they are by then.
pub(crate) fn for_a_copy<'py>(given: &Bound<'py, PyDict>) -> PyResult<Bound<'py, PyDict>> {
    let kept = PyDict::new(given.py());
    for (name, value) in given {
        if OF_THE_PROCESS.contains(&name.extract::<String>()?.as_str()) {
            kept.set_item(name, value)?;
        }
    }
    Ok(kept)
}

fn with(options: Options, name: &str, value: &Bound<'_, PyAny>) -> PyResult<Options> {
    Ok(match name {
        "kind" | "advice" | "create" | "create_new" => options,
        "fill" => options.tuning(Tuning::new().fill(named(value)?)),
        "preallocate" => options.tuning(Tuning::new().preallocate(named(value)?)),
        "on_full" => options.tuning(Tuning::new().on_full(named(value)?)),
        "timeout" => options.timeout(span(name, value)?),
        "on_stage_full" => options.tuning(Tuning::new().on_stage_full(named(value)?)),
        "staged_segments_max" => {
            options.tuning(Tuning::new().staged_segments_max(count(name, value)?))
        }
        "spare_segments_max" => {
            options.tuning(Tuning::new().spare_segments_max(count(name, value)?))
        }
        "checkpoint_after_bytes" => {
            options.tuning(Tuning::new().checkpoint_after_bytes(count(name, value)?))
        }
        "application_tag" => options.application_tag(count(name, value)?),
        "envelope" => options.envelope(value.extract()?),
        "segment_capacity_bytes" => {
            options.tuning(Tuning::new().segment_capacity_bytes(count(name, value)?))
        }
        "prefault_bytes" => options.tuning(Tuning::new().prefault_bytes(count(name, value)?)),
        "mapped_bytes_max" => options.tuning(Tuning::new().mapped_bytes_max(count(name, value)?)),
        "mode" => options.mode(value.extract()?),
        "read_only" => options.read_only(value.extract()?),
        "file_link" => options.file_link(value.extract()?),
        "exclusive" => options.exclusive(value.extract()?),
        _ => return with_policy(options, name, value),
    })
}

/// Whether and how closed files are compressed: `True` is zstd.
fn compression(value: &Bound<'_, PyAny>) -> PyResult<Compression> {
    match value.extract::<bool>() {
        Ok(compresses) => Ok(compresses.into()),
        Err(_) => named(value),
    }
}

fn with_policy(options: Options, name: &str, value: &Bound<'_, PyAny>) -> PyResult<Options> {
    Ok(match name {
        "rotate_bytes" => options.rotate_bytes(count(name, value)?),
        "rotate_every" => options.rotate_every(span(name, value)?),
        "rotate_offset" => options.rotate_offset(span(name, value)?),
        "retain_bytes" => options.retain_bytes(count(name, value)?),
        "retain_age" => options.retain_age(span(name, value)?),
        "retain_files" => options.retain_files(count(name, value)?),
        "compress" => options.compress(compression(value)?),
        _ => {
            let message = format!("Log() got an unexpected keyword argument '{name}'");
            return Err(PyTypeError::new_err(message));
        }
    })
}

/// A choice by its name; the error lists the names.
fn named<T: std::str::FromStr<Err = vellum::Error>>(value: &Bound<'_, PyAny>) -> PyResult<T> {
    let name: String = value.extract()?;
    name.parse().map_err(|error| exception(value.py(), &error))
}

fn count(name: &str, value: &Bound<'_, PyAny>) -> PyResult<u64> {
    value.extract().map_err(|_| {
        let shown = value.repr().map_or_else(|_| "?".into(), |text| text.to_string());
        PyValueError::new_err(format!("{name} is {shown}; it must be a whole number, 0 or more"))
    })
}

/// A time in seconds, or a `timedelta`.
pub(crate) fn span(name: &str, value: &Bound<'_, PyAny>) -> PyResult<Duration> {
    let seconds: f64 = match value.cast::<PyDelta>() {
        Ok(delta) => delta.call_method0("total_seconds")?.extract()?,
        Err(_) => value.extract()?,
    };
    Duration::try_from_secs_f64(seconds).map_err(|_| {
        PyValueError::new_err(format!("{name} is {seconds} seconds; it must be 0 or more"))
    })
}
