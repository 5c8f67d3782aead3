//! A formatter taken apart, and how to tell that it still is the same.

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};

use super::clock::Clock;
use super::stdlib::Stdlib;
use super::template::{Piece, parse};

/// What is known of a formatter.
pub(crate) struct Prepared {
    formatter: Py<PyAny>,
    /// Its own attributes, and those of its style.
    own: Py<PyDict>,
    style_own: Py<PyDict>,
    /// What it was made of when it was taken apart: changed, it is taken apart anew.
    parts: Parts,
    _held: Vec<Py<PyAny>>,
    /// How it formats; `None` where only Python knows.
    plan: Option<Plan>,
}

struct Plan {
    pieces: Vec<Piece>,
    clock: Option<Clock>,
}

/// What decides how a formatter formats, compared by identity.
#[derive(PartialEq)]
struct Parts {
    /// Attributes of the formatter, its style and its class; zeros where they play no part.
    addresses: [usize; PART_COUNT],
    /// How many attributes formatter and style have of their own: a method put there hides its
    /// class's.
    own_len: [usize; 2],
}

const PART_COUNT: usize = 9;

impl Parts {
    /// The parts as they are now. `hold` is handed each, to keep its address its own.
    ///
    /// This is done for every record: attributes of an object are looked up in its dictionary, and
    /// those that only a clock needs where there is one.
    fn of(
        formatter: &Bound<'_, PyAny>,
        own: &Bound<'_, PyDict>,
        style_own: &Bound<'_, PyDict>,
        has_clock: bool,
        mut hold: impl FnMut(Bound<'_, PyAny>),
    ) -> PyResult<Parts> {
        let py = formatter.py();
        let class = formatter.get_type();
        let mut parts = Parts { addresses: [0; PART_COUNT], own_len: [own.len(), style_own.len()] };
        let mut next = 0;
        let mut note = |part: Option<Bound<'_, PyAny>>| {
            if let Some(part) = part {
                parts.addresses[next] = part.as_ptr() as usize;
                hold(part);
            }
            next += 1;
        };
        note(Some(class.getattr(intern!(py, "format"))?));
        note(own.get_item(intern!(py, "_style"))?);
        note(style_own.get_item(intern!(py, "_fmt"))?);
        note(style_own.get_item(intern!(py, "_defaults"))?);
        if has_clock {
            note(own.get_item(intern!(py, "datefmt"))?);
            note(Some(class.getattr(intern!(py, "formatTime"))?));
            note(Some(formatter.getattr(intern!(py, "converter"))?));
            note(Some(formatter.getattr(intern!(py, "default_time_format"))?));
            note(Some(formatter.getattr(intern!(py, "default_msec_format"))?));
        }
        Ok(parts)
    }
}

impl Prepared {
    pub(crate) fn new(stdlib: &Stdlib, formatter: &Bound<'_, PyAny>) -> PyResult<Prepared> {
        let dict = |object: &Bound<'_, PyAny>| -> PyResult<Py<PyDict>> {
            Ok(object.getattr("__dict__")?.cast_into::<PyDict>()?.unbind())
        };
        let py = formatter.py();
        let (own, style_own) = (dict(formatter)?, dict(&formatter.getattr("_style")?)?);
        let mut held = Vec::with_capacity(PART_COUNT);
        let plan = Plan::of(stdlib, formatter)?;
        let has_clock = plan.as_ref().is_some_and(|plan| plan.clock.is_some());
        let parts = Parts::of(formatter, own.bind(py), style_own.bind(py), has_clock, |part| {
            held.push(part.unbind());
        })?;
        Ok(Prepared {
            formatter: formatter.clone().unbind(),
            own,
            style_own,
            parts,
            _held: held,
            plan,
        })
    }

    /// Whether this is what `formatter` is made of now.
    pub(crate) fn is_for(&self, formatter: &Bound<'_, PyAny>) -> PyResult<bool> {
        if !self.formatter.is(formatter) {
            return Ok(false);
        }
        let py = formatter.py();
        let has_clock = self.plan.as_ref().is_some_and(|plan| plan.clock.is_some());
        let (own, style_own) = (self.own.bind(py), self.style_own.bind(py));
        Ok(self.parts == Parts::of(formatter, own, style_own, has_clock, |part| drop(part))?)
    }

    /// Writes `record` as the formatter formats it; `false` where Python has to.
    pub(crate) fn write(
        &self,
        stdlib: &Stdlib,
        record: &Bound<'_, PyAny>,
        line: &mut Vec<u8>,
    ) -> PyResult<bool> {
        let Some(plan) = &self.plan else { return Ok(false) };
        let py = record.py();
        for extra in [intern!(py, "exc_info"), intern!(py, "exc_text"), intern!(py, "stack_info")] {
            if !record.getattr(extra)?.is_none() {
                return Ok(false);
            }
        }
        // As the standard library does: others may look at them.
        let message = message(record)?;
        record.setattr(intern!(py, "message"), &message)?;
        let mut time = String::new();
        if let Some(clock) = &plan.clock {
            let Some(shown) = clock.show(stdlib, record)? else { return Ok(false) };
            record.setattr(intern!(py, "asctime"), &shown)?;
            time = shown;
        }
        plan.write(record, &message, &time, line)
    }
}

impl Plan {
    fn of(stdlib: &Stdlib, formatter: &Bound<'_, PyAny>) -> PyResult<Option<Plan>> {
        let style = formatter.getattr("_style")?;
        if !stdlib.is_plain_formatter(formatter, &style)?
            || style.getattr("_defaults")?.is_truthy()?
        {
            return Ok(None);
        }
        let Ok(format) = style.getattr("_fmt")?.cast_into::<PyString>() else { return Ok(None) };
        let format = format.to_str()?;
        let Some(pieces) = parse(formatter.py(), format) else { return Ok(None) };
        let clock = match format.contains("%(asctime)") {
            true => match Clock::of(stdlib, formatter)? {
                Some(clock) => Some(clock),
                None => return Ok(None),
            },
            false => None,
        };
        Ok(Some(Plan { pieces, clock }))
    }

    /// Writes `record`, of which the message and the time are at hand.
    fn write(
        &self,
        record: &Bound<'_, PyAny>,
        message: &Bound<'_, PyAny>,
        time: &str,
        line: &mut Vec<u8>,
    ) -> PyResult<bool> {
        for piece in &self.pieces {
            let is_known = match piece {
                Piece::Text(text) => {
                    line.extend_from_slice(text.as_bytes());
                    true
                }
                Piece::Message(spec) => spec.write(message, line)?,
                Piece::Time(spec) => spec.write_string(time, line),
                Piece::Field { name, spec } => {
                    spec.write(&record.getattr(name.bind(record.py()))?, line)?
                }
            };
            if !is_known {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

/// `LogRecord.getMessage`.
fn message<'py>(record: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    let py = record.py();
    let text = record.getattr(intern!(py, "msg"))?.str()?.into_any();
    let args = record.getattr(intern!(py, "args"))?;
    if args.is_truthy()? { text.rem(args) } else { Ok(text) }
}
